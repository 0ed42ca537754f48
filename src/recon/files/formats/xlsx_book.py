"""XLSX reader: the single sheet of a workbook as text columns, and our own forms as cells.

Each part is unpacked once and measured while unpacking, because the sizes a zip declares may be
false. Refused: zip bombs, macros, links to other files, document types. Every cell must be at the
position it declares and hold one plain value, or the file is refused.

Spreadsheets store numbers as binary floating point. A number is read as its shortest decimal text,
which is what a person sees, and stays marked as a number: the amount readers pad its decimals (10.5
is 10.50), the id readers accept whole numbers only. A leading zero that a spreadsheet dropped
cannot be restored; ids with leading zeros must be text cells.
"""

import io
import lzma
import posixpath
import re
import struct
import zipfile
import zlib
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, NoReturn

from lxml import etree

from recon.config.file_layouts import STANDARD, FileLayout
from recon.files.formats.format_limits import (
    ARCHIVE_BYTES_MAX,
    ARCHIVE_ENTRIES_MAX,
    ARCHIVE_RATIO_FREE_BYTES,
    ARCHIVE_RATIO_MAX,
    CELL_CHARACTERS_MAX,
    COLUMNS_MAX,
    NUMBER_DIGITS_MAX,
    ROWS_MAX,
    SHEET_CHARACTERS_MAX,
)
from recon.files.formats.named_bytes import FileBytes, read_bytes
from recon.files.formats.raw_table import (
    BadRow,
    NumberText,
    RawTable,
    Rows,
    checked_header,
    declared_by,
    refuse,
    refuse_cards_before_header,
)
from recon.privacy.displayed_text import redacted

ZIP_MAGIC = b"PK\x03\x04"
OLE_MAGIC = b"\xd0\xcf\x11\xe0"
WORKBOOK_PART = "xl/workbook.xml"
RELATIONS_PART = "xl/_rels/workbook.xml.rels"
STYLES_PART = "xl/styles.xml"
FORBIDDEN_PARTS = {
    "vbaproject": "macros",
    "externallinks/": "links to other files",
    "embeddings/": "embedded files",
    "macrosheets/": "macro sheets",
    "connections.xml": "connections to other sources",
}
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    RuntimeError,  # encrypted parts; also NotImplementedError
    ValueError,  # names that are not text
)
"""Everything that the zip reader raises for bytes that are not a valid archive."""
_SHEETS_WITHOUT_CELLS = ("chartsheet", "dialogsheet")
_DATE_FORMATS = frozenset({*range(14, 23), *range(27, 37), 45, 47, *range(50, 59)})
"""Numbers of the built-in date and time formats."""
_STATED_IN_FORMATS = re.compile(r'"[^"]*"|\\.|[_*].|\[[^\]]*\]')
"""Literal parts of a number format; their letters do not stand for parts of a date."""


@contextmanager
def reading_archive(name: str) -> Iterator[None]:
    """Context manager that refuses the file when its bytes turn out not to be a valid archive.

    Raises:
        SourceUnreadableError: the archive is damaged.
    """
    try:
        yield
    except _DAMAGE as error:
        refuse(name, f"is a damaged workbook: {error}")


