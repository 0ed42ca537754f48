"""The sheets of a close: Close (verdict, what blocks it), Journals, Open breaks."""

from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any

import pandas as pd

from recon.matching.judging.severity import risk_of_break
from recon.model.resolutions import with_answers
from recon.period.business_month import BusinessMonth
from recon.period.statement_rows import blocks_of
from recon.steps.care.month_closes import Blocker, CloseVerdict, OpenItem, PreparedClose
from reports.drawing import look as looks
from reports.drawing.draft import Draft
from reports.drawing.highlight import CHECK, OK, colour_checks, when_equal
from reports.drawing.listing import Column, field, put_list, rows_of
from reports.drawing.page import print_on, protect, put_header, put_heading, set_widths
from reports.sheets.words import in_words, words_of

TOP = 4
WIDTHS = (58, 20, 18, 6, 44)
"""Together what A4 across holds at its full size: the page is signed on paper, too."""
WHAT, OWNER, AMOUNT, CURRENCY, WHERE = range(1, 6)
LINE_POINTS = 15
MARGIN = 4
"""Characters of a column that words of another width may take."""
WRAPPED = looks.BODY_TEXT.but(wrap=True, top=True)
BLOCKERS_MAX = 1_000
"""Rows on the page; all of them are in blockers.csv."""
JOURNAL_COLUMNS = (
    Column("Kind", 12, "text", field("kind"), "jrnKind"),
    Column("Date", 12, "day", field("date"), "jrnDate"),
    Column("Account", 26, "text", field("account")),
    Column("Debit", 18, "amount", field("debit"), "jrnDebit"),
    Column("Credit", 18, "amount", field("credit"), "jrnCredit"),
    Column("Ccy", 6, "text", field("currency"), "jrnCcy"),
    Column("Order", 22, "text", field("order_no")),
    Column("Break", 20, "text", field("break_id")),
    Column("Text", 50, "text", field("text")),
    Column("Journal", 34, "text", field("journal_id")),
)
BREAK_COLUMNS = (
    Column("What is wrong", 32, "text", lambda row: words_of(row["code"]).title),
    Column("Code", 30, "text", field("code")),
    Column("Order", 22, "text", field("order_no")),
    Column("Payment", 24, "text", field("transaction_id")),
    Column("Ccy", 6, "text", field("currency")),
    Column("Money at risk", 18, "amount", risk_of_break),
    Column("Whole amount", 18, "amount", field("exposure")),
    Column("Severity", 10, "text", field("severity")),
    Column("First seen", 12, "day", field("first_seen")),
    Column("Owner", 20, "text", field("owner")),
    Column("Comment", 50, "text", field("comment")),
    Column("Break", 20, "text", field("break_id")),
)
COLOURS = {
    CloseVerdict.CLOSED: looks.GOOD,
    CloseVerdict.READY: looks.GOOD,
    CloseVerdict.WITH_OPEN_ITEMS: looks.GOOD,
    CloseVerdict.NOT_READY: looks.BAD,
}


def draw_close(draft: Draft, sheet: Any, *, close: PreparedClose, digest: str) -> None:
    """The page that is read first: the verdict, what to do, what is owed, blocks it, and is open.

    `digest`: of all that its two people sign.
    """
    statement = close.stated.statement
    which = "/".join(statement.account)
    set_widths(sheet, WIDTHS)
    draft.text(sheet, (1, 1), f"Close of account {which}, {statement.month.name}", looks.TITLE)
    sheet.row_dimensions[1].height = 28
    dates = f"Business dates {statement.month.first} to {statement.month.last}"
    is_what = "" if close.signatures else " Prepared: nothing is closed by it."
    about = f"{dates}, by what the night of {close.stated.known_by} knows.{is_what}"
    draft.text(sheet, (2, 1), about, looks.SUBTITLE)
    look = looks.CHECK.but(size=14, align="left", indent=1)
    draft.text(sheet, (3, 1), close.verdict.value, look)
    for verdict, colours in COLOURS.items():
        sheet.conditional_formatting.add("A3", when_equal(verdict.value, colours=colours))
    for row, sentence in enumerate(_next_steps(close, digest=digest), start=4):
        draft.text(sheet, (row, WHAT), sentence, looks.NOTE)
    row = _closings(draft, sheet, _names(draft, sheet, 7, close=close), close=close)
    row = _blockers(draft, sheet, row + 1, close=close)
    row = _open_items(draft, sheet, row + 1, close=close)
    _estimates(draft, sheet, row + 1, close=close)
    sheet.freeze_panes = "A2"
    print_on(sheet, about=f"Close {which} {statement.month.name}")
    protect(sheet)


