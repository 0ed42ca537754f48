"""The accounts of a merchant in one month on one page: what their clearing account stands at."""

from collections.abc import Sequence
from datetime import datetime, time
from itertools import groupby
from pathlib import Path
from typing import Any

from openpyxl.utils import get_column_letter

from recon.model.errors import OutputError
from recon.period.business_month import BusinessMonth
from recon.steps.care.month_closes import CloseVerdict
from recon.steps.care.month_index import (
    PROVEN,
    AccountMonth,
    SharedLine,
    shared_lines,
)
from reports.drawing import look as looks
from reports.drawing.draft import Draft
from reports.drawing.highlight import CHECK, OK, colour_checks
from reports.drawing.in_place import put_in_place
from reports.drawing.page import print_on, protect, put_header, put_heading, set_widths
from reports.reading.index_workbook import put_file_link

WIDTHS = (16, 22, 6, 20, 20, 20, 10, 20, 20, 52)
TITLES = (
    *("Account", "Standing", "Ccy", ">Owed before", ">Moved", ">The gateway owes", "Check"),
    *(">The books, derived", ">Books less gateway", "Workbook"),
)
ACCOUNT, STANDING, CURRENCY, BEFORE, MOVED, OWED, CHECKED, BOOKED, APART, FILE = range(1, 11)
TOP = 5
SENTENCE = "The books have one clearing account for these: it stands at the sums, at no line alone."
FINE = {PROVEN, CloseVerdict.CLOSED, CloseVerdict.READY}
FAIR = {CloseVerdict.WITH_OPEN_ITEMS}


def write_months_index(
    accounts: Sequence[AccountMonth], *, month: BusinessMonth, clearing: str, folder: Path
) -> Path:
    """Write `months-<merchant>-2026-11.xlsx`, or -v2 where another one stands.

    Args:
        accounts: those of one merchant.
        month: the month.
        clearing: the books' clearing account as the rules name it, "" where they do not.
        folder: where it goes.

    Raises:
        OutputError: the folder cannot be written.
    """
    target = folder / f"months-{accounts[0].account[0]}-{month.name}.xlsx"
    try:
        content = months_index(accounts, month=month, clearing=clearing, folder=folder)
        return put_in_place(content, path=target)
    except OSError as error:
        msg = (
            f"the page over all accounts cannot be written to {folder} ({error.strerror}); the "
            "accounts' own workbooks are kept: name a folder that can be written (--out)"
        )
        raise OutputError(msg) from error


def months_index(
    accounts: Sequence[AccountMonth], *, month: BusinessMonth, clearing: str, folder: Path
) -> bytes:
    """The XLSX file; links are relative to the folder, so that all may be moved together."""
    merchant = accounts[0].account[0]
    draft = Draft(timezone="UTC")
    sheet = draft.sheet("Accounts")
    put_heading(draft, sheet, title=f"Accounts of {merchant}, {month.name}", sentence=SENTENCE)
    named = f"Clearing account: {clearing}" if clearing else "The rules name no clearing account."
    draft.text(sheet, (3, 1), named, looks.NOTE)
    set_widths(sheet, WIDTHS)
    row = TOP
    for currency, lines in groupby(shared_lines(accounts), key=lambda line: line.currency):
        row = _put_currency(draft, sheet, row, currency=currency, lines=[*lines], folder=folder)
    sheet.freeze_panes = "A4"
    print_on(sheet, about=f"Accounts of {merchant}, {month.name}")
    protect(sheet)
    properties: Any = draft.workbook.properties
    properties.title, properties.creator = f"Accounts of {merchant} {month.name}", "recon"
    properties.created = properties.modified = datetime.combine(month.last, time())
    return draft.content()


def _put_currency(
    draft: Draft, sheet: Any, row: int, *, currency: str, lines: Sequence[SharedLine], folder: Path
) -> int:
    """The accounts of one currency and their sum; the first free row after a blank one."""
    put_header(draft, sheet, row=row, titles=TITLES)
    first, total = row + 1, row + 1 + len(lines)
    for at, line in enumerate(lines, start=first):
        _put_line(draft, sheet, at, line=line, folder=folder)
    draft.text(sheet, (total, ACCOUNT), f"Sum {currency}", looks.LABEL)
    draft.text(sheet, (total, CURRENCY), currency, looks.LABEL)
    booked = [line.booked for line in lines]
    sums: dict[int, int | None] = {
        BEFORE: sum(line.owed_before for line in lines),
        MOVED: sum(line.moved for line in lines),
        OWED: sum(line.owed for line in lines),
        # Where an account's books were not compared nobody knows what the account stands at.
        BOOKED: None if None in booked else sum(each or 0 for each in booked),
    }
    look = looks.NUMBER.but(bold=True, line="total")
    for column, amount in sums.items():
        letter = get_column_letter(column)
        if amount is not None:
            written = (f"SUM({letter}{first}:{letter}{total - 1})", amount, currency)
            draft.money_formula(sheet, (total, column), written, look)
    _put_apart(draft, sheet, total, booked=sums[BOOKED], owed=sums[OWED] or 0, currency=currency)
    return total + 2


def _put_line(draft: Draft, sheet: Any, row: int, *, line: SharedLine, folder: Path) -> None:
    currency, standing = line.currency, line.of.standing
    draft.text(sheet, (row, ACCOUNT), line.of.account[1], looks.BODY_TEXT)
    fill, colour = looks.GOOD if standing in FINE else looks.WARN if standing in FAIR else looks.BAD
    look = looks.BODY_TEXT.but(fill=fill, colour=colour, bold=True)
    draft.text(sheet, (row, STANDING), standing, look)
    draft.text(sheet, (row, CURRENCY), currency, looks.BODY_TEXT)
    amounts = ((BEFORE, line.owed_before), (MOVED, line.moved), (OWED, line.owed))
    for column, amount in (*amounts, (BOOKED, line.booked)):
        draft.amount(sheet, (row, column), amount, currency)
    word = OK if line.owed_before + line.moved == line.owed else CHECK
    formula = f'=IF(ROUND(D{row}+E{row}-F{row},{looks.decimals_of(currency)})=0,"{OK}","{CHECK}")'
    draft.formula(sheet, (row, CHECKED), (formula, word), looks.CHECK)
    colour_checks(sheet, f"G{row}")
    _put_apart(draft, sheet, row, booked=line.booked, owed=line.owed, currency=currency)
    if line.of.workbook is None:
        draft.text(sheet, (row, FILE), "recon close shows it as it was sealed", looks.BODY_TEXT)
    else:
        put_file_link(draft, sheet, (row, FILE), path=line.of.workbook, folder=folder)


def _put_apart(
    draft: Draft, sheet: Any, row: int, *, booked: int | None, owed: int, currency: str
) -> None:
    """By how much the books are apart; why, the workbook of each account says."""
    if booked is not None:
        draft.money_formula(sheet, (row, APART), (f"H{row}-F{row}", booked - owed, currency))
