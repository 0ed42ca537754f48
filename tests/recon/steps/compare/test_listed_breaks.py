"""The table of breaks for people."""

import pandas as pd

from recon.matching.breaks.result import BREAK_COLUMNS
from recon.steps.compare.listed_breaks import BREAKS_DISPLAYED_MAX, rows_of_breaks


def breaks(*rows):
    """A frame as the store gives it; cells a test does not name are blank."""
    cells = [{"age_days": 0, **row} for row in rows]
    frame = pd.DataFrame([{name: row.get(name, "") for name in BREAK_COLUMNS} for row in cells])
    for name in ("exposure", "effect_orders", "effect_ledger", "effect_bank"):
        frame[name] = frame[name].replace("", pd.NA).astype("Int64")
    return frame


def test_the_gravest_and_largest_breaks_come_first_with_amounts_written_out():
    """As on the sheet: by severity, then currency, the largest money of a currency first.

    A yen is no euro: the larger number is not the larger money.
    """
    low = {"severity": "LOW", "currency": "EUR", "exposure": 999999, "age_days": 40}
    severe = {"severity": "CRITICAL", "currency": "JPY"}
    rows = rows_of_breaks(
        breaks(
            {"order_no": "A", **low},
            {"order_no": "B", **severe, "exposure": 9000, "age_days": 1, "break_id": "b2"},
            {"order_no": "C", **severe, "exposure": 7000, "age_days": 3, "break_id": "b3"},
            {"order_no": "D", **severe, "exposure": 1000, "age_days": 1, "break_id": "b1"},
            {"order_no": "E", "severity": "HIGH", "currency": "KWD", "exposure": 1234},
            {"order_no": "F", "severity": "HIGH", "exposure": 0},
            {"order_no": "G", "severity": "HIGH", "currency": "JPY", "exposure": 400_000},
            {"order_no": "H", "severity": "HIGH", "currency": "EUR", "exposure": 300_000},
        )
    )

    assert [row["order"] for row in rows] == [*"BCDHGEFA"]
    assert [row["exposure"] for row in rows] == [
        *("9,000", "7,000", "1,000", "3,000.00", "400,000", "1.234", "", "9,999.99")
    ]
    assert rows[0]["effect on ledger"] == ""


def test_only_the_first_are_shown_and_what_has_no_order_by_what_it_is_of():
    """A terminal and the UI show the first hundred; a batch, group or entry names itself."""
    own = {"about": "S1", "severity": "LOW", "currency": "EUR"}
    frame = breaks(*({**own, "exposure": n} for n in range(150)))

    assert len(rows_of_breaks(frame)) == 150
    assert len(rows_of_breaks(frame, at_most=BREAKS_DISPLAYED_MAX)) == 100
    assert rows_of_breaks(frame)[0]["order"] == "S1"
    assert rows_of_breaks(frame.iloc[:0]) == []
