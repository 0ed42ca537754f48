"""The gateway's side of a set: the query's answers by transaction, then summed per set."""

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.frames.arrays import Arrays, Column, texts
from recon.matching.frames.coding import by_label, equals, label_of, numbered
from recon.matching.frames.grouping import (
    NO_GROUP,
    NO_INSTANT,
    Bools,
    Ints,
    Rows,
    amounts_of,
    amounts_or,
    cells_of,
    count,
    first_row,
    given,
    greatest,
    instants_of,
    present,
    total,
)
from recon.matching.frames.sources import Sources
from recon.matching.frames.versions import CONFLICT, NEW, SUPERSEDED, versions
from recon.matching.sides.orders_side import Side
from recon.model.terms import REVERSAL_SUFFIX, EntryType, GatewayState, KeyAnswer

_REFUNDS = (EntryType.REFUND.value, EntryType.REFUND.value + REVERSAL_SUFFIX)
FROM_SETTLEMENT = "refund_from_settlement"
"""Column that the engine adds to the answers: the refunded amount was taken from the settlement."""
_PLACE = ("merchant_id", "account_id", "currency")
_PAYMENT = ("merchant_id", "account_id", "order_no", "transaction_id")
_NAMES = ("transaction_id", "order_no")
Key = tuple[str, ...]


def with_refunds_settled(sources: Sources, *, rules: Rules) -> Sources:
    """Return the sources with refunded amounts filled in where only settlement lines report them.

    A line belongs to the payment whose transaction it names; one without a transaction to the only
    payment of its order. `rules` map payment status codes to states.
    """
    lines, gateway = sources.settlement, sources.gateway
    if lines is None:
        return sources
    partial = GatewayState.PARTIALLY_REFUNDED
    partly = by_label(gateway["payment_status"], of=lambda code: rules.state_of(code) is partial)
    answered = equals(gateway["answer"], KeyAnswer.FOUND)
    silent = partly.astype(np.bool_) & answered & ~given(gateway["refunded_amount"])
    by_payment, by_order = _refunds(lines)
    if not silent.any() or not (by_payment or by_order):
        return sources
    single = _single_payments(gateway[answered])
    amounts = gateway["refunded_amount"].astype("Int64").array.copy()
    masks = np.zeros(len(gateway), dtype=np.bool_)
    rows = np.flatnonzero(silent)
    columns = [texts(gateway[name])[rows].tolist() for name in (*_PLACE, *_NAMES)]
    for row, *account_key, transaction, order_no in zip(rows.tolist(), *columns, strict=True):
        keys = [(*account_key, transaction)] if transaction else []
        own = [by_payment[key] for key in keys if key in by_payment]
        if order_no and (*account_key[:2], order_no) in single:
            own += (
                [by_order[*account_key, order_no]] if (*account_key, order_no) in by_order else []
            )
        if own and sum(own) >= 0:
            amounts[row] = sum(own)
            masks[row] = True
    completed = gateway.assign(refunded_amount=amounts)
    completed[FROM_SETTLEMENT] = masks
    return replace(sources, gateway=completed)


def _refunds(lines: pd.DataFrame) -> tuple[Counter[Key], Counter[Key]]:
    """Sum settled refunds by transaction, and by order where no transaction is named."""
    rows = np.flatnonzero(equals(lines["entry_type"], *_REFUNDS))
    by_payment: Counter[Key] = Counter()
    by_order: Counter[Key] = Counter()
    columns = [texts(lines[name])[rows].tolist() for name in (*_PLACE, *_NAMES)]
    gross = amounts_of(lines["gross"])[rows].tolist()
    for *account_key, transaction, order_no, amount in zip(*columns, gross, strict=True):
        if transaction:
            by_payment[*account_key, transaction] -= amount
        elif order_no:
            by_order[*account_key, order_no] -= amount
    return by_payment, by_order


def _single_payments(answered: pd.DataFrame) -> set[Key]:
    """Return the orders with exactly one payment."""
    payments = {*zip(*(texts(answered[name]).tolist() for name in _PAYMENT), strict=True)}
    counts = Counter(key[:3] for key in payments)
    return {key for key, count in counts.items() if count == 1}


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
"""Values of state_gateway; of several transactions in a set `_RANK` decides."""

NUMBER = {state: number for number, state in enumerate(GATEWAY_STATES)}
_MONEY = [NUMBER["paid"], NUMBER["partially_refunded"], NUMBER["refunded"]]
_DEAD = [NUMBER["cancelled"], NUMBER["expired"], NUMBER["failed"]]
_RANK = np.array([9, 0, 1, 1, 2, 3, 4, 5, 5, 6, 6, 6, 9])
"""Chargeback, money left, refunded in full, unmapped, authorised, pending, dead."""


