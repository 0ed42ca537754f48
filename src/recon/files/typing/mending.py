"""Write rejected rows as a CSV file that a person corrects and puts back into the inbox.

It has our own columns, whatever the original looked like: cells that could be read are in standard
form, others as written, with card numbers masked. Problems are in extra columns at the end, which
are not read again. Nothing may be accepted without a correction: a cell that the layout did not
explain is left blank, and so is a whole row that could not be split into cells or may have been cut
off, each with its text at the end.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pyarrow as pa

from recon.files.formats.format_limits import CELL_CHARACTERS_MAX
from recon.files.formats.raw_reader import REPORTED_COLUMNS
from recon.files.typing.amounts import AmountColumn
from recon.files.typing.instants import NOT_GIVEN, InstantColumn
from recon.files.typing.table_schema import Cell, TableColumn, TableSchema
from recon.files.typing.text_cells import likely_cards
from recon.files.typing.typed_table import WHOLE_ROW, TableReading
from recon.model.money import format_minor_units
from recon.privacy.displayed_text import defused, redacted

CUT_MARK = "…"
"""Appended to a masked card number: no cell may contain it, so the row is rejected again."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class MendableRow(NamedTuple):
    """One rejected row."""

    line: int
    cells: Mapping[str, str]
    """Column -> cell in standard form; empty if the row could not be split into cells."""
    column: str
    reason: str
    text: str


def mendable_rows(
    reading: TableReading, *, schema: TableSchema, also: Sequence[str] = ()
) -> list[MendableRow]:
    """Return the rejected rows of a table, in line order.

    Args:
        reading: The table.
        schema: Its columns.
        also: Further columns of the file that its rows may fill.
    """
    rows = list(reading.problems)
    filled = {column.name: _cells(reading, column, rows=rows) for column in schema.columns}
    for name in also:
        if name in reading.raw.columns:
            filled[name] = _as_written(reading.raw.columns[name], rows=rows)
    mendable = [
        MendableRow(row.line, {}, WHOLE_ROW, row.reason, _bounded(row.text))
        for row in reading.raw.bad_rows
    ]
    for row, (column_name, _) in reading.problems.items():
        cells = {name: texts[row] for name, texts in filled.items()}
        text = _unexplained(reading, row=row)
        if column_name == WHOLE_ROW:
            text, cells = _bounded(" | ".join(filter(None, cells.values()))), {}
        mendable.append(
            MendableRow(int(reading.raw.lines[row]), cells, column_name, reading.reason(row), text)
        )
    return sorted(mendable, key=lambda row: row.line)


def mendable_text(
    rows: Sequence[MendableRow], *, schema: TableSchema, also: Sequence[str] = ()
) -> str:
    """Return the CSV text, or "" if no row was rejected; columns without content are left out."""
    if not rows:
        return ""
    used = {name for row in rows for name, text in row.cells.items() if text}
    names = [column.name for column in schema.columns if column.required or column.name in used]
    names += [name for name in also if any(name in row.cells for row in rows)]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*names, *REPORTED_COLUMNS])
    for row in rows:
        cells = [row.cells.get(name, "") for name in names]
        parts = [str(row.line), row.column, row.reason, row.text]
        writer.writerow(map(defused, [*cells, *parts]))
    return out.getvalue()


def _cells(reading: TableReading, column: TableColumn, *, rows: Sequence[int]) -> dict[int, str]:
    """Return row number -> cell in standard form."""
    standard = _as_written(reading.columns[column.name], rows=rows)
    value = reading.typed[column.name]
    currencies = reading.columns[column.currency] if column.cell is Cell.AMOUNT else None
    unexplained = reading.mapped.problems.get(column.name, {})
    cells = {}
    for row in rows:
        cells[row] = "" if row in unexplained else standard[row]
        if isinstance(value, AmountColumn) and currencies is not None and value.given[row]:
            units = int(value.minor_units[row])
            cells[row] = format_minor_units(units, currency=currencies[row].as_py())
        if isinstance(value, InstantColumn) and value.microseconds[row] != NOT_GIVEN:
            moment = _EPOCH + timedelta(microseconds=int(value.microseconds[row]))
            cells[row] = moment.isoformat().replace("+00:00", "Z")
    return cells


def _as_written(cells: pa.Array, *, rows: Sequence[int]) -> dict[int, str]:
    """Return row number -> text, with card numbers masked."""
    texts: dict[int, str] = {row: cells[row].as_py() for row in rows}
    hits, misses = likely_cards(cells)
    for row in hits if len(hits) > len(misses) else ():
        if row in texts:
            texts[row] = f"{redacted(texts[row])}{CUT_MARK}"
    return texts


def _unexplained(reading: TableReading, *, row: int) -> str:
    """Return the cells that the layout does not explain, as written."""
    cells = [
        f"{reading.mapped.theirs[name]}: {reading.mapped.displayed[name][row].as_py()}"
        for name, problems in reading.mapped.problems.items()
        if row in problems
    ]
    return _bounded(" | ".join(cells))


def _bounded(text: str) -> str:
    """Return a record on one line without card numbers, uncut as it is to be corrected."""
    return " ".join(
        redacted(text[:CELL_CHARACTERS_MAX], characters_max=CELL_CHARACTERS_MAX).split()
    )
