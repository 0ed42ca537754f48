"""Days that no calendar has, or that are centuries away."""

import csv
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import openpyxl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recon.config.file_layouts import FileLayout
from recon.config.rules import Rules
from recon.files.typing.instants import (
    days_of,
    read_instants,
    times_in_standard_form,
    what_is_wrong_with_day,
    with_clock,
)
from recon.files.typing.table_schema import BANK, GATEWAY, LEDGER, ORDERS, SETTLEMENT
from tests.recon.files.whole_read import read_table

LONDON = ZoneInfo("Europe/London")


def read(*texts, zone=LONDON, compact=False):
    return read_instants(pa.array(texts, pa.large_string()), zone=zone, compact=compact)


def told(column):
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


def test_iso_8601_with_and_without_an_offset():
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
def test_what_is_no_moment_is_refused(text):
    column = read("2026-01-05T10:00:00Z", text, "2026-01-05T10:00:00")
    assert list(column.problems) == [1]
    assert told(read("2026-01-05T10:00:00Z"))[0].startswith("2026-01-05T10:00")


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONES = ("Pacific/Auckland", "Europe/London", "Asia/Hong_Kong", "America/Sao_Paulo", "UTC")


@given(
    st.datetimes(datetime(1970, 1, 2), datetime(2199, 12, 30)),  # noqa: DTZ001 - made local below
    st.sampled_from(ZONES),
)
def test_the_quick_way_and_the_calendar_agree(moment, name):
    zone = ZoneInfo(name)
    local = moment.replace(tzinfo=zone).astimezone(UTC)
    expected = (local - EPOCH) // timedelta(microseconds=1)
    exists = local.astimezone(zone).replace(tzinfo=None) == moment
    column = read(moment.isoformat(), local.isoformat(), zone=zone)
    assert column.microseconds[1] == expected
    assert list(column.problems) == ([] if exists else [0])
    assert not exists or column.microseconds[0] == expected


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
def test_a_day_is_of_the_calendar_and_can_be_counted_from(text, wrong):
    assert what_is_wrong_with_day(text) == wrong


@pytest.mark.parametrize(
    ("times", "text", "standard"),
    [
        ("%d.%m.%Y %H:%M", "20.11.2026 09:30", "2026-11-20T09:30:00"),
        ("%d.%m.%y", "20.11.26", "2026-11-20T00:00:00"),
        ("%-m/%-d/%Y %I:%M %p", "3/4/2026 12:05 AM", "2026-03-04T00:05:00"),
        ("%-m/%-d/%Y %I:%M %p", "3/4/2026 12:05 pm", "2026-03-04T12:05:00"),
        ("%-m/%-d/%Y %I:%M %p", "3/4/2026 1:05 PM", "2026-03-04T13:05:00"),
        ("%-m/%-d/%Y %I:%M %p", "3/4/2026 13:05 PM", None),
        ("%-m/%-d/%Y %I:%M %p", "3/4/2026 0:05 AM", None),
        ("%b %-d, %Y", "Nov 5, 2026", "2026-11-05T00:00:00"),
        ("%b %-d, %Y", "Nox 5, 2026", None),
        ("%-d.%-m.%Y %-H:%M:%S%z", "5.1.2026 7:00:01+0100", "2026-01-05T07:00:01+0100"),
        ("serial", "46346.395833333336", "2026-11-20T09:30:00.000"),
        ("serial", "25568", None),
        ("serial", "20.11.2026", None),
        ("unix", "1795167000", "2026-11-20T09:30:00+00:00"),
        ("unix", "1795167000.5", None),
    ],
)
def test_a_time_is_what_its_layout_says_or_nothing(times, text, standard):
    problems: dict[int, str] = {}
    cells = pa.array([text, ""], pa.large_string())
    layout = FileLayout(times=times)
    read = times_in_standard_form(cells, layout=layout, typed=False, problems=problems)
    assert read.to_pylist() == [standard or "", ""]
    assert list(problems) == ([] if standard else [0])


def test_a_day_and_its_clock_are_one_time_and_a_date_only_a_day():
    days, clocks = pa.array(["20.11.2026", "", "1.1.2026"]), pa.array(["09:30", "10:00", ""])
    joined = with_clock(days, clocks=clocks)
    assert joined.to_pylist() == ["20.11.2026 09:30", "", "1.1.2026"]
    assert days_of(pa.array(["2026-11-20T09:30:00+01:00", ""])).to_pylist() == ["2026-11-20", ""]


