"""The workbook of a month: `write_month_workbook` draws a statement and puts it in its place.

Sheets: Statement, Open items, In transit, Books, Straddling, Nights, Proof, Facts, Guide; a close
(`write_close_workbook`) has Close before them and Journals, Open breaks, Prior periods among them.
The same statement gives the same bytes; another one of the same month is called -v2.
"""

from datetime import datetime, time
from pathlib import Path
from typing import Any

from recon.period.month_statement import prior_items
from recon.steps.care.close_digest import SeenClose
from recon.steps.care.month_closes import PreparedClose
from recon.steps.care.month_statements import StatedMonth
from reports.drawing import look as looks
from reports.drawing.draft import Draft
from reports.drawing.in_place import written_in_place
from reports.drawing.page import print_on, protect, put_heading, set_widths
from reports.sheets.close_sheet import draw_close, draw_journals, draw_open_breaks
from reports.sheets.month_lists import (
    Files,
    draw_books,
    draw_facts,
    draw_items,
    draw_nights,
    draw_prior,
    draw_proof,
    draw_straddling,
    draw_transit,
)
from reports.sheets.statement_sheet import draw_statement

GUIDE = (
    (
        "Whose date",
        (
            "A fact belongs to the business date of its own event, in the zone and cut-off of "
            "the rules: a refund to the day of the refund, never of the sale; fees, reserves "
            "and pay-outs to settled_on; the bank to booked_on."
        ),
    ),
    (
        "Dated by",
        (
            "instruction: our own, confirmed. payment date: captured as it was paid. first "
            "shown: by the night that first showed it. settled: only a line tells of it."
        ),
    ),
    (
        "Known by",
        (
            "All that is known when the statement is made. What is dated in the month and was "
            "told after its last night is late, and counts."
        ),
    ),
    (
        "What the gateway owes",
        (
            "Captures less refunds and chargebacks that no line has settled, batches that are "
            "not paid out, what was held back, reserves."
        ),
    ),
    (
        "The books, derived",
        (
            "Their balance comes from entries, not from the ledger's own balance: the opening "
            "is the gateway's with what was open then, the movements are what was booked in "
            "the month on the clearing and the reserve account together. If your accounts "
            "stand at another balance, the difference is from before the first night."
        ),
    ),
    (
        "Open in the books",
        (
            "As of the newest night: each is held against the breaks and what waits. One that "
            "no night shows says NO, and the month is NOT PROVEN."
        ),
    ),
    (
        "Formulas",
        (
            "White sums are formulas over the lists of this workbook. OK: what moved comes to "
            "what is listed."
        ),
    ),
    (
        "Proof",
        (
            "Every figure is computed in SQL over files that are sealed; each equation holds two "
            "of them against each other. The SQL lies beside the workbook: statement.sql."
        ),
    ),
    (
        "Journals",
        (
            "Proposed, never booked. permanent: books a break. accrual and reversal: fees "
            "charged by the close and not booked by it, on its last day and back on the next."
        ),
    ),
)
WIDTHS = (28, 130)


def write_month_workbook(stated: StatedMonth, path: Path, *, files: Files) -> Path:
    """Write the workbook of a statement; the path that was really written.

    `files` (`month_files`) lie beside it: a list that is too long for its sheet names them.

    Raises:
        OutputError: too many versions stand there already.
        OSError: the folder cannot be written.
    """
    return written_in_place(drawn_month(stated, files=files).write, path=path)


def write_close_workbook(close: PreparedClose, path: Path, *, seen: SeenClose) -> Path:
    """Write the workbook of a prepared close: the statement's, and before and in it the close's.

    `seen` (`seen_close`): its digest, and the files that lie beside it.

    Raises:
        OutputError: too many versions stand there already.
        OSError: the folder cannot be written.
    """
    return written_in_place(_drawn_close(close, seen=seen).write, path=path)


def close_workbook(close: PreparedClose, seen: SeenClose) -> bytes:
    """The workbook of a close as bytes: the same close gives the same."""
    return _drawn_close(close, seen=seen).content()


def _drawn_close(close: PreparedClose, *, seen: SeenClose) -> Draft:
    return drawn_month(close.stated, files=seen.files, close=close, digest=seen.digest)


def drawn_month(
    stated: StatedMonth, *, files: Files, close: PreparedClose | None = None, digest: str = ""
) -> Draft:
    """All sheets of a statement, and those of a close, with its digest, where it is one."""
    statement = stated.statement
    draft = Draft(timezone="UTC")
    if close is not None:
        sheet = draft.sheet("Close")
        sheet.sheet_properties.tabColor = looks.NAVY
        draw_close(draft, sheet, close=close, digest=digest)
    first, items = draft.sheet("Statement"), draft.sheet("Open items")
    first.sheet_properties.tabColor = looks.NAVY
    if statement.transit is not None:
        draw_transit(draft, draft.sheet("In transit"), stated=stated, files=files)
    if statement.books is not None:
        draw_books(draft, draft.sheet("Books"), stated=stated, files=files)
    draw_items(draft, items, stated=stated, files=files)
    draw_straddling(draft, draft.sheet("Straddling"), stated=stated, files=files)
    if close is not None:
        draw_journals(draft, draft.sheet("Journals"), close=close)
        draw_open_breaks(draft, draft.sheet("Open breaks"), close=close)
    if close is not None or len(prior_items(statement.facts)):
        draw_prior(draft, draft.sheet("Prior periods"), stated=stated, files=files)
    draw_nights(draft, draft.sheet("Nights"), stated=stated)
    draw_proof(draft, draft.sheet("Proof"), stated=stated)
    draw_facts(draft, draft.sheet("Facts"), stated=stated, files=files)
    _draw_guide(draft, draft.sheet("Guide"), stated=stated)
    draw_statement(draft, first, stated=stated)
    _describe(draft.workbook, stated=stated)
    return draft


def _draw_guide(draft: Draft, sheet: Any, *, stated: StatedMonth) -> None:
    set_widths(sheet, WIDTHS)
    put_heading(draft, sheet, title="Guide", sentence="How to read this workbook.")
    text = looks.PLAIN.but(wrap=True, top=True)
    for row, (word, meaning) in enumerate(GUIDE, start=4):
        draft.text(sheet, (row, 1), word, looks.LABEL.but(top=True))
        draft.text(sheet, (row, 2), meaning, text)
        sheet.row_dimensions[row].height = 15 * (1 + len(meaning) // WIDTHS[1])
    print_on(
        sheet, about=f"Statement {'/'.join(stated.statement.account)} {stated.statement.month.name}"
    )
    protect(sheet)


def _describe(workbook: Any, *, stated: StatedMonth) -> None:
    """Document properties: what the file is, of which month; never the moment it was made."""
    statement = stated.statement
    written = datetime.combine(statement.month.last, time())
    properties = workbook.properties
    properties.title = f"Statement {'/'.join(statement.account)} {statement.month.name}"
    properties.creator = "recon"
    properties.created = properties.modified = written
    workbook.active = 0
    workbook.security.lockStructure = True
