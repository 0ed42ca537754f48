"""The orders' side of a set: what the merchant says was sold, taken and given back."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from recon.matching.grouping import (
    NO_INSTANT,
    Rows,
    amounts_of,
    first_row,
    instants_of,
    taken,
    total,
)
from recon.matching.versions import CONFLICT, NEW, Versions, versions
from recon.model import OrderStatus

NO_ORDER = 0
ORDER_STATES = (
    "none",
    OrderStatus.PAID.value,
    OrderStatus.PARTIALLY_REFUNDED.value,
    OrderStatus.REFUNDED.value,
    OrderStatus.AUTHORISED.value,
    OrderStatus.PENDING.value,
    OrderStatus.CANCELLED.value,
    OrderStatus.FAILED.value,
)
"""Words of state_orders; in a set with several rows the first of this order speaks for it."""

_MONEY = frozenset({OrderStatus.PAID, OrderStatus.PARTIALLY_REFUNDED, OrderStatus.REFUNDED})


@dataclass(frozen=True, slots=True)
class Side:
    """One side of all sets."""

    items: pd.DataFrame
    """One row per row in scope: row (position in the source), set, currency, amount, net."""
    sets: pd.DataFrame
    """One row per set, by set number."""
    versions: Versions
    """What became of each source row."""


def orders_side(orders: pd.DataFrame, *, sets: Rows, size: int) -> Side:
    """The orders of every set.

    `sets` of the result: state (number in ORDER_STATES), duplicate, currency, transaction_id,
    ordered_at, amount (as ordered), and captured and refunded as the order expects them (gross).
    """
    outcome = versions(orders, groups=sets, newest="updated_at")
    kept = np.isin(outcome, (NEW, CONFLICT))
    items = order_items(orders).assign(set=sets)[kept].reset_index(drop=True)
    groups = items["set"].to_numpy()
    by = items[["state", "currency", "amount", "transaction_id", "ordered_at"]]
    speaks = first_row(by, groups=groups, size=size)
    state = np.append(items["state"].to_numpy(), NO_ORDER)[speaks]
    ordered_at = np.append(items["ordered_at"].to_numpy(), NO_INSTANT)[speaks]
    frame = pd.DataFrame(
        {
            "order_state": state,
            "order_duplicate": np.bincount(groups, minlength=size) > 1,
            "order_currency": taken(items["currency"], rows=speaks),
            "order_transaction": taken(items["transaction_id"], rows=speaks),
            "ordered_at": ordered_at,
        }
    )
    for name in ("amount", "captured", "refunded"):
        sums = total(items[name].to_numpy(), groups=groups, size=size)
        frame[f"order_{name}"] = sums
    return Side(items, frame, outcome)


def order_items(orders: pd.DataFrame) -> pd.DataFrame:
    """What each order row expects, minor units (grain: order row).

    paid: the expected captured amount, else the amount; partially_refunded and refunded: that less
    refund_amount (refunded and blank: in full); every other status nets to 0.
    """
    status = orders["status"]
    amount = amounts_of(orders["amount"])
    captured = amounts_of(orders["expected_captured_amount"].fillna(orders["amount"]))
    given = orders["refund_amount"].notna().to_numpy()
    part = amounts_of(orders["refund_amount"])
    is_part = status.eq(OrderStatus.PARTIALLY_REFUNDED).to_numpy()
    is_full = status.eq(OrderStatus.REFUNDED).to_numpy()
    money = status.isin(_MONEY).to_numpy()
    expects = money | status.eq(OrderStatus.AUTHORISED).to_numpy()
    captured = np.where(expects, captured, 0)
    refunded = np.where(is_part | (is_full & given), part, np.where(is_full, captured, 0))
    return pd.DataFrame(
        {
            "row": np.arange(len(orders)),
            "state": pd.Index(ORDER_STATES).get_indexer(pd.Index(status)),
            "currency": orders["currency"].reset_index(drop=True),
            "transaction_id": orders["transaction_id"].reset_index(drop=True),
            "ordered_at": instants_of(orders["ordered_at"]),
            "amount": amount,
            "captured": captured,
            "refunded": refunded,
            "net": np.where(money, captured - refunded, 0),
        }
    )
