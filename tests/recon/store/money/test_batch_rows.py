"""Many rows by one statement: each by compare-and-set, all or none."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import pytest
from sqlalchemy import select, update

from recon.gateway_client import BatchReply, ReplyOutcome
from recon.gateway_client.payouts import PayoutRecord
from recon.gateway_client.replies import RowOutcome
from recon.instructions.eligibility import Cleared
from recon.model.errors import Defect
from recon.store.database.engine import Store
from recon.store.money.journal import StoredJournal
from recon.store.nights.runs import Run
from recon.store.schema import attempt, batch, instruction
from tests.recon.instructions.sample_instructions import reply_of, request_of
from tests.recon.store.scripted import AT, cleared_captures, states_of

Ask = Callable[[StoredJournal], None]


def _journal(store: Store, run: Run) -> StoredJournal:
    return StoredJournal(store, run, run_id=run.run_id)


def _claim(journal: StoredJournal, rows: Sequence[Cleared]) -> Mapping[str, str]:
    return journal.claim("b1", rows, request=request_of(rows, body=b"body", sha="sha"), at=AT)


def _change(store: Store, wanted: str, **values: object) -> None:
    with store.writing() as connection:
        changed = update(instruction).where(instruction.c.instruction_id == wanted)
        connection.execute(changed.values(**values))


def test_a_claim_writes_what_each_row_shows(store: Store, run: Run) -> None:
    """Payment, baseline, batch and moment of each row; attempts count from what was stored."""
    cleared = cleared_captures(store, run, orders=3)
    _change(store, "i002", attempts=4)
    _claim(_journal(store, run), cleared)
    with store.reading() as connection:
        rows = connection.execute(select(instruction).order_by(instruction.c.line)).all()
        tries = connection.execute(select(attempt).order_by(attempt.c.position)).all()

    assert [(row.transaction_id, row.payment_amount) for row in rows] == [
        ("T-A-1", 9_999),
        ("T-A-2", 9_999),
        ("T-A-3", 9_999),
    ]
    assert {(row.batch_id, row.baseline_status, row.sent_at) for row in rows} == {
        ("b1", "2000", AT)
    }
    assert [(one.instruction_id, one.number) for one in tries] == [
        ("i001", 1),
        ("i002", 5),
        ("i003", 1),
    ]


@pytest.mark.parametrize("state", ["withdrawn", "in_flight", "planned"])
def test_a_row_that_somebody_else_changed_is_named_and_nothing_is_claimed(
    store: Store, run: Run, state: str
) -> None:
    """The bytes of the request have that row in them, so none of its rows may be claimed."""
    cleared = cleared_captures(store, run, orders=3)
    _change(store, "i002", state=state, message="by Ann: not meant")
    told = _claim(_journal(store, run), cleared)
    assert told == {"i002": f"it is {state} since this run looked: by Ann: not meant"}
    with store.reading() as connection:
        batches = connection.execute(select(batch)).all()

    assert states_of(store) == ["approved", state, "approved"]
    assert batches == []


@pytest.mark.parametrize(
    "ask",
    [
        lambda journal: journal.release("b1", reason="refused", at=AT),
        lambda journal: journal.doubt("b1", reason="silence", at=AT),
        lambda journal: journal.record("b1", reply_of(*[ReplyOutcome.DONE] * 3), at=AT),
    ],
    ids=["release", "doubt", "record"],
)
@pytest.mark.parametrize("change", [{"state": "needs_human"}, {"batch_id": "b2"}])
def test_outcomes_go_only_to_rows_in_flight_in_their_batch(
    store: Store, run: Run, ask: Ask, change: dict[str, str]
) -> None:
    """A row that left its batch keeps what was decided of it, and its neighbours wait with it."""
    cleared = cleared_captures(store, run, orders=3)
    journal = _journal(store, run)
    _claim(journal, cleared)
    _change(store, "i003", **change)
    with pytest.raises(Defect, match="i003 is not in flight in batch b1"):
        ask(journal)

    assert states_of(store) == ["in_flight", "in_flight", change.get("state", "in_flight")]


def test_each_row_of_a_batch_gets_its_own_outcome(store: Store, run: Run) -> None:
    """Outcomes that set different columns are settled by statements of their own."""
    results = (
        RowOutcome(0, "T-A-1", "A-1", ReplyOutcome.DONE, "0", "done", refund_reference_id="T-01"),
        RowOutcome(1, "T-A-2", "A-2", ReplyOutcome.UNKNOWN, "9", "who knows"),
        RowOutcome(2, "T-A-3", "A-3", ReplyOutcome.NOT_SENT, "", "not sent"),
        RowOutcome(3, "P-7", "", ReplyOutcome.DONE, "0", "paid", payout=PayoutRecord()),
        RowOutcome(4, "T-A-5", "A-5", ReplyOutcome.REJECTED, "5", "no"),
    )
    cleared = cleared_captures(store, run, orders=5)
    journal = _journal(store, run)
    _claim(journal, cleared)
    later = datetime(2026, 11, 21, 2, 5, tzinfo=UTC)
    journal.record("b1", BatchReply(results, return_status="1"), at=later)
    with store.reading() as connection:
        rows = connection.execute(select(instruction).order_by(instruction.c.line)).all()
        tries = connection.execute(select(attempt).order_by(attempt.c.position)).all()

    assert [(row.state, row.outcome_at, row.in_doubt_since) for row in rows] == [
        ("confirmed", later, None),
        ("in_doubt", None, later),
        ("approved", None, None),
        ("confirmed", later, None),
        ("rejected", later, None),
    ]
    assert [row.transaction_id for row in rows] == ["T-A-1", "T-A-2", "T-A-3", "P-7", "T-A-5"]
    assert [(row.code, row.message, row.refund_reference_id) for row in rows] == [
        (one.code, one.message, one.refund_reference_id) for one in results
    ]
    assert [(one.outcome, one.code, one.message) for one in tries] == [
        (one.outcome.value, one.code, one.message) for one in results
    ]
