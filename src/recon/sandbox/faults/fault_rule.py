"""Every kind of fault, and one rule of a plan: which calls go wrong, how, and on which side.

docs/GATEWAY.md explains each kind with an example; a test holds that list equal to this one.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from statistics import NormalDist
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

SECONDS_MAX = 366 * 86_400
PAUSE_SECONDS_MAX = 60
PIECE_BYTES_MAX = 65_536
ANY_OPERATION = "*"
SECONDS_OTHERWISE = 30.0
"""How long silence, delay, a late effect or a flip last when the rule does not say."""

LOG_NORMAL_SPREAD = 0.5
"""Standard deviation of the logarithm of a drawn latency."""

RowKey = tuple[str, str]
"""transaction_id and order_no of a row, "" where the request does not say."""


class FaultRule(BaseModel):
    """One way in which calls go wrong."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    operation: str = ANY_OPERATION
    """The last part of the path, such as `capture`; `*` is every operation."""
    kind: str
    when: Literal["before", "after"] = "after"
    """Before the commit: nothing takes effect."""
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
    """Index of the row that is hit; 0 when nothing else picks one."""
    key: str | None = None
    """transaction_id or order_no of the row that is hit."""
    seconds: float | None = Field(default=None, ge=-SECONDS_MAX, le=SECONDS_MAX)
    """How long silence, delay and lag last; when a late effect or a flip comes; by how much the
    clock is wrong."""
    seconds_max: float | None = Field(default=None, ge=0, le=SECONDS_MAX)
    """A delay is drawn between `seconds` and this."""
    spread: Literal["uniform", "log_normal"] = "uniform"
    """How a delay is drawn; `seconds` is the median of the second."""
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
    pause_seconds: float = Field(default=0.2, ge=0, le=PAUSE_SECONDS_MAX)
    """Between the pieces of a reply that drips."""
    piece_bytes: int = Field(default=8, ge=1, le=PIECE_BYTES_MAX)
    rows: int | None = Field(default=None, ge=0)
    """How many rows take effect before the call ends; half of them when not given."""
    then: str = "status"
    """How a call ends after a part of its rows."""
    action: Literal["capture", "cancel", "refund"] = "refund"
    """What somebody does by hand in the gateway's portal."""
    amount: str | None = None
    """Of a capture or refund by hand; what is left when not given."""

    @field_validator("kind")
    @classmethod
    def _known(cls, kind: str) -> str:
        if kind not in KINDS:
            msg = f"there is no kind {kind!r}; docs/GATEWAY.md lists them: {', '.join(KINDS)}"
            raise ValueError(msg)
        return kind

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        """What a kind does not use would be silently without effect: it is refused instead."""
        terms = KINDS[self.kind]
        unused = self.model_fields_set - COMMON_FIELDS - terms.fields
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
        """The kind, with its side where it has a choice."""
        return f"{self.kind}-{self.when}" if len(KINDS[self.kind].sides) > 1 else self.kind

    @property
    def lasting(self) -> float:
        """The seconds of the rule, or as many as go without saying."""
        return SECONDS_OTHERWISE if self.seconds is None else self.seconds

    @property
    def calls_max(self) -> int | None:
        """At most so many calls go wrong, None without a bound."""
        counted = self.kind == "lag" and self.times is None and self.seconds is None
        return self.calls if counted else self.times

    @property
    def has_pattern(self) -> bool:
        """Whether the rule looks at rows to choose its calls."""
        return self.transaction_id is not None or self.order_no is not None

    @property
    def is_drawn(self) -> bool:
        """Whether chance has a say in this rule."""
        return self.probability is not None or self.seconds_max is not None

    def is_about(self, row: RowKey) -> bool:
        """Whether a row fits the patterns."""
        patterns = (self.transaction_id, self.order_no)
        return all(
            pattern is None or (bool(value) and fnmatchcase(value, pattern))
            for pattern, value in zip(patterns, row, strict=True)
        )

    def drawn_seconds(self, chance: float) -> float:
        """How long a delay lasts for a chance from 0 to below 1."""
        least, most = self.lasting, self.seconds_max
        if most is None:
            return least
        if self.spread == "uniform":
            return least + (most - least) * chance
        deviation = NormalDist().inv_cdf(max(chance, 1e-9)) * LOG_NORMAL_SPREAD
        return min(most, least * math.exp(deviation))


@dataclass(frozen=True, slots=True)
class Fault:
    """A rule that plays for one call, and the rows that chance or a pattern picked."""

    rule: FaultRule
    picked: tuple[RowKey, ...]

    def hits(self, rows: Iterable[RowKey]) -> frozenset[int]:
        """Indexes of the rows that the fault hits."""
        keys = list(rows)
        if self.rule.key is not None:
            return frozenset(index for index, row in enumerate(keys) if self.rule.key in row)
        if self.rule.row is not None:
            return frozenset({self.rule.row % len(keys)} if keys else ())
        if self.picked:
            wanted = {key for row in self.picked for key in row if key}
            return frozenset(index for index, row in enumerate(keys) if wanted & set(row))
        return frozenset({0} if keys else ())


