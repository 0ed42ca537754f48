"""Map a merchant's columns to ours: names, constants, terms, decimal signs, units, dates.

The result is in standard form, which the cell readers then check as strictly as if the file had
been written that way. A cell that the layout does not explain is a problem of its own.

Rows that the layout declares not to be records (subtotals, headings, item lines of an order) are
left out. If such a row could be read as a record, leaving it out might lose money silently: it
stays, with its reason, and is rejected. An item line belongs to the record above it and is checked
with that record's order number; all it may say about a record is what its first line said.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recon.config.file_layouts import FileLayout, WrittenNumbers
from recon.files.formats.format_limits import REJECTED_ROWS_MAX
from recon.files.formats.raw_table import BadRow, RawTable, filled
from recon.files.typing.amounts import (
    AmountColumn,
    known_currencies,
    less_debits,
    read_amounts,
    refuse_other_currency,
    sum_of,
    take_directions,
    take_sign_of,
    take_signs,
    written_amounts,
)
from recon.files.typing.instants import (
    days_of,
    times_in_standard_form,
    with_clock,
    without_swapped_days,
)
from recon.files.typing.table_schema import (
    SIGNED_ENTRY_TYPES,
    Cell,
    Grammar,
    TableColumn,
    TableSchema,
)
from recon.files.typing.text_cells import CellProblems, Distinct, distinct, is_one_of, note_cells
from recon.model.errors import AmountError
from recon.model.money import (
    MINOR_UNITS_MAX,
    format_minor_units,
    parse_minor_units,
    parse_signed_minor_units,
)
from recon.model.terms import SourceKind

_WORDS_DISPLAYED_MAX = 20

_COMPANION = "\x1f"
"""Separates the parts of a sum until they are displayed."""

AMOUNT = "amount"
STATED = "transaction_amount"
"""In ledgers: the same movement in the currency of its payment."""


@dataclass(frozen=True, slots=True)
class MappedColumns:
    """All columns of a table by our names."""

    cells: dict[str, pa.Array]
    """In standard form; "" where the layout does not explain the cell."""
    displayed: Mapping[str, pa.Array]
    """As in the file."""
    theirs: Mapping[str, str]
    """Our name -> name in the file (for sums: the names), without constants and computed nets."""
    read: frozenset[str]
    """Names in the file of all columns that are read."""
    problems: dict[str, CellProblems] = field(default_factory=dict)
    """Our name -> row number -> why the layout does not explain the cell."""
    amounts: dict[str, AmountColumn] = field(default_factory=dict)
    """Our amount columns -> what was read; their own problems are not in `problems`."""
    signed: AmountColumn | None = None
    """For ledgers with `captures`: the amounts as written, which a control sum refers to."""
    sums: frozenset[str] = frozenset()
    """Our columns that are the sum of several columns."""
    has_net: bool = True
    """For settled rows: the file has their net, which proves the other amounts."""


def names_of(schema: TableSchema, *, layout: FileLayout) -> dict[str, str]:
    """Return our column name -> theirs, for the columns that are looked up in a file."""
    reckoned = {*layout.constants, *layout.sums, *(["net"] if layout.net else [])}
    return {name: layout.columns.get(name, name) for name in schema.names if name not in reckoned}


def needed_of(schema: TableSchema, *, layout: FileLayout) -> tuple[str, ...]:
    """Return their names of the columns without which a file is refused."""
    theirs = names_of(schema, layout=layout)
    needed = [theirs[name] for name in schema.required if name in theirs]
    needed += [their for name, their in theirs.items() if their != name]
    needed += _companions(schema, layout=layout)
    return tuple(dict.fromkeys(needed))


def read_of(schema: TableSchema, *, layout: FileLayout) -> frozenset[str]:
    """Return their names of all columns that are read."""
    return frozenset(
        {*names_of(schema, layout=layout).values(), *_companions(schema, layout=layout)}
    )


def _companions(schema: TableSchema, *, layout: FileLayout) -> list[str]:
    """Return their further columns: parts of sums, debits, signs, currencies, times of day."""
    second = [*(layout.debit | layout.clock).items(), *layout.currencies.items()]
    second += [(name, their) for name, parts in layout.sums.items() for their in parts]
    second += [(name, sign.column) for name, sign in layout.sign.items()]
    companion = [their for name, their in second if name in schema.names]
    companion += [rule.column for rule in layout.skip]
    return [*companion, layout.lines.column] if layout.lines else companion


def mapped_columns(raw: RawTable, *, schema: TableSchema, layout: FileLayout) -> MappedColumns:
    """Map the columns of a file to standard form."""
    theirs = names_of(schema, layout=layout)
    rows = len(raw.lines)
    blank = filled("", rows=rows)
    displayed = {
        name: raw.columns.get(theirs[name], blank)
        if name in theirs
        else filled(layout.constants.get(name, ""), rows=rows)
        for name in schema.names
    }
    sums = {name: parts for name, parts in layout.sums.items() if name in schema.names}
    for name, parts in sums.items():
        theirs[name] = " + ".join(parts)
        # A blank part adds nothing, and is not displayed.
        extra_cells = [
            *(_cells(raw, their) for their in parts),
            pa.scalar(_COMPANION, pa.large_string()),
        ]
        joined = pc.utf8_trim(pc.binary_join_element_wise(*extra_cells), _COMPANION)
        displayed[name] = pc.replace_substring_regex(joined, f"{_COMPANION}+", " + ")
    cells: dict[str, pa.Array] = dict(displayed)
    mapped = MappedColumns(
        cells,
        displayed,
        theirs,
        read_of(schema, layout=layout),
        sums=frozenset(sums),
        has_net=not layout.net,
    )
    for name, words in layout.words.items():
        if name in theirs:
            cells[name] = _worded(cells[name], words=words, problems=_of(mapped, name))
    if layout.order_numbers is not None and "order_no" in theirs:
        cells["order_no"] = _order_numbers(cells["order_no"], layout.order_numbers)
    for column in schema.columns:
        if column.name in theirs and column.cell in {Cell.INSTANT, Grammar.DATE}:
            cells[column.name] = _dated(
                raw, column, cells=cells, layout=layout, problems=_of(mapped, column.name)
            )
    may_be_minus = _may_be_minus(schema.kind, cells=cells, rows=rows)
    amounts = [column for column in schema.columns if column.cell is Cell.AMOUNT]
    codes = {name: distinct(cells[name]) for name in {column.currency for column in amounts}}
    for column in amounts:
        mapped.amounts[column.name] = _reckoned(
            raw, mapped, column, layout=layout, codes=codes[column.currency], minus=may_be_minus
        )
    if layout.captures and AMOUNT in theirs:
        mapped = replace(mapped, signed=_without_directions(mapped, layout=layout))
    return mapped


def _without_directions(mapped: MappedColumns, *, layout: FileLayout) -> AmountColumn:
    """Remove the entry type's sign from amount and stated amount; return the amounts as written."""
    unsigned = mapped.amounts[AMOUNT]
    written = AmountColumn(unsigned.minor_units.copy(), unsigned.given.copy())
    take_directions(
        unsigned,
        entry_types=distinct(mapped.cells["entry_type"]),
        captures=layout.captures,
        problems=_of(mapped, AMOUNT),
    )
    if STATED in mapped.theirs:
        stated, problems = mapped.amounts[STATED], _of(mapped, STATED)
        take_sign_of(stated, amounts=written, unsigned=unsigned, problems=problems)
    return written


