"""Records that name their own cells (JSON lines, XML) as one table.

Such a file has no header: its columns are all names that its records have.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from recon.files.formats.format_limits import CELL_CHARACTERS_MAX, COLUMNS_MAX
from recon.files.formats.raw_table import (
    BadRow,
    EveryColumn,
    RawTable,
    RejectedSoFar,
    checked_header,
    joined,
    refuse,
    refuse_too_many_rows,
    trimmed,
)

ROWS_AT_ONCE = 50_000
"""Rows that are objects of Python at once."""


class RecordCell(NamedTuple):
    """One value of a record."""

    text: str
    is_number: bool = False
    is_list: bool = False
    """Several values: of a column that nobody reads, or its row is bad."""


class Record(NamedTuple):
    """One record: its cells by name, or why it is no row and what it looks like."""

    line: int
    cells: Mapping[str, RecordCell]
    problem: str = ""
    text: str = ""


@dataclass(slots=True)
class _Part:
    """Rows that are no columns yet."""

    lines: list[int] = field(default_factory=list)
    rows: list[Mapping[str, RecordCell]] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)


def table_of(
    records: Iterable[Record],
    *,
    name: str,
    wanted: Container[str],
    nothing: Callable[[str], str],
) -> RawTable:
    """The wanted columns of the records; the header is all names that they have.

    `nothing` says what a file without a single row is, given its first bad row.

    Raises:
        SourceUnreadableError: there is no row, or there are too many rows or names.
    """
    header: dict[str, None] = {}
    part, parts, before = _Part(), [], 0
    rejected = RejectedSoFar(name)
    read = wanted.read if isinstance(wanted, EveryColumn) else wanted
    for given in records:
        record = _without_lists(given, read=read)
        if record.problem:
            bad = BadRow(record.line, record.problem, record.text[:CELL_CHARACTERS_MAX])
            part.bad.append(rejected.take(bad))
        else:
            header |= dict.fromkeys(record.cells)
            if len(header) > COLUMNS_MAX:
                refuse(name, f"has more than {COLUMNS_MAX} different names in its records")
            part.lines.append(record.line)
            part.rows.append({key: cell for key, cell in record.cells.items() if key in wanted})
        waiting = len(part.lines) + len(part.bad)
        refuse_too_many_rows(before + waiting, name=name)
        if waiting >= ROWS_AT_ONCE:
            parts.append(_table(part, header=header, name=name, wanted=wanted))
            part, before = _Part(), before + waiting
    parts.append(_table(part, header=header, name=name, wanted=wanted))
    table = joined(parts)
    if not header:
        bad_rows = table.bad_rows[:1]
        refuse(name, nothing("".join(f": line {bad.line} {bad.reason}" for bad in bad_rows)))
    return table


def _without_lists(record: Record, *, read: Container[str]) -> Record:
    """A bad row where a column that is read has a list."""
    if not any(cell.is_list and key in read for key, cell in record.cells.items()):
        return record
    text = ", ".join(cell.text for cell in record.cells.values())
    return Record(record.line, {}, problem="has a list, which no column can hold", text=text)


def _table(
    part: _Part, *, header: Mapping[str, None], name: str, wanted: Container[str]
) -> RawTable:
    columns: dict[str, pa.Array] = {}
    numbers: dict[str, pa.Array] = {}
    blank = RecordCell("")
    for column in header:
        if column in wanted:
            cells = [row.get(column, blank) for row in part.rows]
            columns[column] = trimmed(pa.array([cell.text for cell in cells], pa.large_string()))
            if any(cell.is_number for cell in cells):
                numbers[column] = pa.array([cell.is_number for cell in cells], pa.bool_())
    return RawTable(
        name=name,
        header=checked_header(list(header), name=name),
        columns=columns,
        lines=np.array(part.lines, dtype=np.int64),
        bad_rows=tuple(part.bad),
        numbers=numbers,
    )
