"""Strict CSV reader (RFC 4180): balanced quotes, one encoding, one delimiter.

Delimiter, quote and encoding come from the layout and are never guessed. A row whose number of
cells differs from the header is a bad row; cells are never shifted. Plain lines of a window are
split at the delimiter in one vectorised step; any other line is scanned. A delimiter at the end of
every line does not start a column, and ="00123" is the text 00123.
"""

import codecs
import re
from collections.abc import Container, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recon.config.file_layouts import CODECS, STANDARD, FileLayout
from recon.files.formats.format_limits import CELL_CHARACTERS_MAX
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_table import (
    BadRow,
    EveryColumn,
    RawTable,
    Rows,
    checked_header,
    declared_by,
    refuse,
    refuse_cards_before_header,
    trimmed,
)

SEPARATORS = ",;\t|"
WINDOW_CHARACTERS = 1024 * 1024
"""Approximate size of a window: the whole lines processed together."""
_BOMS = {codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}
_LINE_END = re.compile(r"\r?\n|\Z")


def csv_table(
    file: FileBytes, *, columns_read: Container[str], layout: FileLayout = STANDARD
) -> RawTable:
    """Read the wanted columns of a CSV file.

    Raises:
        SourceUnreadableError: the file as a whole is not CSV; names the byte, line or column.
    """
    name, declared = file.path.name, None
    text = _decoded(file.content, name=name, encoding=layout.encoding)
    if layout.trailer is not None:
        body, _, last = text.rstrip("\r\n").rpartition("\n")
        ending = [cell.strip() for cell in last.rstrip("\r").split(layout.delimiter)]
        declared = declared_by(ending, trailer=layout.trailer, name=name)
        text = body + "\n" if body else ""
    start = int(text.startswith("\ufeff"))
    for _ in range(layout.preamble):
        start = text.find("\n", start) + 1 or len(text)
    if layout.preamble:
        refuse_cards_before_header(text[:start], name=name)
    scanner = _Scanner(text, name=name, delimiter=layout.delimiter, quote=layout.quote)
    first = scanner.header(start, line=1 + layout.preamble)
    line, start, names = (
        first.line + text.count("\n", first.start, first.end),
        first.end,
        first.cells,
    )
    row = scanner.record(start, line=line)
    # Some files end each line, or only the header or only the rows, with a delimiter.
    in_header = len(names) > 1 and not names[-1].strip()
    is_open = in_header or (len(row.cells) == len(names) + 1 and not row.cells[-1].strip())
    once = columns_read.read if isinstance(columns_read, EveryColumn) else columns_read
    header = checked_header(names[:-1] if in_header else names, name=name, columns_read=once)
    if len(header) == 1:
        needed = "a comma" if layout.delimiter == "," else repr(layout.delimiter)
        for separator in SEPARATORS:
            if separator in header[0]:
                refuse(name, f"separates its columns by {separator!r}; {needed} is needed")
    rows = _CsvRows(scanner, header=header, columns_read=columns_read, is_open=is_open)
    while start < len(text):
        start, line = rows.take_window(start, line=line)
    table = rows.table(declared=declared)
    # A bad last row is already rejected for its own reason.
    last_is_good = len(table.lines) and not any(
        bad.line > table.lines[-1] for bad in table.bad_rows[-1:]
    )
    is_cut = bool(last_is_good) and not text.endswith("\n") and declared is None
    return replace(table, last_line_open=is_cut)


class _CsvRows(Rows):
    """Collects the rows of a text, one window of whole lines at a time."""

    def __init__(
        self,
        scanner: "_Scanner",
        *,
        header: Sequence[str],
        columns_read: Container[str],
        is_open: bool,
    ) -> None:
        super().__init__(scanner.name, header=header, columns_read=columns_read)
        self._scanner, self._is_open = scanner, is_open
        self._width = len(header) + is_open
        self._columns = [(at, name) for at, name in enumerate(header) if name in columns_read]

    def take_window(self, start: int, *, line: int) -> tuple[int, int]:
        """Read one window of lines; return the offset and line number of the next record."""
        text, quote = self._scanner.text, self._scanner.quote
        end = text.find("\n", start + WINDOW_CHARACTERS) + 1 or len(text)
        block = pa.array([text[start:end].removesuffix("\n")], pa.large_string())
        lines: Any = pc.list_flatten(pc.split_pattern(block, "\n"))
        starts = start + np.cumsum([0, *(np.asarray(pc.utf8_length(lines)) + 1)])
        if "\r" in text[start:end]:
            lines = pc.replace_substring_regex(lines, r"\r\z", "")
        plain = np.asarray(pc.binary_length(lines)) <= CELL_CHARACTERS_MAX
        if any(odd in text[start:end] for odd in (quote, "\r")):
            plain &= np.array(pc.match_substring_regex(lines, self._scanner.plain), dtype=bool)
            lines = pc.replace_substring(lines, quote, "")
        cut: Any = pc.split_pattern(lines, self._scanner.delimiter)
        plain &= np.asarray(pc.list_value_length(cut)) == self._width
        if self._width == 1:
            plain &= np.array(pc.not_equal(lines, ""), dtype=bool)
        plain[-1] &= end < len(text) or text.endswith("\n")
        reach = start
        for at in np.flatnonzero(~plain).tolist():
            if starts[at] >= reach:  # otherwise it is inside the previous record
                reach = self._take_odd(int(starts[at]), line=line + at)
                plain[at : np.searchsorted(starts, reach)] = False
        numbers = line + np.flatnonzero(plain)
        cells = pc.list_flatten(cut.filter(pa.array(plain)))
        if self._is_open:
            last = np.arange(self._width - 1, len(cells), self._width)
            nameless = cells.take(pa.array(last))
            for number in numbers[np.array(pc.not_equal(trimmed(nameless), ""), dtype=bool)]:
                self._refuse_nameless(number)
        self.take_columns(
            numbers,
            {
                name: trimmed(cells.take(pa.array(np.arange(at, len(cells), self._width))))
                for at, name in self._columns
            },
        )
        further = max(end, reach)
        return further, line + text.count("\n", start, further)

    def _take_odd(self, start: int, *, line: int) -> int:
        """Read one record that is not a plain line; return the offset of the next record."""
        text, problem = self._scanner.text, ""
        record = self._scanner.record(start, line=line)
        cells = record.cells
        if record.stray_quote:
            problem = "has a quote inside a cell that does not start with one"
        elif cells == [""]:
            return record.end
        elif len(cells) != self._width:
            problem = f"has {len(cells)} cells where the header has {self._width} columns"
        elif max(map(len, cells)) > CELL_CHARACTERS_MAX:
            problem = f"has a cell of more than {CELL_CHARACTERS_MAX} characters"
        if not problem:
            if self._is_open and cells.pop().strip():
                self._refuse_nameless(line)
            self.take(line, cells)
            return record.end
        shown_cells: tuple[str, ...] = ()
        if len(cells) != self._width and not record.stray_quote:
            shown_cells = tuple(map(str.strip, cells[: self._width]))
        excerpt = text[start : record.end][:CELL_CHARACTERS_MAX].strip("\r\n")
        self.take_bad(
            BadRow(line, problem, excerpt, shown_cells, is_short=len(cells) < self._width)
        )
        return record.end

    def _refuse_nameless(self, line: int) -> NoReturn:
        """Refuse the file, as its rows may be shifted."""
        refuse(self.name, f"has a cell on line {line} in column {self._width}, without a name")


