"""The orders' side of a set: what the merchant sold, expects to be captured, and refunded."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from recon.matching.frames.arrays import Arrays, texts
from recon.matching.frames.coding import by_label, label_of
from recon.matching.frames.grouping import (
    NO_INSTANT,
    Ints,
    Rows,
    amounts_of,
    amounts_or,
    cells_of,
    first_row,
    given,
    instants_of,
    total,
)
from recon.matching.frames.versions import CONFLICT, NEW, Versions, versions
from recon.model.terms import OrderStatus

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
"""Values of state_orders; in a set with several rows the state that comes first here decides."""

_NUMBER = {state: number for number, state in enumerate(ORDER_STATES)}
_MONEY = [
    _NUMBER[status]
    for status in (OrderStatus.PAID, OrderStatus.PARTIALLY_REFUNDED, OrderStatus.REFUNDED)
]


@dataclass(frozen=True, slots=True)
class Side:
    """One side of all sets."""

    items: Arrays
    """One row per row in scope: row (position in the source), set, currency, amount, net."""
    sets: Arrays
    """One row per set, by set number."""
    versions: Versions
    """NEW, REPEAT, SUPERSEDED or CONFLICT for each source row."""


def orders_side(orders: pd.DataFrame, *, sets: Rows, size: int) -> Side:
    """Reduce the order rows to one row per set.

    Columns of `sets`: state (number in ORDER_STATES), duplicate, currency, transaction, ordered_at,
    amount (as ordered), and captured and refunded as the order expects them (gross).
    """
    outcome = versions(orders, groups=sets, newest="updated_at")
    is_counted = np.isin(outcome, (NEW, CONFLICT))
    items = order_items(orders).assign(set=sets).take(is_counted)
    groups = items["set"]
    by = ("state", "currency", "amount", "transaction_id", "ordered_at")
    representative = first_row([items[name] for name in by], groups=groups, size=size)
    columns = {
        "order_state": np.append(items["state"], NO_ORDER)[representative],
        "order_duplicate": np.bincount(groups, minlength=size) > 1,
        "order_currency": cells_of(items["currency"], rows=representative),
        "order_transaction": cells_of(items["transaction_id"], rows=representative),
        "ordered_at": np.append(items["ordered_at"], NO_INSTANT)[representative],
    }
    for name in ("amount", "captured", "refunded"):
        columns[f"order_{name}"] = total(items[name], groups=groups, size=size)
    return Side(items, Arrays(columns, size=size), outcome)


class Expected(NamedTuple):
    """What each order row expects, in gross minor units."""

    state: Ints
    """Number in ORDER_STATES, -1 for an unknown status."""
    captured: Ints
    refunded: Ints
    net: Ints


def expected(orders: pd.DataFrame) -> Expected:
    """Compute state and expected amounts of each order row.

    paid: the expected captured amount, else the amount; partially_refunded and refunded: that less
    refund_amount (refunded and blank: in full); every other status nets to 0.
    """
    state = by_label(orders["status"], of=lambda label: _NUMBER.get(label, -1)).astype(np.int64)
    money = np.isin(state, _MONEY)
    full = state == _NUMBER[OrderStatus.REFUNDED]
    captured = amounts_or(orders["expected_captured_amount"], otherwise=orders["amount"])
    captured[~(money | (state == _NUMBER[OrderStatus.AUTHORISED]))] = 0
    partly = state == _NUMBER[OrderStatus.PARTIALLY_REFUNDED]
    partly |= full & given(orders["refund_amount"])
    refunded = np.where(full, captured, 0)
    refunded[partly] = amounts_of(orders["refund_amount"])[partly]
    return Expected(state, captured, refunded, np.where(money, captured - refunded, 0))


def order_items(orders: pd.DataFrame) -> Arrays:
    """Return one row per order row with what it expects (see `expected`)."""
    state, captured, refunded, net = expected(orders)
    columns = {
        "row": np.arange(len(orders)),
        "state": state,
        "currency": label_of(orders["currency"]),
        "transaction_id": texts(orders["transaction_id"]),
        "ordered_at": instants_of(orders["ordered_at"]),
        "amount": amounts_of(orders["amount"]),
        "captured": captured,
        "refunded": refunded,
        "net": net,
    }
    return Arrays(columns, size=len(orders))
