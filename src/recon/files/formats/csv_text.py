"""CSV as RFC 4180 writes it, read strictly: quotes that close, one encoding, one delimiter.

Delimiter, quote and encoding are those of the layout, never guessed. A row with another number of
cells than the header is a bad row, never a shifted one. A file is read in parts, so that a large
one needs no more memory than a small one: each part as a block (`csv_block`), and where that is
doubtful by the scanner (`csv_scanner`), which knows the line on which each record starts.
"""

import codecs
from collections.abc import Container, Iterable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from recon.config.file_layouts import STANDARD, FileLayout
from recon.files.formats.csv_block import Dialect, read_block
from recon.files.formats.csv_scanner import ScannedRecord, scanned, text_of
from recon.files.formats.format_limits import CELL_CHARACTERS_MAX
from recon.files.formats.raw_table import (
    BadRow,
    Declared,
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
PART_BYTES = 8 * 1024 * 1024
"""How much of a file is in memory at once: about 60,000 orders."""
_BOMS = {
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


def csv_parts(
    pieces: Iterable[bytes],
    *,
    name: str,
    wanted: Container[str],
    layout: FileLayout = STANDARD,
) -> Iterator[RawTable]:
    """The wanted columns of a CSV file from its bytes in pieces, some rows at a time.

    What a file declares of itself, and whether its last line is open, stands in the last one.

    Raises:
        SourceUnreadableError: the file as a whole is not CSV; the byte, line or column is named.
    """
    reading = _Reading(name=name, wanted=wanted, layout=layout)
    held, needed = b"", 0
    for piece, is_last in _with_last(_utf8_lines(pieces, name=name, encoding=layout.encoding)):
        held += piece
        if is_last:
            break  # a small file is one part
        if not held or len(held) < needed:
            continue
        # The last record may be a trailer.
        lines = held if layout.trailer is None else held.rstrip(b"\r\n")
        ready = lines.rfind(b"\n") + 1
        part, read = reading.part(held[:ready])
        # A record that does not end yet is looked at again when there is twice as much of it.
        needed = 0 if read else 2 * len(held)
        held = held[read:]
        if part is not None:
            yield part
    yield reading.last(held)


def _with_last(pieces: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Each piece that has bytes, and whether none follows."""
    before: bytes | None = None
    for piece in filter(None, pieces):
        if before is not None:
            yield before, False
        before = piece
    if before is not None:
        yield before, True


class _Reading:
    """One file while its parts are read, in order."""

    def __init__(
        self,
        *,
        name: str,
        wanted: Container[str],
        layout: FileLayout,
    ) -> None:
        self._name = name
        self._wanted = wanted
        self._layout = layout
        self._dialect = Dialect(layout.delimiter, layout.quote)
        self._header: tuple[str, ...] = ()
        self._names: list[str] = []
        self._line = 1
        self._rows = 0
        self._rejected = RejectedSoFar(name)

    def part(self, content: bytes, *, final: bool = False) -> tuple[RawTable | None, int]:
        """The whole records of UTF-8 text that begins with one, and how many bytes they are."""
        start = 0 if self._header else self._read_header(content, final=final)
        if not self._header:
            return None, 0
        records, end = self._records(content[start:], final=final)
        self._rows += records.rows_read
        refuse_too_many_rows(self._rows, name=self._name)
        return records, start + end

    def last(self, content: bytes) -> RawTable:
        """The records of what is left, and what the whole file declares."""
        body, declared = _without_trailer(content, name=self._name, layout=self._layout)
        part, _ = self.part(body, final=True)
        if part is None:
            refuse(self._name, "is empty: it has not even a header")
        cut = declared is None and _may_be_cut(content, part)
        return replace(part, declared=declared, last_line_open=cut)

    def _read_header(self, content: bytes, *, final: bool) -> int:
        before = _before_header(content, name=self._name, lines=self._layout.preamble)
        if before < 0:
            return 0
        line = self._line + self._layout.preamble
        text = text_of(content[before:].decode(), name=self._name, dialect=self._dialect)
        first = next(scanned(text, line=line, final=final), None)
        if first is None:
            return 0
        if first.stray_quote:
            refuse(self._name, f"has a quote inside a column name on line {first.line}")
        header = checked_header(first.cells, name=self._name)
        _refuse_other_separator(header, name=self._name, delimiter=self._dialect.delimiter)
        self._header = header
        self._names = [column for column in header if column in self._wanted]
        self._line = line + text.text.count("\n", 0, first.end)
        return before + len(text.text[: first.end].encode())

    def _records(self, content: bytes, *, final: bool) -> tuple[RawTable, int]:
        whole = content
        if final and content and not content.endswith((b"\n", b"\r")):
            whole = content + b"\n"  # a last record without a line end is a record
        block = read_block(
            whole,
            header=self._header,
            names=self._names,
            dialect=self._dialect,
            line=self._line,
        )
        if block is None or (final and block.end < len(whole)):
            return self._scanned(content, final=final)
        self._line += block.newlines
        bad = tuple(
            self._rejected.take(BadRow(odd.line, self._miscounted(odd.cells), odd.text))
            for odd in block.odd
        )
        return self._table(block.columns, block.lines, bad), block.end

    def _miscounted(self, cells: int) -> str:
        return f"has {cells} cells where the header has {len(self._header)} columns"

    def _scanned(self, content: bytes, *, final: bool) -> tuple[RawTable, int]:
        text = text_of(content.decode(), name=self._name, dialect=self._dialect)
        lines: list[int] = []
        rows: list[list[str]] = []
        bad: list[BadRow] = []
        end = 0
        for record in scanned(text, line=self._line, final=final):
            end = record.end
            reason = self._problem_of(record)
            if reason:
                bad.append(self._rejected.take(_bad_row(record, text.text, reason)))
                continue
            lines.append(record.line)
            rows.append(record.cells)
        self._line += text.text.count("\n", 0, end)
        cells = dict(zip(self._header, zip(*rows, strict=True), strict=False))
        columns = {
            name: trimmed(pa.array(cells.get(name, ()), pa.string())) for name in self._names
        }
        table = self._table(columns, np.array(lines, dtype=np.int64), tuple(bad))
        return table, len(text.text[:end].encode())

    def _problem_of(self, record: ScannedRecord) -> str:
        if record.stray_quote:
            return "has a quote inside a cell that does not start with one"
        if len(record.cells) != len(self._header):
            return self._miscounted(len(record.cells))
        if any(len(cell) > CELL_CHARACTERS_MAX for cell in record.cells):
            return f"has a cell of more than {CELL_CHARACTERS_MAX} characters"
        return ""

    def _table(
        self, columns: dict[str, pa.Array], lines: npt.NDArray[np.int64], bad: tuple[BadRow, ...]
    ) -> RawTable:
        return RawTable(
            name=self._name,
            sha256="",
            size_bytes=0,
            header=self._header,
            columns=columns,
            lines=lines,
            bad_rows=bad,
        )


def _before_header(content: bytes, *, name: str, lines: int) -> int:
    """How many bytes the lines before the header are; -1 where they are not all there."""
    end = 0
    for _ in range(lines):
        end = content.find(b"\n", end) + 1
        if not end:
            return -1
    refuse_cards_before_header(content[:end].decode(), name=name)
    return end


def _may_be_cut(content: bytes, part: RawTable) -> bool:
    """Whether the last row is a good one without a line end; a bad one is refused as it is."""
    lines, bad = part.lines, part.bad_rows
    last_is_good = len(lines) > 0 and not (bad and bad[-1].line > lines[-1])
    return last_is_good and not content.endswith(b"\n")


def _utf8_lines(pieces: Iterable[bytes], *, name: str, encoding: str) -> Iterator[bytes]:
    """Whole lines in UTF-8, the encoding checked; only the last may be without a line end."""
    if encoding == "utf-16":
        yield _of_utf16(b"".join(pieces), name=name)
        return
    checked = _Checked(name, encoding)
    parts: list[bytes | memoryview] = []
    for piece in pieces:
        cut = piece.rfind(b"\n") + 1
        parts.append(memoryview(piece)[:cut] if cut else piece)
        if cut:
            yield checked.lines(b"".join(parts))
            parts = [piece[cut:]]
    yield checked.lines(b"".join(parts))


class _Checked:
    """Lines of a file, told by their place in it when they are not what the layout says."""

    def __init__(self, name: str, encoding: str) -> None:
        self._name = name
        self._encoding = encoding
        self._at = 0
        self._line = 1

    def lines(self, content: bytes) -> bytes:
        """The next lines, in UTF-8 and without a mark at the beginning of the file."""
        name, encoding, at = self._name, self._encoding, self._at
        marked = b""
        if not at:
            for bom, encoding_name in _BOMS.items():
                if content.startswith(bom):
                    sentence = (
                        f"is {encoding_name} (bytes 0 and 1 say so); save it as {encoding.upper()}"
                    )
                    refuse(name, sentence)
            if encoding == "utf-8" and content.startswith(codecs.BOM_UTF8):
                marked = codecs.BOM_UTF8
        nul = content.find(b"\0")
        if nul >= 0:
            refuse(name, f"has a NUL at byte {at + nul}; a CSV file is text in {encoding.upper()}")
        body = content.removeprefix(marked)
        try:
            text = "" if encoding == "utf-8" and body.isascii() else body.decode(encoding)
        except UnicodeDecodeError as error:
            offset = error.start + len(marked)
            line = self._line + content.count(b"\n", 0, offset)
            sentence = f"byte {at + offset} on line {line} is 0x{content[offset]:02x}"
            refuse(name, f"is not {encoding.upper()}: {sentence}")
        self._at += len(content)
        # Several times quicker than bytes.count, which looks for one after the other.
        self._line += int(np.count_nonzero(np.frombuffer(content, np.uint8) == ord("\n")))
        return body if encoding == "utf-8" else text.encode()


def _of_utf16(content: bytes, *, name: str) -> bytes:
    try:
        text = content.decode("utf-16")
    except UnicodeError as error:
        refuse(name, f"is not UTF-16: {error}")
    if "\0" in text:
        refuse(name, f"has a NUL at character {text.index(chr(0))}; a CSV file is text")
    return text.encode()


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


def _refuse_other_separator(header: tuple[str, ...], *, name: str, delimiter: str) -> None:
    if len(header) > 1:
        return
    needed = "a comma" if delimiter == "," else repr(delimiter)
    for separator in SEPARATORS:
        if separator in header[0]:
            refuse(name, f"separates its columns by {separator!r}; {needed} is needed")


def _bad_row(record: ScannedRecord, text: str, reason: str) -> BadRow:
    cut = text[record.start : min(record.end, record.start + CELL_CHARACTERS_MAX)]
    return BadRow(record.line, reason, cut.strip("\r\n"))
