"""A block of whole CSV records through Arrow's parser, where nothing in it is doubtful.

What Arrow would read leniently is looked for first, in the bytes: quotes that do not enclose a
cell, carriage returns alone, cells that are too long. A block with any of them is left to the
scanner of `csv_text`, which says what is the matter. Rows with another number of cells than the
header are cut out, so that one of them does not slow its neighbours.
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


class RecordSpan(NamedTuple):
    """One record in a block, its line end included."""

    line: int
    start: int
    end: int


class Block(NamedTuple):
    """The records of a block that have a cell for each column, and where the others stand."""

    columns: dict[str, pa.Array]
    lines: _Places
    odd: list[RecordSpan]
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
        return Block({name: trimmed(pa.array([], pa.string())) for name in names}, starts, [], 0, 0)
    if int((ends - starts).max()) > CELL_CHARACTERS_MAX:
        return None
    filled = (marks[starts] != _NEWLINE) & (marks[starts] != _RETURN)
    lines = line + np.searchsorted(records.newlines, starts)
    end = int(ends[-1])
    table = _parsed(content[:end], header=header, names=names, dialect=dialect, records=records)
    odd = np.zeros(len(starts), dtype=bool)
    if table is None or table.num_rows != int(filled.sum()):
        odd = filled & (_cells(content, marks, records, dialect=dialect) != len(header))
        # Of so many the reader tells the first ones and refuses the file; the others are no matter.
        wrong = int(odd.sum()) > REJECTED_ROWS_MAX
        kept = b"" if wrong else _without(content, starts[odd], ends[odd], end=end)
        table = _parsed(kept, header=header, names=names, dialect=dialect, records=records)
        if table is None or (not wrong and table.num_rows != int((filled & ~odd).sum())):
            return None
    trim = records.broken or _may_have_margins(content, marks, dialect=dialect)
    columns = {name: trimmed(table.column(name), margins=trim) for name in names}
    odd_rows = np.flatnonzero(odd)[: REJECTED_ROWS_MAX + 1]
    spans = [RecordSpan(int(lines[at]), int(starts[at]), int(ends[at])) for at in odd_rows]
    return Block(columns, lines[filled & ~odd], spans, end, len(records.newlines))


def certain_end(content: bytes, *, dialect: Dialect) -> int:
    """Where the last record ends of UTF-8 bytes that begin with one; 0 where that is doubtful."""
    records = _whole_records(content, np.frombuffer(content, np.uint8), dialect=dialect)
    return int(records.ends[-1]) if records is not None and len(records.ends) else 0


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


def _cells(content: bytes, marks: Any, records: _Records, *, dialect: Dialect) -> _Places:
    """How many cells each record has."""
    delimiters = np.flatnonzero(marks == ord(dialect.delimiter))
    if dialect.quote.encode() in content:
        quotes = np.flatnonzero(marks == ord(dialect.quote))
        delimiters = delimiters[np.searchsorted(quotes, delimiters) % 2 == 0]
    counts = np.searchsorted(delimiters, records.ends) - np.searchsorted(delimiters, records.starts)
    cells: _Places = counts + 1
    return cells


def _without(content: bytes, starts: _Places, ends: _Places, *, end: int) -> bytes:
    places = zip([0, *ends.tolist()], [*starts.tolist(), end], strict=True)
    return b"".join(content[first:last] for first, last in places)


def _parsed(
    content: bytes,
    *,
    header: Sequence[str],
    names: Sequence[str],
    dialect: Dialect,
    records: _Records,
) -> pa.Table | None:
    if not content.strip(b"\r\n"):
        return pa.table({name: pa.array([], pa.string()) for name in names})
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
                newlines_in_values=records.broken,
                ignore_empty_lines=True,
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(header, pa.string()),
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
