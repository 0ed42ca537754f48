"""The reconciliation workbook: `write_workbook` draws that of one run and saves it.

The same figures give the same bytes. A workbook that is open, or exists with other content, is
never overwritten: the new one is called -v2. For a list too long for its sheet the workbook has the
sums and names a file of the run.
"""

from collections.abc import Iterator
from pathlib import Path

from recon.model.figures import NightFigures
from reports.drawing.blocks import Sheet, Workbook, written_in_place
from reports.sheets.assurance import assurance_sheet, checks_of
from reports.sheets.bank_sheet import bank_sheet
from reports.sheets.breaks_sheet import breaks_sheet
from reports.sheets.lists import (
    fees_sheet,
    guide_sheet,
    instructions_sheet,
    journals_sheet,
    matched_sheet,
    open_sheet,
)
from reports.sheets.page_one import page_one
from reports.sheets.totals import Rows, facts_of, rows_on_sheets, run_sheet


def write_workbook(figures: NightFigures, path: Path) -> Path:
    """Write the workbook of a run; return the path that was actually written.

    An existing equal file is left as it is.

    Raises:
        OutputError: there are too many versions already.
        OSError: the folder cannot be written.
    """
    return written_in_place(drawn(figures).write, path=path)


def drawn(figures: NightFigures) -> Workbook:
    """The workbook with all sheets of a run, in order."""
    rows = rows_on_sheets(figures)
    facts = facts_of(figures, rows=rows)
    return Workbook(
        f"Reconciliation {figures.merchant_id} {figures.business_date}",
        [*_sheets(figures, rows)],
        written=figures.generated_at,
        footer=f"Run {figures.run_id}",
        subject=figures.run_id,
        facts={f"recon.{name}": facts[name] for name in ("run_id", "keys_sha256")},
        timezone=figures.timezone,
    )


def _sheets(figures: NightFigures, rows: Rows) -> Iterator[Sheet]:
    """Yield the sheets: fees only with a contract, the bank only with statements."""
    checks = checks_of(figures, rows)
    yield page_one(figures, rows, checks)
    yield breaks_sheet(figures, rows)
    yield open_sheet(figures, rows)
    yield instructions_sheet(figures, rows)
    yield matched_sheet(figures, rows)
    yield journals_sheet(figures, rows)
    if figures.fees is not None:
        yield fees_sheet(figures.fees)
    if figures.bank:
        yield bank_sheet(figures)
    yield assurance_sheet(figures, rows, checks)
    yield guide_sheet(figures)
    yield run_sheet(figures, rows)
