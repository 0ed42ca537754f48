"""How workbooks are written and read back: the package `reports`, handed down to the steps."""

from recon.steps.report import Workbooks


def workbooks() -> Workbooks:
    """The writer and the reader of the product's workbook."""
    from reports.workbook import write_workbook
    from reports.workbook_check import sheet_totals

    return Workbooks(write=write_workbook, totals=sheet_totals)
