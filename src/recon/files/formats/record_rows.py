"""Records that name their own cells (JSON lines, XML) as tables, some rows at a time.

Such a file has no header: its columns are all names that its records have. Whether a needed one is
missing is known only behind the last record, so that rows wait until all needed ones were seen; in
an honest file that is the first record.
"""

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
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
    refuse,
    refuse_too_many_rows,
    trimmed,
)

ROWS_AT_ONCE = 50_000
"""Rows in memory at once."""


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
    """Rows that were read and not handed on."""

    lines: list[int] = field(default_factory=list)
    rows: list[Mapping[str, RecordCell]] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)


def tables_of(
    records: Iterable[Record],
    *,
    name: str,
    wanted: Container[str],
    nothing: Callable[[str], str],
    needed: Collection[str] = (),
    rows_at_once: int = ROWS_AT_ONCE,
) -> Iterator[RawTable]:
    """The wanted columns of the records; the header of a table is all names seen so far.

    `nothing` says what a file without a single row is, given its first bad row.

    Raises:
        SourceUnreadableError: there is no row, or there are too many rows or names.
    """
    header: dict[str, None] = {}
    part, before, first = _Part(), 0, ""
    rejected = RejectedSoFar(name)
    read = wanted.read if isinstance(wanted, EveryColumn) else wanted
    for given in records:
        record = _without_lists(given, read=read)
        if record.problem:
            bad = BadRow(record.line, record.problem, record.text[:CELL_CHARACTERS_MAX])
            part.bad.append(rejected.take(bad))
            first = first or f": line {bad.line} {bad.reason}"
        else:
            header |= dict.fromkeys(record.cells)
            if len(header) > COLUMNS_MAX:
                refuse(name, f"has more than {COLUMNS_MAX} different names in its records")
            part.lines.append(record.line)
            part.rows.append({key: cell for key, cell in record.cells.items() if key in wanted})
        waiting = len(part.lines) + len(part.bad)
        refuse_too_many_rows(before + waiting, name=name)
        if waiting >= rows_at_once and header and all(column in header for column in needed):
            yield _table(part, header=header, name=name, wanted=wanted)
            part, before = _Part(), before + waiting
    if not header:
        refuse(name, nothing(first))
    yield _table(part, header=header, name=name, wanted=wanted)


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
        sha256="",
        size_bytes=0,
        header=checked_header(list(header), name=name),
        columns=columns,
        lines=np.array(part.lines, dtype=np.int64),
        bad_rows=tuple(part.bad),
        numbers=numbers,
    )
