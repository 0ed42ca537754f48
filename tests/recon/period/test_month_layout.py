from datetime import date
from pathlib import Path

from recon.model.business_date import BusinessCalendar
from recon.period.business_month import BusinessMonth
from recon.period.dated_facts import KINDS
from recon.period.month_layout import blocks_of
from recon.period.month_statement import MonthFrame, statement_of
from recon.period.month_words import ITEMS, MOVEMENTS, entry_words
from recon.period.open_items import CLASSES
from tests.recon.period.month_folders import nights_of
from tests.recon.period.month_truth import PLACE, MonthTruth


def test_every_block_adds_up_as_people_read_it(tmp_path: Path) -> None:
    """Opening and movements come to the closing, and what is listed does, too."""
    truth = MonthTruth(date(2026, 11, 1), 7, per_day=2)
    nights = nights_of(truth, tmp_path)
    month = BusinessMonth.named("2026-11")
    statement = statement_of(MonthFrame(month, PLACE, BusinessCalendar.of()), nights=nights)

    for currency in statement.currencies:
        gateway, transit, books = blocks_of(statement, currency=currency)
        for block in (gateway, transit, books):
            sums = dict.fromkeys(("open", "move", "close", "listed", "note"), 0)
            for row in block:
                sums[row.kind] += row.amount
            assert sums["open"] + sums["move"] == sums["close"]
            assert block is transit or sums["listed"] == sums["close"]


def test_every_word_has_its_label() -> None:
    """No kind of movement and no class of items is shown by its inner name."""
    assert {*MOVEMENTS} == {*KINDS}
    assert {*ITEMS} == {*CLASSES}
    assert entry_words("capture_reversal") == "Capture reversal"
