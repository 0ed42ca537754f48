"""Columns become the same bytes as Python's csv writer makes of their cells."""

import csv
import io
from datetime import UTC, datetime

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recon.model.errors import Defect
from recon.model.money import format_minor_units
from recon.steps.compare.csv_columns import csv_of

COLUMNS = ("order_no", "exposure", "currency", "age_days", "due_at", "reason")
NAMES = st.text(st.sampled_from(list("ab,\"\n é;'=")), max_size=6)
AMOUNTS = st.none() | st.integers(-(10**15), 10**15)
FIRST, LAST = datetime(2020, 1, 1), datetime(2030, 1, 1)  # noqa: DTZ001 - the zone is drawn
ROWS = st.lists(
    st.tuples(
        NAMES,
        AMOUNTS,
        st.sampled_from(["EUR", "JPY", "KWD", "USD"]),
        st.none() | st.integers(0, 400),
        st.none()
        | st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - hypothesis adds the zone
        NAMES,
    ),
    max_size=9,
)


def frame_of(rows):
    """The rows with the types that a result has."""
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)) if rows else {}
    kinds = ("str", "Int64", "str", "Int64", "datetime64[us, UTC]", "str")
    pairs = zip(COLUMNS, kinds, strict=True)
    return pd.DataFrame({n: pd.Series(columns.get(n, ()), dtype=kind) for n, kind in pairs})


def written(rows):
    """The rows cell by cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for name, amount, currency, age, due, reason in rows:
        money = "" if amount is None else format_minor_units(amount, currency=currency)
        at = "" if due is None else due.isoformat().replace("+00:00", "Z")
        writer.writerow([name, money, currency, "" if age is None else age, at, reason])
    return text.getvalue()


@settings(max_examples=80)
@given(ROWS)
def test_the_bytes_are_those_of_the_writer(rows):
    """Quotes, commas, line feeds, blanks, decimals of each currency and a leading minus."""
    assert csv_of(frame_of(rows), columns=COLUMNS) == written(rows)


def test_money_without_a_currency_is_a_defect():
    """Nothing is written as if it had decimals that nobody knows; 0 of no currency is blank."""
    row = ("A1", 5, "", None, None, "")

    with pytest.raises(Defect, match="5 minor units has no currency"):
        csv_of(frame_of([row]), columns=COLUMNS)
    assert csv_of(frame_of([("A1", 0, *row[2:])]), columns=COLUMNS).endswith("A1,,,,,\n")
