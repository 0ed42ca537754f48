"""Which sets two results judge otherwise, and why: the side that moved, the rules, or time."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from recon.matching.breaks.reopened import with_reopened
from recon.matching.breaks.result import Reconciliation
from recon.model.money import format_minor_units
from recon.model.words import SetState

Key = tuple[str, str, str, str]
"""Merchant, account, the key of the set, currency."""
SIDES = (
    ("order", "state_orders", "order_amount"),
    ("gateway", "state_gateway", "gateway_amount"),
    ("ledger", "", "ledger_amount"),
)


@dataclass(frozen=True, slots=True)
class Change:
    """One set that is judged otherwise on the second night."""

    key: Key
    before: str
    """State, of a break its code; "absent" when the night has no such set."""
    after: str
    why: str
    exposure: int
    """Of the second night's break, else of the first's; minor units of the currency."""


def compared(before: Reconciliation, after: Reconciliation) -> tuple[tuple[Change, ...], int]:
    """The sets that two results judge otherwise, and how many they judge alike."""
    same_rules = before.rules_digest == after.rules_digest
    left, right = _sets(before), _sets(after)
    changes = [
        Change(
            key,
            _told(left.get(key)),
            _told(right.get(key)),
            _why(left.get(key), right.get(key), currency=key[3], same_rules=same_rules),
            int(
                (right.get(key) or {}).get("exposure") or (left.get(key) or {}).get("exposure") or 0
            ),
        )
        for key in sorted({*left, *right})
        if _judged(left.get(key)) != _judged(right.get(key))
    ]
    return tuple(changes), len({*left, *right}) - len(changes)


def unverified_sets(result: Reconciliation) -> Counter[Key]:
    """How many sets under each key a result could not judge."""
    return Counter(map(_key, result.unverified.to_dict("records")))


def _sets(result: Reconciliation) -> dict[Key, dict[str, Any]]:
    """Every set of a result under a key that two nights share."""
    frames = {
        SetState.BREAK: with_reopened(result),
        SetState.MATCHED: result.matches,
        SetState.PENDING: result.pending,
        SetState.UNVERIFIED: result.unverified,
    }
    sets: dict[Key, dict[str, Any]] = {}
    for state, frame in frames.items():
        for row in frame.to_dict("records"):
            key = _key(row)
            cells = {str(column): value for column, value in row.items()}
            if key not in sets or state is not SetState.MATCHED:
                sets[key] = {**cells, "state": state}
    return sets


def _key(row: Mapping[Any, Any]) -> Key:
    name = row["order_no"] or row["transaction_id"] or row.get("about") or row.get("entry_id", "")
    return row["merchant_id"], row["account_id"], name, row["currency"]


def _judged(row: Mapping[str, Any] | None) -> tuple[str, ...]:
    """What makes two judgements differ: state, code and both effects."""
    if row is None:
        return ()
    effects = (_number(row["effect_orders"]), _number(row["effect_ledger"]))
    return (row["state"], row.get("code", ""), *map(str, effects))


def _told(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "absent"
    word = str(row.get("code") or row["state"].lower())
    older = row.get("reopens")
    return f"{word}, which opens break {older} again" if older else word


def _why(
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    *,
    currency: str,
    same_rules: bool,
) -> str:
    if before is None:
        return "the first night has no such order"
    if after is None:
        return "the second night has no such order: it left the window"
    moved = "; ".join(_moved_sides(before, after, currency=currency))
    if moved:
        return moved
    if not same_rules:
        return "the rules changed, no side did"
    if before["state"] == SetState.PENDING:
        return "its grace ran out, no side changed"
    return "our instructions or the evidence changed, no side did"


def _moved_sides(
    before: Mapping[str, Any], after: Mapping[str, Any], *, currency: str
) -> Iterator[str]:
    for side, state, amount in SIDES:
        words = [
            _side(row, state=state, amount=amount, currency=currency) for row in (before, after)
        ]
        if words[0] != words[1]:
            yield f"{side}: {words[0]} -> {words[1]}"


def _side(row: Mapping[str, Any], *, state: str, amount: str, currency: str) -> str:
    value = _number(row[amount])
    money = "" if value is None or not currency else format_minor_units(value, currency=currency)
    return " ".join(filter(None, (row[state] if state else "", money))) or "nothing"


def _number(value: Any) -> int | None:
    return None if pd.isna(value) else int(value)
