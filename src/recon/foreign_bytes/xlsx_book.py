"""The one sheet of a workbook as text columns.

Excel keeps numbers as binary fractions. A number is taken by its shortest decimal text, which is
what a person sees, and stays marked as a number: the amount readers complete its decimals (10.5 is
10.50), the id readers take whole numbers only. A leading zero that Excel dropped is gone; ids with
leading zeros must be text cells.
"""

import io
from collections.abc import Container
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from python_calamine import CalamineError, CalamineWorkbook, SheetTypeEnum

from recon.foreign_bytes.opening import FileBytes
from recon.foreign_bytes.raw_table import (
    BadRow,
    RawTable,
    checked_header,
    refuse,
    refuse_too_many_rows,
    trimmed,
)
from recon.foreign_bytes.xlsx_archive import refuse_unfit_archive


def read_xlsx(file: FileBytes, *, wanted: Container[str]) -> RawTable:
    """The wanted columns of the only sheet with content.

    Raises:
        SourceUnreadableError: not a plain workbook of one sheet.
    """
    name = file.path.name
    refuse_unfit_archive(file.content, name=name)
    first_row, rows = _only_sheet(file.content, name=name)
    numbered = [(first_row + place, row) for place, row in enumerate(rows) if _has_content(row)]
    header = _header(numbered[0][1], name=name)
    refuse_too_many_rows(len(numbered), name=name)
    width = len(header)
    reason = f"has a cell beside the {width} named columns"
    bad = [
        BadRow(line, reason, " ".join(map(_text, row)))
        for line, row in numbered[1:]
        if _has_content(row[width:])
    ]
    good = [(line, row) for line, row in numbered[1:] if not _has_content(row[width:])]
    columns: dict[str, pa.Array] = {}
    numbers: dict[str, pa.Array] = {}
    for place, column in enumerate(header):
        if column in wanted:
            cells = [row[place] for _, row in good]
            columns[column] = trimmed(pa.array([_text(cell) for cell in cells], pa.large_string()))
            numbers[column] = pa.array([_is_number(cell) for cell in cells], pa.bool_())
    return RawTable(
        name=name,
        sha256=file.sha256,
        size_bytes=len(file.content),
        header=header,
        columns=columns,
        lines=np.array([line for line, _ in good], dtype=np.int64),
        bad_rows=tuple(bad),
        numbers=numbers,
        typed_dates=True,
    )


def _only_sheet(content: bytes, *, name: str) -> tuple[int, list[list[Any]]]:
    """Number of its first row, and its rows."""
    found: list[tuple[str, int, list[list[Any]]]] = []
    try:
        with CalamineWorkbook.from_filelike(io.BytesIO(content)) as book:
            for sheet in book.sheets_metadata:
                if sheet.typ is not SheetTypeEnum.WorkSheet:
                    continue
                table = book.get_sheet_by_name(sheet.name)
                if table.start is not None:
                    rows = table.to_python(skip_empty_area=True)
                    found.append((sheet.name, table.start[0] + 1, rows))
    except (CalamineError, ValueError, OSError) as error:
        refuse(name, f"is a damaged workbook: {error}")
    found = [sheet for sheet in found if any(map(_has_content, sheet[2]))]
    if not found:
        refuse(name, "is empty: no sheet has even a header")
    if len(found) > 1:
        titles = ", ".join(repr(sheet[0]) for sheet in found[:5])
        refuse(name, f"has {len(found)} sheets with content ({titles}); keep one, so none is lost")
    return found[0][1], found[0][2]


def _header(cells: list[Any], *, name: str) -> tuple[str, ...]:
    last = max(place for place, cell in enumerate(cells) if cell != "")
    return checked_header([_text(cell) for cell in cells[: last + 1]], name=name)


def _has_content(cells: list[Any]) -> bool:
    return any(cell != "" for cell in cells)


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
        return _plain_number(Decimal(repr(cell)))
    return str(cell)


def _plain_number(number: Decimal) -> str:
    """Digits without an exponent and without decimals that say nothing."""
    if not number.is_finite():
        return str(number)
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
