"""What a movement counts as in the roll-forward, and which currencies no sheet can compute."""

from dataclasses import replace

import pytest

from recon.matching.breaks import movements
from recon.model.figures import NightFigures
from reports.drawing.draft import NUMBER_MINOR_UNITS_MAX
from reports.sheets.journals_sheet import MOVEMENT_WORDS
from reports.sheets.totals import (
    CLOSED,
    COUNTS_AS,
    OPENED,
    STILL_OPEN,
    rows_on_sheets,
    totals_of,
)


def test_every_movement_of_the_engine_has_its_column_and_its_words() -> None:
    """What comes in is never counted as an end, nor an end as something that is open."""
    columns = {
        **dict.fromkeys(movements.COMES_IN, OPENED),
        **dict.fromkeys(movements.STILL_OPEN, (STILL_OPEN,)),
        **dict.fromkeys(movements.CLOSED, CLOSED),
    }

    assert COUNTS_AS.keys() == columns.keys() == MOVEMENT_WORDS.keys()
    assert {word for word, column in COUNTS_AS.items() if column not in columns[word]} == set()


@pytest.mark.parametrize(
    ("beyond", "currencies"), [(0, set()), (1, {"EUR", "USD"})], ids=["largest number", "text"]
)
def test_one_amount_beyond_fifteen_digits_makes_text_of_its_currencies(
    figures: NightFigures, beyond: int, currencies: set[str]
) -> None:
    """A movement speaks for its currency of tonight and for that of the night before."""
    moved = figures.movements.copy()
    first = moved.index[0]
    moved.loc[first, ["currency", "currency_before"]] = ["USD", "EUR"]
    moved.loc[first, "exposure_before"] = -NUMBER_MINOR_UNITS_MAX - beyond
    rows = rows_on_sheets(replace(figures, movements=moved))

    assert totals_of(rows, ledger_covered=True).text_currencies == currencies
