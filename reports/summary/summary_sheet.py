"""The Summary sheet: one printed page that is read in ten seconds and signed.

Verdict, tiles, what needs a person, control totals, what the gateway holds, open breaks by
code and age, tonight's moves, scope of assurance, sign-off. Everything that can be computed from
the other sheets is a formula.
"""

import textwrap
from collections.abc import Mapping

from recon.model.words import Verdict
from reports.drawing import look as looks
from reports.drawing.draft import NOT_COVERED, grouped_amount
from reports.drawing.highlight import when
from reports.drawing.look import Look
from reports.drawing.page import print_on, protect, set_widths
from reports.drawing.plain_text import local_instant, text_width
from reports.sheets.bank_sheet import in_transit, to_be_taken
from reports.sheets.books_block import books_sentence
from reports.sheets.totals_sheet import LEG_NAMES
from reports.sheets.words import VERDICT_WORDS
from reports.summary.summary_attention import put_attention
from reports.summary.summary_breaks import put_matrix
from reports.summary.summary_charts import put_trend
from reports.summary.summary_holds import put_holds
from reports.summary.summary_page import CHART_ROWS_MIN, LAST, LEFT, RIGHT, WIDTHS, Page
from reports.summary.summary_tiles import put_results, put_tiles
from reports.summary.summary_tonight import put_foot
from reports.summary.summary_unproven import put_unproven

CURRENCIES_SHOWN = 6
LAST_LEFT = 9
NOTE_CHARACTERS = 190
"""Of a note that stand on one line of the page."""
NOTE_POINTS = 15
TO_BE_TAKEN = (
    "Batches that came to less than nothing, which the gateway will take from the bank account "
    "(see that it holds as much)"
)
UNJUDGED = "No break is open; what was not verified or rejected needs a person."
"""The verdict BREAKS OPEN, where that is all that keeps the night from being reconciled."""


def draw_summary(page: Page) -> None:
    """All blocks of the page, top to bottom."""
    sheet = page.sheet
    set_widths(sheet, WIDTHS)
    _put_title(page)
    row = put_tiles(page, 4)
    row = _put_notes(page, row)
    row = put_unproven(page, row + 1)
    row = put_attention(page, row + 1)
    row = _put_legs(page, row + 1)
    row = put_holds(page, row + 1)
    row = put_matrix(page, row + 1)
    row = put_foot(page, row + 1)
    sheet.print_area = f"A1:N{row}"
    sheet.sheet_view.zoomScale = 90
    print_on(sheet, run_id=page.figures.run_id, pages=(1, 1), upright=True)
    sheet.print_options.horizontalCentered = True
    protect(sheet)


def _put_title(page: Page) -> None:
    figures = page.figures
    page.text(1, LEFT, "Nightly gateway reconciliation", looks.TITLE)
    page.sheet.row_dimensions[1].height = 30
    as_of = local_instant(figures.as_of, timezone=figures.timezone)
    account = f" · account {figures.account_id}" if figures.account_id else ""
    page.text(
        2,
        LEFT,
        f"Merchant {figures.merchant_name or figures.merchant_id} ({figures.merchant_id})"
        f"{account} · business day {figures.business_date} · {figures.mode} · run "
        f"{figures.run_id} · data as of {as_of:%Y-%m-%d %H:%M} {figures.timezone}",
        looks.SUBTITLE,
    )


