"""From the ledger file to the ledger compared, in money: as a block, and in words."""

from typing import Any

from recon.model.figures import NightFigures
from recon.model.words import SourceKind
from recon.proof.books_bridge import (
    BEFORE_OPENING,
    BOOK_STEPS,
    FILE,
    IDENTICAL,
    KEYLESS,
    PAID_OUT,
    REJECTED,
    RESTATED,
    SHARED_NUMBER,
)
from recon.proof.bridge import BEFORE_WINDOW, OTHER_ACCOUNTS
from reports.drawing import look as looks
from reports.drawing.draft import Draft, grouped_amount
from reports.drawing.highlight import CHECK, OK, colour_checks
from reports.drawing.page import column_range, put_header
from reports.sheets.totals import Rows, Totals, sum_of

BOOKS_CHECKS = "chkBooks"
HEADING = "From the ledger file to the ledger compared, in money"
SHORT = {
    FILE: ">In the ledger file",
    REJECTED: ">Rejected rows",
    OTHER_ACCOUNTS: ">Of other accounts",
    KEYLESS: ">Adjustments, no order",
    BEFORE_WINDOW: ">Before the window",
    BEFORE_OPENING: ">Before the opening",
    RESTATED: ">In payment's currency",
    PAID_OUT: ">Payouts, fees",
    IDENTICAL: ">Identical repeats",
    SHARED_NUMBER: ">Shared entry number",
}
TITLES = ("Currency", *(SHORT[step] for step in BOOK_STEPS), ">Come to", ">Ledger compared")
CHECK_COLUMN, DIFFERENCE_COLUMN = 14, 15


def put_books(
    draft: Draft, sheet: Any, *, figures: NightFigures, rows: Rows, totals: Totals, top: int
) -> tuple[int, int]:
    """The block; how many of its checks fail, and the next free row."""
    draft.text(sheet, (top, 1), HEADING, looks.HEADING)
    put_header(draft, sheet, row=top + 1, titles=(*TITLES, "Check", ">Difference"))
    sheet.row_dimensions[top + 1].height = 30
    failed = 0
    ledger = [row for row in rows.sides if row["source"] == "ledger"]
    for row, (currency, steps) in enumerate(figures.books.items(), top + 2):
        written = [steps.get(step, 0) for step in BOOK_STEPS]
        compared = sum_of(ledger, name="amount", currency=currency)
        live = currency not in totals.text_currencies
        failed += _put_currency(draft, sheet, (row, currency), (written, compared, live))
    last = top + 1 + max(1, len(figures.books))
    if not figures.books:
        draft.text(sheet, (last, 1), "No money in the ledger file.", looks.NOTE)
    draft.name(BOOKS_CHECKS, column_range(sheet, column=CHECK_COLUMN, rows=(top + 2, last)))
    colour_checks(sheet, f"N{top + 2}:N{last}")
    draft.text(sheet, (last + 1, 1), _note(figures), looks.NOTE)
    return failed, last + 3


def _note(figures: NightFigures) -> str:
    """What the sums hold, and how many rows of the books are in none of them."""
    unread = sum(
        reject.kind is SourceKind.LEDGER and not reject.currency for reject in figures.rejects
    )
    in_none = (
        f" {unread} rejected rows say no sum that can be read and are in none." if unread else ""
    )
    return f"Captures, refunds, chargebacks and adjustments, as booked.{in_none}"


def _put_currency(
    draft: Draft, sheet: Any, at: tuple[int, str], of: tuple[list[int], int, bool]
) -> int:
    """One line; 1 when it does not add up."""
    (row, currency), (written, compared, live) = at, of
    come_to = sum(written)
    draft.text(sheet, (row, 1), currency, looks.LABEL)
    grey = looks.NUMBER.but(fill=looks.ENGINE_FILL)
    for column, amount in enumerate(written, 2):
        draft.amount_as(sheet, (row, column), (amount, currency), grey)
    word = OK if come_to == compared else CHECK
    formulas = {
        12: (f"SUM(B{row}:K{row})", come_to),
        13: (f'SUMIFS(sidAmount,sidSource,"ledger",sidCcy,$A{row})', compared),
        DIFFERENCE_COLUMN: (f"L{row}-M{row}", come_to - compared),
    }
    for column, (formula, amount) in formulas.items():
        if live:
            draft.money_formula(sheet, (row, column), (formula, amount, currency))
        else:
            draft.amount(sheet, (row, column), amount, currency)
    if live:
        check = (f'=IF(O{row}=0,"{OK}","{CHECK}")', word)
        draft.formula(sheet, (row, CHECK_COLUMN), check, looks.CHECK)
    else:
        draft.text(sheet, (row, CHECK_COLUMN), word, looks.CHECK)
    return int(word == CHECK)


def books_sentence(figures: NightFigures, *, currency: str) -> str:
    """The way of one currency in a line; "" where the file is what was compared."""
    steps = {step: figures.books[currency].get(step, 0) for step in BOOK_STEPS}
    taken = [step for step in BOOK_STEPS if steps[step] and step != FILE]
    if not taken:
        return ""
    sentences = [f"{grouped_amount(steps[FILE], currency)} {currency} {FILE}"]
    sentences += [
        f"{'+' if steps[step] > 0 else '−'} {grouped_amount(abs(steps[step]), currency)} {step}"  # noqa: RUF001 - a minus
        for step in taken
    ]
    return f"{' '.join(sentences)} = {grouped_amount(sum(steps.values()), currency)} compared"
