"""Days that no calendar has, or that are centuries away."""

import pytest

from recon.files.typing.instants import what_is_wrong_with_day


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("2026-11-19", ""),
        ("1970-01-01", ""),
        ("2199-12-31", ""),
        ("1969-12-31", "is not between the years 1970 and 2199"),
        ("2200-01-01", "is not between the years 1970 and 2199"),
        ("2026-02-30", "is no date such as 2026-11-19"),
        ("19.11.2026", "is no date such as 2026-11-19"),
    ],
)
def test_a_day_is_of_the_calendar_and_can_be_counted_from(text: str, wrong: str) -> None:
    """What could not be counted from is told, with the bounds."""
    assert what_is_wrong_with_day(text) == wrong
