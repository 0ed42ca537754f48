"""Fault injection: rules that say which call fails, how, and before or after its commit.

A rule counts the calls that match its operation and patterns, from the moment it was installed.
Chance is derived from a hash of seed, operation, row and attempt, so that the order in which
parallel calls arrive changes nothing. `faults.toml` lists the kinds.
"""

import hashlib
import json
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from recon.config.declared import UNKNOWN_KEY, mistakes_of
from recon.model.errors import ConfigurationError
from recon.sandbox.call import RowKey
from recon.sandbox.database import Database

RULES_MAX = 1_000
PLAN_BYTES_MAX = 1_048_576
SECONDS_MAX = 366 * 86_400
PAUSE_SECONDS_MAX = 60
PIECE_BYTES_MAX = 65_536
ANY_OPERATION = "*"
SECONDS_OTHERWISE = 30.0
"""Duration of a silence, delay, late effect or flip when the rule does not give one."""


class KindTerms(NamedTuple):
    """Properties of a kind of fault: the columns of `faults.toml`."""

    where: Literal["wire", "request", "reply", "world", "notification"]
    fields: Collection[str] = ()
    sides: Collection[str] = ("after",)
    ends: bool = False
    repeats: bool = False


KINDS: Mapping[str, KindTerms] = {
    name: KindTerms(**terms)
    for name, terms in tomllib.loads(
        files("recon.sandbox").joinpath("faults.toml").read_text("utf-8")
    ).items()
}
COMMON_FIELDS = frozenset(
    {
        *("operation", "kind", "when", "nth", "every", "probability", "times"),
        *("transaction_id", "order_no"),
    }
)
"""Fields allowed in every rule."""
WIRE_KINDS = frozenset(name for name, terms in KINDS.items() if terms.where == "wire")
"""Kinds that affect the whole connection."""
NOTIFY_KINDS = frozenset(name for name, terms in KINDS.items() if terms.where == "notification")
"""Kinds drawn for each notification, never for a call."""
ENDINGS = frozenset(name for name, terms in KINDS.items() if terms.ends)
"""Kinds that may end a call after only a part of its rows took effect."""


