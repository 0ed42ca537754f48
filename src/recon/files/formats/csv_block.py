"""A block of whole CSV records through Arrow's parser, where nothing in it is doubtful.

What Arrow would read leniently is looked for first, in the bytes: quotes that do not enclose a
cell, carriage returns alone, cells that are too long. A block with any of them is left to the
scanner of `csv_text`, which says what is the matter. Rows with another number of cells than the
header are handed over by the parser itself.
"""

import codecs
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv as arrow_csv

from recon.files.formats.format_limits import CELL_CHARACTERS_MAX, REJECTED_ROWS_MAX
from recon.files.formats.raw_table import trimmed

_NEWLINE, _RETURN, _SPACE = 10, 13, 32
_Places = npt.NDArray[np.int64]


class Dialect(NamedTuple):
    """How cells are kept apart."""

    delimiter: str
    quote: str


class OddRecord(NamedTuple):
    """A record with another number of cells than the header."""

    line: int
    cells: int
    text: str
    """As it stands in the file, without its line end."""


class Block(NamedTuple):
    """The records of a block that have a cell for each column, and the others."""

    columns: dict[str, pa.Array]
    lines: _Places
    odd: list[OddRecord]
    end: int
    """Bytes that were read; the rest is no whole record yet."""
    newlines: int
    """Line ends in them."""


class _Records(NamedTuple):
    starts: _Places
    ends: _Places
    newlines: _Places
    broken: bool
    """A cell goes over a line end."""


def read_block(
    content: bytes, *, header: Sequence[str], names: Sequence[str], dialect: Dialect, line: int
) -> Block | None:
    """The wanted columns `names` of UTF-8 bytes that begin with a record on `line`.

    None where the scanner must decide.
    """
    marks = np.frombuffer(content, np.uint8)
    records = _whole_records(content, marks, dialect=dialect)
    if records is None or not names or len(header) == 1:
        return None
    starts, ends = records.starts, records.ends
    if not len(starts):
        return Block(
            {name: trimmed(pa.array([], pa.large_string())) for name in names}, starts, [], 0, 0
        )
    if int((ends - starts).max()) > CELL_CHARACTERS_MAX:
        return None
    filled = (marks[starts] != _NEWLINE) & (marks[starts] != _RETURN)
    lines = np.flatnonzero(filled)
    if records.broken:  # else each record takes one line
        lines = np.searchsorted(records.newlines, starts[filled])
    lines += line
    end = int(ends[-1])
    odd = _OddRecords(lines, blank=dialect.quote * 2)
    table = _parsed(
        content[:end], header=header, names=names, dialect=dialect, broken=records.broken, odd=odd
    )
    if table is None or table.num_rows != int(odd.whole.sum()):
        return None
    trim = records.broken or _may_have_margins(content, marks, dialect=dialect)
    columns = {name: trimmed(table.column(name), margins=trim) for name in names}
    return Block(columns, lines[odd.whole], odd.records, end, len(records.newlines))


class _OddRecords:
    """What Arrow says of rows with another number of cells; past too many of them it stops."""

    def __init__(self, lines: _Places, *, blank: str) -> None:
        self._lines, self._blank = lines, blank
        self.whole = np.ones(len(lines), dtype=np.bool_)
        """Records that have a cell for each column."""
        self.records: list[OddRecord] = []

    def __call__(self, row: Any) -> str:
        """Keep one; the scanner refuses a file with too many, and needs not see the rest of it."""
        if len(self.records) > REJECTED_ROWS_MAX:
            return "error"
        at = row.number - 1
        self.whole[at] = False
        if row.text != self._blank:  # a line with one empty cell is an empty line
            self.records.append(OddRecord(int(self._lines[at]), row.actual_columns, row.text))
        return "skip"


