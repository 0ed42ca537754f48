"""CSV as RFC 4180 writes it, read strictly: quotes that close, one encoding, one delimiter.

Delimiter, quote and encoding are those of the layout, never guessed. A row with another number of
cells than the header is a bad row, never a shifted one. Every line is checked by its bytes first:
of one that is a record by itself, with every quote at the beginning or end of a cell, Arrow cuts
the cells; what goes over several lines, or has a quote or carriage return elsewhere, is scanned. A
delimiter at the end of each line begins no column, and ="00123" is the text 00123.
"""

import codecs
import re
from collections.abc import Container, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from recon.config.file_layouts import CODECS, STANDARD, FileLayout
from recon.files.formats.format_limits import CELL_CHARACTERS_MAX, REJECTED_ROWS_MAX
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_table import (
    BadRow,
    Declared,
    EveryColumn,
    RawTable,
    RejectedSoFar,
    checked_header,
    declared_by,
    refuse,
    refuse_cards_before_header,
    refuse_too_many_rows,
    trimmed,
)

SEPARATORS = ",;\t|"
WINDOW_BYTES = 8 * 1024 * 1024
"""Whole lines that are looked at together: about 60,000 orders."""
_BOMS = {codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}
_NAMELESS = ""
"""The column behind a delimiter at the end of each line."""
_NEWLINE, _RETURN = ord("\n"), ord("\r")
_LINE_END = re.compile(rb"\r?\n|\Z")
_Ints = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]


def csv_table(
    file: FileBytes, *, wanted: Container[str], layout: FileLayout = STANDARD
) -> RawTable:
    """The wanted columns of a CSV file.

    Raises:
        SourceUnreadableError: the file as a whole is not CSV; the byte, line or column is named.
    """
    name = file.path.name
    content = _utf8(file.content, name=name, encoding=layout.encoding)
    body, declared = _without_trailer(content, name=name, layout=layout)
    start = len(codecs.BOM_UTF8) if body.startswith(codecs.BOM_UTF8) else 0
    for _ in range(layout.preamble):
        start = body.find(b"\n", start) + 1 or len(body)
    if layout.preamble:
        refuse_cards_before_header(body[:start].decode(), name=name)
    scanner = _Scanner(body, name=name, delimiter=layout.delimiter, quote=layout.quote)
    first = scanner.header(start, line=1 + layout.preamble)
    line, start = first.line + body.count(b"\n", first.start, first.end), first.end
    names = [cell.decode() for cell in first.cells]
    is_open = _ends_open(names, row=scanner.record(start, line=line))
    names = names[:-1] if is_open and not names[-1].strip() else names
    once = wanted.read if isinstance(wanted, EveryColumn) else wanted
    header = checked_header(names, name=name, wanted=once)
    _refuse_other_separator(header, name=name, delimiter=layout.delimiter)
    chosen = [each for each in header if each in wanted]
    nameless = [_NAMELESS] * is_open
    rows = _Rows(scanner, header=(*header, *nameless), names=[*chosen, *nameless])
    while start < len(body):
        start, line = rows.take(start, line=line)
    table = rows.table(declared=declared)
    return _without_nameless(table, header=header) if is_open else table


def _ends_open(header: Sequence[str], *, row: "_Record") -> bool:
    """Whether each line ends with a delimiter, that of the header or the rows alone."""
    if len(header) > 1 and not header[-1].strip():
        return True
    return len(row.cells) == len(header) + 1 and not row.cells[-1].strip()


def _without_nameless(table: RawTable, *, header: tuple[str, ...]) -> RawTable:
    """The table without what stands behind the last delimiter of each line: nothing.

    Raises:
        SourceUnreadableError: something does, so that the row may be shifted.
    """
    columns = {name: cells for name, cells in table.columns.items() if name != _NAMELESS}
    filled = pc.index(pc.not_equal(table.columns[_NAMELESS], ""), value=True).as_py()
    if filled >= 0:
        line = table.lines[filled]
        refuse(table.name, f"has a cell on line {line} in column {len(header) + 1}, without a name")
    return replace(table, header=header, columns=columns)


class _Record(NamedTuple):
    """One record as it stands in the file."""

    line: int
    cells: list[bytes]
    stray_quote: bool
    start: int
    end: int