class FaultRule(BaseModel):
    """One rule of a fault plan: which calls fail, and how."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    operation: str = ANY_OPERATION
    """The last part of the path, such as `capture`; `*` is every operation."""
    kind: str
    when: Literal["before", "after"] = "after"
    """`before`: nothing takes effect."""
    nth: int | None = Field(default=None, ge=1)
    """Number of the one call that fails, counted from 1."""
    every: int | None = Field(default=None, ge=1)
    """Every k-th call fails."""
    probability: float | None = Field(default=None, ge=0, le=1)
    times: int | None = Field(default=None, ge=1)
    """Maximum number of calls that fail."""
    transaction_id: str | None = None
    """Only calls with a matching row; `*` and `?` are wildcards."""
    order_no: str | None = None
    row: int | None = None
    """Index of the affected row; 0 when nothing else selects one."""
    key: str | None = None
    """transaction_id or order_no of the affected row."""
    seconds: float | None = Field(default=None, ge=-SECONDS_MAX, le=SECONDS_MAX)
    """Duration of silence, delay and lag; time until a late effect or flip; error of the clock."""
    status: int = Field(default=500, ge=300, le=599)
    retry_after: str | None = None
    location: str | None = None
    """Target of a redirect."""
    code: str = "9999"
    """A status that no code map contains."""
    pause_seconds: float = Field(default=0.2, ge=0, le=PAUSE_SECONDS_MAX)
    """Pause between the pieces of a reply that drips."""
    piece_bytes: int = Field(default=8, ge=1, le=PIECE_BYTES_MAX)
    rows: int | None = Field(default=None, ge=0)
    """Number of rows that take effect before the call ends; half of them by default."""
    then: str = "status"
    """How a call ends after a part of its rows."""
    action: Literal["capture", "cancel", "refund"] = "refund"
    """What a person does in the gateway's portal."""
    amount: str | None = None
    """Amount of a capture or refund in the portal; by default what is left."""

    @field_validator("kind")
    @classmethod
    def _known(cls, kind: str) -> str:
        if kind not in KINDS:
            msg = f"there is no kind {kind!r}; the kinds are: {', '.join(KINDS)}"
            raise ValueError(msg)
        return kind

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        """Refuse fields that the kind does not use: they would silently have no effect."""
        terms = KINDS[self.kind]
        unused = self.model_fields_set - COMMON_FIELDS - {*terms.fields}
        problem = ""
        if unused:
            problem = f"{', '.join(sorted(unused))}: kind {self.kind} does not use it"
        elif self.when not in terms.sides and "when" in self.model_fields_set:
            problem = f"when: kind {self.kind} is never {self.when} the commit"
        elif self.kind == "part" and self.then not in ENDINGS:
            problem = f"then: one of {', '.join(sorted(ENDINGS))}"
        elif self.kind != "clock_skew" and (self.seconds or 0) < 0:
            problem = "seconds: not below 0"
        if problem:
            raise ValueError(problem)
        return self

    @property
    def name(self) -> str:
        """The kind, with `before` or `after` where it allows both."""
        return f"{self.kind}-{self.when}" if len(KINDS[self.kind].sides) > 1 else self.kind

    @property
    def lasting(self) -> float:
        """Duration in seconds, with the default where the rule gives none."""
        return SECONDS_OTHERWISE if self.seconds is None else self.seconds

    @property
    def has_pattern(self) -> bool:
        """Whether the rule selects calls by their rows."""
        return self.transaction_id is not None or self.order_no is not None

    def is_about(self, row: RowKey) -> bool:
        """Whether a row matches the patterns."""
        patterns = (self.transaction_id, self.order_no)
        return all(
            pattern is None or (bool(value) and fnmatchcase(value, pattern))
            for pattern, value in zip(patterns, row, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Fault:
    """A rule that applies to one call, and the rows that chance or a pattern selected."""

    rule: FaultRule
    picked: tuple[RowKey, ...]

    def hits(self, rows: Iterable[RowKey]) -> frozenset[int]:
        """Indexes of the rows that the fault affects."""
        keys = list(rows)
        if self.rule.key is not None:
            return frozenset(index for index, row in enumerate(keys) if self.rule.key in row)
        if self.rule.row is not None:
            return frozenset({self.rule.row % len(keys)} if keys else ())
        if self.picked:
            named = {key for row in self.picked for key in row if key}
            return frozenset(index for index, row in enumerate(keys) if named & set(row))
        return frozenset({0} if keys else ())


class PlannedFault(BaseModel):
    """A rule with the number of calls it matched and the number it affected."""

    rule: FaultRule
    seen: int = 0
    played: int = 0


def read_plan(path: Path, *, operations: Collection[str] = ()) -> list[FaultRule]:
    """Read the rules of a JSON or TOML file (`rules = [...]` or a bare JSON list).

    Raises:
        ConfigurationError: names the rule and field that are wrong.
    """
    try:
        text = path.read_bytes()[: PLAN_BYTES_MAX + 1].decode()
        tables = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        msg = f"the fault plan {path} cannot be read: {error}"
        raise ConfigurationError(msg) from error
    return rules_in(tables, source=str(path), operations=operations)


def rules_in(tables: Any, *, source: str, operations: Collection[str] = ()) -> list[FaultRule]:
    """Validate rules from parsed data: a list of rules, `{"rules": [...]}`, or one rule.

    With `operations`, a rule about any other operation is refused: it would never apply.

    Raises:
        ConfigurationError: names the rule and field that are wrong.
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
            key, what = mistakes_of(error)[0]
            if what == UNKNOWN_KEY:
                what = f"a rule has no such key; it has {', '.join(FaultRule.model_fields)}"
            named = f"{key}: {what}" if key else what
            msg = f"{source}: rule {number}, {named}"
            raise ConfigurationError(msg) from error
        if operations and rule.operation not in {ANY_OPERATION, *operations}:
            known = ", ".join(sorted(operations))
            msg = f"{source}: rule {number}, operation: {rule.operation!r} is none of {known}"
            raise ConfigurationError(msg)
        rules.append(rule)
    return rules


def install(database: Database, rules: Iterable[FaultRule], *, append: bool) -> int:
    """Install rules, replacing or extending the plan; return how many the plan then has."""
    planned = planned_faults(database) if append else []
    planned += [PlannedFault(rule=rule) for rule in rules]
    _remember(database, planned)
    return len(planned)


def planned_faults(database: Database) -> list[PlannedFault]:
    """The installed plan."""
    text = database.note("fault_plan")
    return [PlannedFault.model_validate(entry) for entry in json.loads(text)] if text else []


def draw(
    database: Database,
    *,
    operation: str,
    rows: Sequence[RowKey],
    seed: int,
    notifications: bool = False,
) -> list[Fault]:
    """Draw the faults of one call, or of one of its notifications, and count it in the plan."""
    planned = planned_faults(database)
    matching = [
        (number, entry)
        for number, entry in enumerate(planned)
        if (entry.rule.kind in NOTIFY_KINDS) == notifications
    ]
    if not matching:
        return []
    attempts: dict[RowKey, int] = {}
    if any(entry.rule.probability is not None for entry in planned):
        counted = f"{operation} told" if notifications else operation
        attempts = {row: _attempt(database, counted, row=row) for row in rows}
    faults: list[Fault] = []
    for number, entry in matching:
        about = entry.rule.operation in {ANY_OPERATION, operation}
        chances = {
            row: _chance(seed, operation, row[0] or row[1], attempt, number)
            for row, attempt in attempts.items()
        }
        fault = _played(entry, rows=rows, chances=chances) if about else None
        if fault:
            entry.played += 1
            faults.append(fault)
    _remember(database, planned)
    return faults


def _chance(*given: object) -> float:
    """A number in [0, 1), a function of seed, operation, row, attempt and number of the rule."""
    digest = hashlib.sha256("\x1f".join(map(str, (*given, "hit"))).encode()).digest()
    return int.from_bytes(digest[:6]) / 2**48


def _played(
    entry: PlannedFault, *, rows: Sequence[RowKey], chances: Mapping[RowKey, float]
) -> Fault | None:
    rule = entry.rule
    fitting = tuple(row for row in rows if rule.is_about(row))
    if rule.has_pattern and not fitting:
        return None
    entry.seen += 1
    over = rule.times is not None and entry.played >= rule.times
    nth, every = rule.nth or entry.seen, rule.every or 1
    if over or entry.seen != nth or entry.seen % every:
        return None
    picked = fitting if rule.has_pattern else ()
    if rule.probability is not None:
        matching = fitting[:1] if rule.kind in WIRE_KINDS else fitting
        picked = tuple(row for row in matching if chances[row] < rule.probability)
        if not picked:
            return None
    return Fault(rule, picked)


def _attempt(database: Database, operation: str, *, row: RowKey) -> int:
    """Count a request for this row by this operation; return the count."""
    key = row[0] or row[1]
    database.execute(
        "INSERT INTO draw VALUES (?, ?, 1)"
        " ON CONFLICT (operation, row_key) DO UPDATE SET attempts = attempts + 1",
        (operation, key),
    )
    statement = "SELECT attempts FROM draw WHERE operation = ? AND row_key = ?"
    return int(database.select(statement, (operation, key))[0][0])


def _remember(database: Database, planned: Iterable[PlannedFault]) -> None:
    text = json.dumps([entry.model_dump(exclude_defaults=True) for entry in planned])
    database.write_note("fault_plan", value=text)
