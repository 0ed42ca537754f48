"""Evaluates the conditions of codes.toml once per distinct pattern of facts, for any comparison.

A comparison gives a column for each fact that its conditions may name. Some names have a meaning of
their own: `unverified` (see Unverified), `late_<grace>` (that clock has
run out) and `closed_<leg>` (a write-off closes the findings of that leg).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, auto
from itertools import starmap
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from recon.matching.codes import PRECEDENCE, TABLE, CodeTable, Condition, When, condition_of
from recon.matching.frames.arrays import Arrays, Column
from recon.matching.frames.coding import is_first, numbered
from recon.matching.frames.grouping import Bools, Rows
from recon.model.errors import Defect
from recon.model.terms import BreakCode, Flag, SetState, UnverifiedReason

ABSENT = ""
"""State of a set without a row on any side."""
LEGS = ("orders", "instructions", "ledger", "settlement", "bank")
"""Comparisons in order; the first of them with something pending names the expected side."""
FIRM = frozenset(code for code, row in TABLE.codes.items() if row.firm)
"""Codes that a write-off does not close: they are doubts, not differences."""


class Unverified(IntEnum):
    """The fact `unverified`: NO, or a reason by the name of its UnverifiedReason."""

    NO = 0
    ROW_QUARANTINED = auto()
    ENTRY_ID_CONFLICT = auto()
    QUERY_FAILED = auto()
    QUERY_RESULT_UNMAPPED = auto()
    REFUND_AMOUNT_UNKNOWN = auto()
    BATCH_QUARANTINED = auto()


Known = Any
"""Facts by name, each an array (grain: pattern)."""


class TableRow(NamedTuple):
    """A compiled row of the table for a code or a flag."""

    code: BreakCode | None
    flag: Flag | None
    when: When
    holds: Condition


@dataclass(frozen=True, slots=True)
class Classification:
    """The outcome of one pattern."""

    state: str
    """A SetState, or ABSENT."""
    codes: tuple[BreakCode, ...] = ()
    """In order of precedence; the first is the primary code."""
    flags: tuple[Flag, ...] = ()
    clocks: frozenset[str] = frozenset()
    """The clocks that it waits for while PENDING."""
    expected_side: str = ""
    """The side whose data it waits for."""
    rule: str = ""
    """Why it is MATCHED."""
    reason: str = ""
    """Why it is UNVERIFIED."""


NOTHING = Classification(ABSENT)


def rows_of(
    table: CodeTable, *, of: str, facts: Mapping[str, type], given: str = "True"
) -> tuple[TableRow, ...]:
    """Compile the rows of the table for one kind of comparison.

    Args:
        table: the codes.
        of: see When.of.
        facts: name -> type of every fact that their conditions may name.
        given: a condition that must also hold for each of them.

    Raises:
        Defect: a condition or clock is unknown; the message names its code or flag.
    """
    whens: list[tuple[BreakCode | None, Flag | None, When]] = [
        *((code, None, when) for code, row in table.codes.items() for when in row.when),
        *((None, flag, when) for flag, row in table.flags.items() for when in row.when),
    ]
    rows = []
    for code, flag, when in whens:
        if when.of != of:
            continue
        name = code or flag or ""
        if when.grace and f"late_{when.grace}" not in facts:
            msg = f"codes.toml, {name}: there is no clock {when.grace!r}"
            raise Defect(msg)
        holds = ready(f"{given} and ({when.holds})", facts=facts, of=name)
        rows.append(TableRow(code, flag, when, holds))
    return tuple(rows)


def ready(text: str, *, facts: Mapping[str, type], of: str) -> Condition:
    """Compile a condition of the table.

    Raises:
        Defect: it is invalid or names an unknown fact; the message names its owner (`of`).
    """
    try:
        return condition_of(text, facts=facts)
    except ValueError as error:
        msg = f"codes.toml, {of}: {error}"
        raise Defect(msg) from error


def distinct_patterns(columns: Mapping[str, Column]) -> tuple[Rows, dict[str, Column]]:
    """Return the pattern number of each row, and the distinct patterns as the same columns."""
    numbers = numbered(Arrays(columns, size=0).frame(*columns), by=[*columns])
    first = is_first(numbers)
    return numbers, {name: column[first] for name, column in columns.items()}


def where_holds(row: TableRow, *, known: Known) -> Bools:
    """Return where a row holds and no write-off closes its leg."""
    holds: Bools = row.holds(known)
    if row.when.leg in ("orders", "ledger") and row.code not in FIRM:
        holds = holds & ~getattr(known, f"closed_{row.when.leg}")
    return holds


def is_late(row: TableRow, *, known: Known) -> Bools | bool:
    """Return where a row's grace has run out, or True if it has none."""
    late: Bools | bool = not row.when.grace or getattr(known, f"late_{row.when.grace}")
    return late


