"""The scanner of CSV: one record after the other, as RFC 4180 writes them, with its line."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from recon.files.formats.csv_block import Dialect
from recon.files.formats.raw_table import refuse
from recon.model.errors import SourceUnreadableError

_LINE_END = re.compile(r"\r?\n|\Z")


class ScannedRecord(NamedTuple):
    """One record as it stands in the file."""

    line: int
    cells: list[str]
    stray_quote: bool
    start: int
    end: int


class Text(NamedTuple):
    """Text of a file, in the dialect of its layout."""

    name: str
    text: str
    delimiter: str
    quote: str
    quoted: re.Pattern[str]
    plain: re.Pattern[str]


def text_of(text: str, *, name: str, dialect: Dialect) -> Text:
    """Text with what its cells look like."""
    delimiter, quote = dialect
    return Text(
        name,
        text,
        delimiter,
        quote,
        quoted=re.compile(f"{quote}([^{quote}]*(?:{quote}{quote}[^{quote}]*)*){quote}"),
        plain=re.compile(rf"[^{re.escape(delimiter)}\r\n]*"),
    )


def scanned(text: Text, *, line: int, final: bool) -> Iterator[ScannedRecord]:
    """Every record that is not an empty line; the first begins on `line`.

    Where the text is not `final`, it ends before a record that could be another with more text.

    Raises:
        SourceUnreadableError: no record is certain any more; the line is named.
    """
    try:
        yield from _records(text, line=line)
    except SourceUnreadableError:
        if final:
            raise


def _records(text: Text, *, line: int) -> Iterator[ScannedRecord]:
    """Every record that is not an empty line."""
    whole, position = text.text, 0
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
            record = ScannedRecord(line, plain.split(text.delimiter), False, position, end)
        if record.cells != [""]:
            yield record
        line += whole.count("\n", position, record.end)
        position = record.end


def _quoted_record(text: Text, start: int, line: int) -> ScannedRecord:
    cells: list[str] = []
    whole, quote = text.text, text.quote
    position, stray = start, False
    while True:
        quoted = whole.startswith(quote, position)
        match = (text.quoted if quoted else text.plain).match(whole, position)
        if match is None:
            at = line + whole.count("\n", start, position)
            refuse(text.name, f"has a quote on line {at} that is never closed")
        cells.append(match[1].replace(quote * 2, quote) if quoted else match[0])
        stray = stray or (not quoted and quote in match[0])
        position = match.end()
        if whole.startswith(text.delimiter, position):
            position += 1
            continue
        ending = _LINE_END.match(whole, position)
        if ending is not None:
            return ScannedRecord(line, cells, stray, start, ending.end())
        at = line + whole.count("\n", start, position)
        if whole.startswith("\r", position):
            _refuse_lone_return(at, name=text.name)
        refuse(
            text.name, f"has more text behind a closing quote on line {at}, so no row is certain"
        )


def _refuse_lone_return(line: int, *, name: str) -> None:
    refuse(name, f"has a carriage return without a line feed on line {line}")
