"""Entries of camt that are written like earlier ones of the same document, read without a tree.

A bank's program writes its entries alike: the same elements in the same order, other texts. The
first entry of each such shape is read by the reader of entries itself, with a mark in the place of
every text, so that where each text belongs is asked and not written down here a second time. Bytes
that match the shape are cut out of the document, and what is left is read as any other: an entry
that is odd in anything, and everything around entries. So this way can only be narrower.
"""

import codecs
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from lxml import etree

from recon.files.formats.bank_records import (
    BLOCK_TEXTS,
    EntryBlock,
    RawEntry,
    block_of_texts,
    is_odd,
)
from recon.files.formats.named_bytes import FilePieces
from recon.files.formats.xml_records import first_bytes, windows_of
from recon.matching.frames.grouping import Ints
from recon.model.errors import SourceUnreadableError

SHAPES_MAX = 64
"""Shapes of one document; an entry of any further one is read as a tree."""
SAMPLES_MAX = 512
"""Entries that are looked at for a shape, before no more of them are."""
SLOTS_MAX = 28
"""Texts of one entry; together they are shorter than what is kept of an entry's words."""
HELD_BYTES_MAX = 8 * 1024 * 1024
"""Bytes of an entry whose end is waited for; a longer one is read as a tree."""
FEW_ROWS = 64
"""So many between two odd ones are cheaper one by one."""
RUN = "recon-run"
"""Attribute of the element that stands for entries that were cut out."""
_OPENS, _CLOSES = b"<Ntry>", b"</Ntry>"
_LINE_END = 10
_TAG = re.compile(rb"(<[^<>]*>)")
_PLAIN_TAG = re.compile(
    rb"</?([A-Za-z][A-Za-z0-9]*)>|<([A-Za-z][A-Za-z0-9]*)(?: [A-Za-z]+=(?:\"[A-Za-z0-9]*\""
    rb"|'[A-Za-z0-9]*'))* ?/?>"
)
_ODD = re.compile(rb"\xef\xbf[\xbe\xbf]")
"""What no XML may hold, beside the control characters that no text of a shape has."""
_WORDS = (("CdtDbtInd",), ("Sts",), ("RvslInd",), ("Sts", "Cd"))
"""Ends of paths: elements whose text decides how an entry is read; it belongs to the shape."""
_DAY_TAGS = frozenset({"Dt", "DtTm"})
DAYS = ("booked_on", "value_on")
_BLANK = rb"[ \t\r\n]*"
_FIRST = rb"[!-%'-;=?-~\xc3-\xdf\xe4-\xf4]"
"""A byte with which a text begins that does not begin with a blank of any alphabet."""
_LAST = rb"(?:(?<![ \x80-\x8a\x9f\xa0\xa8\xa9\xaf])|(?<=\xc3[\x80-\xbf]))"
"""Behind a text that does not end with a blank."""
_TEXT = rb"(" + _FIRST + rb"[^<&>\x00-\x1f]{0,138}" + _LAST + rb")"
"""Shorter than a full line: a text that goes on in the next one is read as a tree."""
_COMPACT = rb"([!-%'-;=?-~]{1,139})"
"""The same without a blank in it: of an account."""
_MARK = re.compile("\ue000([0-9]+)\ue001|1([0-9]{3})-01-01")
ReadEntry = Callable[[Any], RawEntry]
"""An element of lxml -> the entry; SourceUnreadableError where it is none."""
Row = tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class _Shape:
    """Entries that differ in their texts alone."""

    pattern: re.Pattern[bytes]
    parts: Mapping[str, tuple[str | int, ...]]
    """Column -> words, and numbers of texts, that it is made of in this order."""
    whole: RawEntry
    """What all of them have: signs and states."""
    depth: int
    """Levels of elements."""

    def texts(self, rows: Sequence[Row]) -> dict[str, list[str]]:
        """BLOCK_TEXTS of entries of this shape."""
        slots = [[text.decode() for text in column] for column in zip(*rows, strict=True)]
        size = len(rows)
        return {name: _column(own, slots=slots, size=size) for name, own in self.parts.items()}


def _column(parts: Sequence[str | int], *, slots: Sequence[list[str]], size: int) -> list[str]:
    columns = [[part] * size if isinstance(part, str) else slots[part] for part in parts]
    if len(columns) == 1:
        return columns[0]
    return ["".join(cells) for cells in zip(*columns, strict=True)] if columns else [""] * size


@dataclass(frozen=True, slots=True)
class CutEntries:
    """Entries that stood behind one another."""

    entries: tuple[RawEntry | EntryBlock, ...]
    rows: int
    depth: int
    """Levels of the deepest of them."""


