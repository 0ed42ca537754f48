"""A file read one character and one row at a time: slow, strict, and of no code of ours.

It says which rows stand in it, or that it is no file; `strict_kinds` says what they mean. The
readers of recon are held against both. Of a workbook it knows the few things that the books of the
fuzz test hold and takes everything else for damage.
"""

import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from xml.etree import ElementTree as ET

from iso4217 import Currency

OTHER_FORMATS = (
    b"PK\x03\x04",
    b"PAR1",
    b"\xd0\xcf\x11\xe0",
    b"\x1f\x8b",
    b"%PDF",
    b"BZh",
    b"(\xb5/\xfd",
)
XML_BOMS = (b"\xff\xfe", b"\xfe\xff")


HEADER_LINE = -1
"""Stands for the names of the columns, which are no row."""


MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
SHEET = "xl/worksheets/sheet1.xml"
STRINGS = "xl/sharedStrings.xml"
FIRST_DAY = datetime(1899, 12, 30)  # noqa: DTZ001 - a workbook knows no zones
BLANK = ("", False)


class NotAFile(Exception):  # noqa: N818 - it is what the reader says of a file
    """The file as a whole is refused."""


Cells = Mapping[str, tuple[str, bool]]
"""Column -> text and whether it was a number."""


def rows_of(
    name: str, content: bytes, *, needed: Sequence[str], may_be_open: bool = False
) -> list[tuple[int, Cells]]:
    """Line and cells of every row whose cells can be told apart; `may_be_open`: no last line end.

    Rows of XML have the line 0.
    """
    if not content or content.startswith(OTHER_FORMATS):
        raise NotAFile
    kind = name.rpartition(".")[2]
    if kind == "csv":
        rows = list(_csv_rows(content, needed=needed, may_be_open=may_be_open))
    else:
        rows = list({"jsonl": _json_rows, "xml": _xml_rows}[kind](content))
    seen = {column for _, cells in rows if cells is not None for column in cells}
    if rows and not set(needed) <= seen:
        raise NotAFile
    return [(line, cells) for line, cells in rows if cells and line != HEADER_LINE]


def _csv_rows(
    content: bytes, *, needed: Sequence[str], may_be_open: bool
) -> Iterator[tuple[int, Cells | None]]:
    text = _text(content)
    every = list(_records(text))
    records = [record for record in every if record[1] != [""]]
    if not records:
        raise NotAFile
    (_, header, header_is_odd), *rows = records
    header = [cell.strip() for cell in header]
    behind = every[every.index(records[0]) + 1 :]
    # Each line ends with a delimiter: that of the header as well, or those of the rows alone.
    ends = len(header) > 1 and header[-1] == ""
    header = header[:-1] if ends else header
    beside = behind[0][1] if behind else []
    ends = ends or (len(beside) == len(header) + 1 and not beside[-1].strip())
    if header_is_odd or "" in header or len(set(header)) < len(header):
        raise NotAFile
    if not set(needed) <= set(header):
        raise NotAFile
    yield HEADER_LINE, dict.fromkeys(header, ("", False))
    cut = rows and not may_be_open and not text.endswith("\n")
    last = rows[-1][0] if cut else None
    for line, cells, odd in rows:
        fits = not odd and len(cells) == len(header) + ends
        if fits and ends and cells[-1].strip():
            raise NotAFile
        yield line, _plain(header, cells[: len(header)]) if fits and line != last else None


def _plain(header: list[str], cells: list[str]) -> Cells:
    return {name: (cell.strip(), False) for name, cell in zip(header, cells, strict=True)}


def _text(content: bytes) -> str:
    if content[:2] in XML_BOMS or b"\0" in content:
        raise NotAFile
    try:
        return content.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError:
        raise NotAFile from None


def _records(text: str) -> Iterator[tuple[int, list[str], bool]]:
    """Line, cells, and whether a quote stands where none may be."""
    place, line = 0, 1
    while place < len(text):
        start, cells, odd = line, [], False
        while True:
            cell = ""
            if text[place : place + 1] == '"':
                place += 1
                while True:
                    if place >= len(text):
                        raise NotAFile
                    if text[place : place + 2] == '""':
                        cell, place = cell + '"', place + 2
                    elif text[place] == '"':
                        place += 1
                        break
                    else:
                        line += text[place] == "\n"
                        cell, place = cell + text[place], place + 1
                if text[place : place + 1] not in {",", "\n", ""} and text[place:][:2] != "\r\n":
                    raise NotAFile
            while place < len(text) and text[place] not in ",\r\n":
                odd = odd or text[place] == '"'
                cell, place = cell + text[place], place + 1
            cells.append(cell)
            if text[place : place + 1] != ",":
                break
            place += 1
        if text[place : place + 1] == "\r":
            if text[place + 1 : place + 2] != "\n":
                raise NotAFile
            place += 1
        place += 1
        yield start, cells, odd
        line += 1


