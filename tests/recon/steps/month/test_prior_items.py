"""What comes after a close for the closed dates stands in the open month, and nowhere silently."""

from dataclasses import replace
from io import BytesIO

import openpyxl
import pytest

from recon.model.business_date import BusinessMonth
from recon.month import close as month_closes
from recon.month.close import prepared_close, reviewed_close
from recon.month.statement import CLOSING
from reports.month_workbook import close_workbook
from tests.recon.steps.month import test_signed_closes as closes

DECEMBER = BusinessMonth.named("2026-12")
pytestmark = closes.pytestmark


def play_late(merchant):
    """November is closed; then an order of November comes that nobody had heard of."""
    closes.play_people(merchant)
    closes.close(merchant)
    late = merchant.payments("captured")[0]
    merchant.drop("late.csv", merchant.order(late))
    merchant.wait(hours=24)
    merchant.night(date="2026-12-01")


@pytest.fixture
def late(begun):
    return begun(play_late)


def test_a_close_of_the_open_month_lists_them_and_has_their_sheet(late):
    with late.environment() as environment:
        close = prepared_close(DECEMBER, account=closes.OWN, environment=environment)

    named = {each.what: each for each in close.open_items if each.sheet == "Prior periods"}
    assert "Of a closed month, reported after its close" in named
    assert not [what for what in named if what.startswith("Gateway: opens otherwise")]
    book = openpyxl.load_workbook(
        BytesIO(close_workbook(close, reviewed_close(close))), data_only=True
    )
    rows = [[cell.value for cell in row] for row in book["Prior periods"].iter_rows(min_row=5)]
    assert [str(row[0])[:7] for row in rows if row[0]] == ["2026-11"]


def test_an_opening_that_is_not_what_was_closed_is_named(late, monkeypatch):
    """Whatever moved it: closed figures are never restated silently."""
    real = month_closes.sealed_figures

    def other(document):
        figures = real(document)
        wanted = next(each for each in figures if (each.of, each.at) == ("gateway", CLOSING))
        return [
            replace(each, amount=each.amount + 7) if each is wanted else each for each in figures
        ]

    monkeypatch.setattr(month_closes, "sealed_figures", other)
    with late.environment() as environment:
        close = prepared_close(DECEMBER, account=closes.OWN, environment=environment)

    assert any(
        each.what == "Gateway: opens otherwise than 2026-11 was closed with" and each.amount == -7
        for each in close.open_items
    )
