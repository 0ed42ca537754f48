"""What each account adds to the clearing account that several share."""

from pathlib import Path

from recon.steps.month.close import NOT_PROVEN, AccountMonth, merchants_of, shared_lines
from recon.steps.month.statement import MonthFigure

FIRST = AccountMonth(
    ("M", "1"),
    "CLOSED",
    [
        MonthFigure("EUR", "gateway", "opening", "not_settled", 1, 1_000),
        MonthFigure("EUR", "gateway", "moved", "capture", 2, 700),
        MonthFigure("EUR", "gateway", "moved", "pay_out", 1, -500),
        MonthFigure("EUR", "gateway", "closing", "not_settled", 1, 1_200),
        MonthFigure("EUR", "reserve", "moved", "reserve", 1, 90),
        MonthFigure("EUR", "outside", "moved", "capture", 1, 80),
        MonthFigure("EUR", "transit", "closing", "in_transit", 1, 500),
        MonthFigure("EUR", "books", "opening", "open", 1, -30),
        MonthFigure("EUR", "books", "moved", "capture", 2, 600),
        MonthFigure("EUR", "books", "closing", "open", 1, 370),
        MonthFigure("JPY", "gateway", "opening", "not_settled", 1, 40),
        MonthFigure("JPY", "gateway", "closing", "not_settled", 1, 40),
    ],
    has_books=True,
    workbook=Path("a 1/statement#1.xlsx"),
)
SECOND = AccountMonth(
    ("M", "2"),
    NOT_PROVEN,
    [
        MonthFigure("EUR", "gateway", "moved", "capture", 1, 300),
        MonthFigure("EUR", "gateway", "closing", "not_settled", 1, 290),
        MonthFigure("EUR", "books", "moved", "capture", 1, 300),
    ],
    has_books=True,
    workbook=None,
)
WITHOUT_BOOKS = AccountMonth(("M", "3"), "PROVEN", SECOND.figures[:2], False, None)
OTHER = AccountMonth(("N", "1"), "PROVEN", [], False, None)


def test_accounts_of_two_merchants_share_no_clearing_account() -> None:
    """A merchant with one account needs no page: its one workbook is it."""
    assert [(name, len(own)) for name, own in merchants_of([OTHER, SECOND, FIRST])] == [("M", 2)]


def test_an_account_adds_what_it_is_owed_and_what_its_entries_come_to() -> None:
    """By currency and account; books begin with what was owed and what was open between the two."""
    lines = [
        (line.currency, line.of.account[1], line.owed_before, line.moved, line.owed, line.booked)
        for line in shared_lines([SECOND, FIRST, WITHOUT_BOOKS])
    ]

    assert lines == [
        ("EUR", "1", 1_000, 200, 1_200, 1_570),
        ("EUR", "2", 0, 300, 290, 300),
        ("EUR", "3", 0, 300, 290, None),
        ("JPY", "1", 40, 0, 40, 40),
    ]