def gateway_side(
    gateway: pd.DataFrame, *, sets: Rows, accounts: Rows, size: int, rules: Rules
) -> Side:
    """Reduce the gateway's answers to one row per set.

    Columns of `sets`: state (number in GATEWAY_STATES), captured, refunded and authorised (gross,
    minor units), which of these are known, and which answer kinds occurred.
    """
    answers = label_of(gateway["answer"])
    is_found = answers == KeyAnswer.FOUND.value
    payments = np.where(is_found, _numbered(gateway["transaction_id"], of=sets), NO_GROUP)
    outcome = versions(gateway, groups=payments, newest="queried_at")
    is_counted = is_found & np.isin(outcome, (NEW, CONFLICT))
    every = gateway_items(gateway, rules=rules).assign(set=sets)
    items = every.take(is_counted)
    columns = _summed(items, size=size)
    columns["gateway_ambiguous"] = present(outcome == CONFLICT, groups=sets, size=size)
    # Conflicting answers for one payment are one payment: the larger amount is at risk.
    columns["gateway_amount_shown"] = np.where(
        columns["gateway_ambiguous"],
        greatest(_amounts_shown(items), groups=items["set"], size=size),
        columns["gateway_amount_shown"],
    )
    columns["gateway_ambiguous"] |= _shared_payments(
        items,
        payments=_numbered(gateway["transaction_id"], of=accounts)[is_counted],
        size=size,
    )
    older = is_found & (outcome == SUPERSEDED) & (every["state"] == NUMBER["chargeback"])
    columns["chargeback_before"] = present(older, groups=sets, size=size)
    for answer in (KeyAnswer.NOT_FOUND, KeyAnswer.FAILED, KeyAnswer.UNMAPPED):
        mask = answers == answer.value
        columns[f"answer_{answer.value}"] = present(mask, groups=sets, size=size)
    return Side(items, Arrays(columns, size=size), outcome)


class AnswerAmounts(NamedTuple):
    """State and gross amounts that each answer shows of its payment, in minor units."""

    state: Ints
    """Number in GATEWAY_STATES."""
    captured: Ints
    refunded: Ints
    net: Ints


def answer_amounts(gateway: pd.DataFrame, *, rules: Rules) -> AnswerAmounts:
    """Compute state and amounts of each answer.

    paid: captured_amount, else amount; refunded: that less refunded_amount (blank: in full);
    partially_refunded needs refunded_amount; every other state nets to 0.
    """
    state = _states(gateway["payment_status"], rules=rules)
    money = np.isin(state, _MONEY)
    bears = money | (state == NUMBER["chargeback"])
    captured = amounts_or(gateway["captured_amount"], otherwise=gateway["amount"])
    captured[~bears] = 0
    in_full = (state == NUMBER["refunded"]) & ~given(gateway["refunded_amount"])
    refunded = np.where(in_full, captured, amounts_of(gateway["refunded_amount"]))
    refunded[~bears] = 0
    return AnswerAmounts(state, captured, refunded, np.where(money, captured - refunded, 0))


def gateway_items(gateway: pd.DataFrame, *, rules: Rules) -> Arrays:
    """Return one row per answer with what it shows of its payment (see `answer_amounts`)."""
    state, captured, refunded, net = answer_amounts(gateway, rules=rules)
    means_authorised = rules.gateway.amount_means == "authorised"
    authorised = authorised_amounts(gateway, rules=rules)
    refund_reported = given(gateway["refunded_amount"])
    columns = {
        "row": np.arange(len(gateway)),
        "state": state,
        "currency": label_of(gateway["currency"]),
        "transaction_id": texts(gateway["transaction_id"]),
        "transaction_date": instants_of(gateway["transaction_date"]),
        "amount": amounts_of(gateway["amount"]),
        "captured": captured,
        "refunded": refunded,
        "authorised": amounts_of(authorised),
        "authorised_known": given(authorised),
        "captured_known": given(gateway["captured_amount"]) | (not means_authorised),
        "refund_unknown": (state == NUMBER["partially_refunded"]) & ~refund_reported,
        "refund_settled": _settled(gateway),
        "net": net,
    }
    return Arrays(columns, size=len(gateway))


def _settled(gateway: pd.DataFrame) -> Bools:
    """Mark the answers whose refunded amount was taken from the settlement."""
    if FROM_SETTLEMENT not in gateway.columns:
        return np.zeros(len(gateway), dtype=np.bool_)
    return gateway[FROM_SETTLEMENT].to_numpy(dtype=np.bool_)


