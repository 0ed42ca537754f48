from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import BigInteger, Column, Integer, MetaData, String, Table, insert, select

from recon.matching.frames.sources import INSTANT, LEDGER_COLUMNS, frame_of
from recon.store.database.bulk_rows import among, frame_of_select, rows_of
from recon.store.database.engine import Store
from recon.store.schema.columns import at_column

ENTRY = {
    "entry_id": "E-1",
    "merchant_id": "100042",
    "account_id": "100042001",
    "entry_type": "capture",
    "currency": "EUR",
    "amount": 2**62,
    "booked_at": "2026-11-20T10:00:00.123456+02:00",
    "line": 2,
}
ENTRIES = Table(
    "entry_of_a_test",
    MetaData(),
    Column("run_id", String(64), primary_key=True),
    Column("position", Integer, primary_key=True),
    *(
        at_column(name)
        if kind == INSTANT
        else Column(name, BigInteger if "Int" in kind or "int" in kind else String(255))
        for name, kind in LEDGER_COLUMNS.items()
    ),
)
"""One column of each kind that tables have."""
ODD = {"reference_no": 'a "quoted", ref\\N\nand a line', "transaction_amount": 0}


def _store(store: Store, *entries: dict[str, Any]) -> Any:
    frame = frame_of(entries, columns=LEDGER_COLUMNS)
    rows = [
        {**row, "run_id": "r", "position": position} for position, row in enumerate(rows_of(frame))
    ]
    with store.writing() as connection:
        ENTRIES.create(connection)
        connection.execute(insert(ENTRIES), rows)
    query = select(*(ENTRIES.c[name] for name in LEDGER_COLUMNS)).order_by("position")
    with store.reading() as connection:
        return frame, frame_of_select(connection, query, columns=LEDGER_COLUMNS)


def test_rows_come_back_as_they_went_in(store: Store) -> None:
    """Blanks and zeros, quotes and line ends, 64 bits and microseconds of another zone."""
    sent, found = _store(store, ENTRY, ENTRY | ODD, ENTRY | {"transaction_amount": 7})

    assert found.to_dict("list") == sent.to_dict("list")
    assert found["booked_at"][0] == datetime(2026, 11, 20, 8, 0, 0, 123456, tzinfo=UTC)


@pytest.mark.parametrize("wanted", [["E-1", 'E-"2'], ["E-3"], []])
def test_many_values_are_one_parameter(store: Store, wanted: list[str]) -> None:
    """A row is found by its value among many, whatever characters they have, or by none."""
    _store(store, ENTRY, ENTRY | {"entry_id": 'E-"2'})
    with store.reading() as connection:
        query = select(ENTRIES.c.entry_id)
        found = connection.execute(query.where(among(connection, ENTRIES.c.entry_id, wanted)))

        assert sorted(found.scalars()) == sorted({"E-1", 'E-"2'} & set(wanted))