def draw_journals(draft: Draft, sheet: Any, *, close: PreparedClose) -> None:
    """What the books are to be told, and by month and currency that debits are credits."""
    lines = close.stated.statement.journals
    rows = rows_of(lines)
    sentence = "What the books are to be told: permanent, or accrued and taken back next day."
    put_heading(draft, sheet, title="Journals", sentence=sentence)
    _, last = put_list(draft, sheet, columns=JOURNAL_COLUMNS, rows=rows, top=TOP)
    if not rows:
        draft.text(sheet, (TOP + 1, 1), "None.", looks.NOTE)
    months = lines["date"].astype("str").str.slice(0, len("2026-11")).rename("month")
    for row, ((currency, month), own) in enumerate(
        lines.groupby(["currency", months]), start=last + 2
    ):
        _put_sums(draft, sheet, row, of=(str(currency), BusinessMonth.named(str(month)), own))
    _finish(sheet, close=close)


def _put_sums(
    draft: Draft, sheet: Any, row: int, *, of: tuple[str, BusinessMonth, pd.DataFrame]
) -> None:
    """What is booked in one month and currency, as a file for it has it, and its check."""
    currency, month, own = of
    first, after = (f"DATE({day:%Y,%-m,%-d})" for day in (month.first, month.after.first))
    draft.text(sheet, (row, 1), f"Sum {currency} {month.name}", looks.LABEL)
    for column, name in ((4, "debit"), (5, "credit")):
        within = f'jrnCcy,"{currency}",jrnDate,">="&{first},jrnDate,"<"&{after}'
        money = (f"SUMIFS(jrn{name.capitalize()},{within})", int(own[name].sum()), currency)
        draft.money_formula(sheet, (row, column), money, looks.NUMBER.but(bold=True))
    word = OK if int(own["debit"].sum()) == int(own["credit"].sum()) else CHECK
    decimals = looks.decimals_of(currency)
    formula = f'=IF(ROUND(D{row}-E{row},{decimals})=0,"{OK}","{CHECK}")'
    draft.formula(sheet, (row, 6), (formula, word), looks.CHECK)
    colour_checks(sheet, f"F{row}")


def draw_open_breaks(draft: Draft, sheet: Any, *, close: PreparedClose) -> None:
    """What the last night by the close shows as open, with what people answered since."""
    rows = [*with_answers(rows_of(close.stated.statement.breaks), close.answers)]
    sentence = "Open at the close, as its last night shows it; owner and comment as answered since."
    put_heading(draft, sheet, title="Open breaks", sentence=sentence)
    put_list(draft, sheet, columns=BREAK_COLUMNS, rows=rows, top=TOP)
    if not rows:
        draft.text(sheet, (TOP + 1, 1), "None.", looks.NOTE)
    _finish(sheet, close=close)


def _next_steps(close: PreparedClose, *, digest: str) -> Iterator[str]:
    """What the reader does next, and what is signed."""
    statement = close.stated.statement
    merchant_id, account_id = statement.account
    account = f"{statement.month.name} --merchant {merchant_id} --account {account_id}"
    if close.blockers and not close.signatures:
        yield f"Nothing can be signed yet: clear what blocks it, then recon close {account}"
    elif not close.signatures:
        yield f"To sign: recon close {account} --sign reviewer --as NAME --digest {digest[:16]}"
        yield "then an approver, who is another person, by the same with --sign approver"
    yield f"Digest {digest}"


def _closings(draft: Draft, sheet: Any, row: int, *, close: PreparedClose) -> int:
    """What the statement comes to, by what and currency; the first free row."""
    statement = close.stated.statement
    put_header(draft, sheet, row=row, titles=("What it comes to", "", ">Amount", "Ccy", "Sheet"))
    closings: dict[str, list[tuple[int, str]]] = {}
    for currency in statement.currencies:
        for block in blocks_of(statement, currency=currency):
            last = next(each for each in block if each.kind == "close")
            closings.setdefault(last.label, []).append((last.amount, currency))
    for label, amounts in closings.items():
        for number, (amount, currency) in enumerate(amounts):
            row += 1
            _underline(draft, sheet, row, texts={WHAT: "" if number else label, CURRENCY: currency})
            draft.amount_as(sheet, (row, AMOUNT), (amount, currency), looks.NUMBER)
            draft.link(sheet, (row, WHERE), ("Statement", "'Statement'!A1"))
    return row + 1


