"""What changed between two nights, and why: read from their stored results alone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from recon.errors import UsageError
from recon.matching.result import Reconciliation
from recon.model import SetState
from recon.money import format_minor_units
from recon.steps.environment import Environment
from recon.store import results, runs

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


@dataclass(frozen=True, slots=True)
class Difference:
    """Two nights beside each other."""

    first: str
    second: str
    """Run, business date and verdict, in words."""
    same_rules: bool
    unchanged: int
    changes: tuple[Change, ...]


def difference(first: str, second: str, *, environment: Environment) -> Difference:
    """What the second night says otherwise than the first.

    Raises:
        UsageError: one of the nights cannot be found or has no result, or they are of two accounts.
    """
    with environment.store.reading() as connection:
        one, other = (_run_of(connection, name) for name in (first, second))
        before, after = (results.load(connection, run.run_id) for run in (one, other))
    if (one.merchant_id, one.account_id) != (other.merchant_id, other.account_id):
        msg = f"{first} and {second} are nights of two accounts"
        raise UsageError(msg)
    if before is None or after is None:
        msg = f"run {one.run_id if before is None else other.run_id} has no result"
        raise UsageError(msg)
    same_rules = before.rules_digest == after.rules_digest
    changes, unchanged = compared(before, after)
    return Difference(
        f"{one.business_date} ({one.run_id}): {before.verdict}",
        f"{other.business_date} ({other.run_id}): {after.verdict}",
        same_rules,
        unchanged,
        changes,
    )


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


def _run_of(connection: Any, name: str) -> runs.Run:
    """A run by its id, or the newest finished one of a business date."""
    finished = [run for run in runs.finished(connection) if name in {run.run_id, run.business_date}]
    if not finished:
        msg = f"there is no finished night {name}: name a run or its business date"
        raise UsageError(msg)
    found = [runs.get(connection, run.run_id) for run in finished]
    if len({(run.merchant_id, run.account_id) for run in found}) > 1:
        msg = f"several accounts have a night {name}: name the run (`recon nights` lists them)"
        raise UsageError(msg)
    return max(found, key=lambda run: run.started_at)


def _sets(result: Reconciliation) -> dict[Key, dict[str, Any]]:
    """Every set of a result under a key that two nights share."""
    frames = {
        SetState.BREAK: result.breaks,
        SetState.MATCHED: result.matches,
        SetState.PENDING: result.pending,
        SetState.UNVERIFIED: result.unverified,
    }
    found: dict[Key, dict[str, Any]] = {}
    for state, frame in frames.items():
        for row in frame.to_dict("records"):
            name = row["order_no"] or row["transaction_id"] or row.get("entry_id", "")
            key = (row["merchant_id"], row["account_id"], name, row["currency"])
            cells = {str(column): value for column, value in row.items()}
            if key not in found or state is not SetState.MATCHED:
                found[key] = {**cells, "state": state}
    return found


def _judged(row: Mapping[str, Any] | None) -> tuple[str, ...]:
    """What makes two judgements differ: state, code and both effects."""
    if row is None:
        return ()
    effects = (_number(row["effect_orders"]), _number(row["effect_ledger"]))
    return (row["state"], row.get("code", ""), *map(str, effects))


def _told(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "absent"
    return str(row.get("code") or row["state"].lower())


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
