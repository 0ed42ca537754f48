"""A workbook read from its XML, one cell at a time: slow, strict, and of no code of ours.

It knows the few things that the books of the fuzz test hold and takes everything else for damage.
"""

import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from xml.etree import ElementTree as ET

from tests.recon.files.strict_reader import Cells, NotAFile

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
SHEET = "xl/worksheets/sheet1.xml"
STRINGS = "xl/sharedStrings.xml"
FIRST_DAY = datetime(1899, 12, 30)  # noqa: DTZ001 - a workbook knows no zones
BLANK = ("", False)


def rows_of_book(content: bytes, *, needed: Sequence[str]) -> list[tuple[int, Cells]]:
    """Number and cells of every row whose cells stand below a named column."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as book:
            if book.testzip() is not None:
                raise NotAFile
            root = ET.fromstring(book.read(SHEET))  # noqa: S314 - made by the test
            strings = _strings(ET.fromstring(book.read(STRINGS)))  # noqa: S314 - as above
    except (zipfile.BadZipFile, zlib.error, ET.ParseError, ValueError, KeyError, OSError) as error:
        raise NotAFile from error
    except (EOFError, NotImplementedError, RuntimeError) as error:
        raise NotAFile from error
    if b"DOCTYPE" in content:
        raise NotAFile
    rows = [row for row in _rows(root, strings) if any(cell != BLANK for cell in row[1].values())]
    if not rows:
        raise NotAFile
    names = {place: text.strip() for place, (text, _) in rows[0][1].items() if text != ""}
    header = [names.get(place, "") for place in range(1, max(names) + 1)]
    if "" in header or len(set(header)) < len(header) or not set(needed) <= set(header):
        raise NotAFile
    return [
        (number, {name: _named(cells, place) for place, name in names.items()})
        for number, cells in rows[1:]
        if all(place in names or cell == BLANK for place, cell in cells.items())
    ]


def _named(cells: dict[int, tuple[str, bool]], place: int) -> tuple[str, bool]:
    text, is_number = cells.get(place, BLANK)
    return text.strip(), is_number


def _strings(root: Any) -> list[str]:
    return ["".join(one.itertext()) for one in root.findall(f"{MAIN}si")]


def _rows(root: Any, strings: Sequence[str]) -> Iterator[tuple[int, dict[int, tuple[str, bool]]]]:
    data = root.findall(f"{MAIN}sheetData")
    if root.tag != f"{MAIN}worksheet" or len(data) != 1:
        raise NotAFile
    last = 0
    for row in data[0]:
        number = int(row.attrib["r"]) if re.fullmatch("[0-9]+", row.attrib.get("r", "")) else 0
        if row.tag != f"{MAIN}row" or number <= last:
            raise NotAFile
        last, cells, before = number, {}, 0
        for cell in row:
            place = _place(cell, row=number)
            if place <= before:
                raise NotAFile
            before, cells[place] = place, _value(cell, strings)
        yield number, cells


def _place(cell: Any, *, row: int) -> int:
    found = re.fullmatch("([A-Z]{1,2})([0-9]+)", cell.attrib.get("r", ""))
    if cell.tag != f"{MAIN}c" or not found or int(found[2]) != row:
        raise NotAFile
    place = 0
    for letter in found[1]:
        place = place * 26 + ord(letter) - 64
    return place


def _value(cell: Any, strings: Sequence[str]) -> tuple[str, bool]:
    kind, style = cell.attrib.get("t", "n"), cell.attrib.get("s", "0")
    if set(cell.attrib) - {"r", "t", "s"} or kind == "e":
        raise NotAFile
    if kind == "inlineStr":
        return _only(cell, "is", "t"), False
    text = _only(cell, "v")
    if kind in {"s", "str"}:
        return (_string(text, strings) if kind == "s" else text), False
    if kind == "b" and text in {"0", "1"}:
        return ("TRUE" if text == "1" else "FALSE"), True
    if kind != "n" or not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", text, re.ASCII):
        raise NotAFile
    if style == "1":
        moment = FIRST_DAY + timedelta(days=float(text))
        return moment.isoformat(), False
    if style != "0":
        raise NotAFile
    number = format(Decimal(repr(float(text))), "f")
    return (number.rstrip("0").rstrip(".") if "." in number else number), True


def _string(index: str, strings: Sequence[str]) -> str:
    if not re.fullmatch("0|[1-9][0-9]*", index) or int(index) >= len(strings):
        raise NotAFile
    return strings[int(index)]


def _only(cell: Any, *path: str) -> str:
    """The text of the one element there, when there is nothing else in the cell."""
    for name in path:
        if len(cell) != 1 or (cell.text or "").strip():
            raise NotAFile
        inner = cell[0]
        if inner.tag != f"{MAIN}{name}" or (inner.tail or "").strip():
            raise NotAFile
        cell = inner
    if len(cell):
        raise NotAFile
    return cell.text or ""
