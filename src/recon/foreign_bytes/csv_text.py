"""CSV as RFC 4180 writes it, read strictly: UTF-8, commas, quotes that close.

A row with another number of cells than the header is a bad row, never a shifted one. A file
without quotes goes through Arrow's parser whole; any doubt there, and every file with quotes, goes
through the scanner below, which knows the physical line on which each record starts.
"""

import codecs
import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from recon.foreign_bytes.limits import CELL_CHARACTERS_MAX, ROWS_MAX
from recon.foreign_bytes.opening import FileBytes
from recon.foreign_bytes.raw_table import (
    BadRow,
    RawTable,
    checked_header,
    refuse,
    refuse_too_many_rows,
    trimmed,
)

OTHER_SEPARATORS = ";\t|"
_ROWS_AT_ONCE = 50_000
_QUOTED = re.compile(r'"([^"]*(?:""[^"]*)*)"')
_PLAIN = re.compile(r"[^,\r\n]*")
_LINE_END = re.compile(r"\r?\n|\Z")


class Record(NamedTuple):
    """One record as it stands in the file."""

    line: int
    cells: list[str]
    stray_quote: bool
    start: int
    end: int


def read_csv(file: FileBytes, *, wanted: frozenset[str]) -> RawTable:
    """The wanted columns of a CSV file.

    Raises:
        SourceUnreadableError: the file as a whole is not CSV; the byte, line or column is named.
    """
    name = file.path.name
    text = _decoded(file.content, name=name)
    records = _records(text, name=name)
    first = next(records, None)
    if first is None:
        refuse(name, "is empty: it has not even a header")
    if first.stray_quote:
        refuse(name, f"has a quote inside a column name on line {first.line}")
    header = checked_header(first.cells, name=name)
    _refuse_other_separator(header, name=name)
    quick = None if first.line > 1 or '"' in text else _read_at_once(file, header, wanted=wanted)
    if quick is not None:
        return quick
    return _read_slowly(records, text, file=file, header=header, wanted=wanted)


def _decoded(content: bytes, *, name: str) -> str:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        refuse(name, "is UTF-16 (bytes 0 and 1 say so); save it as UTF-8")
    nul = content.find(b"\0")
    if nul >= 0:
        refuse(name, f"has a NUL at byte {nul}; a CSV file is text in UTF-8")
    try:
        text = content.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        at = error.start + (len(codecs.BOM_UTF8) if content.startswith(codecs.BOM_UTF8) else 0)
        line = content.count(b"\n", 0, at) + 1
        refuse(name, f"is not UTF-8: byte {at} on line {line} is 0x{content[at]:02x}")
    return text


def _refuse_other_separator(header: tuple[str, ...], *, name: str) -> None:
    if len(header) > 1:
        return
    for separator in OTHER_SEPARATORS:
        if separator in header[0]:
            refuse(name, f"separates its columns by {separator!r}; a comma is needed")


def _read_at_once(
    file: FileBytes, header: tuple[str, ...], *, wanted: frozenset[str]
) -> RawTable | None:
    """The table by Arrow's parser; None where the scanner must say what is the matter."""
    names = [column for column in header if column in wanted]
    # Arrow would make a row of blanks of an empty line, and end a line at a lone carriage return.
    empty_lines = b"\n\n" in file.content or b"\n\r\n" in file.content
    lone_returns = file.content.count(b"\r") != file.content.count(b"\r\n")
    if not names or len(header) == 1 or empty_lines or lone_returns:
        return None
    body = pa.py_buffer(file.content.removeprefix(codecs.BOM_UTF8))
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(body),
            read_options=arrow_csv.ReadOptions(column_names=list(header), skip_rows=1),
            parse_options=arrow_csv.ParseOptions(
                quote_char=False, double_quote=False, ignore_empty_lines=False
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
    columns = {column: trimmed(table.column(column)) for column in names}
    return _table(file, header, columns=columns, lines=lines)


def _read_slowly(
    records: Iterator[Record],
    text: str,
    *,
    file: FileBytes,
    header: tuple[str, ...],
    wanted: frozenset[str],
) -> RawTable:
    """The table record by record."""
    lines: list[int] = []
    rows: list[list[str]] = []
    bad: list[BadRow] = []
    parts: dict[str, list[pa.Array]] = {column: [] for column in header if column in wanted}
    for record in records:
        reason = _problem_of(record, columns=len(header))
        if reason:
            cut = text[record.start : min(record.end, record.start + CELL_CHARACTERS_MAX)]
            bad.append(BadRow(record.line, reason, cut.strip("\r\n")))
            continue
        lines.append(record.line)
        rows.append(record.cells)
        if len(rows) == _ROWS_AT_ONCE:
            _keep(rows, header, parts)
            refuse_too_many_rows(len(lines) + len(bad), name=file.path.name)
    _keep(rows, header, parts)
    columns = {name: trimmed(pa.chunked_array(part, pa.string())) for name, part in parts.items()}
    numbers = np.array(lines, dtype=np.int64)
    return _table(file, header, columns=columns, lines=numbers, bad_rows=tuple(bad))


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


def _records(text: str, *, name: str) -> Iterator[Record]:
    """Every record that is not an empty line."""
    position, line = 0, 1
    while position < len(text):
        end = text.find("\n", position)
        end = len(text) if end < 0 else end + 1
        row = text[position:end]
        if '"' in row:
            record = _quoted_record(text, position, line, name=name)
        else:
            plain = row.removesuffix("\r\n" if row.endswith("\r\n") else "\n")
            if "\r" in plain:
                _refuse_lone_return(line, name=name)
            record = Record(line, plain.split(","), False, position, end)
        if record.cells != [""]:
            yield record
        line += text.count("\n", position, record.end)
        position = record.end


def _quoted_record(text: str, start: int, line: int, *, name: str) -> Record:
    cells: list[str] = []
    position, stray = start, False
    while True:
        found = (_QUOTED if text.startswith('"', position) else _PLAIN).match(text, position)
        if found is None:
            at = line + text.count("\n", start, position)
            refuse(name, f"has a quote on line {at} that is never closed")
        quoted = found.re is _QUOTED
        cells.append(found[1].replace('""', '"') if quoted else found[0])
        stray = stray or (not quoted and '"' in found[0])
        position = found.end()
        if text.startswith(",", position):
            position += 1
            continue
        ending = _LINE_END.match(text, position)
        if ending is not None:
            return Record(line, cells, stray, start, ending.end())
        at = line + text.count("\n", start, position)
        if text.startswith("\r", position):
            _refuse_lone_return(at, name=name)
        refuse(name, f"has more text behind a closing quote on line {at}, so no row is certain")


def _refuse_lone_return(line: int, *, name: str) -> None:
    refuse(name, f"has a carriage return without a line feed on line {line}")


def _table(
    file: FileBytes,
    header: tuple[str, ...],
    *,
    columns: dict[str, pa.Array],
    lines: npt.NDArray[np.int64],
    bad_rows: tuple[BadRow, ...] = (),
) -> RawTable:
    return RawTable(
        name=file.path.name,
        sha256=file.sha256,
        size_bytes=len(file.content),
        header=header,
        columns=columns,
        lines=lines,
        bad_rows=bad_rows,
        last_line_open=not file.content.endswith(b"\n"),
    )