def _underline(draft: Draft, sheet: Any, row: int, *, texts: Mapping[int, str]) -> None:
    """The texts of a row, with a line under all of it."""
    for column in range(1, len(WIDTHS) + 1):
        draft.text(sheet, (row, column), texts.get(column, ""), WRAPPED)


def _names(draft: Draft, sheet: Any, row: int, *, close: PreparedClose) -> int:
    """Whose names stand under it, and that it was reopened; the first free row."""
    state = close.state
    if (reopened := state.reopened) is not None:
        sentence = (
            f"Reopened on {reopened.at:%Y-%m-%d %H:%M} UTC by {reopened.by}: {reopened.reason}. "
            f"Close {len(state.closes)} and its folder stay."
        )
        draft.text(sheet, (row, WHAT), sentence, looks.NOTE.but(wrap=True, top=True))
        _make_room(sheet, row, {WHAT: sentence})
        row += 2
    if not close.signatures:
        return row
    put_header(draft, sheet, row=row, titles=("Signed by", "As", "", "", "At"))
    for row, each in enumerate(close.signatures, start=row + 1):  # noqa: B020 - counts on
        draft.text(sheet, (row, WHAT), each.by, looks.BODY_TEXT)
        draft.text(sheet, (row, OWNER), each.role, looks.BODY_TEXT)
        draft.text(sheet, (row, WHERE), f"{each.at:%Y-%m-%d %H:%M:%S} UTC", looks.BODY_TEXT)
    return row + 2


def _blockers(draft: Draft, sheet: Any, row: int, *, close: PreparedClose) -> int:
    """What stands against closing, with its owner and where to go; the first free row."""
    put_header(draft, sheet, row=row, titles=("What blocks it", "Owner", "", "", "Where to go"))
    shown = close.blockers[:BLOCKERS_MAX] or (Blocker("Nothing.", "", ""),)
    for row, each in enumerate(shown, start=row + 1):  # noqa: B020, PLR1704 - counts on
        texts = {WHAT: in_words(each.what, code=each.code), OWNER: each.owner, WHERE: each.where}
        _underline(draft, sheet, row, texts=texts)
        _make_room(sheet, row, texts)
    return row + 1


def _make_room(sheet: Any, row: int, texts: Mapping[int, str]) -> None:
    """As many lines as the longest of some texts takes in its column: height is not computed."""
    lines = (len(wrap(text, WIDTHS[column - 1] - MARGIN)) for column, text in texts.items())
    sheet.row_dimensions[row].height = LINE_POINTS * max(1, *lines)


def _open_items(draft: Draft, sheet: Any, row: int, *, close: PreparedClose) -> int:
    put_header(
        draft, sheet, row=row, titles=("What stays open", ">Count", ">Amount", "Ccy", "Sheet")
    )
    for row, each in enumerate(  # noqa: B020, PLR1704 - counts on
        close.open_items or (OpenItem("Nothing.", 0, "", 0, ""),), start=row + 1
    ):
        what = in_words(each.what, code=each.code)
        draft.text(sheet, (row, WHAT), what, WRAPPED)
        _make_room(sheet, row, {WHAT: what})
        draft.text(sheet, (row, CURRENCY), each.currency, looks.BODY_TEXT)
        if each.sheet:
            draft.link(sheet, (row, WHERE), (each.sheet, f"'{each.sheet}'!A{TOP}"))
        if each.count:
            draft.number(sheet, (row, OWNER), each.count)
        if each.currency:
            draft.amount_as(sheet, (row, AMOUNT), (each.amount, each.currency), looks.NUMBER)
    return row + 1


def _estimates(draft: Draft, sheet: Any, row: int, *, close: PreparedClose) -> None:
    """Fees that nobody charged yet, marked as what they are."""
    for currency, amount in sorted(close.stated.statement.estimates.items()):
        label = "ESTIMATE: fees of captures that no line has settled; in no sum and no journal"
        draft.text(sheet, (row, WHAT), label, looks.NOTE.but(wrap=True, top=True))
        _make_room(sheet, row, {WHAT: label})
        draft.amount_as(sheet, (row, AMOUNT), (amount, currency), looks.NUMBER)
        draft.text(sheet, (row, CURRENCY), currency, looks.NOTE)
        row += 1


def _finish(sheet: Any, *, close: PreparedClose) -> None:
    statement = close.stated.statement
    sheet.freeze_panes = f"A{TOP + 1}"
    about = f"Close {'/'.join(statement.account)} {statement.month.name}"
    print_on(sheet, about=about, title_rows=f"{TOP}:{TOP}")
    protect(sheet)
