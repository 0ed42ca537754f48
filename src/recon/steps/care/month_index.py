"""All accounts of a merchant in one month: what each adds to the clearing account that they share.

The books have one clearing account where the gateway may have several: what stands on it is the
sum of these lines, and no line by itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from recon.period.month_statement import CLOSING, MOVED, OPENING, MonthFigure, sums_of
from recon.steps.care.closed_view import ClosedView
from recon.steps.care.month_closes import CloseVerdict, PreparedClose
from recon.steps.care.month_statements import StatedMonth

ACCOUNTS_MIN = 2
"""Fewer need no page over all accounts: their one workbook is it."""
PROVEN, NOT_PROVEN = "PROVEN", "NOT PROVEN"
_GATEWAY, _BOOKS = "gateway", "books"


@dataclass(frozen=True, slots=True)
class AccountMonth:
    """A month of one account, as it is stated or as it was sealed."""

    account: tuple[str, str]
    standing: str
    """PROVEN, NOT_PROVEN, or the verdict of its close."""
    figures: Sequence[MonthFigure]
    has_books: bool
    """Whether a ledger was compared."""
    workbook: Path | None
    """None where none was written: a closed month's is `recon close`'s."""


def of_stated(stated: StatedMonth, *, workbook: Path) -> AccountMonth:
    """A month as it is known now."""
    standing = PROVEN if stated.is_proven else NOT_PROVEN
    return _of_stated(stated, standing=standing, workbook=workbook)


def of_prepared(close: PreparedClose, *, workbook: Path) -> AccountMonth:
    """A month as it would be closed now."""
    return _of_stated(close.stated, standing=close.verdict.value, workbook=workbook)


def of_closed(view: ClosedView, *, workbook: Path | None) -> AccountMonth:
    """A closed month as it was sealed."""
    has_books = bool(view.document["statement"]["books_covered"])
    standing = CloseVerdict.CLOSED.value
    return AccountMonth(view.closed.account, standing, view.figures, has_books, workbook)


def _of_stated(stated: StatedMonth, *, standing: str, workbook: Path) -> AccountMonth:
    statement = stated.statement
    has_books = statement.books is not None
    return AccountMonth(statement.account, standing, statement.figures, has_books, workbook)


@dataclass(frozen=True, slots=True)
class SharedLine:
    """What one account adds in one currency, minor units."""

    of: AccountMonth
    currency: str
    owed_before: int
    moved: int
    owed: int
    booked: int | None
    """The balance that its entries come to; None where no ledger was compared."""


def merchants_of(accounts: Sequence[AccountMonth]) -> Iterator[tuple[str, list[AccountMonth]]]:
    """Each merchant whose accounts share a clearing account: those that have several."""
    ordered = sorted(accounts, key=lambda each: each.account)
    for merchant, own in groupby(ordered, key=lambda each: each.account[0]):
        if len(rows := [*own]) >= ACCOUNTS_MIN:
            yield merchant, rows


def shared_lines(accounts: Sequence[AccountMonth]) -> list[SharedLine]:
    """By currency and account; an account in which nothing moved has no line of a currency."""
    lines = []
    for of in accounts:
        sums = sums_of(of.figures)
        for currency in {each.currency for each in of.figures}:
            opening, moved, owed = (
                sums[currency, _GATEWAY, at] for at in (OPENING, MOVED, CLOSING)
            )
            # As a statement derives the books: from the gateway's and what was open between them.
            booked = opening + sums[currency, _BOOKS, OPENING] + sums[currency, _BOOKS, MOVED]
            shown = booked if of.has_books else None
            lines.append(SharedLine(of, currency, opening, moved, owed, shown))
    return sorted(lines, key=lambda line: (line.currency, line.of.account))