class _Scanner:
    """One record after the other of UTF-8 text."""

    def __init__(self, content: bytes, *, name: str, delimiter: str, quote: str) -> None:
        self.content, self.name = content, name
        self.ways = {"name": name, "delimiter": delimiter, "quote": quote}
        self.delimiter, self.quote = delimiter.encode(), quote.encode()
        mark, ends = self.quote, re.escape(self.delimiter)
        self._quoted = re.compile(b"%b([^%b]*(?:%b%b[^%b]*)*)%b" % ((mark,) * 6))
        self._plain = re.compile(b"[^%b\r\n]*" % ends)
        self._formula = re.compile(b"=%b([^%b]*)%b" % ((mark,) * 3))
        """Such as ="00123", by which spreadsheets keep digits as text."""

    def header(self, start: int, *, line: int) -> _Record:
        """The first record that is no blank line.

        Raises:
            SourceUnreadableError: there is none, or a quote stands within a name.
        """
        record = self.record(start, line=line)
        while record.cells == [b""]:
            if record.end == len(self.content):
                refuse(self.name, "is empty: it has not even a header")
            record = self.record(record.end, line=record.line + 1)
        if record.stray_quote:
            refuse(self.name, f"has a quote inside a column name on line {record.line}")
        return record

    def record(self, start: int, *, line: int) -> _Record:
        """The record that begins there.

        Raises:
            SourceUnreadableError: no record is certain any more; the line is named.
        """
        content, quote = self.content, self.quote
        cells: list[bytes] = []
        position, stray = start, False
        while True:
            quoted = content.startswith(quote, position)
            match = (self._quoted if quoted else self._plain).match(content, position)
            if match is None:
                at = line + content.count(b"\n", start, position)
                refuse(self.name, f"has a quote on line {at} that is never closed")
            formula = None if quoted else self._formula.fullmatch(match[0])
            cell = match[1].replace(quote * 2, quote) if quoted else match[0]
            cells.append(formula[1] if formula else cell)
            stray = stray or (not quoted and not formula and quote in cell)
            position = match.end()
            if content.startswith(self.delimiter, position):
                position += len(self.delimiter)
                continue
            if ending := _LINE_END.match(content, position):
                return _Record(line, cells, stray, start, ending.end())
            at = line + content.count(b"\n", start, position)
            if content.startswith(b"\r", position):
                refuse(self.name, f"has a carriage return without a line feed on line {at}")
            refuse(
                self.name,
                f"has more text behind a closing quote on line {at}, so no row is certain",
            )


