"""Money that sits in another account of the same merchant: one break, not two.

A pair needs the same merchant, order number, currency and amount, sides that complete each other,
and exactly one candidate each; with more the set is ambiguous and nothing is chosen.
"""

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from recon.matching.frames.arrays import Arrays, Column
from recon.matching.frames.grouping import Bools, Rows
from recon.matching.sides.gateway_side import NUMBER
from recon.matching.sides.orders_side import ORDER_STATES

_LIVE_ORDERS = [
    ORDER_STATES.index(w) for w in ("paid", "partially_refunded", "refunded", "authorised")
]
_LIVE_PAYMENTS = [
    NUMBER[w] for w in ("paid", "partially_refunded", "refunded", "authorised", "chargeback")
]
_LOOKED_AT = (
    *("merchant_id", "account_id", "order_no", "currency", "order_state", "order_captured"),
    *("gateway_state", "gateway_amount_shown", "ledger_capture"),
)
NO_HOST = -1
ALL_SIDES = ("order", "gateway", "ledger")


class MovedSets(NamedTuple):
    """Which sets are explained by another account."""

    host: Rows
    """For a set that belongs to another one, that set; else NO_HOST."""
    wrong: Bools
    """Sets that stand for such a pair."""
    ambiguous: Bools
    """Sets with several candidates."""


class _Part(NamedTuple):
    number: int
    account: str
    sides: frozenset[str]
    currency: str
    amount: int


def wrong_accounts(sets: Arrays, *, judged: Bools) -> MovedSets:
    """Pair up one-sided sets over the accounts of a merchant; `judged` sets may take part."""
    size = len(sets)
    moved = MovedSets(
        np.full(size, NO_HOST, dtype=np.intp),
        np.zeros(size, dtype=np.bool_),
        np.zeros(size, dtype=np.bool_),
    )
    _, first = np.unique(sets["account"], return_index=True)
    if len({*sets["merchant_id"][first].tolist()}) == len(first):
        return moved
    partial = np.flatnonzero(_one_sided(sets) & judged & (sets["order_no"] != ""))
    rows = sets.take(partial).assign(number=partial)
    names = (*_LOOKED_AT, "number")
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for order_key, cells in zip(
        rows.rows("merchant_id", "order_no"), rows.rows(*names), strict=True
    ):
        groups.setdefault(order_key, []).append(dict(zip(names, cells, strict=True)))
    for group in groups.values():
        if len(group) > 1:
            _pair(_parts(group), moved=moved)
    return moved


def brought_together(sets: Arrays, *, host: Rows) -> Arrays:
    """The sets with what stands in another account beside the rows that it belongs to.

    A host is judged as if its records were in one account, so that what else is wrong with them is
    told on its break. Sets that are not hosts stay as they are.
    """
    away = np.flatnonzero(host >= 0)
    if not away.size:
        return sets
    hosts = host[away]
    together: dict[str, Column] = {}
    for name, column in sets.columns.items():
        if name in _TEXTS or (column.dtype.kind in _NUMBERS and name not in _OF_ITS_ACCOUNT):
            values = column.copy()
            values[hosts] = _joined(name, values[hosts], values[away])
            together[name] = values
    return sets.assign(**together)


_NUMBERS = "bi"
_OF_ITS_ACCOUNT = frozenset({"account", "kind", "currencies"})
_TEXTS = ("gateway_currency", "settled_currency")
"""The texts that a judgement reads beside the set's own currency, which both have."""
_WHERE_BOTH_ARE = frozenset({"both_known", "captured_known"})
_ONE_OF_BOTH = frozenset(
    {"order_state", "gateway_state", "payout", "ledger_any", "instruction_amount"}
)
_LATEST = ("_at", "_date", "settled_from", "settled_until")


def _joined(name: str, column: Column, other: Column) -> Column:
    """Texts: the one that is given; instants: the later; marks: either; amounts: their sum."""
    if column.dtype == object:
        return np.where(column == "", other, column)
    if name in _WHERE_BOTH_ARE:
        return column & other
    if column.dtype == np.bool_:
        return column | other
    if name in _ONE_OF_BOTH or name.endswith(_LATEST):
        return np.maximum(column, other)
    return column + other


def _one_sided(sets: Arrays) -> Bools:
    order = np.isin(sets["order_state"], _LIVE_ORDERS)
    payment = np.isin(sets["gateway_state"], _LIVE_PAYMENTS)
    booked = sets["ledger_capture"] != 0
    sides = order.astype(int) + payment + booked
    return np.asarray((sides > 0) & (sides < len(ALL_SIDES)))


def _parts(group: list[dict[str, Any]]) -> list[_Part]:
    parts = []
    for row in group:
        amounts = {
            "order": row["order_captured"] if row["order_state"] in _LIVE_ORDERS else None,
            "gateway": row["gateway_amount_shown"]
            if row["gateway_state"] in _LIVE_PAYMENTS
            else None,
            "ledger": row["ledger_capture"] or None,
        }
        given = {side: amount for side, amount in amounts.items() if amount is not None}
        first = next(iter(given.values()))
        strays = row["gateway_state"] != NUMBER["none"] and "gateway" not in given
        if not strays and len({*given.values()}) == 1:
            parts.append(
                _Part(
                    int(row["number"]), row["account_id"], frozenset(given), row["currency"], first
                )
            )
    return sorted(parts)


def _pair(parts: list[_Part], *, moved: MovedSets) -> None:
    candidates: dict[int, list[_Part]] = {part.number: [] for part in parts}
    for side, other in combinations(parts, 2):
        if _completes(side, other):
            candidates[side.number].append(other)
            candidates[other.number].append(side)
    for part in parts:
        fitting = candidates[part.number]
        if len(fitting) == 1 and len(candidates[fitting[0].number]) == 1:
            host = min((part, fitting[0]), key=_host_rank)
            moved.wrong[host.number] = True
            if host is not part:
                moved.host[part.number] = host.number
        elif fitting and ("order" in part.sides or len(fitting) > 1):
            moved.ambiguous[part.number] = True


def _host_rank(part: _Part) -> tuple[bool, bool, str]:
    """The order's account stands for the break; without an order the gateway's."""
    return ("order" not in part.sides, "gateway" not in part.sides, part.account)


def _completes(part: _Part, other: _Part) -> bool:
    return (
        part.account != other.account
        and not part.sides & other.sides
        and "gateway" in part.sides | other.sides
        and (part.currency, part.amount) == (other.currency, other.amount)
    )
