"""What a payment came to is what the night says that shows it, whatever nights were between."""

import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from recon.archive.schemas import SCHEMAS
from recon.period.month_nights import MonthNight
from recon.period.shown_payments import NOTHING_ASKED, shown_payments
from tests.recon.period.month_folders import Row, table_of_rows

ACCOUNT = ("M", "A")
BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
TERMS = [
    {"name": "payment_status", "key": "paid", "word": "paid"},
    {"name": "payment_status", "key": "partly", "word": "partially_refunded"},
]
Shown = Mapping[tuple[int, int], int]
"""Payment and order -> what of its 100 was refunded by a night."""

nights_shown = st.lists(
    st.dictionaries(
        st.tuples(st.integers(0, 5), st.integers(0, 1)), st.sampled_from([0, 30, 100]), max_size=8
    ),
    min_size=1,
    max_size=7,
)


def written(night: Shown, *, number: int, folder: Path) -> MonthNight:
    """The two files that are read of a night, its rows in an order of their own."""
    day = BEGIN + timedelta(days=number)
    rows: list[Row] = [
        {
            "merchant_id": ACCOUNT[0],
            "account_id": ACCOUNT[1],
            "order_no": f"O-{payment}-{order}",
            "transaction_id": f"T-{payment}",
            "currency": "EUR",
            "amount": 100,
            "answer": "found",
            "payment_status": "partly" if refunded else "paid",
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


def expected(nights: Sequence[Shown]) -> set[tuple[str, int, int, int, bool]]:
    """Payment, night, captured, refunded and whether it is new, by a dictionary of payments."""
    last: dict[int, tuple[int, int]] = {}
    changes = set()
    for number, night in enumerate(nights):
        for payment in {payment for payment, _ in night}:
            refunds = [amount for (paid, _), amount in night.items() if paid == payment]
            now = (100 * len(refunds), sum(refunds))
            if last.get(payment) != now:
                changes.add((f"T-{payment}", number, *now, payment not in last))
            last[payment] = now
    return changes


@settings(max_examples=30)
@given(nights=nights_shown)
def test_a_payment_changes_where_a_night_shows_it_otherwise_than_the_last_one_did(
    nights: list[Shown],
) -> None:
    """Also after nights that did not show it, and where two orders have one payment."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        read = [written(night, number=n, folder=folder) for n, night in enumerate(nights)]
        shown = shown_payments(read, account=ACCOUNT, earlier=(), asked=NOTHING_ASKED)
    columns = ("payment", "number", "captured", "refunded", "is_first")
    changes = [*zip(*(shown.changes[name].tolist() for name in columns), strict=True)]
    assert len(changes) == len({*changes})
    assert {*changes} == expected(nights)
