"""A workbook of ours that people filled in: the cells of named sheets, formulas marked as such.

Nothing is trusted but what stands in the cells: the archive passes the same checks as every other
workbook, and a formula is given as a formula, never as the value somebody's program left in it.
"""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from openpyxl import load_workbook
from openpyxl.utils.exceptions import InvalidFileException

from recon.files.formats.named_bytes import FileBytes, read_bytes
from recon.files.formats.raw_table import refuse
from recon.files.formats.xlsx_book import refuse_unfit_archive

FORM_BYTES_MAX = 50 * 1024 * 1024
"""A filled-in workbook; its large lists are beside it, not in it."""
FORM_UNPACKED_BYTES_MAX = 512 * 1024 * 1024
"""A night of 200,000 matches unpacks to some 300 MB."""
FORM_ROWS_MAX = 110_000
"""Rows that are read of one sheet."""

CellValue = str | int | float | bool | date | None


@dataclass(frozen=True, slots=True)
class FormCell:
    """One cell: its value, or the formula that stands there."""

    value: CellValue
    is_formula: bool = False


@dataclass(frozen=True, slots=True)
class FormBook:
    """The wanted sheets of a file."""

    name: str
    sha256: str
    sheets: Mapping[str, tuple[tuple[FormCell, ...], ...]]
    """Title -> rows from row 1 on, cells from column A on."""


def read_form(path: Path, *, titles: tuple[str, ...]) -> FormBook:
    """The named sheets of a workbook.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: not a plain workbook, or one of the sheets is missing.
    """
    file = refuse_unfit_form(path)
    try:
        book: Any = load_workbook(
            io.BytesIO(file.content), read_only=True, data_only=False, keep_links=False
        )
        missing = [title for title in titles if title not in book.sheetnames]
        if missing:
            refuse(path.name, f"has no sheet {', '.join(map(repr, missing))}: not a report of ours")
        sheets = {title: _rows(book[title], name=path.name) for title in titles}
    except (
        InvalidFileException,
        BadZipFile,
        KeyError,
        ValueError,
        TypeError,
        SyntaxError,
    ) as error:
        refuse(path.name, f"is a damaged workbook: {error}")
    return FormBook(path.name, file.sha256, sheets)


def refuse_unfit_form(path: Path) -> FileBytes:
    """Let only a plain workbook pass; its bytes.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: what is the matter with it, in words.
    """
    file = read_bytes(path, bytes_max=FORM_BYTES_MAX)
    refuse_unfit_archive(file.content, name=path.name, unpacked_max=FORM_UNPACKED_BYTES_MAX)
    return file


def _rows(sheet: Any, *, name: str) -> tuple[tuple[FormCell, ...], ...]:
    # What a file says of its own size may be a lie, or missing after a re-save.
    sheet.reset_dimensions()
    rows = []
    for number, cells in enumerate(sheet.iter_rows(), 1):
        if number > FORM_ROWS_MAX:
            refuse(name, f"has more than {FORM_ROWS_MAX} rows on {sheet.title}")
        rows.append(tuple(_cell(cell) for cell in cells))
    return tuple(rows)


def _cell(cell: Any) -> FormCell:
    value = cell.value
    if cell.data_type == "f":
        return FormCell(str(getattr(value, "text", value)), is_formula=True)
    if isinstance(value, datetime) and value.time() == datetime.min.time():
        return FormCell(value.date())
    if value is None or isinstance(value, str | bool | int | float | date):
        return FormCell(value)
    return FormCell(str(value))