def _whole_records(content: bytes, marks: Any, *, dialect: Dialect) -> _Records | None:
    """Where records stand; None where a quote or a carriage return is not in its place."""
    if b"\r" in content and content.count(b"\r") != content.count(b"\r\n"):
        return None
    newlines = np.flatnonzero(marks == _NEWLINE)
    ends, broken = newlines, False
    if dialect.quote.encode() in content:
        quotes = np.flatnonzero(marks == ord(dialect.quote))
        inside = np.searchsorted(quotes, newlines) % 2 == 1
        ends, broken = newlines[~inside], bool(inside.any())
        if not len(ends):
            return None
        # What stands behind the last whole record is not judged yet.
        quotes = quotes[quotes < ends[-1]]
        if not _enclose(marks, quotes, dialect=dialect):
            return None
    ends = ends + 1
    starts = np.concatenate(([0], ends[:-1])) if len(ends) else ends
    last = int(ends[-1]) if len(ends) else 0
    return _Records(starts, ends, newlines[newlines < last], broken)


def _enclose(marks: Any, quotes: _Places, *, dialect: Dialect) -> bool:
    """Whether every quote opens a cell, closes one, or is one of a pair inside."""
    if len(quotes) % 2:
        return False
    quote, delimiter = ord(dialect.quote), ord(dialect.delimiter)
    opens, closes = quotes[0::2], quotes[1::2]
    before = np.where(opens == 0, _NEWLINE, marks[opens - 1])
    after = marks[closes + 1]  # a line end at the latest
    opened = np.isin(before, (_NEWLINE, delimiter, quote))
    closed = np.isin(after, (_NEWLINE, _RETURN, delimiter, quote))
    return bool(opened.all() and closed.all())


def _parsed(
    content: bytes,
    *,
    header: Sequence[str],
    names: Sequence[str],
    dialect: Dialect,
    broken: bool,
    odd: _OddRecords,
) -> pa.Table | None:
    if not content.strip(b"\r\n"):
        return pa.table({name: pa.array([], pa.large_string()) for name in names})
    quoted = dialect.quote.encode() in content
    if content.startswith(codecs.BOM_UTF8):
        # Arrow drops one mark; a block does not begin a file, so this one is content.
        content = codecs.BOM_UTF8 + content
    try:
        return arrow_csv.read_csv(
            pa.BufferReader(pa.py_buffer(content)),
            read_options=arrow_csv.ReadOptions(
                column_names=list(header), use_threads=False, block_size=len(content) + 1
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=dialect.delimiter,
                quote_char=dialect.quote if quoted else False,
                double_quote=quoted,
                newlines_in_values=broken,
                ignore_empty_lines=True,
                invalid_row_handler=odd,
            ),
            convert_options=arrow_csv.ConvertOptions(
                check_utf8=False,  # whoever brings a block has decoded its bytes
                column_types=dict.fromkeys(header, pa.large_string()),
                include_columns=list(names),
                strings_can_be_null=False,
                null_values=[],
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        return None


def _line_ends(content: bytes, marks: Any) -> int:
    """How many bytes are part of a line end."""
    returns = np.count_nonzero(marks == _RETURN) if b"\r" in content else 0
    return int(np.count_nonzero(marks == _NEWLINE) + returns)


def _may_have_margins(content: bytes, marks: Any, *, dialect: Dialect) -> bool:
    """Whether white space may stand at the beginning or end of a cell."""
    if not content.isascii():
        return True
    # Counting is much cheaper than finding: most files have no space at all.
    if np.count_nonzero(marks <= _SPACE) == _line_ends(content, marks):
        return False
    spaces = np.flatnonzero(marks <= _SPACE)
    spaces = spaces[(marks[spaces] != _NEWLINE) & (marks[spaces] != _RETURN)]
    if b"\r" in content or not len(spaces):
        return bool(len(spaces))
    edges = (_NEWLINE, ord(dialect.delimiter), ord(dialect.quote))
    before = np.where(spaces == 0, _NEWLINE, marks[spaces - 1])
    after = marks[np.minimum(spaces + 1, len(marks) - 1)]
    spread = (before <= _SPACE) | (after <= _SPACE)
    return bool((np.isin(before, edges) | np.isin(after, edges) | spread).any())
