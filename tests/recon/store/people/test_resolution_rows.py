from datetime import UTC, date, datetime

import pytest

from recon.model.errors import StoreError
from recon.model.resolutions import BreakAnswer, Import
from recon.store.database.engine import Store
from recon.store.people import resolution_rows
from recon.store.people.resolution_rows import NewAnswer

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)
PLACE = ("M", "1")
BROUGHT = Import("answered.xlsx", "a" * 64, "run-1", "jo")


def answer(version: int = 1, *, waits: bool = False, owner: str = "Jo") -> NewAnswer:
    given = BreakAnswer("Order corrected", owner, "seen", date(2026, 11, 21))
    return NewAnswer(PLACE, "b1", version, given, waits, 7, False, "EUR", 1_000)


def test_one_version_is_given_once(store: Store) -> None:
    """Two people who answer the same state at the same instant: one of them is told."""
    with store.writing() as connection:
        resolution_rows.save(connection, [answer()], brought=BROUGHT, at=NOW)
    other = Import("again.xlsx", "b" * 64, "run-1", "kim")

    with pytest.raises(StoreError, match="IntegrityError"), store.writing() as connection:
        resolution_rows.save(connection, [answer()], brought=other, at=NOW)


def test_a_write_off_waits_until_it_is_agreed_once(store: Store) -> None:
    """A second person ends the wait; a third has nothing left to agree to."""
    with store.writing() as connection:
        resolution_rows.save(connection, [answer(waits=True)], brought=BROUGHT, at=NOW)
        (waiting,) = resolution_rows.waiting_write_offs(connection)
        agreed = [
            resolution_rows.agree(connection, waiting.answer_id, by=name, at=NOW)
            for name in ("kim", "lee")
        ]
        left = resolution_rows.waiting_write_offs(connection)

    assert agreed == [True, False]
    assert left == []