def _may_be_minus(
    kind: SourceKind, *, cells: Mapping[str, pa.Array], rows: int
) -> npt.NDArray[np.bool_]:
    """Return the rows whose amounts may be negative."""
    if kind is SourceKind.LEDGER:
        return is_one_of(cells["entry_type"], SIGNED_ENTRY_TYPES)
    return np.full(rows, kind in {SourceKind.SETTLEMENT, SourceKind.BANK})


def _of(mapped: MappedColumns, name: str) -> CellProblems:
    return mapped.problems.setdefault(name, {})


def _worded(cells: pa.Array, *, words: Mapping[str, str], problems: CellProblems) -> pa.Array:
    known = pa.array(["", *words], pa.large_string())
    ours = pa.array(["", *words.values()], pa.large_string())
    positions: Any = pc.index_in(cells, value_set=known)
    displayed = ", ".join(sorted(words)[:_WORDS_DISPLAYED_MAX])
    note_cells(problems, pc.is_null(positions), why=f"is none of {displayed}")
    return pc.fill_null(pc.take(ours, positions), "")


def _order_numbers(cells: pa.Array, numbers: WrittenNumbers) -> pa.Array:
    """Convert order numbers to the form of the other sides; a number never becomes blank."""
    prefix, suffix = re.escape(numbers.prefix), re.escape(numbers.suffix)
    number: Any = pc.replace_substring_regex(cells, rf"\A{prefix}(.+)\z", r"\1")
    number = pc.replace_substring_regex(number, rf"\A(.+){suffix}\z", r"\1")
    if not numbers.digits:
        return number
    short = pc.replace_substring_regex(number, r"\A0+([0-9]+)\z", r"\1")
    padded = pc.utf8_lpad(short, width=numbers.digits, padding="0")
    return pc.if_else(pc.match_substring_regex(number, r"\A[0-9]+\z"), padded, number)


