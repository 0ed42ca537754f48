"""Books in rows of an earlier version, read on either database."""

from datetime import UTC, datetime

import pandas as pd
from sqlalchemy import text

from recon.matching.frames.sources import LEDGER_COLUMNS, frame_of
from recon.store.database.carried_entries import entries_of, runs_with_entries
from recon.store.database.engine import Store
from recon.store.nights import ledger_rows
from recon.store.nights.runs import Run
from tests.recon.store.nights.test_ledger_rows import SOURCE

TABLE = """
    CREATE TABLE ledger_entry (run_id varchar(64), position integer, entry_id varchar(64),
        merchant_id varchar(64), account_id varchar(64), order_no varchar(64),
        entry_type varchar(30), currency varchar(3), amount bigint, booked_at {instant},
        transaction_id varchar(64), reference_no varchar(255), reverses_entry_id varchar(64),
        transaction_currency varchar(3), transaction_amount bigint, source varchar(255),
        line integer)"""
ROW = """
    INSERT INTO ledger_entry VALUES ('r7', :position, :entry, 'M', 'A', '', 'fee', 'EUR', :amount,
       '2026-11-19 10\\:00\\:00.123456{zone}', '', 'a "b"', '', :paid_in, :paid,
       'ledger.csv', 7)"""


def test_entries_are_read_as_they_were_kept(store: Store, run: Run) -> None:
    """In the order of the file, blanks and zeros apart, to the microsecond."""
    cells = [
        {"position": 2, "entry": "E-2", "amount": -(2**62), "paid_in": "", "paid": None},
        {"position": 1, "entry": "E-1", "amount": 5, "paid_in": "USD", "paid": 0},
    ]
    with store.writing() as connection:
        nothing = runs_with_entries(connection)
        is_sqlite = connection.dialect.name == "sqlite"
        kind, zone = ("varchar(40)", "") if is_sqlite else ("timestamptz", "+00")
        connection.execute(text(TABLE.format(instant=kind)))
        connection.execute(text(ROW.format(zone=zone)), cells)
        ledger_rows.save(connection, run.run_id, source=SOURCE)
    with store.reading() as connection:
        read = runs_with_entries(connection)
        entries = entries_of(connection, "r7")
        empty = entries_of(connection, run.run_id)

    same = {"merchant_id": "M", "account_id": "A", "entry_type": "fee", "currency": "EUR"}
    same |= {"reference_no": 'a "b"', "source": "ledger.csv", "line": 7}
    at = datetime(2026, 11, 19, 10, 0, 0, 123456, tzinfo=UTC)
    wanted = [
        {
            **same,
            "entry_id": "E-1",
            "amount": 5,
            "booked_at": at,
            "transaction_currency": "USD",
            "transaction_amount": 0,
        },
        {**same, "entry_id": "E-2", "amount": -(2**62), "booked_at": at},
    ]
    assert nothing == []
    assert read == sorted(["r7", run.run_id])
    assert empty.empty
    pd.testing.assert_frame_equal(entries, frame_of(wanted, columns=LEDGER_COLUMNS))
