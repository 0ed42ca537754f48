from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recon.files.typing.instants import InstantColumn, read_instants

LONDON = ZoneInfo("Europe/London")


def read(*texts: str, zone: ZoneInfo = LONDON, compact: bool = False) -> InstantColumn:
    """Read texts as one column."""
    return read_instants(pa.array(texts, pa.large_string()), zone=zone, compact=compact)


def told(column: InstantColumn) -> list[str]:
    """The instants as ISO text."""
    return [
        datetime.fromtimestamp(value / 1_000_000, tz=UTC).isoformat()
        for value in column.microseconds.tolist()
    ]


ACCEPTED = {
    "2026-07-05T10:30:00Z": "2026-07-05T10:30:00+00:00",
    "2026-07-05 10:30:00+02:00": "2026-07-05T08:30:00+00:00",
    "2026-07-05T10:30:00.123456-05:00": "2026-07-05T15:30:00.123456+00:00",
    "2026-07-05T10:30:00": "2026-07-05T09:30:00+00:00",
    "2026-07-05T10:30": "2026-07-05T09:30:00+00:00",
    "2026-07-05T10:30Z": "2026-07-05T10:30:00+00:00",
    "2026-07-05T10:30:00+0200": "2026-07-05T08:30:00+00:00",
    "2026-07-05": "2026-07-04T23:00:00+00:00",
    "2026-10-25T01:30:00": "2026-10-25T00:30:00+00:00",
    "2026-10-25 01:30": "2026-10-25T00:30:00+00:00",
}


def test_iso_8601_with_and_without_an_offset() -> None:
    """An offset counts; without one it is local time; a time that happens twice is the first."""
    column = read(*ACCEPTED)
    assert column.problems == {}
    assert told(column) == list(ACCEPTED.values())


@pytest.mark.parametrize(
    "text",
    [
        *("2026-02-30T10:00:00Z", "2026-13-01T10:00:00Z", "2026-01-05T25:00:00Z"),
        *("2026-01-05T10:60:00Z", "05/01/2026", "05.01.2026 10:00", "20260105", "1767600000"),
        *("2026-1-5", "2026-01-05T10:00:00 Z", "2026-01-05T10:00:00.1234567Z", "today", "NaT"),
        *("2026-03-29T01:30:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"),
        *("1969-12-31T00:00:00Z", "2026-01-05T10:00:00+99:00", "\uff12026-01-05", "20260105103000"),
    ],
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    """No other notation, no day that is none, no local time that a clock change skips."""
    column = read("2026-01-05T10:00:00Z", text, "2026-01-05T10:00:00")
    assert list(column.problems) == [1]
    assert told(read("2026-01-05T10:00:00Z"))[0].startswith("2026-01-05T10:00")


def test_fourteen_digits_are_the_gateways_local_time() -> None:
    """The gateway writes yyyyMMddHHmmss without an offset."""
    column = read("20260105103000", zone=ZoneInfo("Asia/Hong_Kong"), compact=True)
    assert told(column) == ["2026-01-05T02:30:00+00:00"]
    assert list(read("20261305103000", compact=True).problems) == [0]


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONES = ("Pacific/Auckland", "Europe/London", "Asia/Hong_Kong", "America/Sao_Paulo", "UTC")


@given(
    st.datetimes(datetime(1970, 1, 2), datetime(2199, 12, 30)),  # noqa: DTZ001 - made local below
    st.sampled_from(ZONES),
)
def test_the_quick_way_and_the_calendar_agree(moment: datetime, name: str) -> None:
    """A column gives the very microsecond that the standard library gives, or refuses both ways."""
    zone = ZoneInfo(name)
    local = moment.replace(tzinfo=zone).astimezone(UTC)
    expected = (local - EPOCH) // timedelta(microseconds=1)
    exists = local.astimezone(zone).replace(tzinfo=None) == moment
    column = read(moment.isoformat(), local.isoformat(), zone=zone)
    assert column.microseconds[1] == expected
    assert list(column.problems) == ([] if exists else [0])
    assert not exists or column.microseconds[0] == expected


def test_many_rows_of_one_form_are_read_as_one_row_is() -> None:
    """A column of the usual form is read at once, unless one of its days is none."""
    days = [f"2026-07-{day:02}T10:30:{second:02}Z" for day in range(1, 32) for second in range(60)]
    assert told(read(*days)) == [told(read(day))[0] for day in days]
    assert list(read(*days, "2026-06-31T10:30:00Z").problems) == [len(days)]


def test_a_day_that_many_rows_say_is_read_for_each_of_them() -> None:
    """Rows that say the same get the same, be it a moment, nothing or a refusal."""
    texts = [*ACCEPTED, "", "today"] * 100
    column = read(*texts)
    assert list(column.problems) == [row for row, text in enumerate(texts) if text == "today"]
    assert set(column.problems.values()) == set(read("today").problems.values())
    assert column.microseconds.tolist() == read(*ACCEPTED, "", "today").microseconds.tolist() * 100