def _dated(
    raw: RawTable,
    column: TableColumn,
    *,
    cells: Mapping[str, pa.Array],
    layout: FileLayout,
    problems: CellProblems,
) -> pa.Array:
    """Convert a time column to standard form; for a date column only the date."""
    times = layout.times if raw.workbook else ""
    dated = without_swapped_days(cells[column.name], times=times, problems=problems)
    clock = layout.clock.get(column.name)
    if clock is not None:
        dated = with_clock(dated, clocks=_cells(raw, clock))
    if not layout.times:
        return dated
    dated = times_in_standard_form(dated, layout=layout, typed=raw.typed_dates, problems=problems)
    return days_of(dated) if column.cell is Grammar.DATE else dated


def _reckoned(
    raw: RawTable,
    mapped: MappedColumns,
    column: TableColumn,
    *,
    layout: FileLayout,
    codes: Distinct,
    minus: npt.NDArray[np.bool_],
) -> AmountColumn:
    """Read an amount column with all layout rules; `minus`: rows that may be negative."""
    name, cells = column.name, mapped.cells
    if name not in mapped.theirs:
        return read_amounts(cells[name], currencies=codes, signed=minus)
    problems, parts, debit = _of(mapped, name), layout.sums.get(name, ()), layout.debit.get(name)
    kinds = [kind for kind, negated in layout.negated_rows.items() if name in negated]
    sign, is_negated = layout.sign.get(name), name in layout.negated
    of_ledger = bool(layout.captures) and name in {AMOUNT, STATED}
    has_way = bool(parts or debit or kinds or sign or is_negated)
    signed = np.ones_like(minus) if has_way or of_ledger else minus

    def read(of: pa.Array, *, their: str) -> tuple[pa.Array, AmountColumn]:
        return written_amounts(
            of,
            layout=layout,
            currencies=codes,
            signed=signed,
            numbers=raw.numbers.get(their),
            problems=problems,
        )

    if parts:
        summands = {their: read(_cells(raw, their), their=their) for their in parts}
        unknown = np.array([bool(why) for why in known_currencies(codes.texts).values()])
        amounts = sum_of(
            {their: part for their, (_, part) in summands.items()},
            filled={
                their: np.array(pc.not_equal(texts, "")) for their, (texts, _) in summands.items()
            },
            unknown=unknown[codes.codes],
            # Gross, fee and net prove each other; nothing else shows that a part is missing.
            proven="net" in mapped.theirs,
            problems=problems,
        )
        texts = pc.if_else(pa.array(amounts.given), pa.scalar("0", pa.large_string()), "")
    else:
        texts, amounts = read(cells[name], their=layout.columns.get(name, name))
    if debit is not None:
        others, debits = read(_cells(raw, debit), their=debit)
        amounts = less_debits(
            amounts, debits=debits, own_minus=layout.debit_minus, problems=problems
        )
        texts = pc.if_else(pc.equal(texts, ""), others, texts)
    if sign:
        take_signs(amounts, signs=_cells(raw, sign.column), sign=sign, problems=problems)
    if is_negated:
        amounts.minor_units *= -1
    if kinds:
        amounts.minor_units[is_one_of(cells["entry_type"], kinds)] *= -1
    if stated := layout.currencies.get(name):
        own = _cells(raw, stated)
        if words := layout.words.get(column.currency):
            own = _worded(own, words=words, problems={})
        refuse_other_currency(
            amounts, stated=own, currencies=cells[column.currency], problems=problems
        )
    if has_way:
        _refuse_unfit(amounts, minus=minus | of_ledger, codes=codes)
    cells[name] = texts
    return amounts


