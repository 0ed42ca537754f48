"""An order file read one character and one row at a time: slow, strict, and of no code of ours.

It says for each file which rows stand in it and what they mean, or that it is none. The readers of
recon are held against it.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from xml.etree import ElementTree as ET

from iso4217 import Currency

NEEDED = ("merchant_id", "account_id", "order_no", "currency", "amount", "status", "ordered_at")
STATUSES = {"paid", "pending", "authorised", "cancelled", "failed", "refunded"}
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


class NotAFile(Exception):  # noqa: N818 - it is what the reader says of a file
    """The file as a whole is refused."""


@dataclass(frozen=True)
class Meaning:
    """What one accepted row means."""

    line: int
    order_no: str
    currency: str
    minor_units: int
    status: str
    ordered_at: datetime


Cells = Mapping[str, tuple[str, bool]]
"""Column -> text and whether it was a number."""


def read(name: str, content: bytes) -> list[Meaning]:
    """Every row that is right, in the order of the file."""
    rows = rows_of(name, content, needed=NEEDED)
    return [row for line, cells in rows if (row := _meaning(line, cells)) is not None]


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


def is_like_a_card(row: Meaning) -> bool:
    """Ids as long as card numbers are judged by their whole column, elsewhere."""
    return re.fullmatch("[0-9]{13,19}", row.order_no) is not None


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


def _meaning(line: int, cells: Cells) -> Meaning | None:
    """What a row means, or nothing where one of its cells is wrong."""
    texts = {name: cells.get(name, ("", False)) for name in NEEDED}
    ids = all(is_id(*texts[name], pattern="[A-Za-z0-9._-]{1,50}") for name in NEEDED[:2])
    key = is_id(*texts["order_no"], pattern="[A-Za-z0-9#][A-Za-z0-9._#/:-]{0,49}")
    units = units_of(*texts["amount"], currency=texts["currency"][0])
    at = moment_of(texts["ordered_at"][0])
    if not (ids and key and texts["status"][0] in STATUSES) or units is None or at is None:
        return None
    order_no, currency, status = (texts[name][0] for name in ("order_no", "currency", "status"))
    return Meaning(line, order_no, currency, units, status, at)


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
