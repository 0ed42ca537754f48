"""The fault plan: rules as data that say which call goes wrong, how, and before or after commit.

A rule counts the calls it is about (its operation and patterns) from the moment it was installed.
Chance is drawn from a hash of seed, operation, row and attempt, so that the order in which
parallel calls arrive changes nothing.
"""

import hashlib
import json
import tomllib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from recon.config.declared import UNKNOWN_KEY, mistakes_of
from recon.model.errors import ConfigurationError
from recon.sandbox.faults.fault_rule import (
    ANY_OPERATION,
    NOTIFY_KINDS,
    WIRE_KINDS,
    Fault,
    FaultRule,
    RowKey,
)
from recon.sandbox.ground.book import Book

RULES_MAX = 1_000
PLAN_BYTES_MAX = 1_048_576


class PlannedFault(BaseModel):
    """A rule and how often it was looked at and played."""

    rule: FaultRule
    seen: int = 0
    played: int = 0


def read_plan(path: Path, *, operations: Collection[str] = ()) -> list[FaultRule]:
    """The rules of a JSON or TOML file (`rules = [...]` or a bare JSON list).

    Raises:
        ConfigurationError: naming the rule and field that are wrong.
    """
    try:
        text = path.read_bytes()[: PLAN_BYTES_MAX + 1].decode()
        tables = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        msg = f"the fault plan {path} cannot be read: {error}"
        raise ConfigurationError(msg) from error
    return rules_in(tables, source=str(path), operations=operations)


def rules_in(tables: Any, *, source: str, operations: Collection[str] = ()) -> list[FaultRule]:
    """Rules from parsed data: a list of rules, `{"rules": [...]}`, or one rule.

    With `operations`, a rule about another operation is refused: it would never play.

    Raises:
        ConfigurationError: naming the rule and field that are wrong.
    """
    given = tables.get("rules", [tables]) if isinstance(tables, dict) else tables
    if not isinstance(given, list) or len(given) > RULES_MAX:
        msg = f"{source}: a fault plan is a list of at most {RULES_MAX} rules"
        raise ConfigurationError(msg)
    rules: list[FaultRule] = []
    for number, table in enumerate(given, start=1):
        try:
            rule = FaultRule.model_validate(table)
        except ValidationError as error:
            msg = f"{source}: rule {number}, {_problem(error)}"
            raise ConfigurationError(msg) from error
        if operations and rule.operation not in {ANY_OPERATION, *operations}:
            known = ", ".join(sorted(operations))
            msg = f"{source}: rule {number}, operation: {rule.operation!r} is none of {known}"
            raise ConfigurationError(msg)
        rules.append(rule)
    return rules


def _problem(error: ValidationError) -> str:
    """The first problem of a rule, its field in front."""
    key, what = mistakes_of(error)[0]
    if what == UNKNOWN_KEY:
        return f"{key}: a rule has no such key; it has {', '.join(FaultRule.model_fields)}"
    return f"{key}: {what}" if key else what


def install(book: Book, rules: Iterable[FaultRule], *, append: bool) -> int:
    """Put rules into force, replacing or joining those there; returns how many stand then."""
    planned = planned_faults(book) if append else []
    planned += [PlannedFault(rule=rule) for rule in rules]
    _remember(book, planned)
    return len(planned)


def planned_faults(book: Book) -> list[PlannedFault]:
    """The plan in force."""
    text = book.note("fault_plan")
    return [PlannedFault.model_validate(entry) for entry in json.loads(text)] if text else []


def draw(
    book: Book,
    *,
    operation: str,
    rows: Sequence[RowKey],
    seed: int,
    notifications: bool = False,
) -> list[Fault]:
    """The faults that play for one call, or for one of its notifications; the plan counts it."""
    planned = planned_faults(book)
    if not any((entry.rule.kind in NOTIFY_KINDS) == notifications for entry in planned):
        return []
    chance = _Chance(seed, operation, {})
    if any(entry.rule.is_drawn for entry in planned):
        counted = f"{operation} told" if notifications else operation
        chance.attempts.update({row: _attempt(book, counted, row=row) for row in rows})
    faults: list[Fault] = []
    for number, entry in enumerate(planned):
        if (entry.rule.kind in NOTIFY_KINDS) != notifications:
            continue
        fault = _played(entry, number=number, rows=rows, chance=chance)
        if fault:
            entry.played += 1
            faults.append(fault)
    _remember(book, planned)
    return faults


@dataclass(frozen=True, slots=True)
class _Chance:
    """Draws of one call, which depend on nothing but seed, operation, row, attempt and rule."""

    seed: int
    operation: str
    attempts: dict[RowKey, int]

    def of(self, row: RowKey, *, number: int, about: str) -> float:
        """A number from 0 to below 1."""
        given = (self.seed, self.operation, row[0] or row[1], self.attempts[row], number, about)
        digest = hashlib.sha256("\x1f".join(map(str, given)).encode()).digest()
        return int.from_bytes(digest[:6]) / 2**48


def _played(
    entry: PlannedFault, *, number: int, rows: Sequence[RowKey], chance: _Chance
) -> Fault | None:
    rule = entry.rule
    fitting = tuple(row for row in rows if rule.is_about(row))
    about = rule.operation in {ANY_OPERATION, chance.operation}
    if not about or (rule.has_pattern and not fitting):
        return None
    entry.seen += 1
    if rule.calls_max is not None and entry.played >= rule.calls_max:
        return None
    if not _is_its_turn(rule, seen=entry.seen):
        return None
    picked = fitting if rule.has_pattern else ()
    if rule.probability is not None:
        asked = fitting[:1] if rule.kind in WIRE_KINDS else fitting
        picked = tuple(
            row for row in asked if chance.of(row, number=number, about="hit") < rule.probability
        )
        if not picked:
            return None
    return Fault(_with_latency(rule, number=number, rows=rows, chance=chance), picked)


def _with_latency(
    rule: FaultRule, *, number: int, rows: Sequence[RowKey], chance: _Chance
) -> FaultRule:
    """The rule with the seconds that were drawn for this call."""
    if rule.seconds_max is None or not rows:
        return rule
    seconds = rule.drawn_seconds(chance.of(rows[0], number=number, about="latency"))
    return rule.model_copy(update={"seconds": seconds, "seconds_max": None})


def _is_its_turn(rule: FaultRule, *, seen: int) -> bool:
    if rule.nth is not None and seen != rule.nth:
        return False
    return rule.every is None or seen % rule.every == 0


def _attempt(book: Book, operation: str, *, row: RowKey) -> int:
    """How often this row was asked for in this operation, this time included."""
    key = row[0] or row[1]
    book.execute(
        "INSERT INTO draw VALUES (?, ?, 1)"
        " ON CONFLICT (operation, row_key) DO UPDATE SET attempts = attempts + 1",
        (operation, key),
    )
    statement = "SELECT attempts FROM draw WHERE operation = ? AND row_key = ?"
    return int(book.select(statement, (operation, key))[0][0])


def _remember(book: Book, planned: Iterable[PlannedFault]) -> None:
    text = json.dumps([entry.model_dump(exclude_defaults=True) for entry in planned])
    book.write_note("fault_plan", value=text)
