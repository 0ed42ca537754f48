"""What a movement counts as in the roll-forward."""

from recon.matching.breaks import movements
from reports.sheets.totals import (
    CLOSED,
    COUNTS_AS,
    OPENED,
    STILL_OPEN,
)
from reports.sheets.words import TABLES


def test_every_movement_of_the_engine_has_its_column_and_its_words() -> None:
    """What comes in is never counted as an end, nor an end as something that is open."""
    columns = {
        **dict.fromkeys((movements.NEW, movements.REOPENED, movements.RETURNED), OPENED),
        **dict.fromkeys(movements.STILL_OPEN, (STILL_OPEN,)),
        **dict.fromkeys(movements.CLOSED, CLOSED),
    }

    assert COUNTS_AS.keys() == columns.keys() == TABLES["movements"].keys()
    assert {word for word, column in COUNTS_AS.items() if column not in columns[word]} == set()
