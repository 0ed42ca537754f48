"""What a movement counts as in the roll-forward."""

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from recon.matching.breaks import movements
from recon.model.terms import SourceKind
from reports.sheets.assurance import checks_of, failing
from reports.sheets.labels import TABLES
from reports.sheets.totals import (
    CLOSED,
    COUNTS_AS,
    OPENED,
    STILL_OPEN,
    rows_on_sheets,
)


def test_every_movement_of_the_engine_has_its_column_and_its_words():
    """What comes in is never counted as an end, nor an end as something that is open."""
    columns = {
        **dict.fromkeys((movements.NEW, movements.REOPENED, movements.RETURNED), OPENED),
        **dict.fromkeys(movements.STILL_OPEN, (STILL_OPEN,)),
        **dict.fromkeys(movements.CLOSED, CLOSED),
    }

    assert COUNTS_AS.keys() == columns.keys() == TABLES["movements"].keys()
    assert {label for label, column in COUNTS_AS.items() if column not in columns[label]} == set()


@pytest.mark.parametrize(
    ("changed", "title"),
    [
        ("files", "Files and answers"),
        ("bridge", "From the rows accepted to the records compared"),
        ("ledger_sums", "From the ledger file to the ledger compared, in money"),
    ],
)
def test_a_step_that_is_one_off_fails_its_block(figures, changed, title):
    steps: Any = {
        "files": (replace(figures.files[0], rows_read=63), *figures.files[1:]),
        "bridge": {SourceKind.ORDERS: {"repeat": 1}},
        "ledger_sums": {"EUR": {"in_file": 1}},
    }[changed]

    checks = checks_of(replace(figures, **{changed: steps}), rows_on_sheets(figures))

    assert failing(checks)[title] == 1


def test_what_its_own_row_says_of_a_break_is_no_effect_elsewhere(figures):
    of_break = figures.breaks.iloc[0][["break_id", "merchant_id", "account_id", "currency"]]
    row = {**of_break, "effect_orders": 300, "effect_ledger": -200, "effect_bank": -500}
    breaks = figures.breaks.iloc[:1].assign(**row)
    own = [
        {**of_break, "leg": n, "amount": row[f"effect_{n}"]} for n in ("orders", "ledger", "bank")
    ]
    other = {**own[0], "currency": "USD", "amount": 40}
    shown = replace(figures, breaks=breaks, effects=pd.DataFrame([*own, other]))

    listed = rows_on_sheets(shown).other_effects

    assert [(row["leg"], row["currency"], row["amount"]) for row in listed] == [
        ("orders", "USD", 40)
    ]
