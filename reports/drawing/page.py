"""How a sheet is printed, protected and opened: the same for every sheet but in a few places."""

from collections.abc import Sequence
from typing import Any

from openpyxl.utils import get_column_letter
from openpyxl.worksheet.properties import PageSetupProperties

from reports.drawing import look as looks
from reports.drawing.draft import Draft

PAPER_A4 = 9
PAPER_ROWS_MAX = 40
"""A long list is read on the screen; on paper its most urgent rows stand."""
CENTRED = ("Check",)


def print_on(
    sheet: Any,
    *,
    run_id: str = "",
    about: str = "",
    pages: tuple[int, int] = (1, 0),
    title_rows: str = "",
    upright: bool = False,
) -> None:
    """A4, landscape or upright, fitted to (width, height) in pages; 0: as many as it takes.

    The footer names the run, or what the sheet is `about` where it belongs to no one run.
    """
    sheet.page_setup.orientation = "portrait" if upright else "landscape"
    sheet.page_setup.paperSize = PAPER_A4
    sheet.sheet_properties.pageSetUpPr = PageSetupProperties(fitToPage=True)
    sheet.page_setup.pageOrder = "overThenDown"
    sheet.page_setup.fitToWidth, sheet.page_setup.fitToHeight = pages
    sheet.page_margins.left = sheet.page_margins.right = 0.4
    sheet.page_margins.top, sheet.page_margins.bottom = 0.4, 0.6
    sheet.page_margins.footer = 0.3
    sheet.oddFooter.left.text = (about or f"Run {run_id}").replace("&", "&&")
    sheet.oddFooter.center.text = "&A"
    sheet.oddFooter.right.text = "Page &P of &N"
    if title_rows:
        sheet.print_title_rows = title_rows


def print_first_rows(draft: Draft, sheet: Any, *, columns: int, rows: tuple[int, int]) -> int:
    """Print only these columns and at most PAPER_ROWS_MAX of the list; the last row printed.

    Row 3 says so when rows are left out: paper that looks whole and is not misleads.
    """
    first, last = rows
    shown = min(last, first + PAPER_ROWS_MAX - 1)
    if shown < last:
        sentence = (
            f"On paper: the first {PAPER_ROWS_MAX} of {last - first + 1:,} rows. "
            "All of them stand in the file."
        )
        draft.text(sheet, (3, 1), sentence, looks.NOTE)
    sheet.print_area = f"A1:{get_column_letter(columns)}{shown}"
    return shown


def protect(sheet: Any) -> None:
    """Locked without a password: a guard rail; filters, widths and heights stay free."""
    sheet.protection.sheet = True
    sheet.protection.autoFilter = False
    sheet.protection.sort = False
    sheet.protection.formatColumns = False
    sheet.protection.formatRows = False


def set_widths(sheet: Any, widths: Sequence[int]) -> None:
    """Column widths in characters, from column A on."""
    for column, width in enumerate(widths, start=1):
        sheet.column_dimensions[get_column_letter(column)].width = width


def put_heading(draft: Draft, sheet: Any, *, title: str, sentence: str) -> None:
    """Rows 1 and 2: what this sheet is, and one sentence on how to read it."""
    draft.text(sheet, (1, 1), title, looks.TITLE.but(size=16))
    draft.text(sheet, (2, 1), sentence, looks.SUBTITLE)
    sheet.row_dimensions[1].height = 24


def put_header(draft: Draft, sheet: Any, *, row: int, titles: Sequence[str]) -> None:
    """A dark header row; titles that begin with > stand right (above numbers)."""
    for column, title in enumerate(titles, start=1):
        look = looks.HEADER_RIGHT if title.startswith(">") else looks.HEADER
        look = looks.HEADER_CENTRE if title in CENTRED else look
        draft.text(sheet, (row, column), title.removeprefix(">"), look)


def span(sheet: Any, title: str = "") -> str:
    """The sheet's name as formulas and links write it."""
    return f"'{title or sheet.title}'"


def column_range(sheet: Any, *, column: int, rows: tuple[int, int]) -> str:
    """An absolute range of one column, such as `'Breaks'!$F$7:$F$20`."""
    letter = get_column_letter(column)
    return f"{span(sheet)}!${letter}${rows[0]}:${letter}${rows[1]}"
