from datetime import UTC, date, datetime

import pytest

from recon.config.rules import Rules
from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.sources import (
    GATEWAY_COLUMNS,
    ORDER_COLUMNS,
    Sources,
    frame_of,
)
from recon.model.words import ControlTotal
from recon.proof.engine import reconcile
from recon.store.database.engine import Store
from recon.store.nights import results, runs
from recon.store.nights.runs import Run

AS_OF = datetime(2026, 11, 21, tzinfo=UTC)
PLACE = {"merchant_id": "100042", "account_id": "100042001", "currency": "EUR", "line": 2}


@pytest.fixture
def result() -> Reconciliation:
    """One match, one break, one pending and one unverified set."""
    old, new = "2026-11-10T10:00:00Z", "2026-11-20T23:00:00Z"
    orders = [
        {**PLACE, "order_no": key, "amount": 1_000, "status": "paid", "ordered_at": at}
        for key, at in (("A-1", old), ("A-2", old), ("A-3", new), ("A-4", old))
    ]
    found = {**PLACE, "query_result": "1", "payment_status": "3000", "transaction_date": old}
    gateway = [
        {**found, "order_no": "A-1", "answer": "found", "transaction_id": "T1", "amount": 1_000},
        {**found, "order_no": "A-2", "answer": "found", "transaction_id": "T2", "amount": 1_250},
        {**PLACE, "order_no": "A-3", "answer": "not_found"},
        {**PLACE, "order_no": "A-4", "answer": "failed"},
    ]
    sources = Sources(
        orders=frame_of(orders, columns=ORDER_COLUMNS),
        gateway=frame_of(gateway, columns=GATEWAY_COLUMNS),
        ledger=None,
        instructions=None,
    )
    return reconcile(sources, rules=Rules(), as_of=AS_OF)


def test_what_a_result_came_to_comes_back(store: Store, run: Run, result: Reconciliation) -> None:
    """Words, rows and money at risk are read back as they were stored, one result of a run."""
    with store.writing() as connection:
        nothing = results.load_summary(connection, run.run_id)
        for _ in range(2):
            results.save(connection, run.run_id, result=result)
    with store.reading() as connection:
        summary = results.load_summary(connection, run.run_id)
        totals = results.load_totals(connection, run.run_id)

    assert nothing is None
    assert summary == results.summary_of(result)
    assert summary.rows == dict.fromkeys(("break", "match", "pending", "unverified"), 1)
    assert summary.exposure == {"EUR": 250}
    assert (summary.verdict, summary.digest) == (result.verdict, result.digest)
    assert totals == result.control_totals


def test_the_trend_has_one_point_per_night(store: Store, run: Run, result: Reconciliation) -> None:
    """Open breaks of earlier nights are those of each night's newest finished run."""
    with store.writing() as connection:
        results.save(connection, run.run_id, result=result)
        runs.note_result(connection, run.run_id, values={"verdict": "BREAKS OPEN"})
        runs.finish(connection, run.run_id, status="finished", problem="", now=AS_OF)
    place = {"merchant_id": run.merchant_id, "account_id": run.account_id}
    with store.reading() as connection:
        later = results.open_breaks_by_night(connection, **place, before=date(2026, 11, 21))
        same = results.open_breaks_by_night(connection, **place, before=date(2026, 11, 20))

    assert (later, same) == ({date(2026, 11, 20): 1}, {})


def test_totals_keep_their_order_and_sides(store: Store, run: Run) -> None:
    """Control totals come back in order with both sides exact, also beyond 32 bits."""
    totals = tuple(
        ControlTotal(f"T{n}", "name", "m", "a", "EUR", "amount", 10**15 + n, -(10**15))
        for n in range(3)
    )
    with store.writing() as connection:
        results.save_totals(connection, run.run_id, totals=totals)
    with store.reading() as connection:
        assert results.load_totals(connection, run.run_id) == totals
