from datetime import date

import pytest

from recon.model.errors import UsageError
from recon.period.month_statement import BusinessMonth


@pytest.mark.parametrize("text", ["2026-13", "2026-1", "november", "2026-11-01", ""])
def test_what_is_no_month_is_refused(text: str) -> None:
    """A month is a year and a month, nothing else."""
    with pytest.raises(UsageError):
        BusinessMonth.named(text)


def test_a_month_has_its_last_day() -> None:
    """February of a leap year has 29."""
    month = BusinessMonth.named("2028-02")

    assert (month.first, month.last, month.before) == (
        date(2028, 2, 1),
        date(2028, 2, 29),
        date(2028, 1, 31),
    )
