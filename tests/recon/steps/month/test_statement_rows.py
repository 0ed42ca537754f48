from datetime import date

import pytest

from recon.model.business_date import BusinessCalendar, BusinessMonth
from recon.steps.month.in_sql import statement_of
from recon.steps.month.statement import (
    DIFFERENCES,
    ITEMS,
    MOVEMENTS,
    STRADDLES,
    TRANSIT,
    MonthFrame,
    MonthStatement,
    blocks_of,
    entry_words,
)
from tests.recon.steps.month.month_folders import nights_of
from tests.recon.steps.month.month_truth import PLACE, MonthTruth


@pytest.fixture(scope="module")
def statement(tmp_path_factory: pytest.TempPathFactory) -> MonthStatement:
    """A month made from the truth."""
    truth = MonthTruth(date(2026, 11, 1), 7, per_day=2)
    nights = nights_of(truth, tmp_path_factory.mktemp("rows"), every=3)
    month = BusinessMonth.named("2026-11")
    return statement_of(MonthFrame(month, PLACE, BusinessCalendar.of()), nights=nights)


def test_every_block_adds_up_as_people_read_it(statement: MonthStatement) -> None:
    """Opening and movements come to the closing, and what is listed does, too."""
    for currency in statement.currencies:
        gateway, transit, books = blocks_of(statement, currency=currency)
        for block in (gateway, transit, books):
            sums = dict.fromkeys(("open", "move", "close", "listed", "note"), 0)
            for row in block:
                sums[row.kind] += row.amount
            assert sums["open"] + sums["move"] == sums["close"]
            assert block is transit or sums["listed"] == sums["close"]


def test_every_word_has_its_label(statement: MonthStatement) -> None:
    """No kind of movement and no class of items is shown by its inner name."""
    shown: dict[tuple[str, str], set[str]] = {}
    for each in statement.figures:
        shown.setdefault((each.of, "moved" if each.at == "moved" else "listed"), set()).add(
            each.name
        )

    assert shown["gateway", "moved"] == {*MOVEMENTS} - {"fee_on_others", "payee"}
    assert shown["gateway", "listed"] <= {*ITEMS}
    assert shown["transit", "moved"] <= {*TRANSIT}
    assert shown["books", "listed"] <= {*DIFFERENCES}
    assert {*statement.straddling["what"]} <= {*STRADDLES}
    assert entry_words("capture_reversal") == "Capture reversal"
