"""What is said where no journal leaves."""

from recon.cli.month_commands import nothing_left


def test_who_finds_nothing_to_hand_out_is_told_how_a_lost_journal_is_written_again() -> None:
    """Only where one left before; the format of then does not matter."""
    left = nothing_left("27 journals of 2026-11", before=27)

    assert left.startswith("Nothing to hand out: 27 journals of 2026-11 left before.")
    assert "`--again ID`" in left
    assert nothing_left("0 journals", before=0) == "Nothing to hand out: 0 journals left before."