class _Rows:
    """The rows of one file, in windows of whole lines."""

    def __init__(self, scanner: _Scanner, *, header: tuple[str, ...], names: list[str]) -> None:
        self._scanner, self._header, self._names = scanner, header, names
        self._chunks: dict[str, list[pa.Array]] = {name: [] for name in names}
        self._lines: list[_Ints] = []
        self._records: list[_Record] = []
        """Good rows that were scanned."""
        self._bad: list[BadRow] = []
        self._rejected = RejectedSoFar(scanner.name)
        self._read = 0

    def take(self, start: int, *, line: int) -> tuple[int, int]:
        """Read a window that begins with a record; where the next one begins, and on which line."""
        content = self._scanner.content
        end = content.find(b"\n", min(start + WINDOW_BYTES, len(content))) + 1 or len(content)
        text = content[start:end]
        marks = np.frombuffer(text, np.uint8)
        ends = np.flatnonzero(marks == _NEWLINE) + 1
        newlines = len(ends)
        if not text.endswith(b"\n"):
            ends = np.append(ends, len(text))
        starts = np.concatenate(([0], ends[:-1]))
        whole = ~self._odd_lines(text, marks=marks, starts=starts, ends=ends)
        reach = 0
        for at in np.flatnonzero(~whole).tolist():
            if starts[at] < reach:
                continue  # within the record before
            record = self._scanner.record(start + int(starts[at]), line=line + at)
            reach = record.end - start
            whole[at : np.searchsorted(starts, reach)] = False
            self._take_record(record)
        filled = whole & (marks[starts] != _NEWLINE) & (marks[starts] != _RETURN)
        if filled.any():
            if not whole.all():
                edges = np.flatnonzero(np.diff(np.concatenate(([0], whole.view(np.int8), [0]))))
                runs = zip(edges[::2], edges[1::2], strict=True)
                text = b"".join(text[starts[first] : ends[last - 1]] for first, last in runs)
            self._take_lines(text, lines=line + np.flatnonzero(filled))
        self._read += int(filled.sum())
        refuse_too_many_rows(self._read + len(self._records), name=self._scanner.name)
        further = content.count(b"\n", end, start + reach) if start + reach > end else 0
        return max(end, start + reach), line + newlines + further

    def _odd_lines(self, text: bytes, *, marks: Any, starts: _Ints, ends: _Ints) -> _Bools:
        """Lines that are no record by themselves, or not surely."""
        odd: _Bools = ends - starts > CELL_CHARACTERS_MAX
        if b"\r" in text:
            returns = np.flatnonzero(marks == _RETURN)
            lone = returns[marks[np.minimum(returns + 1, len(marks) - 1)] != _NEWLINE]
            odd[np.searchsorted(ends, lone, side="right")] = True
        if self._scanner.quote not in text:
            return odd
        delimiter, quote = ord(self._scanner.delimiter), ord(self._scanner.quote)
        quotes = np.flatnonzero(marks == quote)
        of_line = np.searchsorted(ends, quotes, side="right")
        counts = np.bincount(of_line, minlength=len(ends))
        odd |= counts % 2 == 1
        opens = (np.arange(len(quotes)) - (np.cumsum(counts) - counts)[of_line]) % 2 == 0
        before = np.where(quotes == 0, _NEWLINE, marks[quotes - 1])
        behind = np.minimum(quotes + 1, len(marks) - 1)
        after = np.where(quotes + 1 == len(marks), _NEWLINE, marks[behind])
        fits = np.where(
            opens,
            np.isin(before, (_NEWLINE, delimiter, quote)),
            np.isin(after, (_NEWLINE, _RETURN, delimiter, quote)),
        )
        odd[of_line[~fits]] = True
        if len(self._header) == 1:
            odd[of_line] = True  # a blank cell in quotes is a row there, and a blank line is none
        return odd

    def _take_record(self, record: _Record) -> None:
        """A record that was scanned."""
        reason = ""
        if record.stray_quote:
            reason = "has a quote inside a cell that does not start with one"
        elif record.cells == [b""]:
            return
        elif len(record.cells) != len(self._header):
            reason = self._miscounted(len(record.cells))
        elif any(len(cell.decode()) > CELL_CHARACTERS_MAX for cell in record.cells):
            reason = f"has a cell of more than {CELL_CHARACTERS_MAX} characters"
        if not reason:
            self._records.append(record)
            return
        cut = self._scanner.content[record.start : record.end][:CELL_CHARACTERS_MAX]
        shown = cut.decode(errors="ignore").strip("\r\n")
        self._take_bad(record.line, reason, shown, record=record)

    def _take_lines(self, text: bytes, *, lines: _Ints) -> None:
        """Lines that are a record each; those with another number of cells are bad rows."""
        odd = _OtherWidths()
        if text.startswith(codecs.BOM_UTF8):
            text = codecs.BOM_UTF8 + text  # Arrow drops one mark; here it is content
        quoted = self._scanner.quote in text
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(text),
                read_options=arrow_csv.ReadOptions(
                    column_names=self._header, use_threads=False, block_size=len(text) + 1
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=self._scanner.delimiter.decode(),
                    quote_char=self._scanner.quote.decode() if quoted else False,
                    double_quote=quoted,
                    ignore_empty_lines=True,
                    invalid_row_handler=odd,
                ),
                convert_options=arrow_csv.ConvertOptions(
                    check_utf8=False,
                    column_types=dict.fromkeys(self._header, pa.large_string()),
                    include_columns=self._names or self._header[:1],
                    strings_can_be_null=False,
                    null_values=[],
                ),
            )
        finally:
            for number, cells, shown in odd.rows:
                if shown != self._scanner.quote.decode() * 2:  # a blank line
                    line = int(lines[number])
                    own = _Scanner(shown.encode(), **self._scanner.ways).record(0, line=line)
                    self._take_bad(line, self._miscounted(cells), shown, record=own)
        good = np.delete(lines, [number for number, _, _ in odd.rows])
        if table.num_rows != len(good):
            refuse(self._scanner.name, f"has other rows than lines from line {lines[0]} on")
        self._lines.append(good)
        for name in self._names:
            self._chunks[name].append(trimmed(table.column(name)))

    def _miscounted(self, cells: int) -> str:
        return f"has {cells} cells where the header has {len(self._header)} columns"

    def _take_bad(self, line: int, reason: str, text: str, *, record: _Record) -> None:
        cells: tuple[str, ...] = ()
        width = len(self._header)
        if len(record.cells) != width and not record.stray_quote:
            cells = tuple(cell.decode().strip() for cell in record.cells[:width])
        bad = BadRow(line, reason, text, cells, is_short=len(record.cells) < width)
        self._bad.append(self._rejected.take(bad))

    def table(self, *, declared: Declared | None) -> RawTable:
        """All of them, in the order of their lines."""
        scanned = self._records
        lines = np.concatenate(
            [*self._lines, np.array([record.line for record in scanned], dtype=np.int64)]
        )
        order = None if not scanned else pa.array(np.argsort(lines))
        columns: dict[str, pa.Array] = {}
        for name in self._names:
            at = self._header.index(name)
            own = pa.array([record.cells[at].decode() for record in scanned], pa.large_string())
            cells = pa.concat_arrays([*self._chunks.pop(name), trimmed(own)])
            columns[name] = cells if order is None else cells.take(order)
            pa.default_memory_pool().release_unused()  # its windows, which lie between others
        if order is not None:
            lines.sort()
        bad = tuple(sorted(self._bad, key=lambda row: row.line))
        # A bad last row is refused as it is.
        last_is_good = len(lines) > 0 and not (bad and bad[-1].line > lines[-1])
        is_open = last_is_good and not self._scanner.content.endswith(b"\n")
        return RawTable(
            name=self._scanner.name,
            header=self._header,
            columns=columns,
            lines=lines,
            bad_rows=bad,
            last_line_open=is_open and declared is None,
            declared=declared,
        )