class _Record(NamedTuple):
    line: int
    cells: list[str]
    stray_quote: bool
    start: int
    end: int


class _Scanner:
    """Reads the records of a text one by one."""

    def __init__(self, text: str, *, name: str, delimiter: str, quote: str) -> None:
        self.text, self.name, self.delimiter, self.quote = text, name, delimiter, quote
        text_of_cell = f"[^{quote}{re.escape(delimiter)}\r\n]*"
        cell = f"(?:{quote}{text_of_cell}{quote}|{text_of_cell})"
        self.plain = rf"\A{cell}(?:{re.escape(delimiter)}{cell})*\z"
        """Lines that can be split at every delimiter, and whose quotes can be dropped."""
        self._quoted = re.compile(f"{quote}([^{quote}]*(?:{quote}{quote}[^{quote}]*)*){quote}")
        self._plain = re.compile(f"[^{re.escape(delimiter)}\r\n]*")
        self._formula = re.compile(f"={quote}([^{quote}]*){quote}")
        """Such as ="00123", which spreadsheets write to keep digits as text."""

    def header(self, start: int, *, line: int) -> _Record:
        """Return the first record that is not a blank line.

        Raises:
            SourceUnreadableError: there is none, or a column name contains a quote.
        """
        record = self.record(start, line=line)
        while record.cells == [""]:
            if record.end == len(self.text):
                refuse(self.name, "is empty: it has not even a header")
            record = self.record(record.end, line=record.line + 1)
        if record.stray_quote:
            refuse(self.name, f"has a quote inside a column name on line {record.line}")
        return record

    def record(self, start: int, *, line: int) -> _Record:
        """Return the record that begins at offset `start`.

        Raises:
            SourceUnreadableError: the record boundaries are no longer certain; names the line.
        """
        text, quote = self.text, self.quote
        cells: list[str] = []
        position, stray = start, False
        while True:
            quoted = text.startswith(quote, position)
            match = (self._quoted if quoted else self._plain).match(text, position)
            if match is None:
                at = line + text.count("\n", start, position)
                refuse(self.name, f"has a quote on line {at} that is never closed")
            formula = None if quoted else self._formula.fullmatch(match[0])
            cell = match[1].replace(quote * 2, quote) if quoted else match[0]
            cells.append(formula[1] if formula else cell)
            stray = stray or (not quoted and not formula and quote in cell)
            position = match.end()
            if text.startswith(self.delimiter, position):
                position += len(self.delimiter)
                continue
            if ending := _LINE_END.match(text, position):
                return _Record(line, cells, stray, start, ending.end())
            at = line + text.count("\n", start, position)
            if text.startswith("\r", position):
                refuse(self.name, f"has a carriage return without a line feed on line {at}")
            refuse(
                self.name,
                f"has more text behind a closing quote on line {at}, so no row is certain",
            )


def _decoded(content: bytes, *, name: str, encoding: str) -> str:
    if encoding == "utf-16":
        try:
            text = content.decode("utf-16")
        except UnicodeError as error:
            refuse(name, f"is not UTF-16: {error}")
        if "\0" in text:
            refuse(name, f"has a NUL at character {text.index(chr(0))}; a CSV file is text")
        return text
    for bom, other in _BOMS.items():
        if content.startswith(bom):
            refuse(name, f"is {other} (bytes 0 and 1 say so); save it as {encoding.upper()}")
    if (nul := content.find(b"\0")) >= 0:
        refuse(name, f"has a NUL at byte {nul}; a CSV file is text in {encoding.upper()}")
    try:
        return content.decode(CODECS[encoding])
    except UnicodeDecodeError as error:
        at = error.start
        line = content.count(b"\n", 0, at) + 1
        place = f"byte {at} on line {line} is 0x{content[at]:02x}"
        refuse(name, f"is not {encoding.upper()}: {place}")
