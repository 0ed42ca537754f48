from datetime import UTC, date, datetime, timedelta

import pandas as pd
import pytest

from recon.model.business_date import BusinessCalendar
from recon.model.errors import UsageError
from recon.period.business_month import BusinessMonth, DayTable

MICROSECOND = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("zone", "cut_off", "month"),
    [
        ("UTC", "24:00", "2026-11"),
        ("Europe/London", "18:00", "2026-10"),
        ("America/New_York", "24:00", "2026-03"),
        ("America/New_York", "02:30", "2026-03"),
        ("Asia/Kathmandu", "00:00", "2026-02"),
    ],
)
def test_every_instant_has_the_date_of_the_calendar(zone: str, cut_off: str, month: str) -> None:
    """At each close, a microsecond before it and through days of summer time."""
    calendar = BusinessCalendar.of(timezone=zone, cut_off=cut_off)
    named = BusinessMonth.named(month)
    closes = [
        calendar.closes_at(date.fromordinal(named.first.toordinal() + n)) for n in range(-2, 34)
    ]
    moments = [each + step for each in closes for step in (-MICROSECOND, timedelta(0), MICROSECOND)]

    dates = DayTable.around(named, calendar=calendar).dates_of(pd.Series(moments))

    assert dates.tolist() == [calendar.business_date_of(each).isoformat() for each in moments]


def test_no_instant_has_no_date() -> None:
    """A blank stays blank, and what is older than all days is of the first."""
    month = BusinessMonth.named("2026-11")
    days = DayTable.around(month, calendar=BusinessCalendar.of())
    moments = pd.Series([pd.NaT, datetime(1999, 1, 1, tzinfo=UTC)], dtype="datetime64[us, UTC]")

    assert days.dates_of(moments).tolist() == ["", days.dates[0]]


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
