"""Whether the cells of a sheet stand where they say, before a spreadsheet reader believes them.

Spreadsheet readers take what they can from a sheet that is damaged: cells out of order, of a type
that does not exist, XML that is cut or holds what no XML may. Here such a sheet is refused. Plain
sheets are proven at once, many cells in each step; whatever is written otherwise is walked element
by element, which decides.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from xml.parsers import expat

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from recon.foreign_bytes.card_numbers import scrubbed
from recon.foreign_bytes.raw_table import refuse

CELL_TYPES = frozenset({"b", "d", "e", "inlineStr", "n", "s", "str"})
"""What a cell may say of itself."""

_WINDOW_BYTES = 8 * 1024 * 1024
_ROOT_BYTES_MAX = 64 * 1024
"""How far the first element is looked for."""
_PLACE_BYTES = 12
"""Of a place and the quote behind it that are looked at."""
_COLUMN_MAX = 26 + 26**2 + 26**3
"""ZZZ: what three letters name."""
_QUOTE = ord('"')
_SHEETS = (
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main worksheet",
    "http://purl.oclc.org/ooxml/spreadsheetml/main worksheet",
)
"""What a sheet's root may be."""
_ELEMENTS_ONLY = (b"c", b"row", b"is", b"r", b"sheetData")
"""Elements of a sheet that hold no text of their own."""
_BETWEEN = " "
"""Stands between the name space and the name of an element."""
_ROOT = re.compile(rb"<(?:([A-Za-z_][\w.-]*):)?worksheet[\s>]")
_PLACE = re.compile("([A-Za-z]{1,7})([0-9]{1,10})")
_TYPE = re.compile(rb"\st\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")

_ATTRIBUTE = re.compile(rb"([^\s=\"']+)\s*=\s*[\"']")
_ATTRIBUTES = frozenset({b"r", b"s", b"t", b"cm", b"vm", b"ph"})
"""What a cell may say of itself, but for what has a name space."""
_ROW_ATTRIBUTES = frozenset(
    {
        *("r", "spans", "s", "customFormat", "ht", "hidden", "customHeight", "outlineLevel"),
        *("collapsed", "thickTop", "thickBot", "ph"),
    }
)
"""The same of a row."""

_Bytes = npt.NDArray[np.uint8]
_Places = npt.NDArray[np.int64]


class Span(NamedTuple):
    """How far a sheet reaches, counted from its first row and column, and what its cells hold."""

    rows: int
    columns: int
    types: frozenset[str]
    formulas: bool


def refuse_malformed(part: str, text: bytes, *, name: str) -> str:
    """Refuse a part that is no well-formed XML in UTF-8; the name of its root, else.

    Raises:
        SourceUnreadableError: where it breaks.
    """
    parser = expat.ParserCreate("UTF-8", _BETWEEN)
    roots: list[str] = []

    def take(root: str, _: object) -> None:
        roots.append(root)
        parser.StartElementHandler = None

    parser.StartElementHandler = take
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        refuse(name, f"is a damaged workbook: {part} is not well-formed XML ({error})")
    return roots[0]


def span_of(part: str, text: bytes, *, name: str) -> Span:
    """How far a sheet reaches, when it is well-formed and every cell stands behind the one before.

    Raises:
        SourceUnreadableError: naming the cell that does not, or has a type that does not exist.
    """
    root = refuse_malformed(part, text, name=name)
    if root not in _SHEETS:
        refuse(name, f"is a damaged workbook: {part} holds {root[:80]!r} and no sheet")
    return _span_at_once(text) or _Walk(part, name).span(text)


def _span_at_once(text: bytes) -> Span | None:
    """The span of a sheet that is written plainly and in order; None to have it walked."""
    root = _ROOT.search(text, 0, _ROOT_BYTES_MAX)
    if root is None or b"<!" in text:
        return None
    prefix = root[1] + b":" if root[1] else b""
    last, columns = np.zeros(3, dtype=np.int64), 0  # row; of the last cell row and column
    types: set[str] = set()
    formulas = False
    for window in _windows(text):
        opens = np.flatnonzero(window == ord("<"))
        rows = _places(window, b"<" + prefix + b"row", opens=opens)
        cells = _places(window, b"<" + prefix + b"c", opens=opens)
        formulas = formulas or len(_starts(window, b"<" + prefix + b"f", opens=opens)) > 0
        if rows is None or cells is None or _has_stray_text(window, prefix, opens=opens):
            return None
        if not _in_order(rows, cells, last=last):
            return None
        columns = max(columns, int(cells.columns.max(initial=0)))
        types |= _types(window, cells)
    if not types <= CELL_TYPES:
        return None
    return Span(int(last[0]), columns, frozenset(types), formulas)


