"""The accounts of a merchant in one month on one page: what their clearing account stands at."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from itertools import groupby
from pathlib import Path
from typing import Any

from recon.config.settings import Settings
from recon.model.business_date import BusinessMonth
from recon.model.errors import OutputError
from recon.steps.month.close import PROVEN, ClosedView, CloseVerdict
from recon.steps.month.stated import StatedMonth
from recon.steps.month.statement import CLOSING, MOVED, OPENING, MonthFigure, sums_of
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

ACCOUNTS_MIN = 2
"""Fewer need no page over all accounts: their one workbook is it."""
SENTENCE = "The books have one clearing account for these: it stands at the sums, at no line alone."
FINE = {PROVEN, CloseVerdict.CLOSED, CloseVerdict.READY}
FAIR = {CloseVerdict.WITH_OPEN_ITEMS}


def _tone(row: Any) -> Tone:
    status = row["standing"]
    return "good" if status in FINE else "warn" if status in FAIR else "bad" if status else ""


MONEY = ("before", "moved", "owed", "booked", "apart")
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


@dataclass(frozen=True, slots=True)
class AccountMonth:
    """A month of one account, as it is stated or as it was sealed."""

    account: tuple[str, str]
    status: str
    """PROVEN, NOT_PROVEN, or the verdict of its close."""
    figures: Sequence[MonthFigure]
    has_books: bool
    """Whether a ledger was compared."""
    workbook: Path

    @classmethod
    def of_stated(cls, stated: StatedMonth, *, status: str, workbook: Path) -> "AccountMonth":
        """A month as it is known now."""
        statement = stated.statement
        has_books = statement.books is not None
        return cls(statement.account, status, statement.figures, has_books, workbook)

    @classmethod
    def of_closed(cls, view: ClosedView, *, workbook: Path) -> "AccountMonth":
        """A closed month as it was sealed."""
        has_books = bool(view.document["statement"]["books_covered"])
        status = CloseVerdict.CLOSED.value
        return cls(view.closed.account, status, view.figures, has_books, workbook)


def index_of_months(
    accounts: Sequence[AccountMonth], *, month: BusinessMonth, out: Path | None, settings: Settings
) -> list[str]:
    """Write the page over the accounts of each merchant that has several; where it lies, said.

    `out`: where all go; else the reports of each merchant's first account.

    Raises:
        OutputError: a folder cannot be written.
    """
    names, lines = settings.rules.journal.accounts, []
    ordered = sorted(accounts, key=lambda each: each.account)
    for merchant, group in groupby(ordered, key=lambda each: each.account[0]):
        if len(own := [*group]) >= ACCOUNTS_MIN:
            folder = out or settings.account(merchant, account_id=own[0].account[1]).reports
            clearing = names.clearing if names else ""
            path = write_months_index(own, month=month, clearing=clearing, folder=folder)
            lines.append(f"All accounts of {merchant}: {path}")
    return lines


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
        [TextLine(named, "note"), *_blocks(accounts, folder=folder)],
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
    """The accounts of each currency, and their sum."""
    in_order = sorted(accounts, key=lambda each: each.account)
    every = [row for account in in_order for row in _rows(account, folder=folder)]
    for currency in sorted({row["currency"] for row in every}):
        rows = [row for row in every if row["currency"] == currency]
        # Where an account's books were not compared nobody knows what the account stands at.
        total = {name: _sum([row[name] for row in rows]) for name in MONEY}
        blank = {"standing": "", "check": None, "workbook": ""}
        named = {"account": f"Sum {currency}", "currency": currency}
        yield Listing(COLUMNS, rows, total={**blank, **named, **total})


def _sum(amounts: Sequence[int | None]) -> int | None:
    known = [each for each in amounts if each is not None]
    return sum(known) if len(known) == len(amounts) else None


def _rows(of: AccountMonth, *, folder: Path) -> Iterator[dict[str, Any]]:
    """By currency what an account adds, minor units; one in which nothing moved has no row.

    By how much the books are apart stands beside; why, the workbook of each account says.
    """
    sums = sums_of(of.figures)
    for currency in sorted({each.currency for each in of.figures}):
        before, moved, owed = (sums[currency, "gateway", at] for at in (OPENING, MOVED, CLOSING))
        # As a statement derives the books: from the gateway's and what was open between them.
        booked = before + sums[currency, "books", OPENING] + sums[currency, "books", MOVED]
        yield {
            "account": of.account[1],
            "standing": of.status,
            "currency": currency,
            "before": before,
            "moved": moved,
            "owed": owed,
            "booked": booked if of.has_books else None,
            "apart": booked - owed if of.has_books else None,
            "check": check_of(holds=before + moved == owed),
            "workbook": file_link(of.workbook, folder=folder),
        }