def is_plain(file: FilePieces) -> bool:
    """Whether markup stands for itself everywhere: no comment, no CDATA, no instruction."""
    head = first_bytes(file)
    prolog = 1 if head.lstrip()[:6] == b"<?xml " or head[3:9] == b"<?xml " else 0
    own, decoder = RUN.encode(), codecs.getincrementaldecoder("utf-8")()
    for window, before in windows_of(file, size=len(own)):
        prolog -= window.count(b"<?", max(0, before - 1))
        if prolog < 0 or b"<!" in window or own in window or _ODD.search(window):
            return False
        try:
            decoder.decode(window[before:])
        except UnicodeDecodeError:
            return False
    return not decoder.getstate()[0]


class PlainEntries:
    """One document while its entries are cut out that are written as earlier ones.

    What is left of each piece has an element of RUN in the place of entries that stood behind one
    another, with the number under which they can be taken; lines stay.
    """

    def __init__(self, *, read: ReadEntry, day_of: Callable[[str], str]) -> None:
        self._read = read
        self._day_of = day_of
        self._shapes: list[_Shape] = []
        self._samples = 0
        self._days: dict[str, str] = {}
        self._held = b""
        self._line = 1
        self._count = 0
        self._runs: dict[int, CutEntries] = {}
        self._content = b""
        self._ends: Ints = np.zeros(0, dtype=np.int64)

    def taken(self, number: int) -> CutEntries | None:
        """What was cut out under this number; once."""
        return self._runs.pop(number, None)

    def rest_of(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """The document without them."""
        for piece in pieces:
            held = self._held + piece
            whole = self._whole(held)
            self._held = held[whole:]
            yield self._rest(held[:whole])
        yield self._held

    def _whole(self, held: bytes) -> int:
        """Bytes up to which no entry that may be a plain one is cut."""
        end = held.rfind(_CLOSES)
        if end >= 0:
            return end + len(_CLOSES)
        start = held.find(_OPENS)
        if start < 0 or len(held) > HELD_BYTES_MAX:
            return max(0, len(held) - len(_CLOSES) + 1)
        return start

    def _rest(self, content: bytes) -> bytes:
        """What is left of a piece."""
        self._content, kept = content, 0
        self._ends = np.flatnonzero(np.frombuffer(content, dtype=np.uint8) == _LINE_END)
        rest: list[bytes] = []
        start = content.find(_OPENS)
        while start >= 0:
            run, end = self._run(start)
            if run is None:
                start = content.find(_OPENS, start + len(_OPENS))
                continue
            lines = b"\n" * content.count(b"\n", start, end)
            rest += [content[kept:start], f'<Ntry {RUN}="{self._count}"/>'.encode(), lines]
            self._runs[self._count] = run
            self._count += 1
            kept = end
            start = content.find(_OPENS, end)
        rest.append(content[kept:])
        self._line += len(self._ends)
        return b"".join(rest)

    def _run(self, start: int) -> tuple[CutEntries | None, int]:
        """The entries from here on, as far as they have known shapes."""
        rows: list[tuple[_Shape, Row]] = []
        offsets: list[int] = []
        depth, end = 0, start
        while (known := self._known(end)) is not None:
            shape, match = known
            rows.append((shape, match.groups()))
            offsets.append(end)
            end, depth = match.end(), max(depth, shape.depth)
        if not rows:
            return None, start
        lines = self._line + np.searchsorted(self._ends, np.array(offsets, dtype=np.int64))
        return CutEntries(tuple(self._entries(rows, lines=lines)), len(rows), depth), end

    def _known(self, start: int) -> tuple[_Shape, re.Match[bytes]] | None:
        shapes = self._shapes
        for position, shape in enumerate(shapes):
            match = shape.pattern.match(self._content, start)
            if match is not None:
                if position:
                    shapes[position - 1 : position + 1] = [shape, shapes[position - 1]]
                return shape, match
        if not self._content.startswith(_OPENS, start):
            return None
        learned = self._learn(start)
        match = None if learned is None else learned.pattern.match(self._content, start)
        if learned is None or match is None:
            return None
        shapes.insert(0, learned)
        return learned, match

    def _learn(self, start: int) -> _Shape | None:
        end = self._content.find(_CLOSES, start)
        if end < 0 or len(self._shapes) >= SHAPES_MAX or self._samples >= SAMPLES_MAX:
            return None
        self._samples += 1
        return _shape_of(self._content[start : end + len(_CLOSES)], read=self._read)

    def _entries(
        self, rows: Sequence[tuple[_Shape, Row]], *, lines: Ints
    ) -> Iterator[RawEntry | EntryBlock]:
        if len(rows) >= FEW_ROWS:
            yield self._block(rows, lines=lines)
            return
        for (shape, row), line in zip(rows, lines.tolist(), strict=True):
            cells: dict[str, Any] = {n: c[0] for n, c in shape.texts([row]).items()}
            cells |= {name: self._day(cells[name]) for name in DAYS}
            cells["value_on"] = cells["value_on"] or cells["booked_on"]
            yield replace(shape.whole, line=line, **cells)

    def _day(self, text: str) -> str:
        known = self._days.get(text)
        if known is None:
            known = self._days[text] = self._day_of(text)
        return known

    def _block(self, rows: Sequence[tuple[_Shape, Row]], *, lines: Ints) -> EntryBlock:
        """Columns shape by shape, then in the order of the document."""
        by_shape: dict[int, list[int]] = {}
        for at, (shape, _) in enumerate(rows):
            by_shape.setdefault(id(shape), []).append(at)
        columns: dict[str, list[str]] = {name: [] for name in BLOCK_TEXTS}
        order: list[int] = []
        marks: list[tuple[bool, bool, bool]] = []
        for numbers in by_shape.values():
            shape = rows[numbers[0]][0]
            for name, cells in shape.texts([rows[at][1] for at in numbers]).items():
                columns[name] += cells
            whole = shape.whole
            marks += [(whole.credit, whole.reversal, whole.booked)] * len(numbers)
            order += numbers
        for name in DAYS:
            columns[name] = [self._day(text) for text in columns[name]]
        both = zip(columns["value_on"], columns["booked_on"], strict=True)
        columns["value_on"] = [value or booked for value, booked in both]
        return block_of_texts(columns, marks=marks, lines=lines, order=order)


def _shape_of(sample: bytes, *, read: ReadEntry) -> _Shape | None:
    """The shape of one entry; None where it is to be read as a tree."""
    marked = _Marked([], [], [])
    pieces = _TAG.split(sample)
    for text, tag in zip(pieces[0:-1:2], pieces[1::2], strict=True):
        marked.text(text)
        if not marked.tag(tag):
            return None
    whole = None if marked.path else _read_marked(b"".join(marked.content), read=read)
    if whole is None or marked.slots > SLOTS_MAX or is_odd(whole):
        return None
    parts = {name: _parts_of(getattr(whole, name)) for name in BLOCK_TEXTS}
    if any(len(parts[name]) > 1 for name in ("amount", *DAYS)):
        return None
    return _Shape(re.compile(b"".join((*marked.pattern, _BLANK))), parts, whole, marked.depth)


@dataclass(slots=True)
class _Marked:
    """One entry with marks in the place of its texts, and the pattern of those like it."""

    pattern: list[bytes]
    content: list[bytes]
    path: list[str]
    """The elements that are open."""
    slots: int = 0
    depth: int = 0

    def text(self, text: bytes) -> None:
        """What stands before the next tag."""
        element = self.path[-1] if self.path else ""
        if not text.strip(b" \t\r\n"):
            self.pattern.append(_BLANK if self.path else b"")
        elif any(tuple(self.path[-len(word) :]) == word for word in _WORDS):
            self.pattern.append(re.escape(text))
        else:
            self.pattern.append(_COMPACT if element == "IBAN" else _TEXT)
            plain = f"\ue000{self.slots}\ue001"
            day = f"1{self.slots:03}-01-01"
            text = (day if element in _DAY_TAGS else plain).encode()
            self.slots += 1
        self.content.append(text)

    def tag(self, tag: bytes) -> bool:
        """The next tag; False where it is none that a plain entry has."""
        known = _PLAIN_TAG.fullmatch(tag)
        if known is None or (tag.startswith(b"</") and not self.path):
            return False
        self.pattern.append(re.escape(tag))
        self.content.append(tag)
        if tag.startswith(b"</"):
            self.path.pop()
        else:
            self.path.append((known[1] or known[2]).decode())
            self.depth = max(self.depth, len(self.path))
        if tag.endswith(b"/>"):
            self.path.pop()
        return True


def _read_marked(content: bytes, *, read: ReadEntry) -> RawEntry | None:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        return read(etree.fromstring(content, parser))
    except (etree.XMLSyntaxError, ValueError, SourceUnreadableError):
        return None


def _parts_of(text: str) -> tuple[str | int, ...]:
    """Words and numbers of texts, in their order."""
    parts: list[str | int] = []
    end = 0
    for match in _MARK.finditer(text):
        parts += [text[end : match.start()]] if match.start() > end else []
        parts.append(int(match[1] or match[2]))
        end = match.end()
    return (*parts, text[end:]) if end < len(text) else tuple(parts)
