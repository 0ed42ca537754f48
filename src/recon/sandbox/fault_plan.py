"""The fault plan: rules as data that say which call goes wrong, how, and before or after commit.

A rule counts the calls it is about (its operation and patterns) from the moment it was installed.
Chance is drawn from a hash of seed, operation, row and attempt, so that the order in which
parallel calls arrive changes nothing.
"""

import hashlib
import json
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from recon.errors import ConfigurationError
from recon.sandbox.book import Book

RULES_MAX = 1_000
PLAN_BYTES_MAX = 1_048_576
SECONDS_MAX = 3_600.0
LATE_SECONDS_MAX = 366 * 86_400
ANY_OPERATION = "*"

RowKey = tuple[str, str]
"""transaction_id and order_no of a row, "" where the request does not say."""

Kind = Literal[
    "reset",
    "fin",
    "silence",
    "delay",
    "truncate",
    "garbage",
    "html",
    "status",
    "drop_row",
    "duplicate_row",
    "wrong_amount",
    "foreign_row",
    "wrong_signature",
    "unknown_code",
    "lag",
    "late",
]
WIRE_KINDS = frozenset(
    {"reset", "fin", "silence", "delay", "truncate", "garbage", "html", "status", "late"}
)
"""Kinds that decide what the whole connection sees; the others change a reply's content."""


class FaultRule(BaseModel):
    """One way in which calls go wrong."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    operation: str = ANY_OPERATION
    """The last part of the path, such as `capture`; `*` is every operation."""
    kind: Kind
    when: Literal["before", "after"] = "after"
    """Before the commit: nothing takes effect. Content faults other than drop_row are after."""
    nth: int | None = Field(default=None, ge=1)
    """The one call, counted from 1, that goes wrong."""
    every: int | None = Field(default=None, ge=1)
    """Each k-th call goes wrong."""
    probability: float | None = Field(default=None, ge=0, le=1)
    times: int | None = Field(default=None, ge=1)
    """At most so many calls."""
    transaction_id: str | None = None
    """Only calls with such a row; `*` and `?` stand for anything."""
    order_no: str | None = None
    row: int | None = None
    """Index of the row that content faults hit; 0 when nothing else picks one."""
    key: str | None = None
    """transaction_id or order_no of the row that content faults hit."""
    seconds: float = Field(default=30, ge=0, le=LATE_SECONDS_MAX)
    """How long silence and delay last; after how long a late effect comes."""
    on_real_clock: bool = False
    """A late effect counts real seconds instead of virtual ones."""
    calls: int = Field(default=1, ge=1)
    """For so many calls a query lags behind."""
    status: int = Field(default=500, ge=300, le=599)
    retry_after: str | None = None
    location: str | None = None
    """Where a redirect points."""
    code: str = "9999"
    """The status that no map knows."""
    without_length: bool = False
    """A truncated reply that names no length ends like a whole one."""

    @property
    def calls_max(self) -> int | None:
        """At most so many calls go wrong, None without a bound."""
        return self.calls if self.kind == "lag" and self.times is None else self.times

    @property
    def has_pattern(self) -> bool:
        """Whether the rule looks at rows to choose its calls."""
        return self.transaction_id is not None or self.order_no is not None

    def is_about(self, row: RowKey) -> bool:
        """Whether a row fits the patterns."""
        patterns = (self.transaction_id, self.order_no)
        return all(
            pattern is None or (bool(value) and fnmatchcase(value, pattern))
            for pattern, value in zip(patterns, row, strict=True)
        )


class PlannedFault(BaseModel):
    """A rule and how often it was looked at and played."""

    rule: FaultRule
    seen: int = 0
    played: int = 0


@dataclass(frozen=True, slots=True)
class Fault:
    """A rule that plays for one call, and the rows that chance or a pattern picked."""

    rule: FaultRule
    picked: tuple[RowKey, ...]


def read_plan(path: Path) -> list[FaultRule]:
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
    return rules_in(tables, source=str(path))


def rules_in(tables: Any, *, source: str) -> list[FaultRule]:
    """Rules from parsed data: a list of rules, `{"rules": [...]}`, or one rule.

    Raises:
        ConfigurationError: naming the rule and field that are wrong.
    """
    given = tables.get("rules", [tables]) if isinstance(tables, dict) else tables
    if not isinstance(given, list) or len(given) > RULES_MAX:
        msg = f"{source}: a fault plan is a list of at most {RULES_MAX} rules"
        raise ConfigurationError(msg)
    rules: list[FaultRule] = []
    for number, rule in enumerate(given, start=1):
        try:
            rules.append(FaultRule.model_validate(rule))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            msg = f"{source}: rule {number}, {where}: {first['msg']}"
            raise ConfigurationError(msg) from error
    return rules


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


def draw(book: Book, *, operation: str, rows: Sequence[RowKey], seed: int) -> list[Fault]:
    """The faults that play for one call; the plan counts the call."""
    planned = planned_faults(book)
    faults: list[Fault] = []
    chances: dict[RowKey, float] = {}
    if any(entry.rule.probability is not None for entry in planned):
        chances = {row: _chance(book, operation, row=row, seed=seed) for row in rows}
    for entry in planned:
        fault = _played(entry, operation=operation, rows=rows, chances=chances)
        if fault:
            entry.played += 1
            faults.append(fault)
    if planned:
        _remember(book, planned)
    return faults


def _played(
    entry: PlannedFault, *, operation: str, rows: Sequence[RowKey], chances: dict[RowKey, float]
) -> Fault | None:
    rule = entry.rule
    fitting = tuple(row for row in rows if rule.is_about(row))
    if rule.operation not in {ANY_OPERATION, operation} or (rule.has_pattern and not fitting):
        return None
    entry.seen += 1
    if rule.calls_max is not None and entry.played >= rule.calls_max:
        return None
    if not _is_its_turn(rule, seen=entry.seen):
        return None
    if rule.probability is None:
        return Fault(rule, fitting if rule.has_pattern else ())
    asked = fitting[:1] if rule.kind in WIRE_KINDS else fitting
    picked = tuple(row for row in asked if chances[row] < rule.probability)
    return Fault(rule, picked) if picked else None


def _is_its_turn(rule: FaultRule, *, seen: int) -> bool:
    if rule.nth is not None and seen != rule.nth:
        return False
    return rule.every is None or seen % rule.every == 0


def _chance(book: Book, operation: str, *, row: RowKey, seed: int) -> float:
    """A number from 0 to below 1 that depends on nothing but seed, operation, row and attempt."""
    key = row[0] or row[1]
    book.execute(
        "INSERT INTO draw VALUES (?, ?, 1)"
        " ON CONFLICT (operation, row_key) DO UPDATE SET attempts = attempts + 1",
        (operation, key),
    )
    statement = "SELECT attempts FROM draw WHERE operation = ? AND row_key = ?"
    attempt = book.select(statement, (operation, key))[0][0]
    digest = hashlib.sha256(f"{seed}\x1f{operation}\x1f{key}\x1f{attempt}".encode()).digest()
    return int.from_bytes(digest[:6]) / 2**48


def _remember(book: Book, planned: Iterable[PlannedFault]) -> None:
    text = json.dumps([entry.model_dump(exclude_defaults=True) for entry in planned])
    book.write_note("fault_plan", value=text)
