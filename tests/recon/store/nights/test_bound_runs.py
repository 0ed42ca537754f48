"""Runs are what the history says of them: what the next night's gate reads cannot be changed."""

from datetime import date, timedelta
from typing import Any

import pytest
from sqlalchemy import delete, insert, select, text, update

from recon.model.errors import StoreError
from recon.model.nights import Mode, NightRequest
from recon.store.database.engine import Store
from recon.store.database.history import REPORTED, Event, append
from recon.store.nights import runs
from recon.store.nights.bound_runs import RECONCILED, changed_runs
from recon.store.schema import run
from tests.recon.store.conftest import AS_OF, NOW

LATER = NOW + timedelta(hours=1)
OTHER: dict[str, Any] = {
    "business_date": date(2026, 11, 19),
    "mode": "dry_run",
    "part": "ask",
    "predecessor": "opening",
    "merchant_id": "100043",
    "account_id": "1",
    "status": "stopped",
    "started_at": LATER,
    "finished_at": None,
    "as_of": LATER,
    "verdict": "RECONCILED",
    "rules_digest": "x",
    "result_digest": "x",
    "workbook_sha256": "x",
}
"""Column -> another value than the finished night has."""


@pytest.fixture
def judged(store: Store) -> Store:
    """A night that was NOT PROVEN."""
    request = NightRequest("100042", "100042001", date(2026, 11, 20), Mode.LIVE)
    digests = {"verdict": "NOT PROVEN", "rules_digest": "aa", "result_digest": "bb"}
    told = {"workbook_sha256": "cc", "verdict": "NOT PROVEN"}
    with store.writing() as connection:
        runs.start(connection, request, run_id="r1", as_of=AS_OF, now=NOW)
        runs.note_result(connection, "r1", values=digests | {"workbook_sha256": "cc"})
        events = [Event("run", "r1", RECONCILED, digests), Event("run", "r1", REPORTED, told)]
        append(connection, events, at=NOW)
        runs.finish(connection, "r1", status="finished", problem="", now=LATER)
    return store


def problems(store: Store) -> list[str]:
    """What is said of the runs."""
    with store.reading() as connection:
        return list(changed_runs(connection))


def test_a_night_as_it_was_says_nothing(judged: Store) -> None:
    """Also one that stopped, went on and was taken over."""
    request = NightRequest("100042", "100042001", date(2026, 11, 21), Mode.LIVE)
    with judged.writing() as connection:
        runs.start(connection, request, run_id="r2", as_of=AS_OF, now=LATER, predecessor="opening")
    assert problems(judged) == []
    with judged.writing() as connection:
        runs.finish(connection, "r2", status="stopped", problem="no disk", now=LATER)
    assert problems(judged) == []
    with judged.writing() as connection:
        runs.resume(connection, "r2", now=LATER)
        runs.start(connection, request, run_id="r3", as_of=AS_OF, now=LATER + timedelta(hours=1))
    assert problems(judged) == []


@pytest.mark.parametrize("column", OTHER)
def test_no_column_that_is_judged_by_can_be_changed(judged: Store, column: str) -> None:
    """Verdict, state, times and whose night it was."""
    with judged.writing() as connection:
        connection.execute(update(run).values({column: OTHER[column]}))
    (told,) = problems(judged)
    assert told.startswith("run r1: its ")


def test_a_date_that_is_none_is_told_and_never_read(judged: Store) -> None:
    """A text in the place of a date is named by the gate, and stops whoever reads the run."""
    with judged.writing() as connection:
        connection.execute(text("UPDATE run SET business_date = '2026-11-3x'"))
    (told,) = problems(judged)
    assert told.startswith("run r1: its business date is not the one of that night")
    with (
        judged.reading() as connection,
        pytest.raises(StoreError, match="'2026-11-3x', which is no date"),
    ):
        runs.get(connection, "r1")


def test_a_run_that_was_made_up_or_taken_away_is_told(judged: Store) -> None:
    """A proven night beside the one that was not would take its place."""
    with judged.writing() as connection:
        row = dict(connection.execute(select(run)).mappings().one())
        connection.execute(insert(run).values(row | {"run_id": "r0", "verdict": "RECONCILED"}))
    assert problems(judged) == [
        "run r0: the history never heard of its start; it was changed past the journal"
    ]
    with judged.writing() as connection:
        connection.execute(delete(run))
    assert problems(judged) == [
        "run r1: the history knows it, its table does not; it was taken away"
    ]


def test_a_verdict_that_no_link_tells_is_named(store: Store) -> None:
    """A run that never compared has none, whatever its row says."""
    request = NightRequest("100042", "100042001", date(2026, 11, 20), Mode.LIVE)
    with store.writing() as connection:
        runs.start(connection, request, run_id="r1", as_of=AS_OF, now=NOW)
    assert problems(store) == []
    with store.writing() as connection:
        connection.execute(update(run).values(verdict="RECONCILED"))
    (told,) = problems(store)
    assert "its verdict is not the one of that night" in told