KINDS = {
    "ordered_at": (ORDERS, "{n},EUR,10.00,paid,{t}", "order_no,currency,amount,status"),
    "transaction_date": (
        GATEWAY,
        "{n},t{n},EUR,10.00,3000,1,,{t}",
        "order_no,transaction_id,currency,amount,payment_status,query_result,reference_no",
    ),
    "booked_at": (
        LEDGER,
        "E{n},{n},capture,EUR,10.00,{t}",
        "entry_id,order_no,entry_type,currency,amount",
    ),
    "settled_on": (
        SETTLEMENT,
        "B1,capture,{n},t{n},,EUR,10.00,0.00,10.00,{t}",
        "batch_id,entry_type,order_no,transaction_id,reference_no,currency,gross,fee,net",
    ),
    "booked_on": (
        BANK,
        "DE89370400440532013000,1,2026-04-13,2026-04-30,,,{n},2026-04-13,EUR,10.00,{t}",
        "iban,statement_no,from_date,to_date,opening,closing,entry_no,value_on,currency,amount",
    ),
}
"""Column of a date -> table, a row, the names of its other columns."""
CONSTANTS = {"merchant_id": "M1", "account_id": "A1"}


def read_of_turned_dates(folder, column, cells, *, times="", ending="csv"):
    """Line -> why its row is refused, of a file with these dates."""
    schema, row, names = KINDS[column]
    path = folder / f"export.{ending}"
    grid: list[list[str | date]] = [[*names.split(","), column]]
    for number, cell in enumerate(cells, start=1):
        *others, _ = row.format(n=number, t="").split(",")
        grid.append([*others, cell])
    if ending == "xlsx":
        book = openpyxl.Workbook()
        for line in grid:
            book.active.append(line)
        book.save(path)
    else:
        with path.open("w", newline="") as out:
            csv.writer(out).writerows(grid)
    return _rejects(path, schema=schema, times=times)


def _rejects(path, *, schema, times):
    constants = {name: text for name, text in CONSTANTS.items() if name in schema.names}
    layout = FileLayout(constants=constants, times=times)
    table = read_table(path, kind=schema.kind, rules=Rules(), layout=layout, schema=schema)
    assert len(table.frame) + len(table.rejects) == table.source_file.rows_read
    return {reject.line: reject.reason for reject in table.rejects}


@pytest.mark.parametrize("column", KINDS)
@pytest.mark.parametrize("text", ["25/04/2026", "4/25/2026"])
@pytest.mark.parametrize("times", ["", "%-d/%-m/%Y", "%-m/%-d/%Y"])
@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_dates_of_day_12_and_below_beside_texts_above_are_refused(
    column, text, times, ending, tmp_path
):
    """3 April in a file of days before months became 4 March; 25 April stayed a text."""
    cells = [date(2026, 3, 4), text, date(2026, 12, 4)]
    refused = read_of_turned_dates(tmp_path, column, cells, times=times, ending=ending)
    assert {2, 4} <= set(refused)
    if ending == "xlsx" or not times:
        assert f"beside texts such as {text}" in refused[2]
        assert "day and month" in refused[2]


@pytest.mark.parametrize(
    "cells",
    [
        [date(2026, 3, 4), date(2026, 12, 4)],
        [date(2026, 3, 4), date(2026, 3, 25), "25/04/2026"],
        [date(2026, 3, 4), "5/6/2026"],
    ],
)
def test_dates_that_nothing_speaks_against_are_taken(cells, tmp_path):
    """A real date above 12 shows that none was turned; so does a text that could have been one."""
    dates = {at for at, cell in enumerate(cells, start=2) if isinstance(cell, date)}
    assert not dates & set(read_of_turned_dates(tmp_path, "ordered_at", cells, ending="xlsx"))


def test_a_real_date_in_a_file_of_texts_may_be_turned_although_no_text_is_beside_it(tmp_path):
    """In the first days of a month every date of the file is one that a spreadsheet turns."""
    cells = [date(2026, 3, 4), date(2026, 12, 4)]
    refused = read_of_turned_dates(tmp_path, "settled_on", cells, times="%d/%m/%Y", ending="xlsx")
    assert list(refused) == [2, 3]
    assert "and no text as %d/%m/%Y" in refused[2]
    assert not read_of_turned_dates(tmp_path, "settled_on", cells, times="%Y-%m-%d", ending="xlsx")
