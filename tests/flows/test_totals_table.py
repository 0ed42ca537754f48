"""The control totals as people see them in the UI."""

from flows.totals_table import rows_of_totals
from recon.model import ControlTotal

ROWS = ControlTotal("T1", "Rows read", "100042", "100042001", "", "count", 12, 12)
MONEY = ControlTotal("T5A", "Orders", "100042", "100042001", "KWD", "amount", 1_500, 1_000)


def test_what_does_not_tie_comes_first_with_both_sides_written_out() -> None:
    """Counts are whole, amounts have their currency's decimals, and the difference is told."""
    first, second = rows_of_totals([ROWS, MONEY])

    assert (first["total"], first["ties"], second["ties"]) == ("T5A", "NO", "yes")
    assert (first["left"], first["right"], first["difference"]) == ("1.500", "1.000", "0.500")
    assert (second["left"], second["difference"]) == ("12", "0")


def test_a_night_without_totals_has_an_empty_table() -> None:
    """A part, or a night that stopped, shows none."""
    assert rows_of_totals([]) == []
