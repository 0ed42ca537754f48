"""Which column of a sample is which of ours: by its name, then by what its cells can be."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from recon.files.proposing.readings_of_cells import (
    SeenCell,
    looks_like_amount,
    looks_like_day,
    looks_like_time,
)
from recon.files.proposing.sample import Sample
from recon.files.proposing.vocabulary import (
    CLOCKS,
    CREDITS,
    DATES,
    DAYS_OF_ROWS,
    DEBITS,
    STAND_INS,
    names_of_column,
    plain_words,
)
from recon.files.typing.table_schema import Cell, Grammar, TableColumn, TableSchema
from recon.model.errors import UsageError
from recon.model.money import is_currency
from recon.privacy.shown_text import scrubbed

_FIT_SHARE_MIN = 9
"""Tenths of the filled cells that must be able to be what a column means."""
_WORDS_MAX = 30
"""Different words of a column of words."""
_WORD_CHARACTERS_MAX = 50
_UNITS = frozenset(
    {
        "eur",
        "usd",
        "gbp",
        "chf",
        "pln",
        "jpy",
        "utc",
        "gmt",
        "cet",
        "nc",
        "gc",
        "lc",
        "cents",
        "cent",
    }
    | {
        "minor",
        "units",
        "centimes",
        "incl",
        "gross",
        "in",
        "local",
        "time",
        "centimos",
        "centesimi",
    }
)
"""Words behind a name that do not change what it names."""
OF_STATEMENT = frozenset({"statement_no", "from_date", "to_date"})
"""Columns of ours that may share one of theirs: a day of entries may be a statement."""
_CLOCK = re.compile(
    r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?: ?[AaPp][Mm])?", re.ASCII
)


class TheirColumn(NamedTuple):
    """One column of the samples."""

    name: str
    words: str
    """Its name, plain."""
    cells: tuple[SeenCell, ...]
    """Filled ones; of which file is not known any more."""
    full: bool
    """No cell is blank."""

    @property
    def all_differ(self) -> bool:
        """No two cells are alike, as those of a number that names a row."""
        return len({cell.text for cell in self.cells}) == len(self.cells)


class Ranked(NamedTuple):
    """Our columns as they were found in a sample."""

    columns: dict[str, str]
    debit: dict[str, str]
    clock: dict[str, str]
    questions: dict[str, str]


def their_columns(samples: Sequence[Sample]) -> dict[str, TheirColumn]:
    """Name -> column, over all samples."""
    columns = {}
    for at, name in enumerate(samples[0].header):
        if not name or scrubbed(name) != name or samples[0].header.count(name) > 1:
            continue  # a layout cannot name it, or a person must not read it
        cells, full = [], True
        for sample in samples:
            for row in sample.rows:
                if row.cells[at]:
                    cells.append(SeenCell(row.line, row.cells[at]))
                full = full and bool(row.cells[at])
        columns[name] = TheirColumn(name, plain_words(name), tuple(cells), full)
    return columns


def ranked_columns(
    theirs: Mapping[str, TheirColumn],
    *,
    schema: TableSchema,
    answers: Mapping[str, str],
    signed: bool,
) -> Ranked:
    """The columns of a schema among theirs; what more than one could be is asked.

    `answers` holds `columns.<ours>` where a person decided; `signed`: amounts may be split.

    Raises:
        UsageError: what a person decided is none of theirs.
    """
    chosen = _chosen(answers, theirs)
    ranked = Ranked(chosen, {}, {}, {})
    if signed:
        _split(schema, theirs, ranked=ranked)
    left = [column for column in schema.columns if column.name not in ranked.columns]
    # A name that is ours to the letter is taken before another column may claim it.
    for exact in (True, False):
        for column in sorted(left, key=lambda column: not column.required):
            if column.name in ranked.columns or column.name in ranked.questions:
                continue
            taken = {their for ours, their in ranked.columns.items() if ours not in OF_STATEMENT}
            free = [their for their in theirs.values() if their.name not in taken]
            fitting = [t for t in free if t.name == column.name] if exact else _best(free, column)
            fitting = [their for their in fitting if fits(their, column)]
            if len(fitting) == 1:
                ranked.columns[column.name] = fitting[0].name
            elif fitting and column.required:
                names = " or ".join(repr(their.name) for their in fitting)
                ranked.questions[f"columns.{column.name}"] = f"is it {names}?"
    _ask_of_dates(ranked, theirs, schema=schema)
    _beside_days(ranked, theirs, schema=schema)
    return ranked


def _chosen(answers: Mapping[str, str], theirs: Mapping[str, TheirColumn]) -> dict[str, str]:
    """Ours -> theirs, where a person decided."""
    chosen = {}
    for key, name in answers.items():
        if not key.startswith("columns."):
            continue
        if name not in theirs:
            msg = f"{key}: the samples have no column {name!r} that can be named"
            raise UsageError(msg)
        chosen[key.removeprefix("columns.")] = name
    return chosen


def _best(free: Iterable[TheirColumn], column: TableColumn) -> list[TheirColumn]:
    """The columns whose name means ours: whole names before such with a unit behind."""
    names = names_of_column(column.name)
    known = list(free)
    if column.cell is Cell.INSTANT or column.cell is Grammar.DATE:
        # Of two days each may be ours, also where one says its zone.
        return [their for their in known if _is_named(their, names)]
    whole = [their for their in known if their.words in names]
    if any(fits(their, column) for their in whole):
        return whole
    others = STAND_INS.get(column.name, frozenset())
    return [their for their in known if _bare(their.words) in names] or [
        their for their in known if _bare(their.words) in others and their.full and their.all_differ
    ]


def _is_named(their: TheirColumn, names: frozenset[str]) -> bool:
    return their.words in names or _bare(their.words) in names


def _bare(words: str) -> str:
    """A name without the units behind it."""
    parts = words.split(" ")
    while len(parts) > 1 and (parts[-1] in _UNITS):
        parts.pop()
    return " ".join(parts)


def _split(schema: TableSchema, theirs: Mapping[str, TheirColumn], *, ranked: Ranked) -> None:
    """Amounts that stand in two columns, `Gross Debit` and `Gross Credit`, or Soll and Haben.

    Who decided for one side of them decided for both.
    """
    for column in schema.columns:
        pair = _pair(column, theirs) if column.cell is Cell.AMOUNT else None
        if pair and ranked.columns.get(column.name, pair[1]) in pair:
            ranked.debit[column.name], ranked.columns[column.name] = pair


def _pair(column: TableColumn, theirs: Mapping[str, TheirColumn]) -> tuple[str, str] | None:
    own = "" if column.name == "amount" else f"{column.name} "
    sides: list[str] = []
    for side in (DEBITS, CREDITS):
        names = [
            their.name
            for their in theirs.values()
            if _bare(their.words) in {own + word for word in side}
            and _all(their, looks_like_amount)
        ]
        if len(names) != 1:
            return None
        sides += names
    if all(theirs[name].full and all(map(_is_some, theirs[name].cells)) for name in sides):
        return None  # numbers of two accounts
    return sides[0], sides[1]


def _is_some(cell: SeenCell) -> bool:
    return any(digit in cell.text for digit in "123456789")


def _beside_days(ranked: Ranked, theirs: Mapping[str, TheirColumn], *, schema: TableSchema) -> None:
    """The time of day, where it stands in a column of its own."""
    clocks = [t for t in theirs.values() if t.words in CLOCKS and t.cells and _all(t, _is_clock)]
    for column in schema.columns:
        their = theirs.get(ranked.columns.get(column.name, ""))
        timed = column.cell is Cell.INSTANT and column.required and len(clocks) == 1
        if timed and their is not None and not any(":" in cell.text for cell in their.cells):
            ranked.clock[column.name] = clocks[0].name


def _ask_of_dates(
    ranked: Ranked,
    theirs: Mapping[str, TheirColumn],
    *,
    schema: TableSchema,
) -> None:
    """A column that is only named a date may be another day than ours, where there are others.

    So may the day of a settled row, such as its booking: ours is that of the batch.
    """
    taken = set(ranked.columns.values())
    others = [
        their.name
        for their in theirs.values()
        if their.name not in taken and their.cells and _all(their, looks_like_day)
    ]
    for column in schema.columns:
        name = ranked.columns.get(column.name, "")
        timed = column.required and (column.cell is Cell.INSTANT or column.cell is Grammar.DATE)
        weak = DATES | DAYS_OF_ROWS if column.name == "settled_on" else DATES
        vague = timed and name in theirs and _is_named(theirs[name], weak)
        if vague and others and f"columns.{column.name}" not in ranked.questions:
            names = " or ".join(repr(other) for other in (name, *others))
            ranked.questions[f"columns.{column.name}"] = f"is it {names}?"


def _is_clock(text: str) -> bool:
    return _CLOCK.fullmatch(text) is not None


def fits(their: TheirColumn, column: TableColumn) -> bool:
    """Whether the cells of a column can be what ours means."""
    if not their.cells or not (their.full or column.may_be_blank):
        return not their.cells and column.may_be_blank
    match column.cell:
        case Cell.AMOUNT:
            return _all(their, looks_like_amount)
        case Cell.CURRENCY:
            return _all(their, lambda text: is_currency(text.upper()))
        case Cell.INSTANT | Grammar.DATE:
            return _all(their, looks_like_time)
        case Grammar() as grammar:
            pattern = re.compile(grammar.value[0], re.ASCII)
            return _all(their, lambda text: pattern.fullmatch(text) is not None)
    different = {cell.text for cell in their.cells}
    return len(different) <= _WORDS_MAX and all(len(t) <= _WORD_CHARACTERS_MAX for t in different)


def _all(their: TheirColumn, of: Callable[[str], bool]) -> bool:
    """Nearly all cells: one bad row of a sample must not hide a column."""
    different = {cell.text for cell in their.cells}
    return sum(map(of, different)) * 10 >= len(different) * _FIT_SHARE_MIN