class _Found(NamedTuple):
    """The elements of one name in a window."""

    starts: _Places
    behind: _Places
    """First byte behind the place."""
    rows: _Places
    columns: _Places


def _windows(text: bytes) -> Iterator[_Bytes]:
    """The text in pieces that end before a tag."""
    start = 0
    while start < len(text):
        end = start + _WINDOW_BYTES
        cut = text.rfind(b"<", start + 1, end) if end < len(text) else len(text)
        end = cut if cut > start else len(text)
        yield np.frombuffer(text, dtype=np.uint8, count=end - start, offset=start)
        start = end


def _places(window: _Bytes, tag: bytes, *, opens: _Places) -> _Found | None:
    """Elements of one name that all begin with their place, as the common writers write them."""
    every = _starts(window, tag, opens=opens)
    plain = _starts(window, tag + b' r="', opens=every)
    after = window[np.minimum(every + len(tag), len(window) - 1)]
    if int(np.isin(after, np.frombuffer(b" >/\t\r\n", dtype=np.uint8)).sum()) != len(plain):
        return None
    first = plain + len(tag) + len(b' r="')
    read = _read_places(window, first)
    if read is None:
        return None
    rows, columns, behind = read
    named = columns > 0 if tag.endswith(b"c") else columns == 0
    return _Found(plain, behind, rows, columns) if bool(named.all()) else None


def _read_places(window: _Bytes, first: _Places) -> tuple[_Places, _Places, _Places] | None:
    """Rows, columns (0 without letters) and the bytes behind; None where one is written oddly."""
    rows, columns = np.zeros(len(first), np.int64), np.zeros(len(first), np.int64)
    behind, ended, counting = first.copy(), *(np.zeros(len(first), dtype=bool) for _ in "12")
    for place in range(_PLACE_BYTES):
        marks = window[np.minimum(first + place, len(window) - 1)]
        ended |= marks == _QUOTE
        digits, letters = marks - np.uint8(ord("0")), marks - np.uint8(ord("A"))
        is_digit = ~ended & (digits < 10)  # noqa: PLR2004 - what lies below "0" wraps far above
        is_letter = ~ended & (letters < 26) & ~counting  # noqa: PLR2004
        if not bool((ended | is_digit | is_letter).all()):
            return None
        counting |= is_digit
        rows = np.where(is_digit, rows * 10 + digits, rows)
        columns = np.where(is_letter, columns * 26 + letters + 1, columns)
        behind += ~ended
        if ended.all():
            fits = bool((rows > 0).all() and (columns <= _COLUMN_MAX).all())
            return (rows, columns, behind + 1) if fits else None
    return None


def _starts(window: _Bytes, word: bytes, *, opens: _Places) -> _Places:
    """Where a word begins that begins with `<`, of the places where one stands."""
    found = opens[: np.searchsorted(opens, len(window) - len(word), side="right")]
    for place in range(1, len(word)):
        found = found[window[found + place] == word[place]]
    return found


def _types(window: _Bytes, cells: _Found) -> set[str]:
    """The types that the attributes behind the places name."""
    closing = np.flatnonzero(window == ord(">"))
    at = np.searchsorted(closing, cells.behind)
    offsets = np.empty(2 * len(at) + 1, dtype=np.int64)
    offsets[0::2], offsets[1::2] = np.append(cells.behind, len(window)), closing[at]
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(window))]
    pieces = pa.Array.from_buffers(pa.large_binary(), 2 * len(at), buffers)
    tails = pieces.take(pa.array(np.arange(0, 2 * len(at), 2))).unique().to_pylist()
    if any(set(_ATTRIBUTE.findall(tail)) - _ATTRIBUTES for tail in tails):
        return {"?"}  # no type that exists, so that the sheet is walked
    found = {mark[1] or mark[2] or b"" for tail in tails for mark in _TYPE.finditer(tail)}
    return {kind.decode("utf-8", "replace") for kind in found}


def _has_stray_text(window: _Bytes, prefix: bytes, *, opens: _Places) -> bool:
    """Whether text may stand where only elements do, so that a value could have lost some."""
    closing = np.flatnonzero(window[:-1] == ord(">"))
    behind = window[closing + 1]
    spaced = closing[behind <= ord(" ")]
    texts = closing[(behind > ord(" ")) & (behind != ord("<"))]
    texts = np.concatenate([texts, spaced[_hold_text(window, spaced, opens=opens)]])
    before = opens[np.maximum(np.searchsorted(opens, texts) - 1, 0)] if len(opens) else texts
    if bool((window[before + 1] == ord("/")).any() or (window[texts - 1] == ord("/")).any()):
        return True
    return any(
        len(_starts(window, b"<" + prefix + word, opens=before))
        for name in _ELEMENTS_ONLY
        for word in (name + b">", name + b" ")
    )