class WorkbookFile:
    """A plain workbook: its parts, sheets, shared strings and date formats."""

    def __init__(self, content: bytes, *, name: str, unpacked_max: int = ARCHIVE_BYTES_MAX) -> None:
        self.name = name
        self._unpacked_max = self._left = unpacked_max
        self._seen: set[str] = set()
        if content.startswith(OLE_MAGIC):
            refuse(name, "is encrypted or an old .xls; save it as .xlsx without a password")
        if not content.startswith(ZIP_MAGIC):
            refuse(name, "is not an .xlsx workbook (its first bytes are not those of a zip)")
        self._zip = zipfile.ZipFile(io.BytesIO(content))
        entries = self._zip.infolist()
        self.parts = [entry.filename for entry in entries]
        if len(entries) > ARCHIVE_ENTRIES_MAX:
            refuse(name, f"has {len(entries)} parts; at most {ARCHIVE_ENTRIES_MAX} are read")
        if len({part.lower() for part in self.parts}) != len(self.parts):
            refuse(name, "holds two parts of one name")
        missing = {WORKBOOK_PART, RELATIONS_PART}.difference(self.parts)
        if missing:
            refuse(name, f"is a zip but not an .xlsx workbook ({max(missing)} is missing)")
        for part in self.parts:
            for word, what in FORBIDDEN_PARTS.items():
                if word in part.lower():
                    refuse(name, f"holds {what} ({part}); save it as plain .xlsx without them")
        declared = sum(entry.file_size for entry in entries)
        if declared > unpacked_max:
            refuse(name, f"unpacks to {declared} bytes; at most {unpacked_max} are read")
        self._workbook = self._root(WORKBOOK_PART)
        of_dates = self._workbook.find("{*}workbookPr")
        self.counts_from_1904 = of_dates is not None and of_dates.get("date1904") in {"1", "true"}
        """Whether dates count from 1904, as in old Macintosh programs."""
        relations = [*self._root(RELATIONS_PART).iterchildren("{*}*")]
        self._relations = {str(own.get("Id")): own for own in relations}
        strings = [own for own in relations if str(own.get("Type")).endswith("/sharedStrings")]
        self.strings_part = _target(strings[0]) if strings else ""
        """The part with the shared strings, or ""."""

    def part(self, part: str) -> bytes:
        """Unpack a part; XML must be UTF-8 without a document type."""
        if part not in self.parts:
            refuse(self.name, f"is a damaged workbook: it has no part {part[:80]!r}")
        entry = self._zip.getinfo(part)
        fair = max(ARCHIVE_RATIO_FREE_BYTES, ARCHIVE_RATIO_MAX * entry.compress_size)
        with self._zip.open(entry) as packed:
            text = packed.read(min(self._left, fair) + 1)
        if len(text) > fair:
            refuse(self.name, f"has a part ({part}) packed more than 1:{ARCHIVE_RATIO_MAX}")
        if len(text) > self._left:
            refuse(self.name, f"unpacks to more than {self._unpacked_max} bytes")
        self._left -= len(text)
        self._seen.add(part)
        if part.lower().endswith((".xml", ".rels", ".vml")):
            if text.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in text[:64]:
                refuse(self.name, f"has a part ({part}) that is not UTF-8")
            if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
                refuse(
                    self.name, f"has a part ({part}) with a document type, which no workbook needs"
                )
        return text

    def elements(self, part: str, *, tag: str) -> Iterator[tuple[str, Any]]:
        """Yield ("end", element) for each element of this tag, then ("root", the root element)."""
        found = etree.iterparse(
            io.BytesIO(self.part(part)),
            tag=tag,
            resolve_entities=False,
            no_network=True,
            huge_tree=False,
            load_dtd=False,
        )
        try:
            yield from found
            yield "root", found.root
        except etree.XMLSyntaxError as error:
            self.damaged(f"{part} is not well-formed XML ({error})")

    def damaged(self, what: str) -> NoReturn:
        """Refuse the file as damaged.

        Raises:
            SourceUnreadableError: always.
        """
        refuse(self.name, f"is a damaged workbook: {what}")

    def _root(self, part: str) -> Any:
        return [*self.elements(part, tag="{}-")][-1][1]

    def rest(self) -> None:
        """Check the parts that were not read, since another program may open them."""
        for part in self.parts:
            if part not in self._seen:
                self._root(part) if part.lower().endswith((".xml", ".rels")) else self.part(part)

    def sheets(self) -> list[tuple[str, str]]:
        """Return (title, part) of every sheet that can have cells."""
        found = []
        for sheet in self._workbook.iter("{*}sheet"):
            # The relationship namespace differs between transitional and strict files.
            ids = [text for key, text in sheet.attrib.items() if key.endswith("}id")]
            relation = self._relations.get("".join(ids[:1]))
            if relation is None:
                self.damaged(f"its sheet {sheet.get('name', '')[:40]!r} is nowhere")
            elif not str(relation.get("Type")).endswith(_SHEETS_WITHOUT_CELLS):
                found.append((sheet.get("name", ""), _target(relation)))
        return found

    def date_styles(self) -> frozenset[str]:
        """Return the style numbers whose cells hold dates or times, as text like a cell's `s`."""
        if STYLES_PART not in self.parts:
            return frozenset()
        root = self._root(STYLES_PART)
        codes = {own.get("numFmtId"): own.get("formatCode", "") for own in root.iter("{*}numFmt")}
        styles = root.find("{*}cellXfs")
        found = set()
        for number, style in enumerate(styles if styles is not None else ()):
            own = style.get("numFmtId", "0")
            if own in codes:
                code = _STATED_IN_FORMATS.sub("", codes[own].partition(";")[0])
                is_date = re.search("[dmhysDMHYS]", code) is not None
                is_date &= re.search(r"\[[hms]+\]", codes[own], re.IGNORECASE) is None
            else:
                is_date = own.isdecimal() and int(own) in _DATE_FORMATS
            if is_date:
                found.add(str(number))
        return frozenset(found)


