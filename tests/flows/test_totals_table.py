"""The control totals as people see them in the UI."""

from flows.shown_tables import rows_of_totals
from recon.model.words import ControlTotal

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