class _OtherWidths:
    """What Arrow says of rows with another number of cells; past too many of them it stops."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, str]] = []
        """Number from 0, cells, and the text."""

    def __call__(self, row: Any) -> str:
        """Keep one."""
        self.rows.append((row.number - 1, row.actual_columns, row.text))
        return "skip" if len(self.rows) <= REJECTED_ROWS_MAX else "error"


def _utf8(content: bytes, *, name: str, encoding: str) -> bytes:
    """The content in UTF-8, its encoding checked."""
    if encoding == "utf-16":
        try:
            text = content.decode("utf-16")
        except UnicodeError as error:
            refuse(name, f"is not UTF-16: {error}")
        if "\0" in text:
            refuse(name, f"has a NUL at character {text.index(chr(0))}; a CSV file is text")
        return text.encode()
    for bom, other in _BOMS.items():
        if content.startswith(bom):
            refuse(name, f"is {other} (bytes 0 and 1 say so); save it as {encoding.upper()}")
    if (nul := content.find(b"\0")) >= 0:
        refuse(name, f"has a NUL at byte {nul}; a CSV file is text in {encoding.upper()}")
    start = 0
    try:
        if encoding != "utf-8":
            return content.decode(CODECS[encoding]).encode()
        while start < len(content):  # as a whole it could take four times its size
            end = content.find(b"\n", start + WINDOW_BYTES) + 1 or len(content)
            content[start:end].decode()
            start = end
    except UnicodeDecodeError as error:
        at = start + error.start
        line = content.count(b"\n", 0, at) + 1
        place = f"byte {at} on line {line} is 0x{content[at]:02x}"
        refuse(name, f"is not {encoding.upper()}: {place}")
    return content


def _without_trailer(
    content: bytes, *, name: str, layout: FileLayout
) -> tuple[bytes, Declared | None]:
    """The lines before the last record, and what that record declares."""
    trailer = layout.trailer
    if trailer is None:
        return content, None
    body, _, last = content.rstrip(b"\r\n").rpartition(b"\n")
    cells = [cell.strip() for cell in last.decode().rstrip("\r").split(layout.delimiter)]
    return body + b"\n" if body else b"", declared_by(cells, trailer=trailer, name=name)


def _refuse_other_separator(header: Sequence[str], *, name: str, delimiter: str) -> None:
    if len(header) > 1:
        return
    needed = "a comma" if delimiter == "," else repr(delimiter)
    for separator in SEPARATORS:
        if separator in header[0]:
            refuse(name, f"separates its columns by {separator!r}; {needed} is needed")
