"""What every reader of bytes hands on: named columns of trimmed text, and where each row stood.

Records that name their own cells (JSON lines, XML) have no header: all names that they have are it.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
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

    def some(self, rows: npt.NDArray[np.bool_ | np.int64]) -> "RawTable":
        """These well-formed rows alone, by a mark for each or in the order of their numbers."""
        chosen = pa.array(np.flatnonzero(rows) if rows.dtype == np.bool_ else rows)
        return replace(
            self,
            columns={name: cells.take(chosen) for name, cells in self.columns.items()},
            lines=self.lines[rows],
            numbers={name: marks.take(chosen) for name, marks in self.numbers.items()},
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


def refuse_too_many_rows(rows: int, *, name: str, rows_max: int | None = None) -> None:
    """Bound the work of everything that follows; None: the bound of a file."""
    most = ROWS_MAX if rows_max is None else rows_max
    if rows > most:
        refuse(name, f"has more than {most} rows; split it")


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


def joined(parts: list[RawTable]) -> RawTable:
    """The parts of one file as one table, and none of them any more: memory holds a column twice.

    What a part does not have is blank in it.
    """
    last = parts[-1]
    if len(parts) == 1:
        return last
    texts = [dict(part.columns) for part in parts]
    marks = [dict(part.numbers) for part in parts]
    sizes = [len(part.lines) for part in parts]
    lines = np.concatenate([part.lines for part in parts])
    parts.clear()

    def whole(name: str, *, of: list[dict[str, pa.Array]], blank: pa.Scalar) -> pa.Array:
        cells = [each.pop(name, None) for each in of]
        return pa.concat_arrays(
            [
                pa.repeat(blank, size) if own is None else own
                for own, size in zip(cells, sizes, strict=True)
            ]
        )

    no_text, no_mark = pa.scalar("", pa.large_string()), pa.scalar(value=False)
    return replace(
        last,
        columns={name: whole(name, of=texts, blank=no_text) for name in [*last.columns]},
        lines=lines,
        numbers={
            name: whole(name, of=marks, blank=no_mark)
            for name in dict.fromkeys(name for each in marks for name in each)
        },
    )


ROWS_AT_ONCE = 50_000
"""Rows that are objects of Python at once."""


class NumberText(str):
    """The text of a cell that is a number or a truth."""

    __slots__ = ()


class ListText(str):
    """Several values in a cell: of a column that nobody reads, or its row is bad."""

    __slots__ = ()


class Rows:
    """The rows of one file as they are read, and those that cannot be."""

    def __init__(
        self,
        name: str,
        *,
        header: Iterable[str],
        wanted: Container[str],
        rows_max: int | None = None,
    ) -> None:
        """`header` may grow meanwhile; what a row does not reach is blank in it."""
        self.name, self._rows_max = name, rows_max
        self._header, self._wanted = header, wanted
        self._lines: list[int] = []
        self._rows: list[Sequence[str]] = []
        self._parts: list[RawTable] = []
        self._bad: list[BadRow] = []
        self._read = self._bad_characters = 0

    def take(self, line: int, cells: Sequence[str], /) -> None:
        """The cells of a row in the order of the header.

        Raises:
            SourceUnreadableError: the file has too many.
        """
        self._lines.append(line)
        self._rows.append(cells)
        if len(self._rows) >= ROWS_AT_ONCE:
            self._become_columns()

    def take_columns(self, lines: npt.NDArray[np.int64], columns: Mapping[str, pa.Array]) -> None:
        """Rows that are columns already; the lines of others may lie between theirs."""
        self._read += len(lines)
        self._parts.append(RawTable(self.name, (), columns, lines))

    def take_bad(self, bad: BadRow, /) -> None:
        """A row that cannot be read.

        Raises:
            SourceUnreadableError: the file has too many.
        """
        self._bad.append(bad)
        self._bad_characters += len(bad.text)
        if len(self._bad) > REJECTED_ROWS_MAX or self._bad_characters > REJECTED_CHARACTERS_MAX:
            refuse_too_many_rejects(self.name, line=bad.line, reason=bad.reason)

    def table(self, **fields: Any) -> RawTable:
        """All of them; `fields` are further ones of the table."""
        self._become_columns()
        parts, self._parts = self._parts, []
        header = checked_header([*self._header], name=self.name)
        bad = tuple(sorted(self._bad, key=lambda row: row.line))
        table = joined(parts)
        if (np.diff(table.lines) < 0).any():
            table = table.some(np.argsort(table.lines))
        return replace(table, header=header, bad_rows=bad, **fields)

    def _become_columns(self) -> None:
        self._read += len(self._rows)
        rows = self._read + len(self._bad)
        refuse_too_many_rows(rows, name=self.name, rows_max=self._rows_max)
        columns: dict[str, pa.Array] = {}
        numbers: dict[str, pa.Array] = {}
        blank = ("",) * len(self._rows)
        found = zip_longest(*self._rows, fillvalue="")
        for column in self._header:
            texts = next(found, blank)
            if column in self._wanted:
                columns[column] = trimmed(pa.array(texts, pa.large_string()))
                if NumberText in set(map(type, texts)):
                    marks = [isinstance(text, NumberText) for text in texts]
                    numbers[column] = pa.array(marks, pa.bool_())
        lines = np.array(self._lines, dtype=np.int64)
        self._parts.append(RawTable(self.name, (), columns, lines, numbers=numbers))
        self._lines, self._rows = [], []


class Record(NamedTuple):
    """One record: its cells by name, or why it is no row and what it looks like."""

    line: int
    cells: Mapping[str, str]
    problem: str = ""
    text: str = ""


def table_of(
    records: Iterable[Record],
    *,
    name: str,
    wanted: Container[str],
    nothing: Callable[[str], str],
    rows_max: int | None = None,
) -> RawTable:
    """The wanted columns of the records; the header is all names that they have.

    `nothing` says what a file without a single row is, given its first bad row.

    Raises:
        SourceUnreadableError: there is no row, or there are too many rows or names.
    """
    header: dict[str, None] = {}
    rows = Rows(name, header=header, wanted=wanted, rows_max=rows_max)
    read = wanted.read if isinstance(wanted, EveryColumn) else wanted
    for record in records:
        problem, text = record.problem, record.text
        if any(isinstance(cell, ListText) and key in read for key, cell in record.cells.items()):
            problem = "has a list, which no column can hold"
            text = ", ".join(record.cells.values())
        if problem:
            rows.take_bad(BadRow(record.line, problem, text[:CELL_CHARACTERS_MAX]))
            continue
        header |= dict.fromkeys(record.cells)
        if len(header) > COLUMNS_MAX:
            refuse(name, f"has more than {COLUMNS_MAX} different names in its records")
        rows.take(record.line, [record.cells.get(column, "") for column in header])
    table = rows.table()
    if not header:
        bad_rows = table.bad_rows[:1]
        refuse(name, nothing("".join(f": line {bad.line} {bad.reason}" for bad in bad_rows)))
    return table