def _hold_text(window: _Bytes, closing: _Places, *, opens: _Places) -> npt.NDArray[np.bool_]:
    """Whether more than white space stands between these ends of tags and the next tag."""
    if not len(closing):
        return np.zeros(0, dtype=bool)
    ends = np.append(opens, len(window))
    bounds = np.empty(2 * len(closing), dtype=np.int64)
    bounds[0::2], bounds[1::2] = closing + 1, ends[np.searchsorted(ends, closing)]
    dark = np.append(window > ord(" "), [False])
    found: npt.NDArray[np.bool_] = np.logical_or.reduceat(dark, bounds)[0::2]
    return found


def _in_order(rows: _Found, cells: _Found, *, last: _Places) -> bool:
    """Whether each stands behind the one before; `last` is where the window before ended."""
    numbers = np.concatenate([last[:1], rows.rows])
    if not bool((np.diff(numbers) > 0).all()):
        return False
    of_row = numbers[np.searchsorted(rows.starts, cells.starts)]
    order = np.concatenate([[last[1] << 32 | last[2]], cells.rows << 32 | cells.columns])
    last[0] = numbers[-1]
    if len(cells.rows):
        last[1:] = cells.rows[-1], cells.columns[-1]
    return bool((of_row == cells.rows).all() and (np.diff(order) > 0).all())


class _Walk:
    """One sheet, element by element."""

    def __init__(self, part: str, name: str) -> None:
        self._part, self._name = part, name
        self._row = self._column = self._columns = 0
        self._named: bool | None = None
        """Whether cells name their places: all or none."""
        self._types: set[str] = set()
        self._formulas = False
        self._may_hold_text = False
        """Whether text may stand here: inside a leaf, never behind one."""

    def span(self, text: bytes) -> Span:
        """Walk it."""
        parser = expat.ParserCreate("UTF-8", _BETWEEN)
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.Parse(text, True)
        return Span(self._row, self._columns, frozenset(self._types), self._formulas)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        local = name.rpartition(_BETWEEN)[2]
        self._may_hold_text = local.encode() not in _ELEMENTS_ONLY
        match local:
            case "row":
                self._take_row(attributes)
            case "c":
                self._take_cell(attributes)
            case "f":
                self._formulas = True

    def _end(self, _: str) -> None:
        self._may_hold_text = False

    def _text(self, text: str) -> None:
        if not self._may_hold_text and text.strip():
            shown = scrubbed(text)
            self._refuse(f"text stands between the cells' elements at row {self._row} ({shown!r})")

    def _take_row(self, attributes: dict[str, Any]) -> None:
        number = attributes.get("r", str(self._row + 1)).strip()
        # A row without cells may stand once more: workbooks of earlier releases of ours have one.
        first = self._row + (self._column > 0)
        if not re.fullmatch("[0-9]{1,10}", number) or int(number) < first:
            self._refuse(f"row {number[:20]!r} stands behind row {self._row}")
        for name in attributes:
            if _BETWEEN not in name and name not in _ROW_ATTRIBUTES:
                self._refuse(f"row {number[:20]} has {name[:20]!r}, which no row has")
        self._row, self._column = int(number), 0

    def _take_cell(self, attributes: dict[str, str]) -> None:
        place = attributes.get("r", "").strip()
        if self._named is None:
            self._named = bool(place)
        found = _PLACE.fullmatch(place)
        column = _column_number(found[1]) if found else self._column + 1
        if bool(place) != self._named or (place and not found):
            self._refuse(f"a cell of row {self._row} does not say where it stands ({place[:20]!r})")
        if column <= self._column or (found and int(found[2]) != self._row):
            self._refuse(f"cell {place[:20]} stands at the wrong place of row {self._row}")
        for name in attributes:
            if _BETWEEN not in name and name.encode() not in _ATTRIBUTES:
                self._refuse(f"cell {place[:20]} has {name[:20]!r}, which no cell has")
        kind = attributes.get("t", "n")
        if kind not in CELL_TYPES:
            self._refuse(f"cell {place[:20]} has the type {kind[:20]!r}, which does not exist")
        self._types.add(kind)
        self._column = column
        self._columns = max(self._columns, column)

    def _refuse(self, what: str) -> None:
        refuse(self._name, f"is a damaged workbook: in {self._part}, {what}; save it again")


def _column_number(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - ord("A") + 1
    return number
