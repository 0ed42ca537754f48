"""Rules of a month over a few rows of a night: whose date, what was shown, what nobody measured."""

import tempfile
from bisect import bisect_right
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recon.archive.schemas import SCHEMAS
from recon.model.business_date import BusinessCalendar, BusinessMonth
from recon.month.stated import month_in_sql
from recon.month.statement import (
    ClosedPeriod,
    MonthFrame,
    MonthNight,
    UnknownRefund,
    days_around,
    unreported_refunds,
)
from tests.recon.steps.month.month_folders import Row, table_of_rows
from tests.recon.steps.month.month_truth import ACCOUNT, MERCHANT, PLACE

NOVEMBER = BusinessMonth.named("2026-11")
BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
TERMS = [
    {"name": "payment_status", "key": "paid", "label": "paid"},
    {"name": "payment_status", "key": "partly", "label": "partially_refunded"},
]
Shown = Mapping[tuple[int, int], int | None]
"""Payment and order -> what of its 100 was refunded by a night; None: a part, nobody says which."""

nights_page = st.lists(
    st.dictionaries(
        st.tuples(st.integers(0, 5), st.integers(0, 1)), st.sampled_from([0, 30, 100]), max_size=8
    ),
    min_size=1,
    max_size=7,
)


@contextmanager
def tables_of(nights, *, closed=(), refunds=()):
    frame = MonthFrame(NOVEMBER, PLACE, BusinessCalendar.of(), closed=closed)
    with tempfile.TemporaryDirectory() as name:
        read = [written(night, number=n, folder=Path(name)) for n, night in enumerate(nights)]
        lines = [
            {
                "merchant_id": MERCHANT,
                "account_id": ACCOUNT,
                "entry_type": "refund",
                "batch_id": f"B-{day}",
                "settled_on": day,
                "transaction_id": "T-1",
                "currency": "EUR",
                "gross": -amount,
                "fee": 0,
                "net": -amount,
                "source": "x",
            }
            for day, amount in refunds
        ]
        settlement = Path(name) / "settlement.parquet"
        schema = SCHEMAS["settlement"].columns
        pq.write_table(table_of_rows(lines, schema=schema), settlement)
        read[-1] = replace(read[-1], files={**read[-1].files, "settlement": settlement})
        with month_in_sql(frame, nights=read) as month:
            yield month


def written(night, *, number, folder):
    day = BEGIN + timedelta(days=number)
    rows: list[Row] = [
        {
            "merchant_id": MERCHANT,
            "account_id": ACCOUNT,
            "order_no": f"O-{payment}-{order}",
            "transaction_id": f"T-{payment}",
            "currency": "EUR",
            "amount": 100,
            "answer": "found",
            "payment_status": "paid" if refunded == 0 else "partly",
            "captured_amount": 100,
            "refunded_amount": refunded or None,
            "transaction_date": BEGIN,
            "queried_at": day,
        }
        for (payment, order), refunded in night.items()
    ]
    files = {}
    for name, cells in {"answers": rows, "terms": TERMS}.items():
        files[name] = folder / f"{number}-{name}.parquet"
        pq.write_table(table_of_rows(cells, schema=SCHEMAS[name].columns), files[name])
    return MonthNight(number, f"run-{number}", day.date().isoformat(), "rules", files)


def expected(nights):
    last: dict[int, tuple[int, int]] = {}
    for number, night in enumerate(nights):
        for payment in {payment for payment, _ in night}:
            refunds = [amount or 0 for (paid, _), amount in night.items() if paid == payment]
            now = (100 * len(refunds), sum(refunds))
            if last.get(payment) != now:
                yield f"T-{payment}", number, *now
            last[payment] = now


@settings(max_examples=8)
@given(nights=nights_page)
def test_a_payment_changes_where_a_night_shows_it_otherwise_than_the_last_one_did(nights):
    """Also after nights that did not show it, and where two orders have one payment."""
    with tables_of(nights) as month:
        changes = month.rows("SELECT payment, number, captured, refunded FROM shown")

    assert sorted(changes) == sorted(expected(nights))


