"""What the gateway holds and the fees it took, per currency, on page one."""

from datetime import date

from recon.model.gateway_holds import BEFORE_FIRST, FeesTaken, HeldPart, Holding
from reports.drawing import look as looks
from reports.drawing.draft import NOT_COVERED
from reports.summary.summary_page import LEFT, RIGHT, Page

HOLDS_SHOWN = 6
"""Currencies; the others stand in the result files."""
_HELD = ("Currency", ">Payable", ">Oldest", ">Held back", ">Oldest", ">Reserve", ">Oldest")
_FEES = (">Charged", ">Booked", ">Difference")
GREY = looks.BODY.but(colour=looks.GREY_TEXT, align="right")


def put_holds(page: Page, top: int) -> int:
    """Payable, held back and reserve on the left, fees on the right; the next free row."""
    holds = page.figures.gateway_holds
    if holds is None:
        return top
    page.text(top, LEFT, "The gateway holds", looks.HEADING)
    page.text(top, RIGHT, "Fees", looks.HEADING)
    for first, titles in ((LEFT, _HELD), (RIGHT, _FEES)):
        for column, title in enumerate(titles, first):
            look = looks.HEADER_RIGHT if title.startswith(">") else looks.HEADER
            page.text(top + 1, column, title.removeprefix(">"), look)
    row = top + 2
    by_currency = holds.by_currency()
    for held, fees in [*by_currency.values()][:HOLDS_SHOWN]:
        _put_held(page, row, held)
        _put_fees(page, row, fees)
        row += 1
    if not by_currency:
        page.text(row, LEFT, "Nothing, and no fee.", looks.NOTE)
        row += 1
    if len(by_currency) > HOLDS_SHOWN:
        page.text(row, LEFT, f"and {len(by_currency) - HOLDS_SHOWN} more currencies", looks.NOTE)
        row += 1
    return row + 1


def _put_held(page: Page, row: int, held: Holding) -> None:
    page.text(row, LEFT, held.currency, looks.LABEL)
    for column, part in zip((3, 5, 7), (held.payable, held.held_back, held.reserve), strict=True):
        page.draft.amount(page.sheet, (row, column), part.amount, held.currency)
        page.text(row, column + 1, _age(part, day=page.figures.business_date), GREY)


def _age(part: HeldPart, *, day: date) -> str:
    """How many days the oldest piece is held."""
    if part.since in {"", BEFORE_FIRST}:
        return part.since
    days = (day - date.fromisoformat(part.since)).days
    return f"{days} day{'s' * (days != 1)}"


def _put_fees(page: Page, row: int, fees: FeesTaken) -> None:
    draft, sheet = page.draft, page.sheet
    draft.amount(sheet, (row, RIGHT), fees.charged, fees.currency)
    if fees.booked is None or fees.difference is None:
        for column in (RIGHT + 1, RIGHT + 2):
            page.text(row, column, NOT_COVERED, GREY)
        return
    draft.amount(sheet, (row, RIGHT + 1), fees.booked, fees.currency)
    draft.money_formula(sheet, (row, RIGHT + 2), (f"K{row}-L{row}", fees.difference, fees.currency))
