"""Journals in the database: handed out once, booked by the run whose ledger shows them."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from recon.matching.frames.sources import Exported
from recon.model.errors import StoreError
from recon.store.database.engine import Store
from recon.store.nights import journal_rows
from recon.store.nights.runs import Run

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)
JOURNAL = ("b1-EUR-1", "b1", "EUR")
DAYS = {"b1-EUR-1": ["2026-11-20"]}


def test_a_booked_journal_frees_its_break_for_the_next_run(store: Store, run: Run) -> None:
    """The run that saw it booked still proposes nothing for it; later runs know it as booked."""
    with store.writing() as connection:
        journal_rows.note_exported(connection, run, journals=[JOURNAL], days=DAYS, at=NOW)
        handed = journal_rows.exported(connection, run)
        journal_rows.note_booked(connection, run, shown=handed)
        later = journal_rows.exported(connection, replace(run, run_id="later"))
        states = journal_rows.states(connection, ["b1-EUR-1", "unknown"])

    assert handed == (Exported("b1", "EUR", 1, booked=False),)
    assert later == (Exported("b1", "EUR", 1, booked=True),)
    assert states == {"b1-EUR-1": "booked"}


def test_a_journal_cannot_be_handed_out_twice(store: Store, run: Run) -> None:
    """The database itself refuses the second time."""
    with store.writing() as connection:
        journal_rows.note_exported(connection, run, journals=[JOURNAL], days=DAYS, at=NOW)

    with pytest.raises(StoreError, match="IntegrityError"), store.writing() as connection:
        journal_rows.note_exported(connection, run, journals=[JOURNAL], days=DAYS, at=NOW)
