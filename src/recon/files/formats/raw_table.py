"""What every reader of bytes hands on: named columns of trimmed text, and where each row stood.

Records that name their own cells (JSON lines, XML) have no header: all names that they have are it.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recon.config.file_layouts import Trailer
from recon.files.formats.format_limits import (
    CELL_CHARACTERS_MAX,
    COLUMNS_MAX,
    REJECTED_CHARACTERS_MAX,
    REJECTED_ROWS_MAX,
    ROWS_MAX,
)
from recon.model.errors import SourceUnreadableError
from recon.privacy.card_numbers import holds_card


@dataclass(frozen=True, slots=True)
class BadRow:
    """A record whose cells cannot be told apart."""

    line: int
    reason: str
    text: str
    cells: tuple[str, ...] = ()
    """What stands in the place of each column, as far as the row reaches."""
    is_short: bool = False
    """Has fewer cells than there are columns."""


@dataclass(frozen=True, slots=True)
class Declared:
    """What somebody says stands in a file, as written."""

    rows: str = ""
    amounts: Mapping[str, str] = field(default_factory=dict)
    """Currency -> sum; "" names that of a file of one currency."""
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class EveryColumn(Container[str]):
    """Asks a reader for all columns; what is read of them is `read`, the rest is looked through."""

    read: Container[str] = ()

    def __contains__(self, name: object) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class RawTable:
    """A file as text: one entry of `lines` and of each column per well-formed row."""

    name: str
    header: tuple[str, ...]
    """All column names of the file."""
    columns: Mapping[str, pa.Array]
    """Those that were wanted, trimmed; "" is a blank cell."""
    lines: npt.NDArray[np.int64]
    """Physical line (CSV) or row (XLSX, Parquet) where each row starts; 1 is the header."""
    sha256: str = ""
    size_bytes: int = 0
    """Of the file: `raw_of` says both of whatever a format's reader gave."""
    bad_rows: tuple[BadRow, ...] = ()
    numbers: Mapping[str, pa.Array] = field(default_factory=dict)
    """Of columns with cells that were exact numbers, not text: which ones (booleans)."""
    last_line_open: bool = False
    """The last line has no line end, so it may have been cut."""
    typed_dates: bool = False
    """Cells that were dates, not text, are written as ISO 8601."""
    workbook: bool = False
    """A spreadsheet saved it, which may have read texts as dates of another country."""
    declared: Declared | None = None
    """What the file itself says it holds."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Rule of the layout -> rows that it left out, for they are no records."""

    @property
    def records(self) -> int:
        """Rows of the file that no rule left out, bad ones included."""
        return len(self.lines) + len(self.bad_rows)

    @property
    def rows_read(self) -> int:
        """All rows of the file."""
        return self.records + sum(self.skipped.values())

    def some(self, rows: npt.NDArray[np.bool_]) -> "RawTable":
        """These well-formed rows alone."""
        chosen = pa.array(rows)
        return replace(
            self,
            columns={name: cells.filter(chosen) for name, cells in self.columns.items()},
            lines=self.lines[rows],
            numbers={name: marks.filter(chosen) for name, marks in self.numbers.items()},
        )


def refuse(name: str, problem: str) -> NoReturn:
    """Give up on a whole file."""
    msg = f"{name} {problem}"
    raise SourceUnreadableError(msg)


def declared_by(cells: Sequence[str], *, trailer: Trailer, name: str) -> Declared:
    """What the cells of a last record declare of the rows before it.

    Raises:
        SourceUnreadableError: it is another record, or lacks a cell.
    """
    if [*cells[: trailer.place]] != [""] * (trailer.place - 1) + [trailer.word]:
        refuse(name, f"does not end with a record {trailer.word!r}, so it may have been cut")
    if max(trailer.rows, trailer.amount) > len(cells):
        refuse(name, f"has only {len(cells)} cells in its last record {trailer.word!r}")
    return Declared(
        rows=cells[trailer.rows - 1] or "?" if trailer.rows else "",
        amounts={"": cells[trailer.amount - 1]} if trailer.amount else {},
    )


