"""CSV as RFC 4180 writes it, read strictly: quotes that close, one encoding, one delimiter.

Delimiter, quote and encoding are those of the layout, never guessed. A row with another number of
cells than the header is a bad row, never a shifted one. A file without quotes goes through Arrow's
parser whole; any doubt there, and every file with quotes, goes through the scanner below, which
knows the physical line on which each record starts.
"""

import codecs
import re
from collections.abc import Container, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from recon.file_layouts import STANDARD, FileLayout
from recon.foreign_bytes.limits import CELL_CHARACTERS_MAX, ROWS_MAX
from recon.foreign_bytes.opening import FileBytes
from recon.foreign_bytes.raw_table import (
    BadRow,
    Declared,
    RawTable,
    checked_header,
    refuse,
    refuse_too_many_rows,
    trimmed,
)

SEPARATORS = ",;\t|"
_ROWS_AT_ONCE = 50_000
_LINE_END = re.compile(r"\r?\n|\Z")
_BOMS = {
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


class Record(NamedTuple):
    """One record as it stands in the file."""

    line: int
    cells: list[str]
    stray_quote: bool
    start: int
    end: int


class _Text(NamedTuple):
    """A file as text, in the dialect of its layout."""

    name: str
    text: str
    delimiter: str
    quote: str
    quoted: re.Pattern[str]
    plain: re.Pattern[str]


def read_csv(file: FileBytes, *, wanted: Container[str], layout: FileLayout = STANDARD) -> RawTable:
    """The wanted columns of a CSV file.

    Raises:
        SourceUnreadableError: the file as a whole is not CSV; the byte, line or column is named.
    """
    name = file.path.name
    whole = _decoded(file.content, name=name, encoding=layout.encoding)
    body, declared = _without_trailer(whole, name=name, layout=layout)
    text = _dialect(body, name=name, layout=layout)
    records = _records(text)
    first = next(records, None)
    if first is None:
        refuse(name, "is empty: it has not even a header")
    if first.stray_quote:
        refuse(name, f"has a quote inside a column name on line {first.line}")
    header = checked_header(first.cells, name=name)
    _refuse_other_separator(header, name=name, delimiter=layout.delimiter)
    quick = None
    if first.line == 1 and layout.quote not in body:
        as_read = layout.encoding == "utf-8" and body is whole
        content = file.content if as_read else body.encode()
        quick = _read_at_once(content, header, wanted=wanted, delimiter=layout.delimiter)
    lines, columns, bad = quick or _read_slowly(records, text, header=header, wanted=wanted)
    return RawTable(
        name=name,
        sha256=file.sha256,
        size_bytes=len(file.content),
        header=header,
        columns=columns,
        lines=lines,
        bad_rows=bad,
        last_line_open=_may_be_cut(whole, lines=lines, bad=bad) and declared is None,
        declared=declared,
    )


def _may_be_cut(text: str, *, lines: npt.NDArray[np.int64], bad: tuple[BadRow, ...]) -> bool:
    """Whether the last row is a good one without a line end; a bad one is refused as it is."""
    last_is_good = len(lines) > 0 and not (bad and bad[-1].line > lines[-1])
    return last_is_good and not text.endswith("\n")


def _decoded(content: bytes, *, name: str, encoding: str) -> str:
    if encoding == "utf-16":
        try:
            text = content.decode(encoding)
        except UnicodeError as error:
            refuse(name, f"is not UTF-16: {error}")
        if "\0" in text:
            refuse(name, f"has a NUL at character {text.index(chr(0))}; a CSV file is text")
        return text
    for mark, found in _BOMS.items():
        if content.startswith(mark):
            refuse(name, f"is {found} (bytes 0 and 1 say so); save it as {encoding.upper()}")
    nul = content.find(b"\0")
    if nul >= 0:
        refuse(name, f"has a NUL at byte {nul}; a CSV file is text in {encoding.upper()}")
    marked = encoding == "utf-8" and content.startswith(codecs.BOM_UTF8)
    try:
        return (content.removeprefix(codecs.BOM_UTF8) if marked else content).decode(encoding)
    except UnicodeDecodeError as error:
        at = error.start + (len(codecs.BOM_UTF8) if marked else 0)
        line = content.count(b"\n", 0, at) + 1
        refuse(name, f"is not {encoding.upper()}: byte {at} on line {line} is 0x{content[at]:02x}")


def _without_trailer(text: str, *, name: str, layout: FileLayout) -> tuple[str, Declared | None]:
    """The text before its last record, and what that record declares."""
    trailer = layout.trailer
    if trailer is None:
        return text, None
    body, _, last = text.rstrip("\r\n").rpartition("\n")
    cells = [cell.strip() for cell in last.rstrip("\r").split(layout.delimiter)]
    if cells[0] != trailer.word:
        problem = f"does not end with a record {trailer.word!r}, so it may have been cut"
        refuse(name, problem)
    if max(trailer.rows, trailer.amount) > len(cells):
        refuse(name, f"has only {len(cells)} cells in its last record {trailer.word!r}")
    declared = Declared(
        rows=cells[trailer.rows - 1] or "?" if trailer.rows else "",
        amounts={"": cells[trailer.amount - 1]} if trailer.amount else {},
    )
    return body + "\n" if body else "", declared


def _dialect(text: str, *, name: str, layout: FileLayout) -> _Text:
    quote, delimiter = layout.quote, re.escape(layout.delimiter)
    return _Text(
        name,
        text,
        layout.delimiter,
        quote,
        quoted=re.compile(f"{quote}([^{quote}]*(?:{quote}{quote}[^{quote}]*)*){quote}"),
        plain=re.compile(rf"[^{delimiter}\r\n]*"),
    )


def _refuse_other_separator(header: tuple[str, ...], *, name: str, delimiter: str) -> None:
    if len(header) > 1:
        return
    needed = "a comma" if delimiter == "," else repr(delimiter)
    for separator in SEPARATORS:
        if separator in header[0]:
            refuse(name, f"separates its columns by {separator!r}; {needed} is needed")


_Parts = tuple[npt.NDArray[np.int64], dict[str, pa.Array], tuple[BadRow, ...]]
"""Line numbers, columns and bad rows."""


def _read_at_once(
    content: bytes, header: tuple[str, ...], *, wanted: Container[str], delimiter: str
) -> _Parts | None:
    """The table by Arrow's parser; None where the scanner must say what is the matter."""
    names = [column for column in header if column in wanted]
    # Arrow would make a row of blanks of an empty line, and end a line at a lone carriage return.
    empty_lines = b"\n\n" in content or b"\n\r\n" in content
    lone_returns = content.count(b"\r") != content.count(b"\r\n")
    if not names or len(header) == 1 or empty_lines or lone_returns:
        return None
    body = pa.py_buffer(content.removeprefix(codecs.BOM_UTF8))
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(body),
            read_options=arrow_csv.ReadOptions(column_names=list(header), skip_rows=1),
            parse_options=arrow_csv.ParseOptions(
                delimiter=delimiter, quote_char=False, double_quote=False, ignore_empty_lines=False
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(header, pa.string()),
                include_columns=names,
                strings_can_be_null=False,
                null_values=[],
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        return None
    longest = max((pc.max(pc.utf8_length(column)).as_py() or 0) for column in table.columns)
    if longest > CELL_CHARACTERS_MAX or table.num_rows > ROWS_MAX:
        return None
    lines = np.arange(2, table.num_rows + 2, dtype=np.int64)
    return lines, {column: trimmed(table.column(column)) for column in names}, ()


def _read_slowly(
    records: Iterator[Record], text: _Text, *, header: tuple[str, ...], wanted: Container[str]
) -> _Parts:
    """The table record by record."""
    lines: list[int] = []
    rows: list[list[str]] = []
    bad: list[BadRow] = []
    parts: dict[str, list[pa.Array]] = {column: [] for column in header if column in wanted}
    for record in records:
        reason = _problem_of(record, columns=len(header))
        if reason:
            cut = text.text[record.start : min(record.end, record.start + CELL_CHARACTERS_MAX)]
            bad.append(BadRow(record.line, reason, cut.strip("\r\n")))
            continue
        lines.append(record.line)
        rows.append(record.cells)
        if len(rows) == _ROWS_AT_ONCE:
            _keep(rows, header, parts)
            refuse_too_many_rows(len(lines) + len(bad), name=text.name)
    _keep(rows, header, parts)
    columns = {name: trimmed(pa.chunked_array(part, pa.string())) for name, part in parts.items()}
    return np.array(lines, dtype=np.int64), columns, tuple(bad)


def _keep(rows: list[list[str]], header: tuple[str, ...], parts: dict[str, list[pa.Array]]) -> None:
    for column, cells in zip(header, zip(*rows, strict=True), strict=False):
        if column in parts:
            parts[column].append(pa.array(cells, pa.string()))
    rows.clear()


def _problem_of(record: Record, *, columns: int) -> str:
    if record.stray_quote:
        return "has a quote inside a cell that does not start with one"
    if len(record.cells) != columns:
        return f"has {len(record.cells)} cells where the header has {columns} columns"
    if any(len(cell) > CELL_CHARACTERS_MAX for cell in record.cells):
        return f"has a cell of more than {CELL_CHARACTERS_MAX} characters"
    return ""


def _records(text: _Text) -> Iterator[Record]:
    """Every record that is not an empty line."""
    whole, position, line = text.text, 0, 1
    while position < len(whole):
        end = whole.find("\n", position)
        end = len(whole) if end < 0 else end + 1
        row = whole[position:end]
        if text.quote in row:
            record = _quoted_record(text, position, line)
        else:
            plain = row.removesuffix("\r\n" if row.endswith("\r\n") else "\n")
            if "\r" in plain:
                _refuse_lone_return(line, name=text.name)
            record = Record(line, plain.split(text.delimiter), False, position, end)
        if record.cells != [""]:
            yield record
        line += whole.count("\n", position, record.end)
        position = record.end


def _quoted_record(text: _Text, start: int, line: int) -> Record:
    cells: list[str] = []
    whole, quote = text.text, text.quote
    position, stray = start, False
    while True:
        quoted = whole.startswith(quote, position)
        found = (text.quoted if quoted else text.plain).match(whole, position)
        if found is None:
            at = line + whole.count("\n", start, position)
            refuse(text.name, f"has a quote on line {at} that is never closed")
        cells.append(found[1].replace(quote * 2, quote) if quoted else found[0])
        stray = stray or (not quoted and quote in found[0])
        position = found.end()
        if whole.startswith(text.delimiter, position):
            position += 1
            continue
        ending = _LINE_END.match(whole, position)
        if ending is not None:
            return Record(line, cells, stray, start, ending.end())
        at = line + whole.count("\n", start, position)
        if whole.startswith("\r", position):
            _refuse_lone_return(at, name=text.name)
        refuse(
            text.name, f"has more text behind a closing quote on line {at}, so no row is certain"
        )


def _refuse_lone_return(line: int, *, name: str) -> None:
    refuse(name, f"has a carriage return without a line feed on line {line}")
