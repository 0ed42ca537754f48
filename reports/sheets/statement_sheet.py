"""The Statement sheet: opening, movements, closing by currency, sums as formulas over the lists."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from openpyxl.worksheet.pagebreak import Break

from recon.period.statement_rows import StatementRow, blocks_of
from recon.steps.care.month_index import NOT_PROVEN, PROVEN
from recon.steps.care.month_statements import StatedMonth
from reports.drawing import look as looks
from reports.drawing.draft import Draft
from reports.drawing.highlight import CHECK, OK, colour_checks, when_equal
from reports.drawing.page import print_on, protect, put_header, set_widths

TITLE = "Statement"
WIDTHS = (62, 10, 22, 12)
LABEL, COUNT, AMOUNT, CHECKED = 1, 2, 3, 4
HEADER = ("", ">Count", ">Amount", "Check")
TROUBLES_MAX = 12
"""Sentences on the page; all of them are in the files beside the workbook."""
GATEWAY, BANK, BOOKS = BLOCKS = ("The gateway", "On the way to the bank", "The books")
_INDENT = 2


def draw_statement(draft: Draft, sheet: Any, *, stated: StatedMonth) -> None:
    """The page that is read first."""
    statement = stated.statement
    set_widths(sheet, WIDTHS)
    which = "/".join(statement.account)
    draft.text(sheet, (1, 1), f"Statement of account {which}, {statement.month.name}", looks.TITLE)
    sheet.row_dimensions[1].height = 28
    row = 2
    for sentence in _about(stated):
        draft.text(sheet, (row, 1), sentence, looks.SUBTITLE)
        row += 1
    verdict = PROVEN if stated.is_proven else NOT_PROVEN
    draft.text(sheet, (row, 1), verdict, looks.CHECK.but(size=14, align="left", indent=1))
    for word, colours in ((PROVEN, looks.GOOD), (NOT_PROVEN, looks.BAD)):
        sheet.conditional_formatting.add(f"A{row}", when_equal(word, colours=colours))
    row += 1
    for sentence in _troubles(stated):
        draft.text(sheet, (row, 1), sentence, looks.NOTE)
        row += 1
    row += 1
    for number, currency in enumerate(statement.currencies):
        if number:
            sheet.row_breaks.append(Break(id=row - 1))
        row = _put_currency(StatementPage(draft, sheet, currency), row, stated=stated)
    sheet.freeze_panes = "A2"
    print_on(sheet, about=f"Statement {which} {statement.month.name}")
    # Upright: a currency stands on one page.
    sheet.page_setup.orientation = "portrait"
    protect(sheet)


def _about(stated: StatedMonth) -> Iterator[str]:
    month = stated.statement.month
    yield (
        f"Business dates {month.first} to {month.last}, by what the night of {stated.known_by} "
        "knows. Amounts as the merchant has them to get: what comes in is positive."
    )
    if stated.is_first:
        yield "No night ran before: what was open then is what this month's nights still show."
    if not stated.statement.is_settled:
        yield "No settlement file was given: fees, reserves and pay-outs are not covered."
    if stated.statement.transit is None:
        yield "The bank is not covered: no statement of it was given."
    if stated.statement.books is None:
        yield "The books are not covered: no ledger was given."
    if len(stated.rules) > 1:
        yield f"The rules changed {len(stated.rules) - 1} times (see Nights); the newest ones date."


def _troubles(stated: StatedMonth) -> list[str]:
    shown = stated.troubles[:TROUBLES_MAX]
    left = len(stated.troubles) - len(shown)
    return [*shown, *([f"and {left} more: see Nights and Proof"] if left else [])]


@dataclass(frozen=True, slots=True)
class StatementPage:
    """Where the blocks of a currency are drawn."""

    draft: Draft
    sheet: Any
    currency: str


def _put_currency(page: StatementPage, row: int, *, stated: StatedMonth) -> int:
    """The blocks of one currency; the first free row below them."""
    page.draft.text(page.sheet, (row, 1), page.currency, looks.HEADING.but(size=14))
    row += 1
    owed = 0
    blocks = blocks_of(stated.statement, currency=page.currency)
    for about, block in zip(_blocks_named(stated), blocks, strict=True):
        put_header(page.draft, page.sheet, row=row, titles=(about, *HEADER[1:]))
        first = row + 1
        _put_block(page, first, block=block, owed=owed, about=about)
        owed = owed or first + [each.kind for each in block].index("close")
        row = first + len(block) + 1
    return row


def _blocks_named(stated: StatedMonth) -> list[str]:
    statement = stated.statement
    there = (True, statement.transit is not None, statement.books is not None)
    return [name for name, is_there in zip(BLOCKS, there, strict=True) if is_there]


def _put_block(
    page: StatementPage, first: int, *, block: Sequence[StatementRow], owed: int, about: str
) -> None:
    """The rows of a block; its closing is the sum of what stands above it."""
    draft, sheet = page.draft, page.sheet
    kinds = [row.kind for row in block]
    close = first + kinds.index("close")
    for at, row in enumerate(block, start=first):
        strong = row.kind in {"open", "close"}
        look = looks.LABEL if strong else looks.BODY_TEXT.but(indent=1 + _INDENT * row.depth)
        look = look.but(colour=looks.GREY_TEXT) if row.kind == "note" else look
        draft.text(sheet, (at, LABEL), row.label, look)
        draft.number(sheet, (at, COUNT), row.count)
        number = looks.NUMBER.but(bold=strong, line="total" if row.kind == "close" else "thin")
        expression = _expression(row, page=page, owed=owed, about=about)
        if row.kind == "close":
            expression = f"SUM(C{first}:C{close - 1})"
        if expression:
            money = (expression, row.amount, page.currency)
            draft.money_formula(sheet, (at, AMOUNT), money, number)
        else:
            draft.amount_as(sheet, (at, AMOUNT), (row.amount, page.currency), number)
    listed = [first + at for at, kind in enumerate(kinds) if kind == "listed"]
    right = f"SUM(C{listed[0]}:C{listed[-1]})" if listed else "0"
    sums = sum(row.amount for row in block if row.kind == "listed")
    total = block[close - first].amount
    if about == BANK:
        right, sums = f'SUMIFS(trnAmount,trnCcy,"{page.currency}")', total
    word = OK if total == sums else CHECK
    decimals = looks.decimals_of(page.currency)
    formula = f'=IF(ROUND(C{close}-{right},{decimals})=0,"{OK}","{CHECK}")'
    draft.formula(sheet, (close, CHECKED), (formula, word), looks.CHECK)
    colour_checks(sheet, f"D{close}")


def _expression(row: StatementRow, *, page: StatementPage, owed: int, about: str) -> str:
    """What the amount of a row is summed from; "" where it stands as the engine has it."""
    of_currency = f'"{page.currency}"'
    listed = row.kind == "listed" and row.name != "outside"
    if about == BOOKS and listed:
        own = f'SUMIFS(bokAmount,bokCcy,{of_currency},bokWhat,"{row.label}")'
        return f"C{owed}" if row.name == "owed" else own
    if about == GATEWAY and row.kind == "open":
        return f'SUMIFS(itmAmount,itmCcy,{of_currency},itmAt,"opening")'
    if about == GATEWAY and listed:
        return f'SUMIFS(itmAmount,itmCcy,{of_currency},itmAt,"closing",itmWhat,"{row.label}")'
    if about == GATEWAY and row.kind == "move":
        return f'SUMIFS(facAmount,facCcy,{of_currency},facWhat,"{row.label}",facCounts,"yes")'
    return ""