def _put_notes(page: Page, row: int) -> int:
    """The verdict in a sentence, then the sentences that page one must carry."""
    sentence = VERDICT_WORDS[page.figures.verdict]
    if page.places.failed_checks:
        sentence = VERDICT_WORDS[Verdict.NOT_PROVEN]
    elif page.figures.verdict is Verdict.BREAKS_OPEN and not page.rows.breaks:
        sentence = UNJUDGED
    page.text(row, LEFT, sentence, Look(bold=True, colour=looks.NAVY))
    put_results(page, row)
    row = _put_in_transit(page, row)
    warn = Look(fill=looks.WARN[0], colour=looks.WARN[1], wrap=True)
    for note in page.figures.notes:
        row += 1
        page.merged(row, (LEFT, LAST), note, warn)
        lines = max(-(-text_width(note) // NOTE_CHARACTERS), 1)
        page.sheet.row_dimensions[row].height = NOTE_POINTS * lines
    return row + 1


def _put_in_transit(page: Page, row: int) -> int:
    """What was paid out and is not at the bank yet, and what will be taken; the last row of it."""
    if not page.figures.bank:
        return row
    sentences = [f"Cash in transit: {_since(in_transit(page.figures)) or 'nothing'}"]
    if taken := _since(to_be_taken(page.figures)):
        sentences.append(f"{TO_BE_TAKEN}: {taken}")
    for sentence in sentences:
        row = _put_link(page, row + 1, (sentence, "'Bank'!A4"), last=LAST) - 1
    return row


def _since(waiting: Mapping[str, tuple[int, str]]) -> str:
    return " · ".join(
        f"{grouped_amount(abs(amount), currency)} {currency}, the oldest settled on {since}"
        for currency, (amount, since) in sorted(waiting.items())
    )


def _put_link(page: Page, row: int, to: tuple[str, str], *, last: int) -> int:
    """A sentence that leads elsewhere, a row for each line up to a column; the next free row.

    A cell with a link is not wrapped by LibreOffice, and paper would cut it.
    """
    sentence, target = to
    for line in textwrap.wrap(sentence, sum(WIDTHS[LEFT - 1 : last])):
        page.draft.link(page.sheet, (row, LEFT), (line, target))
        row += 1
    return row


def _put_legs(page: Page, top: int) -> int:
    """Control totals per currency, linked to their sheet, with the trend beside them."""
    page.draft.link(
        page.sheet, (top, LEFT), ("Control totals", "'Control totals'!A5"), looks.HEADING
    )
    titles = ("Currency", ">Gateway", ">Other side", ">Difference", ">Explained", ">Unexplained")
    page.text(top + 1, LEFT, "Compared", looks.HEADER)
    page.text(top + 1, LAST_LEFT, "Check", looks.HEADER_CENTRE)
    for column, title in enumerate(titles, LEFT + 1):
        look = looks.HEADER_RIGHT if title.startswith(">") else looks.HEADER
        page.text(top + 1, column, title.removeprefix(">"), look)
    row = top + 2
    currencies = sorted({leg.currency for leg in page.totals.legs})
    for currency in currencies[:CURRENCIES_SHOWN]:
        row = _put_currency(page, row, currency)
    if len(currencies) > CURRENCIES_SHOWN:
        left = len(currencies) - CURRENCIES_SHOWN
        page.text(row, LEFT, f"and {left} more currencies on Control totals", looks.NOTE)
        row += 1
    row = _put_books(page, row)
    bottom = max(row, top + CHART_ROWS_MIN)
    page.text(top, RIGHT, "Open breaks, last 14 nights", looks.HEADING)
    put_trend(page.sheet, nights=page.places.trend, box=(RIGHT, top + 1, LAST, bottom))
    return bottom


def _put_books(page: Page, row: int) -> int:
    """How the ledger file comes to the ledger above, a line for each currency that lost some."""
    sentences = [books_sentence(page.figures, currency=currency) for currency in page.figures.books]
    for sentence in [sentence for sentence in sentences if sentence][:CURRENCIES_SHOWN]:
        target = f"'Control totals'!A{page.places.books}"
        row = _put_link(page, row, (f"The books: {sentence}", target), last=LAST_LEFT)
    return row


def _put_currency(page: Page, row: int, currency: str) -> int:
    legs = [leg for leg in page.totals.legs if leg.currency == currency]
    for leg in legs:
        source = page.places.legs[currency, leg.leg]
        page.text(row, LEFT, LEG_NAMES[leg.leg], looks.BODY_TEXT)
        page.text(row, LEFT + 1, currency, looks.LABEL)
        live = currency not in page.totals.text_currencies
        amounts = (leg.gateway, leg.other, leg.difference, leg.explained, leg.unexplained)
        for column, letter, amount in zip(range(4, 9), "CDEKL", amounts, strict=True):
            if live:
                written = (f"'Control totals'!{letter}{source}", amount, currency)
                page.draft.money_formula(page.sheet, (row, column), written)
            else:
                page.draft.amount(page.sheet, (row, column), amount, currency)
        word = "CHECK" if leg.unexplained else "OK"
        check = (f"='Control totals'!M{source}", word)
        page.draft.formula(page.sheet, (row, 9), check, looks.CHECK)
        _colour_check(page, row)
        row += 1
    if not page.figures.ledger_covered:
        page.text(row, LEFT, LEG_NAMES["ledger"], looks.BODY_TEXT)
        page.text(row, LEFT + 1, currency, looks.LABEL)
        for column in range(4, 10):
            grey = looks.BODY.but(colour=looks.GREY_TEXT, align="right")
            page.text(row, column, NOT_COVERED, grey)
        row += 1
    return row


def _colour_check(page: Page, row: int) -> None:
    for word, colours in {"OK": looks.GOOD, "CHECK": looks.BAD}.items():
        rule = when(f'$I{row}="{word}"', colours=colours)
        page.sheet.conditional_formatting.add(f"I{row}", rule)
