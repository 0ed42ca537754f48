"""The output of every format reader: named columns of trimmed text with line numbers.

Records that name their own cells (JSON lines, XML) have the union of these names as header.
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
    """A record that cannot be split into cells."""

    line: int
    reason: str
    text: str
    cells: tuple[str, ...] = ()
    """The cells as far as the row has them, in column order."""
    is_short: bool = False
    """The row has fewer cells than there are columns."""


@dataclass(frozen=True, slots=True)
class Declared:
    """Control totals that a file or its sender declares, as written."""

    rows: str = ""
    amounts: Mapping[str, str] = field(default_factory=dict)
    """Currency -> sum; the key "" is for a file with a single currency."""
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class EveryColumn(Container[str]):
    """A container that includes all columns; only those in `read` are used, the rest is scanned."""

    read: Container[str] = ()

    def __contains__(self, name: object) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class RawTable:
    """A file as text: `lines` and each column have one item per well-formed row."""

    name: str
    header: tuple[str, ...]
    """All column names of the file."""
    columns: Mapping[str, pa.Array]
    """The wanted columns, trimmed; "" is a blank cell."""
    lines: npt.NDArray[np.int64]
    """Line (CSV) or row (XLSX, Parquet) at which each row starts; 1 is the header."""
    sha256: str = ""
    size_bytes: int = 0
    """Hash and size of the file; both are set by `raw_of`, not by the format's reader."""
    bad_rows: tuple[BadRow, ...] = ()
    numbers: Mapping[str, pa.Array] = field(default_factory=dict)
    """For columns with exact numbers instead of text: a boolean per row, true for a number."""
    last_line_open: bool = False
    """The last line has no line end, so the file may have been cut off."""
    typed_dates: bool = False
    """Date cells have been written as ISO 8601."""
    workbook: bool = False
    """Saved by a spreadsheet, which may have converted text into dates of another locale."""
    declared: Declared | None = None
    """The control totals stated in the file itself."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Layout rule -> number of rows it left out because they are not records."""

    @property
    def records(self) -> int:
        """Number of rows, including bad ones, without those that a layout rule left out."""
        return len(self.lines) + len(self.bad_rows)

    @property
    def rows_read(self) -> int:
        """Number of all rows in the file."""
        return self.records + sum(self.skipped.values())

    def some(self, rows: npt.NDArray[np.bool_ | np.int64]) -> "RawTable":
        """Return only these well-formed rows, by boolean mask or by index in the given order."""
        chosen = pa.array(np.flatnonzero(rows) if rows.dtype == np.bool_ else rows)
        return replace(
            self,
            columns={name: cells.take(chosen) for name, cells in self.columns.items()},
            lines=self.lines[rows],
            numbers={name: numbers_of.take(chosen) for name, numbers_of in self.numbers.items()},
        )


def refuse(name: str, problem: str) -> NoReturn:
    """Refuse a whole file by raising SourceUnreadableError."""
    msg = f"{name} {problem}"
    raise SourceUnreadableError(msg)


