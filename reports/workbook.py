"""The reconciliation workbook: `write_workbook` draws one night and puts it in its place.

Sheets: Summary, Control totals, Breaks, Pending, Instructions, Matched, Journals, Sources, Guide
and the hidden _run. The same figures give the same bytes. A workbook that is open or already there
with other content is never overwritten: the next one is called -v2. Of a
list that is too long for its sheet the workbook has the sums and names a file of the run.
"""

from datetime import UTC
from pathlib import Path
from typing import Any

from openpyxl.packaging.custom import StringProperty

from recon.model.figures import NightFigures
from reports.drawing.draft import Draft
from reports.drawing.in_place import written_in_place
from reports.sheets.bank_sheet import TITLE as BANK_TITLE
from reports.sheets.bank_sheet import draw_bank
from reports.sheets.breaks_sheet import draw_breaks
from reports.sheets.fees_sheet import TITLE as FEES_TITLE
from reports.sheets.fees_sheet import draw_fees
from reports.sheets.guide_sheet import draw_guide
from reports.sheets.instructions_sheet import draw_instructions
from reports.sheets.journals_sheet import draw_journals
from reports.sheets.matched_sheet import draw_matched
from reports.sheets.open_sheet import draw_open
from reports.sheets.run_sheet import TITLE as RUN_TITLE
from reports.sheets.run_sheet import draw_run, facts_of
from reports.sheets.sources_sheet import draw_sources
from reports.sheets.totals import Rows, rows_on_sheets, totals_of
from reports.sheets.totals_sheet import draw_totals
from reports.summary.summary_page import Page
from reports.summary.summary_sheet import draw_summary

SHEETS = (
    "Summary",
    "Control totals",
    "Breaks",
    "Pending",
    "Instructions",
    "Matched",
    "Journals",
    "Sources",
    "Guide",
    RUN_TITLE,
)
TAB_COLOURS = {"Summary": "1F3864", "Control totals": "1F3864", "Breaks": "C00000"}


def write_workbook(figures: NightFigures, path: Path) -> Path:
    """Write the workbook of a night; the path that was really written.

    An equal file that is already there stays as it is.

    Raises:
        OutputError: too many versions stand there already.
        OSError: the folder cannot be written.
    """
    return written_in_place(drawn(figures).write, path=path)


def titles_of(figures: NightFigures) -> tuple[str, ...]:
    """The sheets of a night; one of fees with a contract, one of the bank with statements."""
    before = SHEETS.index("Sources")
    fees = () if figures.fees is None else (FEES_TITLE,)
    bank = (BANK_TITLE,) if figures.bank else ()
    return (*SHEETS[:before], *fees, *bank, *SHEETS[before:])


def drawn(figures: NightFigures) -> Draft:
    """All sheets of a night."""
    draft = Draft(timezone=figures.timezone)
    sheets = {title: draft.sheet(title) for title in titles_of(figures)}
    for title, colour in TAB_COLOURS.items():
        sheets[title].sheet_properties.tabColor = colour
    rows = rows_on_sheets(figures)
    totals = totals_of(rows, ledger_covered=figures.ledger_covered)
    draw_run(draft, sheets[RUN_TITLE], figures=figures, rows=rows)
    draw_breaks(draft, sheets["Breaks"], figures=figures, rows=rows)
    draw_open(draft, sheets["Pending"], figures=figures, rows=rows)
    draw_instructions(draft, sheets["Instructions"], figures=figures, rows=rows)
    draw_matched(draft, sheets["Matched"], figures=figures, rows=rows)
    draw_journals(draft, sheets["Journals"], figures=figures, rows=rows, totals=totals)
    places = draw_totals(draft, sheets["Control totals"], figures=figures, rows=rows, totals=totals)
    if figures.fees is not None:
        draw_fees(draft, sheets[FEES_TITLE], figures=figures)
    if figures.bank:
        draw_bank(draft, sheets[BANK_TITLE], figures=figures)
    draw_guide(draft, sheets["Guide"], figures=figures)
    draw_summary(Page(draft, sheets["Summary"], figures, rows, totals, places))
    draw_sources(draft, sheets["Sources"], figures=figures)
    _describe(draft.workbook, figures=figures, rows=rows)
    return draft


def _describe(workbook: Any, *, figures: NightFigures, rows: Rows) -> None:
    """Document properties: what the file is, of which run, written when."""
    written = figures.generated_at.astimezone(UTC).replace(tzinfo=None, microsecond=0)
    properties = workbook.properties
    properties.title = f"Reconciliation {figures.merchant_id} {figures.business_date}"
    properties.subject, properties.creator = figures.run_id, "recon"
    properties.created = properties.modified = written
    facts = facts_of(figures, rows=rows)
    for name in ("run_id", "keys_sha256"):
        workbook.custom_doc_props.append(StringProperty(name=f"recon.{name}", value=facts[name]))
    workbook.active = 0
    workbook.security.lockStructure = True