def checked_header(
    cells: Sequence[str], *, name: str, wanted: Container[str] | None = None
) -> tuple[str, ...]:
    """The column names of a file, each given once.

    With `wanted` a name that is not in it may come again, and then bears its number: `item (column
    8)`.
    """
    header: list[str] = []
    if len(cells) > COLUMNS_MAX:
        refuse(name, f"has {len(cells)} columns; at most {COLUMNS_MAX} are read")
    for number, cell in enumerate(cells, start=1):
        column = cell.strip()
        if not column:
            refuse(name, f"has no name for column {number} in its header")
        numbered = f"{column} (column {number})"
        if column in header and (wanted is None or column in wanted or numbered in header):
            first = header.index(column) + 1
            refuse(name, f"has one name for columns {first} and {number} in its header")
        header.append(numbered if column in header else column)
    return tuple(header)


def refuse_cards_before_header(text: str, *, name: str) -> None:
    """What stands before a header is in no column, so nobody else looks through it."""
    if holds_card(text):
        refuse(name, "has a card number before its header; remove it and ask for another file")


def refuse_too_many_rows(rows: int, *, name: str) -> None:
    """Bound the work of everything that follows."""
    if rows > ROWS_MAX:
        refuse(name, f"has more than {ROWS_MAX} rows; split it")


class RejectedSoFar:
    """How many rows of one file were refused, and how much they say."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._rows = self._characters = 0

    def take(self, bad: BadRow) -> BadRow:
        """The row, once it is sure that the file may have one more.

        Raises:
            SourceUnreadableError: it may not.
        """
        self._rows += 1
        self._characters += len(bad.text)
        if self._rows > REJECTED_ROWS_MAX or self._characters > REJECTED_CHARACTERS_MAX:
            refuse_too_many_rejects(self.name, line=bad.line, reason=bad.reason)
        return bad


def refuse_too_many_rejects(name: str, *, line: int, reason: str) -> NoReturn:
    """A file whose rows cannot be read is one mistake, not one of each row."""
    refuse(
        name,
        f"has more rows that cannot be read than are told one by one ({REJECTED_ROWS_MAX} rows, "
        f"{REJECTED_CHARACTERS_MAX} characters), up to line {line}, which {reason}; "
        "check its layout, then send it again",
    )


def trimmed(cells: Any) -> pa.Array:
    """One array of text without white space around it."""
    if isinstance(cells, pa.ChunkedArray):
        cells = cells.combine_chunks()
    if isinstance(cells, pa.ChunkedArray):  # of no or several arrays after all
        cells = pa.concat_arrays(cells.chunks) if cells.num_chunks else pa.array([], cells.type)
    return pc.utf8_trim_whitespace(cells.cast(pa.large_string()))


def filled(text: str, *, rows: int) -> pa.Array:
    """A column that says the same in every row."""
    return pa.repeat(pa.scalar(text, pa.large_string()), rows)


def joined(parts: Sequence[RawTable]) -> RawTable:
    """The parts of one file as one table; what a part does not have is blank in it."""
    last = parts[-1]
    if len(parts) == 1:
        return last
    named = dict.fromkeys(name for part in parts for name in part.numbers)
    return replace(
        last,
        columns={
            name: pa.concat_arrays(
                [_cells(part, name, of=part.columns, kind=pa.large_string()) for part in parts]
            )
            for name in last.columns
        },
        lines=np.concatenate([part.lines for part in parts]),
        bad_rows=tuple(row for part in parts for row in part.bad_rows),
        numbers={
            name: pa.concat_arrays(
                [_cells(part, name, of=part.numbers, kind=pa.bool_()) for part in parts]
            )
            for name in named
        },
    )


def _cells(part: RawTable, name: str, *, of: Mapping[str, pa.Array], kind: pa.DataType) -> pa.Array:
    """The column of a part, or as many blanks."""
    if name in of:
        return of[name]
    cell = "" if pa.types.is_large_string(kind) else False
    return pa.array([cell] * len(part.lines), kind)


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
