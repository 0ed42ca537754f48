"""From the columns of a merchant to ours: names, constants, words, decimal signs, units, dates.

What comes out has the standard form, which the readers of cells then judge as strictly as if the
file had been written so. A cell that the layout does not explain is a problem of its own.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from recon.config.file_layouts import FileLayout, WrittenNumbers
from recon.files.formats.raw_table import RawTable, filled
from recon.files.typing.cell_problems import CellProblems, note_cells
from recon.files.typing.distinct import distinct
from recon.files.typing.table_schema import Cell, Grammar, TableColumn, TableSchema
from recon.files.typing.written_amounts import (
    amounts_in_standard_form,
    in_major_units,
    less_debits,
    of_other_currency,
    signed_by,
    sum_of,
    with_short_decimals,
    with_sign_of,
    with_turned_sign,
    without_direction,
    without_own_minus,
)
from recon.files.typing.written_times import (
    days_of,
    times_in_standard_form,
    with_clock,
    without_swapped_days,
)

_WORDS_SHOWN_MAX = 20

_BESIDE = "\x1f"
"""Between the summands of an amount, until they are shown."""

AMOUNT = "amount"
STATED = "transaction_amount"
"""Of books: the same movement in the currency of its payment."""


@dataclass(frozen=True, slots=True)
class MappedColumns:
    """Every column of a table by our names."""

    cells: Mapping[str, pa.Array]
    """In the standard form; "" where the layout does not explain what stands there."""
    shown: Mapping[str, pa.Array]
    """As the file has them."""
    theirs: Mapping[str, str]
    """Our name -> the name in the file, of sums the names; without what no column says."""
    read: frozenset[str]
    """The names in the file of all columns that are read."""
    problems: dict[str, CellProblems] = field(default_factory=dict)
    """Our name -> row number -> what the layout does not explain."""
    signed: pa.Array | None = None
    """Of books with `captures` the amounts as they are written, where the file says their sum."""
    sums: frozenset[str] = frozenset()
    """Our names of what is the sum of several columns."""
    has_net: bool = True
    """Of settled rows: the file has their net, which then proves the rest."""


def names_of(schema: TableSchema, *, layout: FileLayout) -> dict[str, str]:
    """Our column name -> theirs, of columns that a file is asked for."""
    reckoned = {*layout.constants, *layout.sums, *(["net"] if layout.net else [])}
    return {name: layout.columns.get(name, name) for name in schema.names if name not in reckoned}


def needed_of(schema: TableSchema, *, layout: FileLayout) -> tuple[str, ...]:
    """Their names of the columns without which a file is refused."""
    theirs = names_of(schema, layout=layout)
    needed = [theirs[name] for name in schema.required if name in theirs]
    needed += [their for name, their in theirs.items() if their != name]
    needed += _beside(schema, layout=layout)
    return tuple(dict.fromkeys(needed))


def read_of(schema: TableSchema, *, layout: FileLayout) -> frozenset[str]:
    """Their names of all columns that are read."""
    return frozenset({*names_of(schema, layout=layout).values(), *_beside(schema, layout=layout)})


def _beside(schema: TableSchema, *, layout: FileLayout) -> list[str]:
    """Their further columns: summands, what is subtracted, signs, currencies, times of day."""
    second = [*(layout.debit | layout.clock).items(), *layout.currencies.items()]
    second += [(name, their) for name, parts in layout.sums.items() for their in parts]
    second += [(name, sign.column) for name, sign in layout.sign.items()]
    beside = [their for name, their in second if name in schema.names]
    beside += [rule.column for rule in layout.skip]
    return [*beside, layout.lines.column] if layout.lines else beside


def mapped_columns(raw: RawTable, *, schema: TableSchema, layout: FileLayout) -> MappedColumns:
    """The columns of a file in the standard form."""
    theirs = names_of(schema, layout=layout)
    rows = len(raw.lines)
    blank = filled("", rows=rows)
    shown = {
        name: raw.columns.get(theirs[name], blank)
        if name in theirs
        else filled(layout.constants.get(name, ""), rows=rows)
        for name in schema.names
    }
    sums = {name: parts for name, parts in layout.sums.items() if name in schema.names}
    for name, parts in sums.items():
        theirs[name] = " + ".join(parts)
        # What is blank adds nothing, and is not shown.
        cells_beside = [*_all(raw, parts), pa.scalar(_BESIDE, pa.large_string())]
        joined = pc.utf8_trim(pc.binary_join_element_wise(*cells_beside), _BESIDE)
        shown[name] = pc.replace_substring_regex(joined, f"{_BESIDE}+", " + ")
    mapped = MappedColumns(dict(shown), shown, theirs, read_of(schema, layout=layout))
    cells: dict[str, pa.Array] = dict(shown)
    # Gross, fee and net of a row prove each other; nothing else says that a summand is missing.
    proven = "net" in theirs
    for name, words in layout.words.items():
        if name in theirs:
            cells[name] = _worded(cells[name], words=words, problems=_of(mapped, name))
    if layout.order_numbers is not None and "order_no" in theirs:
        cells["order_no"] = _order_numbers(cells["order_no"], layout.order_numbers)
    for column in schema.columns:
        if column.name not in theirs:
            continue
        problems = _of(mapped, column.name)
        if column.cell is Cell.INSTANT or column.cell is Grammar.DATE:
            cells[column.name] = _dated(raw, column, cells=cells, layout=layout, problems=problems)
        if column.cell is Cell.AMOUNT:
            cells[column.name] = _reckoned(
                raw, column, cells=cells, layout=layout, proven=proven, problems=problems
            )
    signed = None
    if layout.captures and AMOUNT in theirs:
        signed = cells[AMOUNT] if _has_sums(layout) else None
        _take_directions(mapped, cells, layout=layout)
    return MappedColumns(
        cells,
        shown,
        theirs,
        mapped.read,
        mapped.problems,
        signed,
        frozenset(sums),
        has_net=not layout.net,
    )


def _has_sums(layout: FileLayout) -> bool:
    """Whether files of the layout say what their amounts come to."""
    return bool(layout.control_file or (layout.trailer and layout.trailer.amount))


def _take_directions(
    mapped: MappedColumns, cells: dict[str, pa.Array], *, layout: FileLayout
) -> None:
    """Amounts of books without the sign that their entry type says, and that of the payment."""
    signed = cells[AMOUNT]
    cells[AMOUNT] = without_direction(
        signed,
        entry_types=cells["entry_type"],
        captures=layout.captures,
        problems=_of(mapped, AMOUNT),
    )
    if STATED in mapped.theirs:
        cells[STATED] = with_sign_of(
            cells[STATED], amounts=signed, kept=cells[AMOUNT], problems=_of(mapped, STATED)
        )


def _of(mapped: MappedColumns, name: str) -> CellProblems:
    return mapped.problems.setdefault(name, {})


def _worded(cells: pa.Array, *, words: Mapping[str, str], problems: CellProblems) -> pa.Array:
    known = pa.array(["", *words], pa.large_string())
    ours = pa.array(["", *words.values()], pa.large_string())
    places: Any = pc.index_in(cells, value_set=known)
    shown = ", ".join(sorted(words)[:_WORDS_SHOWN_MAX])
    note_cells(problems, pc.is_null(places), why=f"is none of {shown}")
    return pc.fill_null(pc.take(ours, places), "")


def _order_numbers(cells: pa.Array, wanted: WrittenNumbers) -> pa.Array:
    """Order numbers as the other sides write them; of each something is left."""
    prefix, suffix = re.escape(wanted.prefix), re.escape(wanted.suffix)
    kept: Any = pc.replace_substring_regex(cells, rf"\A{prefix}(.+)\z", r"\1")
    kept = pc.replace_substring_regex(kept, rf"\A(.+){suffix}\z", r"\1")
    if not wanted.digits:
        return kept
    short = pc.replace_substring_regex(kept, r"\A0+([0-9]+)\z", r"\1")
    padded = pc.utf8_lpad(short, width=wanted.digits, padding="0")
    return pc.if_else(pc.match_substring_regex(kept, r"\A[0-9]+\z"), padded, kept)


def _dated(
    raw: RawTable,
    column: TableColumn,
    *,
    cells: Mapping[str, pa.Array],
    layout: FileLayout,
    problems: CellProblems,
) -> pa.Array:
    """A column of times in the standard form; of a date only the day."""
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
    column: TableColumn,
    *,
    cells: Mapping[str, pa.Array],
    layout: FileLayout,
    proven: bool,
    problems: CellProblems,
) -> pa.Array:
    """A column of amounts in the standard form; of a sum, `proven` says that its row proves it."""

    def written(of: pa.Array, *, their: str) -> pa.Array:
        numbers = raw.numbers.get(their)
        return amounts_in_standard_form(of, layout=layout, numbers=numbers, problems=problems)

    def in_units(of: pa.Array) -> pa.Array:
        if layout.units == "minor":
            return in_major_units(of, currencies=cells[column.currency], problems=problems)
        if layout.short_decimals:
            return with_short_decimals(of, currencies=cells[column.currency])
        return of

    name = column.name
    parts = layout.sums.get(name, ())
    if parts:
        summands = [
            in_units(written(part, their=their))
            for their, part in zip(parts, _all(raw, parts), strict=True)
        ]
        amounts = sum_of(
            dict(zip(parts, summands, strict=True)),
            currencies=distinct(cells[column.currency]),
            numbers=raw.numbers,
            proven=proven,
            problems=problems,
        )
    else:
        amounts = written(cells[name], their=layout.columns.get(name, name))
    debit = layout.debit.get(name)
    if debit is not None:
        debits = written(_cells(raw, debit), their=debit)
        if layout.debit_minus:
            debits = without_own_minus(debits, problems=problems)
        amounts = less_debits(amounts, debits=debits, problems=problems)
    if sign := layout.sign.get(name):
        signs = _cells(raw, sign.column)
        amounts = signed_by(amounts, signs=signs, sign=sign, problems=problems)
    if name in layout.turned:
        amounts = with_turned_sign(amounts)
    if kinds := [kind for kind, turned in layout.turned_rows.items() if name in turned]:
        rows = pc.is_in(cells["entry_type"], value_set=pa.array(kinds, pa.large_string()))
        amounts = pc.if_else(rows, with_turned_sign(amounts), amounts)
    amounts = amounts if parts else in_units(amounts)
    if stated := layout.currencies.get(name):
        codes = _cells(raw, stated)
        if words := layout.words.get(column.currency):
            codes = _worded(codes, words=words, problems={})
        amounts = of_other_currency(
            amounts, stated=codes, currencies=cells[column.currency], problems=problems
        )
    return amounts


def _all(raw: RawTable, parts: Sequence[str]) -> list[pa.Array]:
    return [_cells(raw, their) for their in parts]


def _cells(raw: RawTable, their: str) -> pa.Array:
    """A second column, of blanks where the file has none."""
    return raw.columns[their] if their in raw.columns else filled("", rows=len(raw.lines))
