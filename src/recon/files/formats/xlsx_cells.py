"""The cells of a sheet as text: each stands where it says and holds one plain thing, or is refused.

Spreadsheets keep numbers as binary fractions. A number is taken by its shortest decimal text, which
is what a person sees, and stays marked as a number: the amount readers complete its decimals (10.5
is 10.50), the id readers take whole numbers only. A leading zero that a spreadsheet dropped is
gone; ids with leading zeros must be text cells.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, NoReturn

from recon.files.formats.format_limits import (
    CELL_CHARACTERS_MAX,
    COLUMNS_MAX,
    NUMBER_DIGITS_MAX,
    ROWS_MAX,
    SHEET_CHARACTERS_MAX,
)
from recon.files.formats.raw_table import refuse
from recon.files.formats.xlsx_archive import WorkbookFile
from recon.privacy.shown_text import scrubbed

MAIN_SPACES = (
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
    "http://purl.oclc.org/ooxml/spreadsheetml/main",
)
"""Name spaces of the format, transitional and strict."""
CELL_TYPES = frozenset({"b", "d", "e", "inlineStr", "n", "s", "str"})
"""What a cell may say of itself."""
_CHILDREN: Mapping[str, frozenset[str]] = {
    "row": frozenset({"c", "extLst"}),
    "c": frozenset({"f", "v", "is", "extLst"}),
    "is": frozenset({"t", "r", "rPh", "phoneticPr"}),
    "si": frozenset({"t", "r", "rPh", "phoneticPr", "extLst"}),
    "r": frozenset({"t", "rPr"}),
    "rPh": frozenset({"t"}),
}
"""Element within the data of a sheet -> what may stand in it."""
_ANYTHING = frozenset({"extLst", "rPr", "phoneticPr"})
"""Elements whose content no reader takes for a value."""
_DATA = frozenset({"sheetData", "row", "c", "v", "is", "t", "si"})
"""What must not stand in these all the same: some readers know elements by their names alone."""
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
_ROW = re.compile("[0-9]{1,10}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_INDEX = re.compile("0|[1-9][0-9]{0,9}")
_LETTERS = 26
NUMBERS_KEPT = 65_536
"""Different numbers, and names of elements, that are remembered."""
_LAST_DAY = 2_958_466
"""Behind it lies the year 10000, of which no date can be made."""
_NO_LEAP_DAY = 60
"""Spreadsheets count a 29 February 1900, which there was not."""
_DAY_MILLISECONDS = 86_400_000
Row = tuple[int, dict[int, str]]
"""Number in the sheet, and the text of each cell that has any by its column from 1."""


class NumberText(str):
    """The text of a cell that is a number or a truth."""

    __slots__ = ()


_BOOLEANS = {"": "", "0": NumberText("FALSE"), "1": NumberText("TRUE")}


class Sheets:
    """The sheets of a workbook, read one row after the other."""

    def __init__(self, book: WorkbookFile, *, as_form: bool = False) -> None:
        """`as_form`: formulas are read as formulas by others, so that their values do not matter.

        Raises:
            SourceUnreadableError: its shared strings are none, or one is too long.
        """
        self._book, self._as_form = book, as_form
        self._part = ""
        self._row = self._column = 0
        part = book.strings_part()
        self._strings: Sequence[str] = [*self._shared(part)] if part else ()
        self._dates = book.date_styles()
        self._old_days = book.counts_from_1904()

    def rows(self, part: str) -> Iterator[Row]:
        """Every row of a sheet that has content.

        Raises:
            SourceUnreadableError: naming the cell that does not say one plain thing.
        """
        yield from copy(self).walk(part)  # one sheet may wait while another is read

    def walk(self, part: str) -> Iterator[Row]:
        """As `rows`, of one sheet alone."""
        self._part = part
        data: Any = None
        characters = columns = 0
        named: bool | None = None
        for event, element in self._book.elements(
            part, tags=("{*}sheetData", "{*}row"), events=("start", "end")
        ):
            if event == "root":
                self._refuse_other_root(element, "worksheet", "sheet")
                continue
            local, above = _parted(element.tag)[1], element.getparent()
            if local == "sheetData":
                at_its_place = above is not None and above.getparent() is None
                if (event == "start" and data is not None) or not at_its_place:
                    self._refuse("the rows stand in more than one place")
                self._refuse_other_root(above, "worksheet", "sheet")
                data = element
                if event == "end":
                    self._refuse_beside_rows(data)
            elif event == "end":
                if above is not data or data is None:
                    self._refuse("a row stands outside the data of the sheet")
                cells, named = self._cells(element, named=named)
                characters += sum(map(len, cells.values()))
                columns = max(columns, self._column)
                if characters > SHEET_CHARACTERS_MAX:
                    refuse(
                        self._book.name,
                        f"has a sheet ({part}) of more than {SHEET_CHARACTERS_MAX} characters in "
                        "its cells; split it",
                    )
                if self._row > ROWS_MAX or columns > COLUMNS_MAX:
                    refuse(
                        self._book.name,
                        f"has a sheet ({part}) of {self._row} rows and {columns} columns; at most "
                        f"{ROWS_MAX} rows and {COLUMNS_MAX} columns are read: delete the far-off "
                        "cells, or split it",
                    )
                self._refuse_beside_rows(data)
                if cells:
                    yield self._row, cells
                element.clear(keep_tail=True)
                while element.getprevious() is not None:
                    del data[0]

    def _cells(self, row: Any, *, named: bool | None) -> tuple[dict[int, str], bool | None]:
        """The texts of a row, and whether cells name their places: all of a sheet, or none."""
        number = row.get("r", str(self._row + 1)).strip()
        if not _ROW.fullmatch(number) or int(number) <= self._row:
            self._refuse(f"row {number[:20]!r} stands behind row {self._row}")
        self._row, self._column = int(number), 0
        for name in row.keys():  # noqa: SIM118 - an element of lxml is no mapping
            if name not in _ROW_ATTRIBUTES and not name.startswith("{"):
                self._refuse(f"row {number[:20]} has {name[:20]!r}, which no row has")
        cells: dict[int, str] = {}
        for own, cell in self._inside(row, "row"):
            if own != "c":
                continue
            place = cell.get("r", "")
            named = bool(place) if named is None else named
            match = _PLACE.fullmatch(place)
            if bool(place) != named or (place and not match):
                sentence = f"a cell of row {self._row} does not say where it stands"
                self._refuse(f"{sentence} ({place[:20]!r})")
            column = _column_number(match[1]) if match else self._column + 1
            if column <= self._column or (match and int(match[2]) != self._row):
                self._refuse(f"cell {place[:20]} stands at the wrong place of row {self._row}")
            self._column = column
            text = self._text_of(cell)
            if len(text) > CELL_CHARACTERS_MAX:
                self._refuse_cell(f"more than {CELL_CHARACTERS_MAX} characters")
            if text:
                cells[column] = text
        return cells, named

    def _text_of(self, cell: Any) -> str:
        """What one cell says."""
        for name in cell.keys():  # noqa: SIM118 - as above
            if name not in _CELL_ATTRIBUTES and not name.startswith("{"):
                self._refuse(f"cell {self._place} has {name[:20]!r}, which no cell has")
        kind = cell.get("t", "n")
        if kind not in CELL_TYPES:
            sentence = f"cell {self._place} has the type {kind[:20]!r}, which does not exist"
            self._refuse(sentence)
        if kind == "e" and not self._as_form:
            self._refuse_content("an error such as #N/A")
        inside = self._inside(cell, "c")
        parts = dict(inside)
        if len(parts) < len(inside):
            names = [own for own, _ in inside]
            self._refuse_cell(f"more than one {max(names, key=names.count)!r}")
        if kind == "inlineStr" or "is" in parts:
            if parts and (kind != "inlineStr" or [*parts] != ["is"]):
                self._refuse_cell(f"{' and '.join(map(repr, parts))} under type {kind!r}")
            return self._whole_text(parts["is"], "is") if parts else ""
        value = self._leaf(parts["v"]) if "v" in parts else ""
        if "f" in parts:
            self._leaf(parts["f"])
            if self._as_form:
                return value
            if not value:
                self._refuse_content("a formula that was never calculated")
        return self._value(value, kind=kind, style=cell.get("s", "0")) if "v" in parts else ""

    def _value(self, value: str, *, kind: str, style: str) -> str:
        """The text of a value of the grammar of its type."""
        text: str | None = value
        if kind == "n":
            text = self._number(value, style=style)
        elif kind == "s":
            fits = _INDEX.fullmatch(value) and int(value) < len(self._strings)
            text = self._strings[int(value)] if fits else None
        elif kind == "b":
            text = _BOOLEANS.get(value)
        if text is None:
            what = "the shared string" if kind == "s" else "the value"
            shown = scrubbed(value[:40])
            self._refuse_cell(f"{what} {shown!r}, which there is not under type {kind!r}")
        return text

    def _number(self, value: str, *, style: str) -> str | None:
        """The text of a number, or of the date that it means; None: it is none."""
        if not value:
            return ""
        if not _NUMBER.fullmatch(value):
            return None
        if style not in self._dates or not 0 <= (days := Decimal(value)) < _LAST_DAY:
            return number_text(value)
        start = datetime(1904, 1, 1) if self._old_days else datetime(1899, 12, 30)  # noqa: DTZ001 - a workbook knows no zones
        moment = start + timedelta(milliseconds=round(days * _DAY_MILLISECONDS))
        if days < 1:
            return str(moment.time())
        if days < _NO_LEAP_DAY and not self._old_days:
            moment += timedelta(days=1)
        return moment.isoformat() if days % 1 else moment.date().isoformat()

    def _shared(self, part: str) -> Iterator[str]:
        """The list of shared strings; what runs of one say counts together."""
        self._part = part
        number = 0
        for event, element in self._book.elements(part, tags=("{*}si",), events=("end",)):
            if event == "root":
                self._refuse_other_root(element, "sst", "strings")
                continue
            above = element.getparent()
            at_its_place = above is not None and above.getparent() is None
            if not at_its_place or _parted(element.tag)[0] not in MAIN_SPACES:
                self._book.damaged(f"{part} has a string inside another element; save it again")
            text = self._whole_text(element, "si")
            if len(text) > CELL_CHARACTERS_MAX:
                sentence = f"string {number} of {part} is longer than {CELL_CHARACTERS_MAX}"
                self._book.damaged(f"{sentence} characters; save it again")
            yield text
            number += 1
            element.clear(keep_tail=True)
            while element.getprevious() is not None:
                del above[0]

    def _whole_text(self, element: Any, local: str) -> str:
        """Text of its `t`, and of those of its runs; how it sounds says nothing."""
        text = ""
        for own, part in self._inside(element, local):
            if own == "t":
                text += self._leaf(part)
            elif own in {"r", "rPh"}:
                run = self._whole_text(part, own)
                text += run if own == "r" else ""
        return text

    def _inside(self, element: Any, local: str) -> list[tuple[str, Any]]:
        """Name and element of all in one, each of which may stand there, with nothing between."""
        self._refuse_text(element.text)
        found = []
        for inner in element:
            space, own = _parted(inner.tag)
            self._refuse_text(inner.tail)
            if not own:
                if local != "row":
                    self._refuse_cell("a comment or an instruction")
                continue
            if own not in _CHILDREN[local] or space not in MAIN_SPACES:
                self._refuse_element(own, local)
            if own in _ANYTHING:
                for further in inner.iterdescendants("*"):
                    if _parted(further.tag)[1] in _DATA:
                        self._refuse_element(_parted(further.tag)[1], own)
            found.append((own, inner))
        return found

    def _leaf(self, element: Any) -> str:
        """The text of an element that holds nothing else."""
        for inner in element:
            if own := _parted(inner.tag)[1]:
                self._refuse_element(own, _parted(element.tag)[1])
            self._refuse_cell("a comment or an instruction")
        return element.text or ""

    def _refuse_text(self, text: str | None) -> None:
        if text and text.strip():
            sentence = f"text stands between the cells' elements at row {self._row}"
            self._refuse(f"{sentence} ({scrubbed(text)!r})")

    def _refuse_beside_rows(self, data: Any) -> None:
        """Refuse what is no row among the rows."""
        self._refuse_text(data.text)
        for inner in data:
            self._refuse_text(inner.tail)
            own = _parted(inner.tag)[1]
            if own not in {"", "row"}:
                self._refuse_element(own, "sheetData")

    def _refuse_other_root(self, root: Any, local: str, what: str) -> None:
        space, own = _parted(root.tag)
        if own != local or space not in MAIN_SPACES:
            shown = f"{space} {own}".strip()[:80]
            self._book.damaged(f"{self._part} holds {shown!r} and no {what}")

    def _refuse_element(self, own: str, above: str) -> NoReturn:
        self._refuse(f"an element {own[:20]!r} stands inside {above!r} at row {self._row}")

    @property
    def _place(self) -> str:
        """Where the cell that is read stands, such as `C7`."""
        letters, rest = "", self._column
        while rest:
            rest, letter = divmod(rest - 1, _LETTERS)
            letters = chr(ord("A") + letter) + letters
        return f"{letters}{self._row}"

    def _refuse_cell(self, what: str) -> NoReturn:
        self._refuse(f"cell {self._place} holds {what}")

    def _refuse_content(self, what: str) -> NoReturn:
        sentence = f"holds {what} in cell {self._place} ({self._part})"
        refuse(self._book.name, f"{sentence}; correct it and save again")

    def _refuse(self, what: str) -> NoReturn:
        refuse(self._book.name, f"is a damaged workbook: in {self._part}, {what}; save it again")


@lru_cache(maxsize=NUMBERS_KEPT)
def number_text(value: str) -> NumberText:
    """Digits without an exponent and without decimals that say nothing."""
    binary = float(value)
    number = Decimal(repr(binary))
    if not number.is_finite():
        return NumberText(number)
    # Beyond that several texts are one number: to the last bit it fits no currency.
    if len(number.normalize().as_tuple().digits) > NUMBER_DIGITS_MAX:
        number = Decimal(binary)
    text = format(number, "f")
    return NumberText(text.rstrip("0").rstrip(".") if "." in text else text)


def _column_number(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = number * _LETTERS + ord(letter) - ord("A") + 1
    return number


@lru_cache(maxsize=NUMBERS_KEPT)
def _parted(tag: Any) -> tuple[str, str]:
    """Name space and name of an element; nothing of a comment or an instruction."""
    space, _, local = tag.rpartition("}") if isinstance(tag, str) else ("", "", "")
    return space.lstrip("{"), local