def _json_rows(content: bytes) -> Iterator[tuple[int, Cells | None]]:
    found = False
    for line, part in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not part.strip(b" \t\r"):
            continue
        try:
            value = json.loads(
                part.decode(),
                object_pairs_hook=_once,
                parse_float=_Lexeme,
                parse_int=_Lexeme,
                parse_constant=_never,
            )
            cells = dict(_leaves(value, ""))
        except (ValueError, TypeError, AttributeError, RecursionError):
            yield line, None
            continue
        found = True
        yield line, cells
    if not found:
        raise NotAFile


class _Lexeme(str):
    __slots__ = ()


def _never(_: str) -> None:
    raise ValueError


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError
    return dict(pairs)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, tuple[str, bool]]]:
    for key, inner in value.items():
        key.encode()
        if not key.strip() or key.strip() != key or "." in key:
            raise ValueError
        if isinstance(inner, dict):
            yield from _leaves(inner, f"{path}{key}.")
        elif isinstance(inner, _Lexeme):
            yield path + key, (str(inner), "e" not in inner.lower())
        elif isinstance(inner, str):
            inner.encode()
            yield path + key, (inner.strip(), False)
        elif inner is None or isinstance(inner, bool):
            yield path + key, ("" if inner is None else str(inner), inner is not None)
        else:
            raise ValueError


def _xml_rows(content: bytes) -> Iterator[tuple[int, Cells | None]]:
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content or b"\0" in content:
        raise NotAFile
    try:
        content.decode()
        root = ET.fromstring(content)  # noqa: S314 - no document type by now
    except (ET.ParseError, ValueError, LookupError):
        raise NotAFile from None
    found = False
    for element in root:
        leaves = [*_inside(element, "")]
        names = [name for name, _ in leaves]
        if None in [text for _, text in leaves] or len(set(names)) < len(names) or not leaves:
            yield 0, None
            continue
        found = True
        yield 0, {name: ((text or "").strip(), False) for name, text in leaves}
    if not found:
        raise NotAFile


def _inside(element: Any, path: str) -> Iterator[tuple[str, str | None]]:
    inner = f"{path}/" if path else ""
    for name, value in element.attrib.items():
        yield f"{inner}@{name.rpartition('}')[2]}", value
    if not len(element):
        if path or (element.text or "").strip():
            yield path, element.text or ""
        return
    if any((text or "").strip(" \t\r\n") for text in (element.text, *(e.tail for e in element))):
        yield path, None
    for child in element:
        yield from _inside(child, inner + child.tag.rpartition("}")[2])


def is_id(text: str, is_number: bool, *, pattern: str) -> bool:  # noqa: FBT001 - a cell
    """Whether a cell is text of this pattern, or a whole number that a spreadsheet holds."""
    if is_number and not re.fullmatch("-?[0-9]{1,15}", text):
        return False
    return re.fullmatch(pattern, text, re.ASCII) is not None


def units_of(text: str, is_number: bool, *, currency: str) -> int | None:  # noqa: FBT001 - a cell
    """Minor units of an amount without a sign; nothing of any other cell."""
    try:
        decimals = Currency(currency).exponent
    except ValueError:
        return None
    if decimals is None or re.fullmatch(r"[0-9]+(\.[0-9]+)?", text, re.ASCII) is None:
        return None
    whole, _, fraction = text.partition(".")
    if not is_number and len(fraction) < decimals:
        return None
    # Zeros beyond the currency's decimals say nothing, however many there are.
    if fraction[decimals:].strip("0") or len(whole) > 15:
        return None
    value = int(whole + fraction[:decimals].ljust(decimals, "0"))
    return value if value < 10**17 else None


def moment_of(text: str) -> datetime | None:
    """The instant of ISO 8601 text, UTC where it names no zone."""
    shape = (
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
        r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?"
    )
    if re.fullmatch(shape, text, re.ASCII) is None:
        return None
    try:
        found = datetime.fromisoformat(text)
        moment = (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment if 1970 <= moment.year <= 2199 else None


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