def authorised_amounts(gateway: pd.DataFrame, *, rules: Rules) -> "pd.Series[int]":
    """Return the authorised amount of each answer, minor units; blank where it is unknown."""
    authorised: pd.Series[int] = gateway["authorised_amount"]
    if rules.gateway.amount_means == "authorised":
        return authorised.fillna(gateway["amount"])
    return authorised


def _states(codes: "pd.Series[str]", *, rules: Rules) -> Ints:
    return by_label(codes, of=lambda code: NUMBER[rules.state_of(code).value]).astype(np.int64)


def _numbered(ids: "pd.Series[str]", *, of: Rows) -> Rows:
    """Number the distinct ids of each set or account."""
    return numbered(pd.DataFrame({"of": of, "id": ids.array}), by=("of", "id"))


def _shared_payments(items: Arrays, *, payments: Rows, size: int) -> Bools:
    """Mark sets with a payment that the gateway also names under another order of the account.

    One transaction is one movement of money, and nothing here can decide whose it is.

    Args:
        items: the payments.
        payments: a number for the account and transaction of each.
        size: number of sets.
    """
    live = (items["transaction_id"] != "") & ~np.isin(items["state"], _DEAD)
    mine, sets = payments[live], items["set"][live]
    first = np.full(int(payments.max(initial=-1)) + 1, -1, dtype=np.intp)
    first[mine] = sets
    several = np.zeros(len(first), dtype=np.bool_)
    several[mine[first[mine] != sets]] = True
    return present(several[mine], groups=sets, size=size)


def _amounts_shown(items: Arrays) -> Ints:
    """Return the amount of each payment as its answer shows it, minor units."""
    live = np.isin(items["state"], [*_MONEY, NUMBER["chargeback"]])
    promised = np.where(items["authorised_known"], items["authorised"], items["amount"])
    return np.where(live, np.maximum(items["captured"], 0), promised)


def _summed(items: Arrays, *, size: int) -> dict[str, Column]:
    """Combine the payments of each set into columns per set."""
    groups, state = items["set"], items["state"]
    money = np.isin(state, _MONEY)
    charged = state == NUMBER["chargeback"]
    live = money | charged
    captured, refunded, authorised = (items[n] for n in ("captured", "refunded", "authorised"))
    authorised_known, captured_known = items["authorised_known"], items["captured_known"]
    found = _found(items, size=size)
    over = authorised_known & captured_known & (captured > authorised) & live
    known = ~present(~authorised_known & live, groups=groups, size=size)
    taken_known = ~present(~captured_known & live, groups=groups, size=size)
    sums = {
        "gateway_captured": np.where(live, captured, 0),
        "gateway_refunded": np.where(live, refunded, 0),
        "gateway_charged": np.where(charged, captured - refunded, 0),
        "gateway_amount_shown": _amounts_shown(items),
    }
    masks = {
        "unmapped": state == NUMBER["unmapped"],
        "over_authorised": over,
        "refund_unknown": items["refund_unknown"],
        "refund_excess": refunded > captured,
        "refund_settled": items["refund_settled"],
    }
    return {
        "gateway_state": _state_of_sets(items, rows=found, size=size),
        "gateway_currency": cells_of(items["currency"], rows=found),
        "gateway_transaction": cells_of(items["transaction_id"], rows=found),
        "transaction_date": np.append(items["transaction_date"], NO_INSTANT)[found],
        "payments_with_money": count(money, groups=groups, size=size),
        **{name: total(amounts, groups=groups, size=size) for name, amounts in sums.items()},
        **{name: present(mask, groups=groups, size=size) for name, mask in masks.items()},
        "captured_known": taken_known,
        "both_known": known & taken_known,
    }


def _found(items: Arrays, *, size: int) -> Rows:
    """Return the payment whose state represents its set: by rank, then the newest."""
    state = items["state"]
    order = [
        _RANK[state],
        np.where(np.isin(state, _MONEY), state, 0),
        -np.maximum(items["transaction_date"], 0),
        items["transaction_id"],
        items["amount"],
    ]
    return first_row(order, groups=items["set"], size=size)


def _state_of_sets(items: Arrays, *, rows: Rows, size: int) -> Ints:
    """Return each set's state: that of its chosen payment, or partly refunded if any payment is."""
    states = np.append(items["state"], NUMBER["none"])[rows]
    partial = items["state"] == NUMBER["partially_refunded"]
    mixed = present(partial, groups=items["set"], size=size) & (states == NUMBER["paid"])
    return np.where(mixed, NUMBER["partially_refunded"], states).astype(np.int64)
