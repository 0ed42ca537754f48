"""Whether every cell of a sheet says one plain thing, before a spreadsheet reader believes it.

Spreadsheet readers take what they can from a sheet that is damaged or made to deceive: of an amount
written in two pieces they keep the first, of an index that is none the string at 0, of a cell with
a text and an empty value nothing at all. Here each cell is walked once. It must stand where it says
and hold one plain text of the grammar of its type; all else is refused with its name.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn
from xml.parsers import expat

from recon.files.formats.format_limits import CELL_CHARACTERS_MAX, SHEET_CHARACTERS_MAX
from recon.files.formats.raw_table import refuse
from recon.privacy.shown_text import scrubbed

MAIN_SPACES = (
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
    "http://purl.oclc.org/ooxml/spreadsheetml/main",
)
"""Name spaces of the format, transitional and strict."""
CELL_TYPES = frozenset({"b", "d", "e", "inlineStr", "n", "s", "str"})
"""What a cell may say of itself."""

_BETWEEN = " "
"""Stands between the name space and the name of an element."""
_CHILDREN: Mapping[str, frozenset[str]] = {
    "sheetData": frozenset({"row"}),
    "row": frozenset({"c", "extLst"}),
    "c": frozenset({"f", "v", "is", "extLst"}),
    "is": frozenset({"t", "r", "rPh", "phoneticPr"}),
    "r": frozenset({"t", "rPr"}),
    "rPh": frozenset({"t"}),
}
"""Element within the data of a sheet -> what may stand in it."""
_ANYTHING = frozenset({"extLst", "rPr", "phoneticPr"})
"""Elements whose content no reader takes for a value."""
_LEAVES = frozenset({"f", "t", "v"})
"""Elements that hold text."""
_HOLD_TEXT = _LEAVES | _ANYTHING
_DATA = frozenset({"sheetData", "row", "c", "v", "is", "t"})
"""What must stand nowhere else: some readers know elements by these names alone."""
_CELL_ATTRIBUTES = frozenset({"r", "s", "t", "cm", "vm", "ph"})
"""What a cell may say of itself, but for what has a name space."""
_ROW_ATTRIBUTES = frozenset(
    {
        *("r", "spans", "s", "customFormat", "ht", "hidden", "customHeight", "outlineLevel"),
        *("collapsed", "thickTop", "thickBot", "ph"),
    }
)
"""The same of a row."""
_PLACE = re.compile("([A-Za-z]{1,3})([0-9]{1,10})")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_INDEX = re.compile("0|[1-9][0-9]{0,9}")
_LETTERS = 26
_BOOLEANS = frozenset({"0", "1"})


class SheetSpan(NamedTuple):
    """How far a sheet reaches, counted from its first row and column."""

    rows: int
    columns: int


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
    _parse(parser, text, part=part, name=name)
    return roots[0]


def shared_lengths(part: str, text: bytes, *, name: str) -> list[int]:
    """Characters of each shared string, in their order; what runs of it say counts together.

    Raises:
        SourceUnreadableError: not well-formed, not a list of strings, or one is too long.
    """
    return _Strings(part, name).lengths(text)


def span_of(
    part: str, text: bytes, *, name: str, shared: Sequence[int] = (), as_form: bool = False
) -> SheetSpan:
    """How far a sheet reaches, when each of its cells says one plain thing where it stands.

    Args:
        part: Of the workbook, for messages.
        text: The XML of the sheet.
        name: Of the file, for messages.
        shared: Characters of each shared string.
        as_form: Formulas are read as formulas, so that their values do not matter.

    Raises:
        SourceUnreadableError: naming the cell that does not.
    """
    return _Walk(part, name, shared=shared, as_form=as_form).span(text)


def _parse(parser: Any, text: bytes, *, part: str, name: str) -> None:
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        refuse(name, f"is a damaged workbook: {part} is not well-formed XML ({error})")


class _Strings:
    """The list of shared strings, element by element."""

    def __init__(self, part: str, name: str) -> None:
        self._part, self._name = part, name
        self._lengths: list[int] = []
        self._path: list[str] = []

    def lengths(self, text: bytes) -> list[int]:
        """Characters of each."""
        parser = expat.ParserCreate("UTF-8", _BETWEEN)
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._take_text
        _parse(parser, text, part=self._part, name=self._name)
        return self._lengths

    def _start(self, element: str, _: object) -> None:
        space, _, local = element.rpartition(_BETWEEN)
        if not self._path and (local != "sst" or space not in MAIN_SPACES):
            self._refuse(f"{self._part} holds {element[:80]!r} and no strings")
        if local == "si":
            if len(self._path) != 1 or space not in MAIN_SPACES:
                self._refuse(f"{self._part} has a string inside another element")
            self._lengths.append(0)
        self._path.append(local)

    def _end(self, _: str) -> None:
        self._path.pop()

    def _take_text(self, text: str) -> None:
        if self._path[-1] != "t" or not self._lengths:
            return
        self._lengths[-1] += len(text)
        if self._lengths[-1] > CELL_CHARACTERS_MAX:
            sentence = f"string {len(self._lengths) - 1} of {self._part} is longer than"
            self._refuse(f"{sentence} {CELL_CHARACTERS_MAX} characters")

    def _refuse(self, what: str) -> NoReturn:
        refuse(self._name, f"is a damaged workbook: {what}; save it again")


class _Walk:
    """One sheet, element by element."""

    def __init__(self, part: str, name: str, *, shared: Sequence[int], as_form: bool) -> None:
        self._part, self._name = part, name
        self._shared, self._as_form = shared, as_form
        self._row = self._column = self._columns = 0
        self._characters = self._characters_of_cell = 0
        self._named: bool | None = None
        """Whether cells name their places: all or none."""
        self._path: list[str] = []
        """Elements that are open within the data of the sheet."""
        self._steps: dict[tuple[str, str], str] = {}
        """Element and the name of one in it -> what that is, once it was found fit."""
        self._depth = 0
        """Of all elements that are open."""
        self._had_data = False
        self._may_hold_text = False
        """Whether text may stand here: inside a leaf, never behind one."""
        self._kind = ""
        """Of the cell that is open."""
        self._parts: list[str] = []
        """Which of f, v and is that cell has."""
        self._value = ""
        self._value_starts = 0
        self._text = b""
        self._parser = expat.ParserCreate("UTF-8", _BETWEEN)

    def span(self, text: bytes) -> SheetSpan:
        """Walk it."""
        self._text, parser = text, self._parser
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._take_text
        parser.CommentHandler = self._refuse_inside_cell
        parser.ProcessingInstructionHandler = self._refuse_inside_cell
        parser.StartCdataSectionHandler = self._refuse_inside_cell
        _parse(parser, text, part=self._part, name=self._name)
        return SheetSpan(self._row, self._columns)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if not self._path:
            space, _, local = name.rpartition(_BETWEEN)
            self._start_outside(local, space)
            return
        above = self._path[-1]
        local = self._steps.get((above, name)) or self._step(above, name)
        self._path.append(local)
        self._may_hold_text = local in _HOLD_TEXT
        if local == "c":
            self._take_cell(attributes)
        elif above == "c":
            self._parts.append(local)
            self._value_starts = self._parser.CurrentByteIndex
        elif local == "row":
            self._take_row(attributes)

    def _step(self, above: str, name: str) -> str:
        """What an element inside another one is: its local name, or what holds anything."""
        space, _, local = name.rpartition(_BETWEEN)
        if above in _ANYTHING:
            fits, step = local not in _DATA, above
        else:
            fits, step = local in _CHILDREN.get(above, ()) and space in MAIN_SPACES, local
        if not fits:
            self._refuse(f"an element {local[:20]!r} stands inside {above!r} at row {self._row}")
        self._steps[above, name] = step
        return step

    def _start_outside(self, local: str, space: str) -> None:
        self._may_hold_text = self._depth > 1
        if self._depth == 1:
            if local != "worksheet" or space not in MAIN_SPACES:
                root = f"{space}{_BETWEEN}{local}"
                sentence = f"{self._part} holds {root[:80]!r} and no sheet"
                refuse(self._name, f"is a damaged workbook: {sentence}")
        elif local == "sheetData":
            wanted = self._depth == len(("worksheet", "sheetData")) and space in MAIN_SPACES
            if self._had_data or not wanted:
                self._refuse("the rows stand in more than one place")
            self._path.append(local)
            self._had_data, self._may_hold_text = True, False
        elif local == "row":
            self._refuse("a row stands outside the data of the sheet")

    def _end(self, _: str) -> None:
        self._depth -= 1
        self._may_hold_text = False
        if not self._path:
            return
        ended = self._path.pop()
        if ended == "c":
            self._end_cell()
        elif ended == "v":
            self._end_value()

    def _take_text(self, text: str) -> None:
        if not self._may_hold_text:
            if text.strip():
                shown = scrubbed(text)
                sentence = f"text stands between the cells' elements at row {self._row} ({shown!r})"
                self._refuse(sentence)
        elif self._path:
            if self._path[-1] == "v":
                self._value += text
            elif self._path[-1] == "t":
                self._count(len(text))

    def _take_row(self, attributes: dict[str, Any]) -> None:
        number = attributes.get("r", str(self._row + 1)).strip()
        if not re.fullmatch("[0-9]{1,10}", number) or int(number) <= self._row:
            self._refuse(f"row {number[:20]!r} stands behind row {self._row}")
        for name in attributes:
            if _BETWEEN not in name and name not in _ROW_ATTRIBUTES:
                self._refuse(f"row {number[:20]} has {name[:20]!r}, which no row has")
        self._row, self._column = int(number), 0

    def _take_cell(self, attributes: dict[str, str]) -> None:
        cell = attributes.get("r", "")
        if self._named is None:
            self._named = bool(cell)
        match = _PLACE.fullmatch(cell)
        column = _column_number(match[1]) if match else self._column + 1
        if bool(cell) != self._named or (cell and not match):
            self._refuse(f"a cell of row {self._row} does not say where it stands ({cell[:20]!r})")
        if column <= self._column or (match and int(match[2]) != self._row):
            self._refuse(f"cell {cell[:20]} stands at the wrong place of row {self._row}")
        self._column = column
        self._columns = max(self._columns, column)
        if not attributes.keys() <= _CELL_ATTRIBUTES:
            for name in attributes:
                if _BETWEEN not in name and name not in _CELL_ATTRIBUTES:
                    self._refuse(f"cell {self._place} has {name[:20]!r}, which no cell has")
        self._kind = attributes.get("t", "n")
        if self._kind not in CELL_TYPES:
            sentence = f"cell {self._place} has the type {self._kind[:20]!r}, which does not exist"
            self._refuse(sentence)
        self._parts, self._value, self._characters_of_cell = [], "", 0

    def _end_value(self) -> None:
        """Only text may be written with references: of a number some readers lose what follows."""
        written = self._text[self._value_starts : self._parser.CurrentByteIndex]
        if self._kind != "str" and b"&" in written:
            self._refuse_cell("a value that is written with a character reference")

    def _end_cell(self) -> None:
        if self._kind == "e" and not self._as_form:
            self._refuse_content("an error such as #N/A")
        parts, is_text = self._parts, self._kind == "inlineStr"
        if not parts or (is_text and parts == ["is"]):
            return
        if len(set(parts)) < len(parts):
            self._refuse_cell(f"more than one {max(parts, key=parts.count)!r}")
        if is_text or "is" in parts:
            self._refuse_cell(f"{' and '.join(map(repr, parts))} under type {self._kind!r}")
        if "f" in parts and not self._value and not self._as_form:
            self._refuse_content("a formula that was never calculated")
        if "v" in parts and not (self._as_form and "f" in parts):
            self._check_value()

    def _check_value(self) -> None:
        value = self._value
        match self._kind:
            case "n":
                fits = not value or _NUMBER.fullmatch(value) is not None
            case "s":
                fits = bool(_INDEX.fullmatch(value)) and int(value) < len(self._shared)
                if fits:
                    self._count(self._shared[int(value)])
            case "b":
                fits = not value or value in _BOOLEANS
            case _:
                fits = True
                self._count(len(value))
        if not fits:
            shown = scrubbed(value[:40])
            what = "the shared string" if self._kind == "s" else "the value"
            self._refuse_cell(f"{what} {shown!r}, which there is not under type {self._kind!r}")

    def _count(self, characters: int) -> None:
        self._characters += characters
        self._characters_of_cell += characters
        if self._characters_of_cell > CELL_CHARACTERS_MAX:
            self._refuse_cell(f"more than {CELL_CHARACTERS_MAX} characters")
        if self._characters > SHEET_CHARACTERS_MAX:
            sentence = f"has a sheet ({self._part}) of more than {SHEET_CHARACTERS_MAX} characters"
            refuse(self._name, f"{sentence} in its cells; split it")

    def _refuse_inside_cell(self, *_: object) -> None:
        if "c" in self._path:
            self._refuse_cell("a comment, an instruction or a CDATA section")

    @property
    def _place(self) -> str:
        """Where the cell that is open stands, such as `C7`."""
        letters, rest = "", self._column
        while rest:
            rest, letter = divmod(rest - 1, _LETTERS)
            letters = chr(ord("A") + letter) + letters
        return f"{letters}{self._row}"

    def _refuse_cell(self, what: str) -> NoReturn:
        self._refuse(f"cell {self._place} holds {what}")

    def _refuse_content(self, what: str) -> NoReturn:
        sentence = f"holds {what} in cell {self._place} ({self._part})"
        refuse(self._name, f"{sentence}; correct it and save again")

    def _refuse(self, what: str) -> NoReturn:
        refuse(self._name, f"is a damaged workbook: in {self._part}, {what}; save it again")


def _column_number(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = number * _LETTERS + ord(letter) - ord("A") + 1
    return number