def _refuse_unfit(amounts: AmountColumn, *, minus: npt.NDArray[np.bool_], codes: Distinct) -> None:
    """Refuse results that are too large, or negative where not allowed, like written ones."""
    units = amounts.minor_units
    for row in np.flatnonzero(((units < 0) & ~minus) | (abs(units) > MINOR_UNITS_MAX)).tolist():
        currency = codes.texts[int(codes.codes[row])].as_py()
        parse = parse_signed_minor_units if minus[row] else parse_minor_units
        try:
            parse(format_minor_units(int(units[row]), currency=currency), currency=currency)
        except AmountError as error:
            amounts.problems[row] = str(error)
            amounts.given[row], units[row] = False, 0


def _cells(raw: RawTable, their: str) -> pa.Array:
    """Return a companion column, blank if the file has none."""
    return raw.columns[their] if their in raw.columns else filled("", rows=len(raw.lines))


_ONCE = frozenset({SourceKind.ORDERS, SourceKind.GATEWAY})
"""Kinds in which a repeated record counts once; in settlement files each line counts."""
_Bools = npt.NDArray[np.bool_]
ReadsWhole = Callable[[RawTable], _Bools]
"""Returns which rows of a table could be read as records without a problem."""


def without_skipped(
    raw: RawTable, *, schema: TableSchema, layout: FileLayout, reads_whole: ReadsWhole
) -> tuple[RawTable, dict[str, dict[int, str]]]:
    """Leave out rows that are no records; also return column -> row -> why one stays."""
    rules: list[tuple[str, str]] = []  # column and name of each rule
    rule_of = np.full(len(raw.lines), -1)  # index of the first rule that matches a row
    skipped = Counter[str]()
    bad_rows = raw.bad_rows
    for rule in layout.skip:
        at = raw.header.index(rule.column)
        for word in rule.words:
            name = f"{rule.column} = {word}"
            rule_of[(rule_of < 0) & equals(raw.columns[rule.column], word=word)] = len(rules)
            rules.append((rule.column, name))
            cells = ["".join(bad.cells[at : at + 1]) for bad in bad_rows]
            fits = equals(pa.array(cells, pa.large_string()), word=word).tolist()
            left = tuple(
                bad for bad, fit in zip(bad_rows, fits, strict=True) if not (bad.is_short and fit)
            )
            skipped[name] += len(bad_rows) - len(left)
            bad_rows = left
    raw_rows, orphans, again = raw, np.zeros_like(rule_of, bool), np.zeros_like(rule_of, bool)
    if layout.lines is not None:
        column, first = layout.lines.column, layout.lines.first
        cells = raw.columns[column]
        lines = np.array(pc.not_equal(cells, first) if first else pc.equal(cells, ""), dtype=bool)
        if first:  # a row without a number of its own says nothing about lines
            lines &= np.array(pc.not_equal(cells, ""), dtype=bool)
        lines &= rule_of < 0
        rule_of[lines] = len(rules)
        rules.append((column, f"{column} is not {first}" if first else f"{column} is blank"))
        above = np.maximum.accumulate(np.where(rule_of < 0, np.arange(len(rule_of)), -1))
        raw_rows, orphans = _of_first_lines(
            raw,
            lines,
            above=above,
            bad=bad_rows,
            their=names_of(schema, layout=layout).get("order_no", ""),
        )
        if schema.kind in _ONCE:
            again = lines & _alike(raw_rows, above=above, schema=schema, layout=layout)
    found = rule_of >= 0
    if not found.any() and bad_rows == raw.bad_rows:
        return raw, {}
    whole = _whole(raw_rows, found & ~again, schema=schema, layout=layout, reads_whole=reads_whole)
    stays = whole | orphans
    rest = ~found | stays
    positions = np.cumsum(rest) - 1
    wrong: dict[str, dict[int, str]] = {}
    for row in np.flatnonzero(found & stays).tolist():
        column, name = rules[rule_of[row]]
        why = "reads as a record" if whole[row] else "has no first line above"
        reason = f"{why}, though the layout leaves it out ({name})"
        wrong.setdefault(column, {})[int(positions[row])] = reason
    for number, (_, name) in enumerate(rules):
        skipped[name] += int(((rule_of == number) & ~stays).sum())
    is_open = raw.last_line_open and bool(rest[-1:].all())
    remaining = replace(raw.some(rest), bad_rows=bad_rows, skipped=+skipped, last_line_open=is_open)
    return remaining, wrong


