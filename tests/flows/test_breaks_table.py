"""The table of breaks in the UI."""

import pandas as pd

from flows.shown_tables import rows_of_breaks
from recon.matching.breaks.result import BREAK_COLUMNS


def breaks(*rows: dict[str, object]) -> pd.DataFrame:
    """A frame as the store gives it; cells a test does not name are blank."""
    frame = pd.DataFrame([{name: row.get(name, "") for name in BREAK_COLUMNS} for row in rows])
    for name in ("exposure", "effect_orders", "effect_ledger"):
        frame[name] = frame[name].replace("", pd.NA).astype("Int64")
    return frame


def test_the_gravest_and_largest_breaks_come_first_with_amounts_written_out() -> None:
    """Severity first, then exposure; minor units are written with their currency's decimals."""
    rows = rows_of_breaks(
        breaks(
            {"order_no": "A", "severity": "LOW", "currency": "EUR", "exposure": 999999},
            {"order_no": "B", "severity": "CRITICAL", "currency": "JPY", "exposure": 5000},
            {"order_no": "C", "severity": "CRITICAL", "currency": "JPY", "exposure": 7000},
            {"order_no": "D", "severity": "HIGH", "currency": "KWD", "exposure": 1234},
        )
    )

    assert [row["order"] for row in rows] == ["C", "B", "D", "A"]
    assert [row["exposure"] for row in rows] == ["7000", "5000", "1.234", "9999.99"]
    assert rows[0]["effect on ledger"] == ""


def test_the_table_stops_at_a_hundred_rows() -> None:
    """The UI shows the first hundred; the workbook has all."""
    frame = breaks(*({"severity": "LOW", "currency": "EUR", "exposure": n} for n in range(150)))

    assert len(rows_of_breaks(frame)) == 100


def test_a_night_without_breaks_has_an_empty_table() -> None:
    """No breaks, no rows."""
    assert rows_of_breaks(pd.DataFrame(columns=list(BREAK_COLUMNS))) == []
