"""The accounts of a merchant in one month on one page: what their clearing account stands at."""

from collections.abc import Iterator, Sequence
from datetime import datetime, time
from itertools import groupby
from pathlib import Path
from typing import Any

from recon.model.business_date import BusinessMonth
from recon.model.errors import OutputError
from recon.steps.month.close import (
    PROVEN,
    AccountMonth,
    CloseVerdict,
    SharedLine,
    shared_lines,
)
from reports.drawing.blocks import (
    Column,
    Listing,
    Part,
    Sheet,
    TextLine,
    Workbook,
    check_of,
    put_in_place,
)
from reports.drawing.look import Tone
from reports.reading.index_workbook import file_link

SENTENCE = "The books have one clearing account for these: it stands at the sums, at no line alone."
FINE = {PROVEN, CloseVerdict.CLOSED, CloseVerdict.READY}
FAIR = {CloseVerdict.WITH_OPEN_ITEMS}


def _tone(row: Any) -> Tone:
    standing = row["standing"]
    return "good" if standing in FINE else "warn" if standing in FAIR else "bad" if standing else ""


COLUMNS = (
    Column("Account", 16, "account"),
    Column("Standing", 22, "standing", tone=_tone),
    Column("Ccy", 6, "currency"),
    Column("Owed before", 20, "before", "money"),
    Column("Moved", 20, "moved", "money"),
    Column("The gateway owes", 20, "owed", "money"),
    Column("Check", 10, "check", "check"),
    Column("The books, derived", 20, "booked", "money"),
    Column("Books less gateway", 20, "apart", "money"),
    Column("Workbook", 52, "workbook"),
)


def write_months_index(
    accounts: Sequence[AccountMonth], *, month: BusinessMonth, clearing: str, folder: Path
) -> Path:
    """Write `months-<merchant>-2026-11.xlsx`, or -v2 where another one stands.

    Args:
        accounts: those of one merchant.
        month: the month.
        clearing: the books' clearing account as the rules name it, "" where they do not.
        folder: where it goes; links are relative to it.

    Raises:
        OutputError: the folder cannot be written.
    """
    merchant = accounts[0].account[0]
    named = f"Clearing account: {clearing}" if clearing else "The rules name no clearing account."
    about = f"Accounts of {merchant}, {month.name}"
    sheet = Sheet(
        "Accounts",
        [TextLine(named, "note"), TextLine(), *_blocks(accounts, folder=folder)],
        heading=about,
        about=SENTENCE,
    )
    book = Workbook(about.replace(",", ""), [sheet], datetime.combine(month.last, time()))
    try:
        return put_in_place(book.content(), path=folder / f"months-{merchant}-{month.name}.xlsx")
    except OSError as error:
        msg = (
            f"the page over all accounts cannot be written to {folder} ({error.strerror}); the "
            "accounts' own workbooks are kept: name a folder that can be written (--out)"
        )
        raise OutputError(msg) from error


def _blocks(accounts: Sequence[AccountMonth], *, folder: Path) -> Iterator[Part]:
    """The accounts of each currency and their sum."""
    for currency, group in groupby(shared_lines(accounts), key=lambda line: line.currency):
        lines = [*group]
        booked = [line.booked for line in lines]
        # Where an account's books were not compared nobody knows what the account stands at.
        books = None if None in booked else sum(each or 0 for each in booked)
        total = _money(
            before=sum(line.owed_before for line in lines),
            moved=sum(line.moved for line in lines),
            owed=sum(line.owed for line in lines),
            booked=books,
        )
        blank = {"standing": "", "check": None, "workbook": ""}
        named = {"account": f"Sum {currency}", "currency": currency}
        rows = [_row(line, folder=folder) for line in lines]
        yield Listing(COLUMNS, rows, total={**blank, **named, **total})
        yield TextLine()


def _money(*, before: int, moved: int, owed: int, booked: int | None) -> dict[str, int | None]:
    """By how much the books are apart stands beside; why, the workbook of each account says."""
    apart = None if booked is None else booked - owed
    return {"before": before, "moved": moved, "owed": owed, "booked": booked, "apart": apart}


def _row(line: SharedLine, *, folder: Path) -> dict[str, Any]:
    book, before, moved, owed = line.of.workbook, line.owed_before, line.moved, line.owed
    sealed = "recon close shows it as it was sealed"
    return {
        "account": line.of.account[1],
        "standing": line.of.standing,
        "currency": line.currency,
        **_money(before=before, moved=moved, owed=owed, booked=line.booked),
        "check": check_of(holds=before + moved == owed),
        "workbook": sealed if book is None else file_link(book, folder=folder),
    }