Where = Literal["wire", "request", "reply", "world", "notification"]
"""On the connection; in what the gateway reads; in what it answers; in what is true; in what it
tells by itself."""

BEFORE: frozenset[str] = frozenset({"before"})
AFTER: frozenset[str] = frozenset({"after"})
EITHER = BEFORE | AFTER
ROW_CHOICE = frozenset({"row", "key"})

COMMON_FIELDS = frozenset(
    {
        "operation",
        "kind",
        "when",
        "nth",
        "every",
        "probability",
        "times",
        "transaction_id",
        "order_no",
    }
)
"""What every rule may say."""


@dataclass(frozen=True, slots=True)
class KindTerms:
    """What a kind allows."""

    where: Where
    fields: frozenset[str] = frozenset()
    """Fields of a rule beyond the common ones."""
    sides: frozenset[str] = AFTER
    """Whether it may come before the commit, after it, or both."""
    repeats_after: bool = False
    """Whether it needs an earlier reply of the same operation."""


def _wire(*names: str) -> KindTerms:
    return KindTerms("wire", frozenset(names), EITHER)


def _rows(*names: str, sides: frozenset[str] = AFTER) -> KindTerms:
    return KindTerms("reply", ROW_CHOICE | frozenset(names), sides)


_PART = ("rows", "then", "seconds", "status", "retry_after", "location", "without_length")

KINDS: Mapping[str, KindTerms] = {
    # the connection
    "reset": _wire(),
    "fin": _wire(),
    "silence": _wire("seconds"),
    "delay": KindTerms("wire", frozenset({"seconds", "seconds_max", "spread"})),
    "drip": KindTerms("wire", frozenset({"pause_seconds", "piece_bytes"})),
    "truncate": _wire("without_length"),
    "garbage": _wire(),
    "html": _wire(),
    "empty": _wire(),
    "malformed": _wire(),
    "status": _wire("status", "retry_after", "location"),
    "clock_skew": KindTerms("wire", frozenset({"seconds"})),
    "refuse": KindTerms("wire", frozenset({"seconds"})),
    "part": KindTerms("wire", frozenset(_PART)),
    "late": KindTerms("wire", frozenset({"seconds", "on_real_clock"})),
    # what the gateway reads
    "refuse_signature": KindTerms("request", sides=BEFORE),
    "refuse_caller": KindTerms("request", sides=BEFORE),
    # what it answers
    "drop_row": _rows(sides=EITHER),
    "duplicate_row": _rows(),
    "contradicting_row": _rows(),
    "reorder_rows": KindTerms("reply"),
    "foreign_row": _rows(),
    "stray_row": KindTerms("reply"),
    "wrong_amount": _rows(),
    "short_amount": _rows(),
    "number_types": _rows(),
    "object_for_list": KindTerms("reply"),
    "null_list": KindTerms("reply"),
    "unknown_code": _rows("code"),
    "unknown_field": _rows(),
    "lag": KindTerms("reply", frozenset({"calls", "seconds"})),
    "wrong_signature": KindTerms("reply"),
    "missing_signature": KindTerms("reply"),
    "upper_signature": KindTerms("reply"),
    "stale_signature": KindTerms("reply", repeats_after=True),
    "replayed_reply": KindTerms("reply", repeats_after=True),
    # what is true
    "late_flip": KindTerms("world", ROW_CHOICE | {"seconds"}),
    "portal": KindTerms("world", ROW_CHOICE | {"action", "amount"}, EITHER),
    # what it tells by itself
    "notify_dropped": KindTerms("notification"),
    "notify_twice": KindTerms("notification"),
    "notify_late": KindTerms("notification", frozenset({"seconds"})),
    "notify_reordered": KindTerms("notification", frozenset({"seconds"})),
    "notify_truncated": KindTerms("notification"),
    "notify_forged": KindTerms("notification"),
    "notify_contradicting": KindTerms("notification"),
}

WIRE_KINDS = frozenset(name for name, terms in KINDS.items() if terms.where == "wire")
"""Kinds that decide what the whole connection sees."""

NOTIFY_KINDS = frozenset(name for name, terms in KINDS.items() if terms.where == "notification")
"""Kinds that are drawn for each notification, and never for a call."""

REPEATING_KINDS = frozenset(name for name, terms in KINDS.items() if terms.repeats_after)
"""Kinds for which the sandbox has to remember an earlier reply."""

ENDINGS = frozenset(
    {"reset", "fin", "silence", "truncate", "garbage", "html", "empty", "malformed", "status"}
)
"""How a call may end after only a part of its rows took effect."""
