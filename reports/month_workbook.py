"""The workbook of a month: `write_month_workbook` draws a statement and puts it in its place.

A close (`close_workbook`) has the sheet Close before the statement, and its journals and open
breaks among the lists. The same statement gives the same bytes; another one of the same month is
called -v2.
"""

from datetime import datetime, time
from pathlib import Path

from recon.steps.month.close import PreparedClose, SeenClose
from recon.steps.month.stated import StatedMonth
from recon.steps.month.statement import prior_items
from reports.drawing.blocks import Column, Listing, Sheet, Workbook, written_in_place
from reports.sheets.close_sheet import (
    close_sheet,
    journals_sheet,
    open_breaks_sheet,
    statement_sheet,
)
from reports.sheets.month_lists import (
    Files,
    books,
    movements,
    nights_sheet,
    open_items,
    prior_periods,
    proof_sheet,
    straddling,
    transit,
)

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
        "Check",
        "OK: what moved comes to the closing, and what is listed comes to it too.",
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
GUIDE_COLUMNS = (
    Column("Word", 28, "word", tone="strong"),
    Column("What it means", 130, "meaning", wrap=True),
)


def write_month_workbook(stated: StatedMonth, path: Path, *, files: Files) -> Path:
    """Write the workbook of a statement; the path that was really written.

    `files` (`month_files`) lie beside it: a list that is too long for its sheet names them.

    Raises:
        OutputError: too many versions stand there already.
        OSError: the folder cannot be written.
    """
    return written_in_place(_drawn(stated, files=files).write, path=path)


def close_workbook(close: PreparedClose, seen: SeenClose) -> bytes:
    """The workbook of a close: the statement's, and before and in it the close's own sheets.

    The same close gives the same bytes. `seen` (`seen_close`): its digest, and its files.
    """
    return _drawn(close.stated, files=seen.files, close=close, digest=seen.digest).content()


def _drawn(
    stated: StatedMonth, *, files: Files, close: PreparedClose | None = None, digest: str = ""
) -> Workbook:
    statement = stated.statement
    title = f"Statement {'/'.join(statement.account)} {statement.month.name}"
    sheets = [] if close is None else [close_sheet(close, digest=digest)]
    sheets += [statement_sheet(stated), open_items(stated).sheet(files=files)]
    if statement.transit is not None:
        sheets.append(transit(statement.transit).sheet(files=files))
    if statement.books is not None:
        sheets.append(books(statement.books).sheet(files=files))
    sheets.append(straddling(statement.straddling).sheet(files=files))
    if close is not None:
        sheets += [journals_sheet(close), open_breaks_sheet(close)]
    if close is not None or len(prior_items(statement.facts)):
        sheets.append(prior_periods(stated).sheet(files=files))
    sheets += [nights_sheet(stated), proof_sheet(stated)]
    sheets.append(movements(statement.facts).sheet(files=files))
    rows = [{"word": word, "meaning": meaning} for word, meaning in GUIDE]
    about = "How to read this workbook."
    sheets.append(Sheet("Guide", [Listing(GUIDE_COLUMNS, rows)], heading="Guide", about=about))
    written = datetime.combine(statement.month.last, time())
    footer = title if close is None else title.replace("Statement", "Close", 1)
    return Workbook(title, sheets, written, footer=footer)