def _target(relation: Any) -> str:
    return posixpath.normpath(posixpath.join("/xl", relation.get("Target", "")))[1:]


MAIN_SPACES = (
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
    "http://purl.oclc.org/ooxml/spreadsheetml/main",
)
"""Namespaces of the format: transitional and strict."""
CELL_TYPES = frozenset({"b", "d", "e", "inlineStr", "n", "s", "str"})
"""Values of a cell's type attribute `t`."""
_CHILDREN: Mapping[str, frozenset[str]] = {
    "row": frozenset({"c", "extLst"}),
    "c": frozenset({"f", "v", "is", "extLst"}),
    "is": frozenset({"t", "r", "rPh", "phoneticPr"}),
    "si": frozenset({"t", "r", "rPh", "phoneticPr", "extLst"}),
    "r": frozenset({"t", "rPr"}),
    "rPh": frozenset({"t"}),
}
"""Element within the sheet data -> elements it may contain."""
_ANYTHING = frozenset({"extLst", "rPr", "phoneticPr"})
"""Elements whose content no reader takes for a value."""
_DATA = frozenset({"sheetData", "row", "c", "v", "is", "t", "si"})
"""Not allowed inside those elements either: some readers match elements by name alone."""
_CELL_ATTRIBUTES = frozenset({"r", "s", "t", "cm", "vm", "ph"})
"""Attributes of a cell, apart from namespaced ones."""
_ROW_ATTRIBUTES = frozenset(
    {
        *("r", "spans", "s", "customFormat", "ht", "hidden", "customHeight", "outlineLevel"),
        *("collapsed", "thickTop", "thickBot", "ph"),
    }
)
"""Attributes of a row, likewise."""
_PLACE = re.compile("([A-Za-z]{1,3})([0-9]{1,10})")
_ROW = re.compile("[0-9]{1,10}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_INDEX = re.compile("0|[1-9][0-9]{0,9}")
_LETTERS = 26
NUMBERS_STORED = 65_536
"""Number of distinct numbers, and of element names, that are cached."""
_LAST_DAY = 2_958_466
"""Serial day of 1 January 10000, which `datetime` cannot represent."""
_NO_LEAP_DAY = 60
"""Serial day of 29 February 1900, which spreadsheets count although it did not exist."""
_DAY_MILLISECONDS = 86_400_000
SheetRow = tuple[int, dict[int, str]]
"""(row number, column number from 1 -> text of each non-blank cell)."""


_BOOLEANS = {"": "", "0": NumberText("FALSE"), "1": NumberText("TRUE")}


class FormulaText(str):
    """The formula of a cell of a form, whatever value a program cached for it."""

    __slots__ = ()


class Sheets:
    """Reads the sheets of a workbook row by row."""

    def __init__(self, book: WorkbookFile, *, as_form: bool = False) -> None:
        """Read shared strings and date styles; `as_form` reads formulas in place of their values.

        Raises:
            SourceUnreadableError: the shared strings are invalid, or one is too long.
        """
        self._book, self._as_form = book, as_form
        self._part = ""
        self._row = self._column = 0
        part = book.strings_part
        self._strings: Sequence[str] = [*self._shared(part)] if part else ()
        self._dates = book.date_styles()

    def rows(self, part: str) -> Iterator[SheetRow]:
        """Yield every row of a sheet that has content.

        Raises:
            SourceUnreadableError: names the cell that does not hold one plain value.
        """
        yield from copy(self).walk(part)  # a copy per sheet, as several are read in turn

    def walk(self, part: str) -> Iterator[SheetRow]:
        """Yield the rows like `rows`, but on this object's own position."""
        self._part = part
        characters = columns = 0
        named: bool | None = None
        for event, row in self._book.elements(self._part, tag="{*}row"):
            if event == "root":
                self._refuse_other_root(row, "worksheet", "sheet")
                every = [*row.iter("{*}sheetData")]
                if len(every) > 1 or any(data.getparent() is not row for data in every):
                    self._refuse("the rows stand in more than one place")
                for data in every:
                    self._refuse_outside_rows(data)
                return
            data = row.getparent()
            if data is None or _split_tag(data.tag)[1] != "sheetData":
                self._refuse("a row stands outside the data of the sheet")
            if not self._row:
                self._refuse_other_root(data.getroottree().getroot(), "worksheet", "sheet")
            cells, named = self._cells(row, named=named)
            characters += sum(map(len, cells.values()))
            columns = max(columns, self._column)
            has = f"has a sheet ({self._part}) of"
            if characters > SHEET_CHARACTERS_MAX:
                sentence = f"{has} more than {SHEET_CHARACTERS_MAX} characters in its cells"
                refuse(self._book.name, f"{sentence}; split it")
            if self._row > ROWS_MAX or columns > COLUMNS_MAX:
                refuse(
                    self._book.name,
                    f"{has} {self._row} rows and {columns} columns; at most {ROWS_MAX} rows and "
                    f"{COLUMNS_MAX} columns are read: delete the far-off cells, or split it",
                )
            self._refuse_outside_rows(data)
            if cells:
                yield self._row, cells
            row.clear(keep_tail=True)
            while row.getprevious() is not None:
                del data[0]

    def _cells(self, row: Any, *, named: bool | None) -> tuple[dict[int, str], bool | None]:
        """Return the texts of a row, and whether the sheet's cells state their positions."""
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
        """Return the text of one cell."""
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
            formula = self._leaf(parts["f"])
            if self._as_form:
                return FormulaText(f"={formula}")
            if not value:
                self._refuse_content("a formula that was never calculated")
        return self._value(value, kind=kind, style=cell.get("s", "0")) if "v" in parts else ""

    def _value(self, value: str, *, kind: str, style: str) -> str:
        """Return the text of a cell's value, checked against the cell's type."""
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
            excerpt = redacted(value[:40])
            self._refuse_cell(f"{what} {excerpt!r}, which there is not under type {kind!r}")
        return text

    def _number(self, value: str, *, style: str) -> str | None:
        """Return the text of a number, or of its date if the style is one; None if invalid."""
        if not value:
            return ""
        if not _NUMBER.fullmatch(value):
            return None
        if style not in self._dates or not 0 <= (days := Decimal(value)) < _LAST_DAY:
            return number_text(value)
        start = datetime(1904, 1, 1) if self._book.counts_from_1904 else datetime(1899, 12, 30)  # noqa: DTZ001 - a workbook knows no zones
        moment = start + timedelta(milliseconds=round(days * _DAY_MILLISECONDS))
        if days < 1:
            return str(moment.time())
        if days < _NO_LEAP_DAY and not self._book.counts_from_1904:
            moment += timedelta(days=1)
        return moment.isoformat() if days % 1 else moment.date().isoformat()

    def _shared(self, part: str) -> Iterator[str]:
        """Yield the shared strings; the runs of one string are joined."""
        self._part = part
        number = 0
        for event, element in self._book.elements(part, tag="{*}si"):
            if event == "root":
                self._refuse_other_root(element, "sst", "strings")
                continue
            above = element.getparent()
            at_its_place = above is not None and above.getparent() is None
            if not at_its_place or _split_tag(element.tag)[0] not in MAIN_SPACES:
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
        """Return the text of an element's `t` and of its runs, without phonetic hints."""
        text = ""
        for own, part in self._inside(element, local):
            if own == "t":
                text += self._leaf(part)
            elif own in {"r", "rPh"}:
                run = self._whole_text(part, own)
                text += run if own == "r" else ""
        return text

    def _inside(self, element: Any, local: str) -> list[tuple[str, Any]]:
        """Return (name, element) of each child; refuse forbidden children and text in between."""
        self._refuse_text(element.text)
        found = []
        for inner in element:
            space, own = _split_tag(inner.tag)
            self._refuse_text(inner.tail)
            if not own:
                if local != "row":
                    self._refuse_cell("a comment or an instruction")
                continue
            if own not in _CHILDREN[local] or space not in MAIN_SPACES:
                self._refuse_element(own, local)
            if own in _ANYTHING:
                for further in inner.iterdescendants("*"):
                    if _split_tag(further.tag)[1] in _DATA:
                        self._refuse_element(_split_tag(further.tag)[1], own)
            found.append((own, inner))
        return found

    def _leaf(self, element: Any) -> str:
        """Return the text of an element without children."""
        for inner in element:
            if own := _split_tag(inner.tag)[1]:
                self._refuse_element(own, _split_tag(element.tag)[1])
            self._refuse_cell("a comment or an instruction")
        return element.text or ""

    def _refuse_text(self, text: str | None) -> None:
        if text and text.strip():
            sentence = f"text stands between the cells' elements at row {self._row}"
            self._refuse(f"{sentence} ({redacted(text)!r})")

    def _refuse_outside_rows(self, data: Any) -> None:
        """Refuse what is no row among the rows."""
        self._refuse_text(data.text)
        for inner in data:
            self._refuse_text(inner.tail)
            own = _split_tag(inner.tag)[1]
            if own not in {"", "row"}:
                self._refuse_element(own, "sheetData")

    def _refuse_other_root(self, root: Any, local: str, what: str) -> None:
        space, own = _split_tag(root.tag)
        if own != local or space not in MAIN_SPACES:
            excerpt = f"{space} {own}".strip()[:80]
            self._book.damaged(f"{self._part} holds {excerpt!r} and no {what}")

    def _refuse_element(self, own: str, above: str) -> NoReturn:
        self._refuse(f"an element {own[:20]!r} stands inside {above!r} at row {self._row}")

    @property
    def _place(self) -> str:
        """Reference of the current cell, such as `C7`."""
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


@lru_cache(maxsize=NUMBERS_STORED)
def number_text(value: str) -> NumberText:
    """Format a number as plain digits, without an exponent or trailing decimal zeros."""
    binary = float(value)
    number = Decimal(repr(binary))
    if not number.is_finite():
        return NumberText(number)
    # With more digits, several texts mean the same binary number: the exact value fits no currency.
    if len(number.normalize().as_tuple().digits) > NUMBER_DIGITS_MAX:
        number = Decimal(binary)
    text = format(number, "f")
    return NumberText(text.rstrip("0").rstrip(".") if "." in text else text)


def _column_number(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = number * _LETTERS + ord(letter) - ord("A") + 1
    return number


@lru_cache(maxsize=NUMBERS_STORED)
def _split_tag(tag: Any) -> tuple[str, str]:
    """Name space and name of an element; nothing of a comment or an instruction."""
    space, _, local = tag.rpartition("}") if isinstance(tag, str) else ("", "", "")
    return space.lstrip("{"), local


def xlsx_table(
    file: FileBytes, *, columns_read: Container[str], layout: FileLayout = STANDARD
) -> RawTable:
    """Read the wanted columns of the only sheet with content.

    Raises:
        SourceUnreadableError: not a plain workbook with one sheet.
    """
    name, trailer = file.path.name, layout.trailer
    with reading_archive(name):
        book = WorkbookFile(file.content, name=name)
        rows = _only_sheet(book)
        head: dict[int, str] = {}
        for number, cells in rows:
            if number > layout.preamble:
                head = cells
                break
            refuse_cards_before_header(" ".join(cells.values()), name=name)
        if not head:
            refuse(name, f"has no header behind its first {layout.preamble} rows")
        first = min(head)
        header = checked_header(_texts(head, first=first), name=name)
        last: dict[int, str] = {}
        if trailer is not None:
            if trailer.amount:
                problem = "is a workbook, of whose last row no sum is compared: no trailer.amount"
                refuse(name, problem)
            rows = _but_last(rows, last)
        found, named = (
            Rows(name, header=header, columns_read=columns_read),
            range(first, first + len(header)),
        )
        for number, own in rows:
            ordered = [own.get(at, "") for at in named]
            if all(column in named for column in own):
                found.take(number, ordered)
                continue
            reason = f"has a cell beside the {len(header)} named columns"
            read = tuple(map(str.strip, ordered))
            found.take_bad(BadRow(number, reason, " ".join(own.values()), read))
        table = found.table(typed_dates=True, workbook=True)
        book.rest()
        if trailer is None:
            return table
        ending = [last.get(at, "").strip() for at in named]
        return replace(table, declared=declared_by(ending, trailer=trailer, name=name))


def sheet_texts(file: FileBytes, *, rows_max: int) -> list[tuple[int, list[str]]]:
    """Return (row number, cells) of the first rows with content; numbers are `NumberText`.

    Raises:
        SourceUnreadableError: not a plain workbook with one sheet.
    """
    with reading_archive(file.path.name):
        book = WorkbookFile(file.content, name=file.path.name)
        rows = [*islice(_only_sheet(book), rows_max)]
    first = min(min(cells) for _, cells in rows)
    return [(number, _texts(cells, first=first)) for number, cells in rows]


def _only_sheet(book: WorkbookFile) -> Iterator[SheetRow]:
    """Return the rows with content of the only sheet that has any."""
    name, sheets = book.name, Sheets(book)
    filled = []
    for title, part in book.sheets():
        rows = sheets.rows(part)
        if first := next(rows, None):
            filled.append((title, chain([first], rows)))
    if not filled:
        refuse(name, "is empty: no sheet has even a header")
    if len(filled) > 1:
        titles = ", ".join(repr(title) for title, _ in filled[:5])
        refuse(name, f"has {len(filled)} sheets with content ({titles}); keep one, so none is lost")
    return filled[0][1]


def _but_last(rows: Iterator[SheetRow], last: dict[int, str]) -> Iterator[SheetRow]:
    """Yield all rows but the last one, whose cells are put into `last`."""
    held = next(rows, None)
    for row in rows:
        if held is not None:
            yield held
        held = row
    if held is not None:
        last.update(held[1])


def _texts(cells: dict[int, str], *, first: int) -> list[str]:
    return [cells.get(column, "") for column in range(first, max(cells, default=0) + 1)]


FORM_BYTES_MAX = 50 * 1024 * 1024
"""Maximum size of a filled-in workbook; its long lists are separate files."""
FORM_UNPACKED_BYTES_MAX = 512 * 1024 * 1024
"""A run with 200,000 matches unpacks to some 300 MB."""
FORM_ROWS_MAX = 110_000
"""Maximum number of rows read from one sheet."""

CellValue = str | int | float | None


@dataclass(frozen=True, slots=True)
class FormCell:
    """One cell of a form: its value (a date as ISO 8601), or its formula as text."""

    value: CellValue
    is_formula: bool = False


@dataclass(frozen=True, slots=True)
class FormBook:
    """The wanted sheets of a form."""

    name: str
    sha256: str
    sheets: Mapping[str, tuple[tuple[FormCell, ...], ...]]
    """Title -> rows, starting at row 1, of cells, starting at column A."""


def read_form(path: Path, *, titles: tuple[str, ...]) -> FormBook:
    """Read the named sheets of a workbook.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: not a plain workbook, or one of the sheets is missing.
    """
    file, found = _form(path, titles=titles)
    if missing := [title for title in titles if title not in found]:
        refuse(path.name, f"has no sheet {', '.join(map(repr, missing))}: not a report of ours")
    sheets = {}
    for title in titles:
        rows: list[tuple[FormCell, ...]] = []
        for number, cells in found[title]:
            if number > FORM_ROWS_MAX:
                refuse(path.name, f"has more than {FORM_ROWS_MAX} rows on {title}")
            rows += [()] * (number - 1 - len(rows))
            rows.append(tuple(map(_form_cell, _texts(cells, first=1))))
        sheets[title] = tuple(rows)
    return FormBook(path.name, file.sha256, sheets)


def refuse_unfit_form(path: Path) -> FileBytes:
    """Read a workbook file and refuse it unless it is plain; formulas need no cached values.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: names the problem.
    """
    return _form(path, titles=())[0]


def _form(path: Path, *, titles: Container[str]) -> tuple[FileBytes, dict[str, Iterable[SheetRow]]]:
    """Return the file and title -> rows with content; every sheet is checked, some are kept."""
    file, name = read_bytes(path, bytes_max=FORM_BYTES_MAX), path.name
    found: dict[str, Iterable[SheetRow]] = {}
    with reading_archive(name):
        book = WorkbookFile(file.content, name=name, unpacked_max=FORM_UNPACKED_BYTES_MAX)
        sheets = Sheets(book, as_form=True)
        for title, part in book.sheets():
            found[title] = deque(sheets.rows(part), maxlen=None if title in titles else 0)
        book.rest()
    return file, found


def _form_cell(text: str) -> FormCell:
    if isinstance(text, FormulaText):
        return FormCell(str(text), is_formula=True)
    if not isinstance(text, NumberText):
        return FormCell(str(text) or None)
    if text in {"FALSE", "TRUE"}:
        return FormCell(text == "TRUE")
    return FormCell(int(text) if text.lstrip("-").isdecimal() else float(text))