def declared_by(cells: Sequence[str], *, trailer: Trailer, name: str) -> Declared:
    """Read the control totals from a trailer record.

    Raises:
        SourceUnreadableError: the record is not a trailer, or lacks a cell.
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
    cells: Sequence[str], *, name: str, columns_read: Container[str] | None = None
) -> tuple[str, ...]:
    """Return the column names of a header, which must be unique.

    With `columns_read`, a name outside of it may be repeated; the later one gets its number: `item
    (column 8)`.
    """
    header: list[str] = []
    if len(cells) > COLUMNS_MAX:
        refuse(name, f"has {len(cells)} columns; at most {COLUMNS_MAX} are read")
    for number, cell in enumerate(cells, start=1):
        column = cell.strip()
        if not column:
            refuse(name, f"has no name for column {number} in its header")
        numbered = f"{column} (column {number})"
        if column in header and (
            columns_read is None or column in columns_read or numbered in header
        ):
            first = header.index(column) + 1
            refuse(name, f"has one name for columns {first} and {number} in its header")
        header.append(numbered if column in header else column)
    return tuple(header)


def refuse_cards_before_header(text: str, *, name: str) -> None:
    """Refuse card numbers before the header: that text is in no column and is not scanned later."""
    if holds_card(text):
        refuse(name, "has a card number before its header; remove it and ask for another file")


def refuse_too_many_rows(rows: int, *, name: str, rows_max: int | None = None) -> None:
    """Refuse a file of more than `rows_max` rows (None: ROWS_MAX), which limits all later work."""
    most = ROWS_MAX if rows_max is None else rows_max
    if rows > most:
        refuse(name, f"has more than {most} rows; split it")


def refuse_too_many_rejects(name: str, *, line: int, reason: str) -> NoReturn:
    """Refuse a file with too many bad rows: that is one mistake in the file, not one per row."""
    refuse(
        name,
        f"has more rows that cannot be read than are listed one by one ({REJECTED_ROWS_MAX} rows, "
        f"{REJECTED_CHARACTERS_MAX} characters), up to line {line}, which {reason}; "
        "check its layout, then send it again",
    )


def trimmed(cells: Any) -> pa.Array:
    """Return one array of text without leading and trailing white space."""
    if isinstance(cells, pa.ChunkedArray):
        cells = cells.combine_chunks()
    if isinstance(cells, pa.ChunkedArray):  # still chunked if it had none or several arrays
        cells = pa.concat_arrays(cells.chunks) if cells.num_chunks else pa.array([], cells.type)
    return pc.utf8_trim_whitespace(cells.cast(pa.large_string()))


def filled(text: str, *, rows: int) -> pa.Array:
    """Return a column with the same text in every row."""
    return pa.repeat(pa.scalar(text, pa.large_string()), rows)


def joined(parts: list[RawTable]) -> RawTable:
    """Concatenate the parts of one file into one table; a column missing in a part is blank there.

    Empties the list `parts`, so that memory holds a column at most twice.
    """
    last = parts[-1]
    if len(parts) == 1:
        return last
    texts = [dict(part.columns) for part in parts]
    numbers_of = [dict(part.numbers) for part in parts]
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
            name: whole(name, of=numbers_of, blank=no_mark)
            for name in dict.fromkeys(name for each in numbers_of for name in each)
        },
    )


ROWS_AT_ONCE = 50_000
"""Number of rows held as Python objects at once."""


class NumberText(str):
    """The text of a cell that is a number or a boolean."""

    __slots__ = ()


class ListText(str):
    """A cell with several values; makes the row bad if its column is read."""

    __slots__ = ()


class Rows:
    """Collects the rows of a file while they are read, good and bad ones."""

    def __init__(
        self,
        name: str,
        *,
        header: Iterable[str],
        columns_read: Container[str],
        rows_max: int | None = None,
    ) -> None:
        """Start without rows; `header` may grow later, and earlier rows are blank there."""
        self.name, self._rows_max = name, rows_max
        self._header, self._columns_read = header, columns_read
        self._lines: list[int] = []
        self._rows: list[Sequence[str]] = []
        self._parts: list[RawTable] = []
        self._bad: list[BadRow] = []
        self._read = self._bad_characters = 0

    def take(self, line: int, cells: Sequence[str], /) -> None:
        """Add a row with its cells in header order.

        Raises:
            SourceUnreadableError: the file has too many rows.
        """
        self._lines.append(line)
        self._rows.append(cells)
        if len(self._rows) >= ROWS_AT_ONCE:
            self._become_columns()

    def take_columns(self, lines: npt.NDArray[np.int64], columns: Mapping[str, pa.Array]) -> None:
        """Add rows that are columns already; the line numbers of batches may interleave."""
        self._read += len(lines)
        self._parts.append(RawTable(self.name, (), columns, lines))

    def take_bad(self, bad: BadRow, /) -> None:
        """Add a row that cannot be read.

        Raises:
            SourceUnreadableError: the file has too many bad rows.
        """
        self._bad.append(bad)
        self._bad_characters += len(bad.text)
        if len(self._bad) > REJECTED_ROWS_MAX or self._bad_characters > REJECTED_CHARACTERS_MAX:
            refuse_too_many_rejects(self.name, line=bad.line, reason=bad.reason)

    def table(self, **fields: Any) -> RawTable:
        """Return all rows in line order; `fields` sets further fields of the table."""
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
            if column in self._columns_read:
                columns[column] = trimmed(pa.array(texts, pa.large_string()))
                if NumberText in set(map(type, texts)):
                    numbers_of = [isinstance(text, NumberText) for text in texts]
                    numbers[column] = pa.array(numbers_of, pa.bool_())
        lines = np.array(self._lines, dtype=np.int64)
        self._parts.append(RawTable(self.name, (), columns, lines, numbers=numbers))
        self._lines, self._rows = [], []


class Record(NamedTuple):
    """A record: its cells by name, or the problem and the text to show."""

    line: int
    cells: Mapping[str, str]
    problem: str = ""
    text: str = ""


def table_of(
    records: Iterable[Record],
    *,
    name: str,
    columns_read: Container[str],
    nothing: Callable[[str], str],
    rows_max: int | None = None,
) -> RawTable:
    """Read the wanted columns of the records; the header is the union of their names.

    `nothing` returns the problem of a file without any row, given the text on its first bad row.

    Raises:
        SourceUnreadableError: there is no row, or there are too many rows or names.
    """
    header: dict[str, None] = {}
    rows = Rows(name, header=header, columns_read=columns_read, rows_max=rows_max)
    read = columns_read.read if isinstance(columns_read, EveryColumn) else columns_read
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
