"""The page over the accounts that share a clearing account."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

from recon.config.rules import Rules
from recon.config.settings import Settings
from recon.model.business_date import BusinessMonth
from recon.model.errors import OutputError
from recon.steps.month.close import NOT_PROVEN
from recon.steps.month.statement import MonthFigure
from reports.reading.months_index import AccountMonth, index_of_months, write_months_index

NOVEMBER = BusinessMonth.named("2026-11")
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
    workbook=Path("second.xlsx"),
)
WITHOUT_BOOKS = AccountMonth(("M", "3"), "PROVEN", SECOND.figures[:2], False, Path("x.xlsx"))
OTHER = AccountMonth(("N", "1"), "PROVEN", [], False, Path("x.xlsx"))


def written(tmp_path: Path, *accounts: AccountMonth) -> Path:
    """The page of some accounts, beside the folder of one of them."""
    at = [replace(each, workbook=tmp_path / each.workbook) for each in accounts]
    return write_months_index(at, month=NOVEMBER, clearing="1360", folder=tmp_path)


def cells(path: Path) -> list[list[Any]]:
    """What stands below the headers, as the engine computed it."""
    sheet = load_workbook(path, data_only=True)["Accounts"]
    return [[cell.value for cell in row] for row in sheet.iter_rows(min_row=7)]


def test_a_clearing_account_stands_at_the_sum_of_its_accounts(tmp_path: Path) -> None:
    """By currency, of what the gateway owes and of what the books' entries come to."""
    path = written(tmp_path, FIRST, SECOND)
    rows = cells(path)

    assert path.name == "months-M-2026-11.xlsx"
    assert rows[0][:9] == ["1", "CLOSED", "EUR", 10, 2, 12, "OK", 15.7, 3.7]
    assert rows[1][:9] == ["2", "NOT PROVEN", "EUR", 0, 3, 2.9, "CHECK", 3, 0.1]
    assert rows[2][:9] == ["Sum EUR", None, "EUR", 10, 5, 14.9, None, 18.7, 3.8]
    assert rows[5][:9] == ["1", "CLOSED", "JPY", 40, 0, 40, "OK", 40, 0]


def test_where_the_books_of_an_account_were_not_compared_nobody_knows_their_sum(
    tmp_path: Path,
) -> None:
    """A sum over some of them would be taken for the account's balance."""
    rows = cells(written(tmp_path, FIRST, WITHOUT_BOOKS))

    assert rows[1][7:9] == [None, None]
    assert rows[2][5] == 14.9
    assert rows[2][7:9] == [None, None]


def test_a_line_leads_to_its_workbook(tmp_path: Path) -> None:
    """Relative to the page."""
    sheet = load_workbook(written(tmp_path, FIRST, SECOND))["Accounts"]

    assert sheet["J7"].hyperlink.target == "a%201/statement%231.xlsx"
    assert sheet["J8"].hyperlink.target == "second.xlsx"


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    """With what was kept and what to do."""
    with pytest.raises(OutputError, match="own workbooks are kept: name a folder"):
        write_months_index([FIRST, SECOND], month=NOVEMBER, clearing="", folder=tmp_path / "gone")


def test_accounts_of_two_merchants_share_no_clearing_account(tmp_path: Path) -> None:
    """A merchant with one account needs no page: its one workbook is it."""
    settings = Settings.model_construct(rules=Rules())
    every = [OTHER, SECOND, WITHOUT_BOOKS]

    said = index_of_months(every, month=NOVEMBER, out=tmp_path, settings=settings)

    assert said == [f"All accounts of M: {tmp_path}/months-M-2026-11.xlsx"]
