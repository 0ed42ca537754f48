"""Rows that a layout says are no records: subtotals, headings, item lines under an order.

What is left out must not read as a record, else money would go without a word: such a row stays,
with its reason, and is rejected. An item line belongs to the record above it and is judged with the
order number of that; all it may say of a record is what its first line said.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recon.config.file_layouts import FileLayout, ItemLines
from recon.files.formats.format_limits import REJECTED_ROWS_MAX
from recon.files.formats.raw_table import BadRow, RawTable
from recon.files.typing.mapped_columns import names_of, read_of
from recon.files.typing.table_schema import TableSchema
from recon.model.words import SourceKind

_ONCE = frozenset({SourceKind.ORDERS, SourceKind.GATEWAY})
"""Kinds of which a record that is told again counts once; each line that is settled counts."""
_Bools = npt.NDArray[np.bool_]
ReadsWhole = Callable[[RawTable], _Bools]
"""Which rows of a table would be records without a fault."""


class _Rule(NamedTuple):
    """One rule of a layout and the well-formed rows that it fits first."""

    column: str
    name: str
    rows: _Bools
    short: tuple[BadRow, ...] = ()
    """Rows with too few cells that it fits."""


def without_skipped(
    raw: RawTable, *, schema: TableSchema, layout: FileLayout, reads_whole: ReadsWhole
) -> tuple[RawTable, dict[str, dict[int, str]]]:
    """The table without such rows, and their column -> row -> why one stays all the same."""
    rules = [*_rules_of_words(raw, layout=layout)]
    by_words = _any(rules, rows=len(raw.lines))
    short = {bad.line for rule in rules for bad in rule.short}
    kept_bad = tuple(bad for bad in raw.bad_rows if bad.line not in short)
    judged, orphans, again = raw, np.zeros_like(by_words), np.zeros_like(by_words)
    if layout.lines is not None:
        line = _line_rule(raw, layout.lines, but=by_words)
        rules.append(line)
        above = np.maximum.accumulate(np.where(by_words | line.rows, -1, np.arange(len(by_words))))
        judged, orphans = _of_first_lines(
            raw,
            line.rows,
            above=above,
            bad=kept_bad,
            their=names_of(schema, layout=layout).get("order_no", ""),
        )
        if schema.kind in _ONCE:
            again = line.rows & _alike(judged, above=above, schema=schema, layout=layout)
    found = _any(rules, rows=len(raw.lines))
    if not found.any() and not short:
        return raw, {}
    whole = _whole(judged, found & ~again, schema=schema, layout=layout, reads_whole=reads_whole)
    stays = whole | orphans
    rest = ~found | stays
    places = np.cumsum(rest) - 1
    wrong: dict[str, dict[int, str]] = {}
    skipped: dict[str, int] = {}
    for rule in rules:
        for row in np.flatnonzero(rule.rows & stays).tolist():
            why = "reads as a record" if whole[row] else "has no first line above"
            reason = f"{why}, though the layout leaves it out ({rule.name})"
            wrong.setdefault(rule.column, {})[int(places[row])] = reason
        if count := int((rule.rows & ~stays).sum()) + len(rule.short):
            skipped[rule.name] = count
    is_open = raw.last_line_open and bool(rest[-1:].all())
    kept = replace(raw.some(rest), bad_rows=kept_bad, skipped=skipped, last_line_open=is_open)
    return kept, wrong


def _any(rules: Iterable[_Rule], *, rows: int) -> _Bools:
    found = np.zeros(rows, dtype=bool)
    for rule in rules:
        found |= rule.rows
    return found


def _rules_of_words(raw: RawTable, *, layout: FileLayout) -> Iterable[_Rule]:
    taken = np.zeros(len(raw.lines), dtype=bool)
    short = [bad for bad in raw.bad_rows if bad.is_short]
    for rule in layout.skip:
        at = raw.header.index(rule.column)
        for word in rule.words:
            rows = _fits(raw.columns[rule.column], word=word) & ~taken
            taken |= rows
            cells = [bad.cells[at] if at < len(bad.cells) else "" for bad in short]
            fits = _fits(pa.array(cells, pa.large_string()), word=word).tolist()
            fitting = tuple(bad for bad, fit in zip(short, fits, strict=True) if fit)
            short = [bad for bad, fit in zip(short, fits, strict=True) if not fit]
            yield _Rule(rule.column, f"{rule.column} = {word}", rows, fitting)


def _fits(cells: pa.Array, *, word: str) -> _Bools:
    """Cells that are the word, or begin as it says."""
    if word.endswith("*"):
        return np.array(pc.starts_with(cells, word.removesuffix("*")), dtype=bool)
    return np.array(pc.equal(cells, word), dtype=bool)


def _line_rule(raw: RawTable, lines: ItemLines, *, but: _Bools) -> _Rule:
    column, first = lines.column, lines.first
    cells = raw.columns[column]
    rows = np.array(pc.not_equal(cells, first) if first else pc.equal(cells, ""), dtype=bool)
    if first:  # a row without a number of its own says nothing of lines
        rows &= np.array(pc.not_equal(cells, ""), dtype=bool)
    name = f"{column} is not {first}" if first else f"{column} is blank"
    return _Rule(column, name, rows & ~but)


def _of_first_lines(
    raw: RawTable,
    lines: _Bools,
    *,
    above: npt.NDArray[np.int64],
    bad: tuple[BadRow, ...],
    their: str,
) -> tuple[RawTable, _Bools]:
    """The table with the order numbers of first lines in item lines, and lines of no record.

    A row that cannot be read may have been the first line of what stands below it.
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
    judged = pc.if_else(pa.array(lines), numbers, written)
    return replace(raw, columns={**raw.columns, their: judged}), lines & orphans


def _alike(
    raw: RawTable, *, above: npt.NDArray[np.int64], schema: TableSchema, layout: FileLayout
) -> _Bools:
    """Rows that say what the record above them says, in all that is read of a record."""
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
    """Which of the rows read as records; most have a blank cell where no record has one."""
    rows = rows.copy()
    theirs = names_of(schema, layout=layout)
    for column in schema.columns if schema.kind is not SourceKind.GATEWAY else ():
        cells = raw.columns.get(theirs.get(column.name, ""))
        if cells is not None and not column.may_be_blank and column.name not in layout.debit:
            rows &= np.array(pc.not_equal(cells, ""), dtype=bool)
    places = np.flatnonzero(rows)
    bare = replace(raw, bad_rows=(), last_line_open=False)
    # No more at once than may be rejected: of these rows nobody is told.
    for start in range(0, len(places), REJECTED_ROWS_MAX):
        some = np.zeros_like(rows)
        some[places[start : start + REJECTED_ROWS_MAX]] = True
        rows[some] = reads_whole(bare.some(some))
    return rows
