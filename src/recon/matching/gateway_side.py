"""The gateway's side of a set: what the query answered, transaction by transaction, then summed."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from recon.matching.coding import by_word
from recon.matching.grouping import (
    NO_INSTANT,
    Bools,
    Ints,
    Rows,
    amounts_of,
    amounts_or,
    count,
    first_row,
    instants_of,
    present,
    taken,
    total,
)
from recon.matching.orders_side import Side
from recon.matching.versions import CONFLICT, NEW, SUPERSEDED, versions
from recon.model import Answer
from recon.rules import Rules

GATEWAY_STATES = (
    "none",
    "chargeback",
    "paid",
    "partially_refunded",
    "refunded",
    "unmapped",
    "authorised",
    "in_review",
    "pending",
    "cancelled",
    "expired",
    "failed",
    "unverified",
)
"""Words of state_gateway; of several transactions of a set the first rank of `_RANK` speaks."""

NUMBER = {state: number for number, state in enumerate(GATEWAY_STATES)}
_MONEY = [NUMBER["paid"], NUMBER["partially_refunded"], NUMBER["refunded"]]
_DEAD = [NUMBER["cancelled"], NUMBER["expired"], NUMBER["failed"]]
_RANK = np.array([9, 0, 1, 1, 2, 3, 4, 5, 5, 6, 6, 6, 9])
"""Chargeback, money left, refunded in full, unmapped, authorised, pending, dead."""


def gateway_side(gateway: pd.DataFrame, *, sets: Rows, size: int, rules: Rules) -> Side:
    """The gateway's answers for every set.

    `sets` of the result: state (number in GATEWAY_STATES), captured, refunded and authorised
    (gross, minor units), what of it is known, and which answers stand for the set.
    """
    found = gateway["answer"].eq(Answer.FOUND).to_numpy()
    payments = _payment_groups(gateway, sets=sets, found=found)
    outcome = versions(gateway, groups=payments, newest="queried_at")
    kept = found & np.isin(outcome, (NEW, CONFLICT))
    every = gateway_items(gateway, rules=rules).assign(set=sets)
    items = every[kept].reset_index(drop=True)
    frame = _summed(items, size=size)
    frame["gateway_ambiguous"] = present(outcome == CONFLICT, groups=sets, size=size)
    frame["gateway_ambiguous"] |= _shared_payments(gateway, items=items, size=size)
    older = found & (outcome == SUPERSEDED) & every["state"].eq(NUMBER["chargeback"]).to_numpy()
    frame["chargeback_before"] = present(older, groups=sets, size=size)
    for answer in (Answer.NOT_FOUND, Answer.FAILED, Answer.UNMAPPED):
        mask = gateway["answer"].eq(answer).to_numpy()
        frame[f"answer_{answer.value}"] = present(mask, groups=sets, size=size)
    return Side(items, frame, outcome)


class Shown(NamedTuple):
    """What each answer says of its payment, gross minor units (grain: gateway row)."""

    state: Ints
    """Number in GATEWAY_STATES."""
    captured: Ints
    refunded: Ints
    net: Ints


def shown(gateway: pd.DataFrame, *, rules: Rules) -> Shown:
    """What the answers say.

    paid: captured_amount, else amount; refunded: that less refunded_amount (blank: in full);
    partially_refunded needs refunded_amount; every other state nets to 0.
    """
    state = _states(gateway["payment_status"], rules=rules)
    money = np.isin(state, _MONEY)
    bears = money | (state == NUMBER["chargeback"])
    captured = amounts_or(gateway["captured_amount"], otherwise=gateway["amount"])
    captured[~bears] = 0
    in_full = (state == NUMBER["refunded"]) & gateway["refunded_amount"].isna().to_numpy()
    refunded = np.where(in_full, captured, amounts_of(gateway["refunded_amount"]))
    refunded[~bears] = 0
    return Shown(state, captured, refunded, np.where(money, captured - refunded, 0))


def gateway_items(gateway: pd.DataFrame, *, rules: Rules) -> pd.DataFrame:
    """The answers with what they say of their payments (see `shown`; grain: gateway row)."""
    state, captured, refunded, net = shown(gateway, rules=rules)
    given = gateway["refunded_amount"].notna().to_numpy()
    means_authorised = rules.gateway.amount_means == "authorised"
    authorised = authorised_amounts(gateway, rules=rules)
    return pd.DataFrame(
        {
            "row": np.arange(len(gateway)),
            "state": state,
            "currency": gateway["currency"].reset_index(drop=True),
            "transaction_id": gateway["transaction_id"].reset_index(drop=True),
            "transaction_date": instants_of(gateway["transaction_date"]),
            "amount": amounts_of(gateway["amount"]),
            "captured": captured,
            "refunded": refunded,
            "authorised": amounts_of(authorised),
            "authorised_known": authorised.notna().to_numpy(),
            "captured_known": gateway["captured_amount"].notna().to_numpy()
            | (not means_authorised),
            "refund_unknown": (state == NUMBER["partially_refunded"]) & ~given,
            "net": net,
        }
    )


def authorised_amounts(gateway: pd.DataFrame, *, rules: Rules) -> "pd.Series[int]":
    """What each answer says was authorised, minor units; blank where it says nothing of it."""
    authorised: pd.Series[int] = gateway["authorised_amount"]
    if rules.gateway.amount_means == "authorised":
        return authorised.fillna(gateway["amount"])
    return authorised


def _states(codes: "pd.Series[str]", *, rules: Rules) -> Ints:
    return by_word(codes, of=lambda code: NUMBER[rules.state_of(code).value]).astype(np.int64)


def _payment_groups(gateway: pd.DataFrame, *, sets: Rows, found: Bools) -> Rows:
    codes, ids = pd.factorize(gateway["transaction_id"])
    groups = pd.factorize(sets * (len(ids) + 1) + codes)[0].astype(np.intp)
    return np.where(found, groups, -1)


def _shared_payments(gateway: pd.DataFrame, *, items: pd.DataFrame, size: int) -> Bools:
    """Sets with a payment that the gateway names under another order of the account as well.

    One transaction is one movement of money: whose it is, nobody here can choose.
    """
    live = items[items["transaction_id"].ne("") & ~items["state"].isin(_DEAD)]
    place = gateway[["merchant_id", "account_id"]].iloc[live["row"]].reset_index(drop=True)
    named = live[["transaction_id", "set"]].reset_index(drop=True)
    pairs = pd.concat([place, named], axis=1).drop_duplicates()
    payment = ["merchant_id", "account_id", "transaction_id"]
    shared = np.zeros(size, dtype=np.bool_)
    shared[pairs.loc[pairs.duplicated(payment, keep=False), "set"].to_numpy()] = True
    return shared


def _summed(items: pd.DataFrame, *, size: int) -> pd.DataFrame:
    """The payments of each set as one (grain: set)."""
    groups = items["set"].to_numpy()
    state = items["state"].to_numpy()
    money = np.isin(state, _MONEY)
    live = money | (state == NUMBER["chargeback"])
    spoken = _speaking(items, size=size)
    frame = pd.DataFrame({"gateway_state": _state_of_sets(items, rows=spoken, size=size)})
    frame["gateway_currency"] = taken(items["currency"], rows=spoken)
    frame["gateway_transaction"] = taken(items["transaction_id"], rows=spoken)
    dates = np.append(items["transaction_date"].to_numpy(), NO_INSTANT)
    frame["transaction_date"] = dates[spoken]
    frame["payments_with_money"] = count(money, groups=groups, size=size)
    frame["unmapped"] = present(state == NUMBER["unmapped"], groups=groups, size=size)
    for name in ("captured", "refunded"):
        frame[f"gateway_{name}"] = total(np.where(live, items[name], 0), groups=groups, size=size)
    charged = np.where(state == NUMBER["chargeback"], items["captured"] - items["refunded"], 0)
    frame["gateway_charged"] = total(charged.astype(np.int64), groups=groups, size=size)
    shown = np.where(items["authorised_known"], items["authorised"], items["amount"])
    frame["gateway_amount_shown"] = total(
        np.where(live, np.maximum(items["captured"], 0), shown), groups=groups, size=size
    )
    over = items["authorised_known"] & items["captured_known"]
    over &= items["captured"].gt(items["authorised"]) & live
    frame["over_authorised"] = present(over.to_numpy(), groups=groups, size=size)
    known = ~present(~items["authorised_known"].to_numpy() & live, groups=groups, size=size)
    taken_known = ~present(~items["captured_known"].to_numpy() & live, groups=groups, size=size)
    frame["captured_known"] = taken_known
    frame["both_known"] = known & taken_known
    unknown = items["refund_unknown"].to_numpy()
    frame["refund_unknown"] = present(unknown, groups=groups, size=size)
    excess = items["refunded"].gt(items["captured"]).to_numpy()
    frame["refund_excess"] = present(excess, groups=groups, size=size)
    return frame


def _speaking(items: pd.DataFrame, *, size: int) -> Rows:
    """The payment that stands for its set: by rank, then the newest."""
    order = pd.DataFrame(
        {
            "rank": _RANK[items["state"].to_numpy()],
            "state": np.where(np.isin(items["state"], _MONEY), items["state"], 0),
            "newest": -np.maximum(items["transaction_date"].to_numpy(), 0),
            "transaction_id": items["transaction_id"],
            "amount": items["amount"],
        }
    )
    return first_row(order, groups=items["set"].to_numpy(), size=size)


def _state_of_sets(items: pd.DataFrame, *, rows: Rows, size: int) -> Ints:
    """A set of paid and partly refunded payments is partly refunded; else the speaker's state."""
    states = np.append(items["state"].to_numpy(), NUMBER["none"])[rows]
    part = items["state"].eq(NUMBER["partially_refunded"]).to_numpy()
    some_part = present(part, groups=items["set"].to_numpy(), size=size)
    mixed = some_part & (states == NUMBER["paid"])
    return np.where(mixed, NUMBER["partially_refunded"], states).astype(np.int64)
