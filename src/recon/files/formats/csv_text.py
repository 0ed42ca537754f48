"""CSV as RFC 4180 writes it, read strictly: quotes that close, one encoding, one delimiter.

Delimiter, quote and encoding are those of the layout, never guessed. A row with another number of
cells than the header is a bad row, never a shifted one. Lines that plainly are records are cut at
their delimiters, all of a window together; another one is scanned. A delimiter at the end of each
line begins no column, and ="00123" is the text 00123.
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
"""Whole lines that are looked at together."""
_BOMS = {codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}
_LINE_END = re.compile(r"\r?\n|\Z")


def csv_table(
    file: FileBytes, *, wanted: Container[str], layout: FileLayout = STANDARD
) -> RawTable:
    """The wanted columns of a CSV file.

    Raises:
        SourceUnreadableError: the file as a whole is not CSV; the byte, line or column is named.
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
    # Each line ends with a delimiter, that of the header or the rows alone.
    in_header = len(names) > 1 and not names[-1].strip()
    is_open = in_header or (len(row.cells) == len(names) + 1 and not row.cells[-1].strip())
    once = wanted.read if isinstance(wanted, EveryColumn) else wanted
    header = checked_header(names[:-1] if in_header else names, name=name, wanted=once)
    if len(header) == 1:
        needed = "a comma" if layout.delimiter == "," else repr(layout.delimiter)
        for separator in SEPARATORS:
            if separator in header[0]:
                refuse(name, f"separates its columns by {separator!r}; {needed} is needed")
    rows = _CsvRows(scanner, header=header, wanted=wanted, is_open=is_open)
    while start < len(text):
        start, line = rows.take_window(start, line=line)
    table = rows.table(declared=declared)
    # A bad last row is refused as it is.
    last_is_good = len(table.lines) and not any(
        bad.line > table.lines[-1] for bad in table.bad_rows[-1:]
    )
    is_cut = bool(last_is_good) and not text.endswith("\n") and declared is None
    return replace(table, last_line_open=is_cut)


class _CsvRows(Rows):
    """The rows of a text, in windows of whole lines."""

    def __init__(
        self, scanner: "_Scanner", *, header: Sequence[str], wanted: Container[str], is_open: bool
    ) -> None:
        super().__init__(scanner.name, header=header, wanted=wanted)
        self._scanner, self._is_open = scanner, is_open
        self._width = len(header) + is_open
        self._places = [(at, name) for at, name in enumerate(header) if name in wanted]

    def take_window(self, start: int, *, line: int) -> tuple[int, int]:
        """Read lines that begin with a record; where the next one begins, and on which line."""
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
            if starts[at] >= reach:  # else it is within the record before
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
                for at, name in self._places
            },
        )
        further = max(end, reach)
        return further, line + text.count("\n", start, further)

    def _take_odd(self, start: int, *, line: int) -> int:
        """Read one record that is no plain line; where the next one begins."""
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
        placed: tuple[str, ...] = ()
        if len(cells) != self._width and not record.stray_quote:
            placed = tuple(map(str.strip, cells[: self._width]))
        shown = text[start : record.end][:CELL_CHARACTERS_MAX].strip("\r\n")
        self.take_bad(BadRow(line, problem, shown, placed, is_short=len(cells) < self._width))
        return record.end

    def _refuse_nameless(self, line: int) -> NoReturn:
        """Give up on a file whose rows may be shifted."""
        refuse(self.name, f"has a cell on line {line} in column {self._width}, without a name")


class _Record(NamedTuple):
    """One record as it stands in the file."""

    line: int
    cells: list[str]
    stray_quote: bool
    start: int
    end: int


class _Scanner:
    """One record after the other of a text."""

    def __init__(self, text: str, *, name: str, delimiter: str, quote: str) -> None:
        self.text, self.name, self.delimiter, self.quote = text, name, delimiter, quote
        text_of_cell = f"[^{quote}{re.escape(delimiter)}\r\n]*"
        cell = f"(?:{quote}{text_of_cell}{quote}|{text_of_cell})"
        self.plain = rf"\A{cell}(?:{re.escape(delimiter)}{cell})*\z"
        """Of lines that are cut wherever their delimiter stands, and whose quotes say nothing."""
        self._quoted = re.compile(f"{quote}([^{quote}]*(?:{quote}{quote}[^{quote}]*)*){quote}")
        self._plain = re.compile(f"[^{re.escape(delimiter)}\r\n]*")
        self._formula = re.compile(f"={quote}([^{quote}]*){quote}")
        """Such as ="00123", by which spreadsheets keep digits as text."""

    def header(self, start: int, *, line: int) -> _Record:
        """The first record that is no blank line.

        Raises:
            SourceUnreadableError: there is none, or a quote stands within a name.
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
        """The record that begins there.

        Raises:
            SourceUnreadableError: no record is certain any more; the line is named.
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
    """The content as text, its encoding checked."""
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
