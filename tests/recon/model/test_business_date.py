"""Business dates: cut-offs, clock changes, holidays and graces."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recon.model.business_date import BusinessCalendar, BusinessMonth, Grace, midnight
from recon.model.errors import ConfigurationError, UsageError

LONDON = BusinessCalendar.of(timezone="Europe/London")
ZONES = st.sampled_from(
    ["UTC", "Europe/London", "America/New_York", "Asia/Kathmandu", "America/Havana", "Africa/Cairo"]
)
CUT_OFFS = st.sampled_from(["24:00", "18:00", "01:30", "02:30", "00:00"])
DECADE = (datetime.fromisoformat("2020-01-01"), datetime.fromisoformat("2035-12-31"))
DAYS = st.dates(min_value=date(2020, 1, 1), max_value=date(2035, 12, 31))


def utc(text):
    """An instant of its ISO text, which carries its offset or is UTC."""
    instant = datetime.fromisoformat(text)
    return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).astimezone(UTC)


@pytest.mark.parametrize(
    ("cut_off", "day", "closes"),
    [
        ("24:00", "2026-11-20", "2026-11-21T00:00"),
        ("24:00", "2026-06-20", "2026-06-20T23:00"),
        ("18:00", "2026-06-20", "2026-06-20T17:00"),
        ("24:00", "2026-03-28", "2026-03-29T00:00"),  # the night before the clock goes forward
        ("24:00", "2026-03-29", "2026-03-29T23:00"),  # a business date of 23 hours
        ("24:00", "2026-10-25", "2026-10-26T00:00"),  # a business date of 25 hours
        ("01:30", "2026-03-29", "2026-03-29T01:30"),  # 01:30 does not exist: the change itself + 30
        ("01:30", "2026-10-25", "2026-10-25T00:30"),  # 01:30 comes twice: the first one closes
    ],
)
def test_a_business_date_closes_at_its_local_cut_off(cut_off, day, closes):
    calendar = BusinessCalendar.of(timezone="Europe/London", cut_off=cut_off)

    assert calendar.closes_at(date.fromisoformat(day)) == utc(closes)


@given(zone=ZONES, cut_off=CUT_OFFS, day=DAYS)
def test_the_cut_off_instant_belongs_to_the_next_day(zone, cut_off, day):
    calendar = BusinessCalendar.of(timezone=zone, cut_off=cut_off)
    closes = calendar.closes_at(day)

    assert calendar.business_date_of(closes - timedelta(microseconds=1)) == day
    assert calendar.business_date_of(closes) == day + timedelta(days=1)


@given(
    zone=ZONES,
    cut_off=CUT_OFFS,
    instant=st.datetimes(*DECADE, timezones=st.just(UTC)),
)
def test_every_instant_has_exactly_one_business_date(zone, cut_off, instant):
    calendar = BusinessCalendar.of(timezone=zone, cut_off=cut_off)
    day = calendar.business_date_of(instant)

    assert calendar.closes_at(day - timedelta(days=1)) <= instant < calendar.closes_at(day)


@pytest.mark.parametrize(
    ("since", "grace", "due"),
    [
        ("2026-11-20T12:00", "24h", "2026-11-21T12:00"),
        ("2026-11-20T12:00", "0h", "2026-11-20T12:00"),
        ("2026-11-20T12:00", "0bd", "2026-11-20T12:00"),
        ("2026-11-20T12:00", "1bd", "2026-11-23T12:00"),  # Friday to Monday
        ("2026-11-20T12:00", "5bd", "2026-11-27T12:00"),
        ("2026-11-21T12:00", "1bd", "2026-11-23T12:00"),  # from a Saturday
        ("2026-12-24T12:00", "1bd", "2026-12-28T12:00"),  # over the holiday and a week-end
        ("2026-03-27T12:00", "1bd", "2026-03-30T11:00"),  # the same local time after the change
        ("2026-03-27T01:30", "1bd", "2026-03-30T00:30"),
    ],
)
def test_a_grace_ends_in_business_days_or_elapsed_hours(since, grace, due):
    calendar = BusinessCalendar.of(timezone="Europe/London", holidays=[date(2026, 12, 25)])

    assert calendar.due_at(utc(since), grace=Grace.parse(grace)) == utc(due)


@pytest.mark.parametrize("since", ["2026-03-28T12:00", "2026-10-24T12:00"])
def test_hours_of_grace_are_elapsed_time_over_a_clock_change(since):
    """24 hours are 24 hours even for an instant that carries a zone of its own."""
    local = datetime.fromisoformat(since).replace(tzinfo=ZoneInfo("Europe/London"))
    due = LONDON.due_at(local, grace=Grace.parse("24h"))

    assert due - local.astimezone(UTC) == timedelta(hours=24)


@given(start=DAYS, days=st.integers(min_value=0, max_value=400))
def test_business_days_agree_with_counting_by_hand(start, days):
    wall = [start + timedelta(days=n) for n in range(1, days + 1)]
    expected = sum(day.strftime("%a") not in {"Sat", "Sun"} for day in wall)

    assert LONDON.business_days_between(start, end=start + timedelta(days=days)) == expected


@pytest.mark.parametrize("cut_off", ["24:01", "25:00", "9:00", "18:60", "18.00", "", "18:00:00"])
def test_a_cut_off_that_is_no_time_is_refused(cut_off):
    with pytest.raises(ConfigurationError, match=r"cut_off .* such as 18:00 or 24:00"):
        BusinessCalendar.of(cut_off=cut_off)


@pytest.mark.parametrize("zone", ["", "Mars/Olympus", "Europe", "../etc/passwd", "a\0b", "x" * 999])
def test_a_zone_that_is_none_is_refused(zone):
    with pytest.raises(ConfigurationError, match="not a time zone such as Europe/London"):
        BusinessCalendar.of(timezone=zone)


@pytest.mark.parametrize(
    "text", ["24", "h", "-1h", "1.5h", "5 bd", "5BD", "01h", "\u0665bd", "9999h", "367bd"]
)
def test_a_grace_that_is_none_is_refused(text):
    with pytest.raises(ConfigurationError, match="grace such as 24h or 5bd"):
        Grace.parse(text)


@given(count=st.integers(min_value=0, max_value=366), unit=st.sampled_from(["h", "bd"]))
def test_a_grace_is_written_as_it_is_read(count, unit):
    assert str(Grace.parse(f"{count}{unit}")) == f"{count}{unit}"


def test_midnight_is_local():
    assert midnight(date(2026, 6, 20), zone=ZoneInfo("Europe/London")) == utc("2026-06-19T23:00")


def test_the_local_date_is_that_of_the_zone():
    assert LONDON.local_date(utc("2026-06-20T23:30")) == date(2026, 6, 21)


@pytest.mark.parametrize("text", ["2026-13", "2026-1", "november", "2026-11-01", ""])
def test_what_is_no_month_is_refused(text):
    with pytest.raises(UsageError):
        BusinessMonth.named(text)
