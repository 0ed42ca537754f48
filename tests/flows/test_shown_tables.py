"""Control totals and open breaks as people see them in the UI."""

import pandas as pd

from flows.artifacts import rows_of_totals, rows_on_the_page
from recon.matching.breaks.result import BREAK_COLUMNS
from recon.model.terms import ControlTotal

PLACE = ("100042", "100042001")
ROWS = ControlTotal("T6", "orders: places = items", *PLACE, "", "count", 12, 12)
MONEY = ControlTotal("T5A", "gateway - orders = effects", *PLACE, "KWD", "amount", 1_500, 1_000)


def test_what_does_not_tie_comes_first_with_both_sides_written_out() -> None:
    """Counts are whole, amounts have their currency's decimals, and the difference is told."""
    first, second = rows_of_totals([ROWS, MONEY])

    assert (first["ref."], first["ties"], second["ties"]) == ("T5A", "NO", "yes")
    figures = [first[name] for name in ("first figure", "second figure", "difference")]
    assert figures == ["1.500", "1.000", "0.500"]
    assert (second["first figure"], second["difference"]) == ("12", "0")


def test_a_control_total_is_said_in_the_words_of_the_workbook() -> None:
    """Nobody has to know a reference to read what was proven."""
    (row,) = rows_of_totals([MONEY])

    assert row["what was proven"].startswith("Gateway less orders is what the sheets explain")
    assert row["what must be equal"] == "gateway less order files = explained by the sheets"


def test_a_night_without_totals_has_an_empty_table() -> None:
    """A part, or a night that stopped, shows none."""
    assert rows_of_totals([]) == []


def test_what_a_page_never_cuts_says_what_is_wrong_and_with_what_money() -> None:
    """The first five columns fit beside Prefect's own; money is what is at risk of a payment."""
    cells = {"order_no": "A1", "code": "REFUND_DUE", "severity": "HIGH", "currency": "KWD"}
    row = dict.fromkeys(BREAK_COLUMNS, "") | cells | {"exposure": 9_000, "age_days": 3}
    sides = {"effect_orders": -1_234, "effect_ledger": None, "effect_bank": None}

    (shown,) = rows_on_the_page(pd.DataFrame([row | sides]))

    assert list(shown.items())[:5] == [
        ("order", "A1"),
        ("what is wrong", "Refund still to do"),
        ("severity", "HIGH"),
        ("money at risk", "1.234 KWD"),
        ("age in days", "3"),
    ]
    assert shown["code"] == "REFUND_DUE"
