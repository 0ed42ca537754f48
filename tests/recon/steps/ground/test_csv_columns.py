"""Columns become the same bytes as Python's csv writer makes of their cells."""

import csv
import io
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recon.model.errors import Defect
from recon.model.money import format_minor_units
from recon.steps.ground import csv_columns
from recon.steps.ground.csv_columns import csv_of

COLUMNS = ("order_no", "exposure", "currency", "age_days", "due_at", "reason")
SEVERAL = ("order_amount", "gateway_amount", "ledger_amount")
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


def frame_of(rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    """The rows with the types that a result has."""
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)) if rows else {}
    kinds = ("str", "Int64", "str", "Int64", "datetime64[us, UTC]", "str")
    pairs = zip(COLUMNS, kinds, strict=True)
    return pd.DataFrame({n: pd.Series(columns.get(n, ()), dtype=kind) for n, kind in pairs})


def written(rows: list[tuple[Any, ...]]) -> str:
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
def test_the_bytes_are_those_of_the_writer(rows: list[tuple[Any, ...]]) -> None:
    """Quotes, commas, line feeds, blanks, decimals of each currency and a leading minus."""
    assert csv_of(frame_of(rows), columns=COLUMNS) == written(rows)


@settings(max_examples=80)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["EUR", "JPY", "KWD"]),
            *[st.none() | st.integers(-1, 1)] * len(SEVERAL),
        ),
        max_size=4,
    )
)
def test_columns_of_equal_amounts_do_not_share_their_blanks(rows: list[tuple[Any, ...]]) -> None:
    """Amounts that stand in several columns are written once: 0 is never a blank, nor one a 0."""
    names = ("currency", *SEVERAL)
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    kinds = ("str", *["Int64"] * len(SEVERAL))
    frame = pd.DataFrame(
        {
            name: pd.Series(cells, dtype=kind)
            for name, cells, kind in zip(names, columns, kinds, strict=True)
        }
    )
    lines = [",".join(names)] + [
        ",".join(
            [
                currency,
                *("" if a is None else format_minor_units(a, currency=currency) for a in amounts),
            ]
        )
        for currency, *amounts in rows
    ]

    assert csv_of(frame, columns=names) == "".join(f"{line}\n" for line in lines)


def test_blocks_leave_no_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows are texts at once, the whole is the same."""
    rows = [(f"A{n}", n - 3, "JPY" if n % 3 else "EUR", n, None, "") for n in range(7)]
    monkeypatch.setattr(csv_columns, "BLOCK_ROWS", 2)

    assert csv_of(frame_of(rows), columns=COLUMNS) == written(rows)


def test_money_without_a_currency_is_a_defect() -> None:
    """Nothing is written as if it had decimals that nobody knows; 0 of no currency is blank."""
    row = ("A1", 5, "", None, None, "")

    with pytest.raises(Defect, match="5 minor units has no currency"):
        csv_of(frame_of([row]), columns=COLUMNS)
    assert csv_of(frame_of([("A1", 0, *row[2:])]), columns=COLUMNS).endswith("A1,,,,,\n")


def test_a_carriage_return_is_quoted() -> None:
    """A reader that takes it for the end of a line would see two rows."""
    text = csv_of(frame_of([("A\r1", 1, "EUR", 1, None, "x")]), columns=COLUMNS)

    assert '"A\r1",0.01,EUR' in text
