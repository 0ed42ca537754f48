"""The one sheet of a workbook as text columns.

Excel keeps numbers as binary fractions. A number is taken by its shortest decimal text, which is
what a person sees, and stays marked as a number: the amount readers complete its decimals (10.5 is
10.50), the id readers take whole numbers only. A leading zero that Excel dropped is gone; ids with
leading zeros must be text cells.
"""

import io
from collections.abc import Container, Iterator
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from python_calamine import CalamineError, CalamineSheet, CalamineWorkbook, SheetTypeEnum

from recon.config.file_layouts import Trailer
from recon.files.formats.format_limits import NUMBER_DIGITS_MAX
from recon.files.formats.named_bytes import FileBytes
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
from recon.files.formats.record_rows import ROWS_AT_ONCE
from recon.files.formats.xlsx_archive import refuse_unfit_archive

_Row = tuple[int, list[Any]]
"""Number in the sheet, and its cells."""


def xlsx_parts(
    file: FileBytes,
    *,
    wanted: Container[str],
    rows_at_once: int = ROWS_AT_ONCE,
    preamble: int = 0,
    trailer: Trailer | None = None,
) -> Iterator[RawTable]:
    """The wanted columns of the only sheet with content, some rows at a time.

    The library holds the sheet as a whole; what it is made into is held in parts.

    Raises:
        SourceUnreadableError: not a plain workbook of one sheet.
    """
    name = file.path.name
    refuse_unfit_archive(file.content, name=name)
    rows = _only_sheet(file.content, name=name)
    first = next((cells for _, cells in _behind(rows, preamble=preamble, name=name)), None)
    if first is None:
        refuse(name, f"has no header behind its first {preamble} rows")
    header = _header(first, name=name)
    declared, left = None, -1
    if trailer is not None:
        rows, left, declared = _without_trailer(rows, trailer=trailer, name=name)
    read, rejected = 0, RejectedSoFar(name)
    while part := list(islice(rows, rows_at_once)):
        read += len(part)
        refuse_too_many_rows(read, name=name)
        table = _part(part, header=header, rejected=rejected, wanted=wanted)
        yield replace(table, declared=declared if read == left else None)
    if not read:
        table = _part([], header=header, rejected=rejected, wanted=wanted)
        yield replace(table, declared=declared)


def _without_trailer(
    rows: Iterator[_Row], *, trailer: Trailer, name: str
) -> tuple[Iterator[_Row], int, Declared]:
    """The rows before the last one, how many they are, and what that one declares."""
    if trailer.amount:
        refuse(name, "is a workbook, of whose last row no sum is compared: no trailer.amount")
    *before, last = [*rows] or [(0, [])]
    cells = [_text(cell).strip() for cell in last[1]]
    return iter(before), len(before), declared_by(cells, trailer=trailer, name=name)


def sheet_texts(file: FileBytes) -> Iterator[tuple[int, list[tuple[str, bool]]]]:
    """Number and cells of every row with content, as text; True of what was an exact number.

    Raises:
        SourceUnreadableError: not a plain workbook of one sheet.
    """
    refuse_unfit_archive(file.content, name=file.path.name)
    for number, cells in _only_sheet(file.content, name=file.path.name):
        yield number, [(_text(cell), _is_number(cell)) for cell in cells]


def _part(
    rows: list[_Row], *, header: tuple[str, ...], rejected: RejectedSoFar, wanted: Container[str]
) -> RawTable:
    width = len(header)
    good, bad = rows, []
    if rows and len(rows[0][1]) > width:
        good = [row for row in rows if not _has_content(row[1][width:])]
        reason = f"has a cell beside the {width} named columns"
        bad = [
            rejected.take(BadRow(line, reason, " ".join(map(_text, row))))
            for line, row in rows
            if _has_content(row[width:])
        ]
    columns: dict[str, pa.Array] = {}
    numbers: dict[str, pa.Array] = {}
    for column, cells in zip(header, zip(*(row for _, row in good), strict=True), strict=False):
        if column in wanted:
            texts = cells if set(map(type, cells)) == {str} else [_text(cell) for cell in cells]
            columns[column] = trimmed(pa.array(texts, pa.large_string()))
            if texts is not cells:
                numbers[column] = pa.array([_is_number(cell) for cell in cells], pa.bool_())
    nothing = pa.array([], pa.large_string())
    return RawTable(
        name=rejected.name,
        sha256="",
        size_bytes=0,
        header=header,
        columns=columns or {column: nothing for column in header if column in wanted},
        lines=np.array([line for line, _ in good], dtype=np.int64),
        bad_rows=tuple(bad),
        numbers=numbers,
        typed_dates=True,
        workbook=True,
    )


def _only_sheet(content: bytes, *, name: str) -> Iterator[_Row]:
    """Its rows that have content."""
    try:
        with CalamineWorkbook.from_filelike(io.BytesIO(content)) as book:
            sheets = [
                book.get_sheet_by_name(sheet.name)
                for sheet in book.sheets_metadata
                if sheet.typ is SheetTypeEnum.WorkSheet
            ]
    except (CalamineError, ValueError, OSError) as error:
        refuse(name, f"is a damaged workbook: {error}")
    except BaseException as error:
        # What the library did not expect itself; it is no Exception and would end the whole night.
        if type(error).__name__ != "PanicException":
            raise
        refuse(name, f"is a damaged workbook: its reader gave up ({str(error)[:80]})")
    filled = [sheet for sheet in sheets if next(_rows(sheet), None)]
    if not filled:
        refuse(name, "is empty: no sheet has even a header")
    if len(filled) > 1:
        titles = ", ".join(repr(sheet.name) for sheet in filled[:5])
        refuse(name, f"has {len(filled)} sheets with content ({titles}); keep one, so none is lost")
    return _rows(filled[0])


def _rows(sheet: CalamineSheet) -> Iterator[_Row]:
    """Number and cells of every row with content."""
    if sheet.start is None:
        return
    for number, row in enumerate(sheet.iter_rows(), start=1):
        if _has_content(row):
            yield number, row


def _behind(rows: Iterator[_Row], *, preamble: int, name: str) -> Iterator[_Row]:
    """The rows behind so many of the sheet."""
    for number, cells in rows:
        if number > preamble:
            yield number, cells
        else:
            refuse_cards_before_header(" ".join(map(_text, cells)), name=name)


def _header(cells: list[Any], *, name: str) -> tuple[str, ...]:
    last = max(index for index, cell in enumerate(cells) if cell != "")
    return checked_header([_text(cell) for cell in cells[: last + 1]], name=name)


def _has_content(cells: list[Any]) -> bool:
    # 0 and FALSE are content too, and rarely all that a row has.
    return any(cells) or any(cell != "" for cell in cells)


def _is_number(cell: Any) -> bool:
    return type(cell).__name__ in {"int", "float", "bool"}


def _text(cell: Any) -> str:
    match cell:
        case str():
            return cell
        case bool():
            return str(cell).upper()
        case datetime():
            return cell.isoformat()
        case date():
            return cell.isoformat()
    if _is_number(cell):
        shortest = repr(cell)
        # Beyond that several texts are one number: to the last bit it fits no currency.
        is_exact = len(shortest) <= NUMBER_DIGITS_MAX or _digits(shortest) <= NUMBER_DIGITS_MAX
        return _plain_number(Decimal(shortest if is_exact else cell))
    return str(cell)


def _digits(number: str) -> int:
    return len(Decimal(number).normalize().as_tuple().digits)


def _plain_number(number: Decimal) -> str:
    """Digits without an exponent and without decimals that say nothing."""
    if not number.is_finite():
        return str(number)
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
