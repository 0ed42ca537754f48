"""How workbooks are written and read back: the package `reports`, handed down to the steps.

`reports` is imported when the first workbook is written: most of what can go wrong comes earlier.
"""

from pathlib import Path

from recon.figures import NightFigures
from recon.steps.report import SheetTotals, Workbooks


def workbooks() -> Workbooks:
    """The writer and the reader of the product's workbook."""
    return Workbooks(write=write, totals=totals)


def write(figures: NightFigures, path: Path) -> Path:
    """Write a workbook; gives the path that was written."""
    from reports.workbook import write_workbook

    return write_workbook(figures, path)


def totals(path: Path) -> SheetTotals:
    """What a workbook's sheets come to, as read back from the file."""
    from reports.workbook_check import sheet_totals

    return sheet_totals(path)