def equals(cells: pa.Array, *, word: str) -> npt.NDArray[np.bool_]:
    """Return which cells equal a rule's term, or begin with it if it ends in `*`."""
    if word.endswith("*"):
        return np.array(pc.starts_with(cells, word.removesuffix("*")), dtype=bool)
    return np.array(pc.equal(cells, word), dtype=bool)


def _of_first_lines(
    raw: RawTable,
    lines: _Bools,
    *,
    above: npt.NDArray[np.int64],
    bad: tuple[BadRow, ...],
    their: str,
) -> tuple[RawTable, _Bools]:
    """Put the order number of the first line into item lines; also return lines without a record.

    A row that cannot be read may have been the first line of the rows below it.
    """
    first = np.maximum(above, 0)
    bad_before = np.searchsorted(np.array([row.line for row in bad], dtype=np.int64), raw.lines)
    orphans = (above < 0) | (bad_before != bad_before[first] if len(first) else above < 0)
    if their not in raw.columns:
        return raw, lines & orphans
    written = raw.columns[their]
    numbers = written.take(pa.array(first))
    own = np.array(pc.not_equal(written, ""), dtype=bool)
    orphans |= own & np.array(pc.not_equal(written, numbers), dtype=bool)
    raw_rows = pc.if_else(pa.array(lines), numbers, written)
    return replace(raw, columns={**raw.columns, their: raw_rows}), lines & orphans


def _alike(
    raw: RawTable, *, above: npt.NDArray[np.int64], schema: TableSchema, layout: FileLayout
) -> _Bools:
    """Return the rows equal to the record above them in every column read from a record."""
    first = pa.array(np.maximum(above, 0))
    alike = above >= 0
    for name in read_of(schema, layout=layout.of_all_rows()) & set(raw.columns):
        cells = raw.columns[name]
        alike &= np.array(pc.equal(cells, cells.take(first)), dtype=bool)
    return alike


def _whole(
    raw: RawTable,
    rows: _Bools,
    *,
    schema: TableSchema,
    layout: FileLayout,
    reads_whole: ReadsWhole,
) -> _Bools:
    """Return which of the rows can be read as records; most lack a cell that records need."""
    rows = rows.copy()
    theirs = names_of(schema, layout=layout)
    for column in schema.columns if schema.kind is not SourceKind.GATEWAY else ():
        cells = raw.columns.get(theirs.get(column.name, ""))
        if cells is not None and not column.may_be_blank and column.name not in layout.debit:
            rows &= np.array(pc.not_equal(cells, ""), dtype=bool)
    positions = np.flatnonzero(rows)
    bare = replace(raw, bad_rows=(), last_line_open=False)
    # In portions of at most as many rows as may be rejected: these rows are not reported.
    for start in range(0, len(positions), REJECTED_ROWS_MAX):
        some = np.zeros_like(rows)
        some[positions[start : start + REJECTED_ROWS_MAX]] = True
        rows[some] = reads_whole(bare.some(some))
    return rows