def test_a_refund_that_nobody_measures_is_named_until_a_night_says_how_much():
    """By what the last night says that shows it: of two payments one is measured since."""
    nights: list[Shown] = [{(1, 0): None, (2, 0): None, (3, 0): 0}, {(1, 0): 30}]
    with tables_of(nights) as month:
        unknown = month.rows("SELECT payment, order_no, currency FROM unknown_refunds")

    assert unknown == [("T-2", "O-2-0", "EUR")]


@pytest.mark.parametrize(
    ("shown", "lines", "days"),
    [
        (100, [], [("2026-11-04", 100)]),
        (100, [("2026-11-02", 100)], [("2026-11-02", 100)]),
        (100, [("2026-11-02", 30), ("2026-11-03", 50)], [("02", 30), ("03", 50), ("04", 20)]),
        (30, [("2026-11-02", 30), ("2026-11-05", 50)], [("02", 30), ("05", 50)]),
        (0, [("2026-11-02", 30), ("2026-11-05", 50)], [("02", 30), ("05", 50)]),
    ],
)
def test_each_part_of_a_refund_has_the_day_of_its_line_where_that_is_before_the_night(
    shown, lines, days
):
    """The rest has the night's; what lines alone tell beyond it has their own."""
    with tables_of([{(1, 0): 0}, {}, {}, {(1, 0): shown}], refunds=lines) as month:
        facts = month.rows("SELECT event_on, -amount FROM facts WHERE kind = 'refund'")

    assert sorted(facts) == [(f"2026-11-{day[-2:]}", amount) for day, amount in days]


def test_a_person_reads_which_orders_and_where_to_look():
    """By currency, by payment where no order is named; the first five and how many more."""
    every = [UnknownRefund(f"T{n}", f"A-{n}", "EUR") for n in range(7)]

    told = [*unreported_refunds([*every, UnknownRefund("T9", "", "USD")])]

    first = "Refunded in part by an amount that nothing states: order"
    last = "the gateway's portal knows how much"
    assert told == [
        ("EUR", 7, f"{first} A-0, A-1, A-2, A-3, A-4, 2 more (EUR); {last}"),
        ("USD", 1, f"{first} T9 (USD); {last}"),
    ]


@pytest.mark.parametrize(
    ("own", "told", "counts"),
    [
        ("2026-10-28", 2, None),
        ("2026-10-28", 3, "2026-11-01"),
        ("2026-11-01", 3, None),
        ("2026-09-30", 1, "2026-10-01"),
        ("2026-09-30", 0, None),
        ("2026-09-30", 3, "2026-11-01"),
    ],
)
def test_what_is_told_after_a_close_counts_on_the_first_day_after_it(own, told, counts):
    """By what the close knew: its own night still belongs to it; of two closes the later counts."""
    closed = [
        ClosedPeriod(BusinessMonth.named("2026-10"), "2026-11-03"),
        ClosedPeriod(BusinessMonth.named("2026-09"), "2026-11-01"),
    ]
    with tables_of([{}] * 4, closed=closed) as month:
        rows = month.rows("SELECT own_on, reported, counts_on FROM prior")

    assert [row[-1] for row in rows if row[:-1] == (own, told)] == ([counts] if counts else [])


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
def test_every_instant_has_the_date_of_the_calendar(zone, cut_off, month):
    """At each close, a microsecond before it, through days of summer time; older has the first."""
    calendar = BusinessCalendar.of(timezone=zone, cut_off=cut_off)
    named = BusinessMonth.named(month)
    days = [*days_around(named, calendar=calendar)]
    opens = [at for _, at in days]
    closes = [
        calendar.closes_at(date.fromordinal(named.first.toordinal() + n)) for n in range(-2, 34)
    ]
    moments = [each + step for each in closes for step in (-MICROSECOND, timedelta(0), MICROSECOND)]

    dates = [days[bisect_right(opens, moment) - 1][0] for moment in moments]

    assert dates == [calendar.business_date_of(each).isoformat() for each in moments]
    assert days[bisect_right(opens, datetime(1999, 1, 1, tzinfo=UTC)) - 1] == days[0]