def classifications_of(
    found: Iterable[tuple[TableRow, Bools]], *, known: Known
) -> tuple[Classification, ...]:
    """Return the judgement of each pattern.

    Args:
        found: rows of the table, and where each holds.
        known: the facts; `orders_lack`: payments that a missing order file may contain; `anything`:
            a row exists on any side; `agreed`: the match rule where it agrees.
    """
    late: list[list[TableRow]] = [[] for _ in known.unverified]
    waits: list[list[TableRow]] = [[] for _ in known.unverified]
    for row, holds in found:
        late_now = np.broadcast_to(is_late(row, known=known), holds.shape)
        for number in np.flatnonzero(holds).tolist():
            (late if late_now[number] else waits)[number].append(row)
    facts = (known.unverified, known.orders_lack, known.anything, known.agreed)
    return tuple(
        starmap(_classification, zip(late, waits, *(f.tolist() for f in facts), strict=True))
    )


def _classification(
    late: list[TableRow], waits: list[TableRow], *facts: *tuple[int, bool, bool, str]
) -> Classification:
    unverified, orders_lack, anything, agreed = facts
    if unverified:
        reason = UnverifiedReason[Unverified(unverified).name].value
        return Classification(SetState.UNVERIFIED, reason=reason)
    codes = tuple(sorted({row.code for row in late if row.code}, key=PRECEDENCE.index))
    flags = tuple(sorted({row.flag for row in late if row.flag}))
    if orders_lack and BreakCode.MISSING_IN_ORDERS in codes and not FIRM & {*codes}:
        return Classification(SetState.UNVERIFIED, reason=UnverifiedReason.ORDERS_MISSING.value)
    if codes:
        return Classification(SetState.BREAK, codes, flags)
    if waits:
        side = min(waits, key=lambda row: LEGS.index(row.when.leg)).when.side
        clocks = frozenset(row.when.grace for row in waits)
        return Classification(SetState.PENDING, flags=flags, clocks=clocks, expected_side=side)
    if not anything:
        return NOTHING
    rules = (row.rule for flag, row in TABLE.flags.items() if row.rule and flag in flags)
    return Classification(SetState.MATCHED, flags=flags, rule=next(rules, agreed))


class Classifications(NamedTuple):
    """The judgements of rows, stored once per distinct pattern."""

    patterns: Rows
    by_pattern: tuple[Classification, ...]

    def of_each(self, name: str, /) -> Column:
        """Return a text of each row's judgement: state, reason, rule, expected_side."""
        labels = [str(getattr(classification, name)) for classification in self.by_pattern]
        return np.array([*labels, ""], dtype=object)[self.patterns]

    def codes(self) -> Column:
        """Return the primary code of each row, "" where it is no break."""
        codes = [str(each.codes[0]) if each.codes else "" for each in self.by_pattern]
        return np.array([*codes, ""], dtype=object)[self.patterns]

    def flags(self, marks: Mapping[Flag, Bools], /) -> Column:
        """Return the flags of each row: secondary codes in order of precedence, then labels sorted.

        Args:
            marks: masks of the flags that no row of the table sets.
        """
        labels, bits = (*marks,), np.zeros(len(self.patterns), dtype=np.int64)
        for bit, mask in enumerate(marks.values()):
            bits |= np.asarray(mask).astype(np.int64) << bit
        combined, known = pd.factorize(self.patterns * (1 << len(labels)) + bits)
        texts = []
        for value in known:
            pattern, marked = divmod(int(value), 1 << len(labels))
            classification = self.by_pattern[pattern]
            own = {label for bit, label in enumerate(labels) if marked >> bit & 1}
            texts.append(flag_text({*classification.codes[1:], *classification.flags, *own}))
        return np.array([*texts, ""], dtype=object)[combined]


def classified_by(rows: Sequence[TableRow], *, facts: Mapping[str, Column]) -> Classifications:
    """Classify rows of a comparison other than that of the sets.

    Args:
        rows: of the table, for that comparison.
        facts: every fact of the comparison and `unverified` (grain: row).
    """
    numbers, patterns = distinct_patterns(facts)
    size = len(patterns["unverified"])
    of_sets = {"orders_lack": False, "anything": True, "agreed": ""}
    known = SimpleNamespace(**{n: np.full(size, cell) for n, cell in of_sets.items()}, **patterns)
    found = ((row, np.broadcast_to(where_holds(row, known=known), size)) for row in rows)
    return Classifications(numbers, classifications_of(found, known=known))


def flag_text(flags: Iterable[str]) -> str:
    """Join codes in order of precedence, then labels sorted, with `;`."""
    at: dict[str, int] = {code: number for number, code in enumerate(PRECEDENCE)}
    return ";".join(sorted(map(str, flags), key=lambda one: (at.get(one, len(at)), one)))
