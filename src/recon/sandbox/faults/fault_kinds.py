"""Every kind of fault: where it bites, on which side of the commit, and what else it can be told.

docs/SANDBOX.md explains each kind with an example; a test holds that list equal to this one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

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
