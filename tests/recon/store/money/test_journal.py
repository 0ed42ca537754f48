import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Engine, event, select, text, update

from recon.gateway_client import BatchReply, PreparedRequest, RawReply, ReplyOutcome
from recon.gateway_client.payouts import PayoutRecord
from recon.gateway_client.replies import RowOutcome
from recon.instructions.eligibility import Eligible, QueriedPayment
from recon.model.errors import Defect, GateClosedError, NightHeldError
from recon.model.nights import Mode, NightRequest
from recon.model.terms import GatewayState, InstructionKind, InstructionState
from recon.store.database import history
from recon.store.database.history import Event, append
from recon.store.database.record import ROW
from recon.store.money import instruction_rows
from recon.store.money.endorsement_rows import ENTITY, events_of, refuse_changed_rows
from recon.store.money.instruction_rows import OpenBatch, move
from recon.store.money.journal import StoredJournal
from recon.store.money.sending_rows import paid_payees
from recon.store.nights import runs
from recon.store.schema import attempt, batch, instruction
from tests.recon.instructions.sample_instructions import reply_of, request_of
from tests.recon.store.scripted import (
    AT,
    CAPTURE,
    ScriptedGateway,
    eligible_captures,
    journal_of,
    planned,
    send,
    states_of,
)


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_no_batch_reads_the_whole_history(store, run):
    """What a batch asks the database costs the same, however many nights the history has."""
    eligible, asked = eligible_captures(store, run, orders=2), dict[str, Any]()

    def note(_, _cursor, text, values, *more):
        if ENTITY not in values:  # a run reads all of them once, then the newest
            asked[text] = values[0] if more[-1] else values

    event.listen(Engine, "before_cursor_execute", note)
    send(store, run, eligible, gateway=ScriptedGateway())
    event.remove(Engine, "before_cursor_execute", note)
    with store.reading() as connection:
        steps = {
            text: [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", it)]
            for text, it in asked.items()
            if text.startswith("SELECT")
        }

    assert any("instruction.approved_by" in text and "history" in text for text in steps)
    whole = re.compile(r"SCAN history$|SEARCH history .*\(entity=\?\)$")
    assert [text for text, how in steps.items() if any(map(whole.match, how))] == []


def test_a_claim_takes_only_what_is_approved(store, run, monkeypatch):
    """Whatever the last look lets through: the statement that claims asks for the state itself."""
    eligible = eligible_captures(store, run, orders=3)
    send(store, run, eligible[1:2], gateway=ScriptedGateway())
    monkeypatch.setattr("recon.store.money.journal.left_out", lambda *_, **__: {})
    gateway = ScriptedGateway()

    with pytest.raises(Defect, match="i002 is no longer approved"):
        send(store, run, eligible, gateway=gateway, prefix="again")

    assert gateway.reached == []
    assert sorted(states_of(store)) == ["approved", "approved", "confirmed"]


def _taken_over(store, run):
    other = _journal(store, run, run_id="r2")
    with store.writing() as connection:
        request = NightRequest(run.merchant_id, run.account_id, run.business_date, Mode.LIVE)
        runs.start(connection, request, run_id="r2", as_of=AT, now=AT)
        held = connection.execute(select(batch.c.batch_id).where(batch.c.state == "claimed"))
        found = list(held.scalars())
    for batch_id in found:
        other.doubt(batch_id, reason="its sender is gone", at=AT)


def _journal(store, run, *, run_id):
    return journal_of(store, run, run_id=run_id)


class Ready(NamedTuple):
    """A journal of the run, and captures that it may claim."""

    journal: StoredJournal
    rows: Sequence[Eligible]
    request: PreparedRequest

    def claim(self, journal=None, *, batch_id="b1"):
        assert not (journal or self.journal).claim(batch_id, self.rows, request=self.request, at=AT)


@pytest.fixture
def ready(store, run):
    rows = eligible_captures(store, run, orders=2)
    prepared = ScriptedGateway().prepare(rows)
    return Ready(_journal(store, run, run_id=run.run_id), rows, prepared)


def test_a_run_that_lost_its_place_claims_nothing(store, run, ready):
    _taken_over(store, run)

    with pytest.raises(NightHeldError, match="another run took the account over"):
        ready.claim()
    assert states_of(store) == ["approved", "approved"]


def test_a_reply_after_a_takeover_is_kept_and_decides_nothing(store, run, ready):
    ready.claim()
    _taken_over(store, run)

    with pytest.raises(NightHeldError, match="while batch b1 was under way"):
        ready.journal.save_reply("b1", RawReply(200, {}, b"DONE", AT), saved=b"DONE")
    with pytest.raises(NightHeldError):
        ready.journal.release("b1", reason="held up", at=AT)
    with store.reading() as connection:
        saved = connection.execute(select(batch.c.state, batch.c.reply)).one()
    assert states_of(store) == ["in_doubt", "in_doubt"]
    assert tuple(saved) == ("closed", b"DONE")


def test_a_kept_reply_comes_back_with_its_head(store, run, ready):
    """What is judged after a crash is what came: status, head, body and instant."""
    reply = RawReply(429, {"retry-after": "30"}, b"slow down", AT)
    ready.claim()
    ready.journal.save_reply("b1", reply, saved=reply.body)
    with store.reading() as connection:
        (saved,) = instruction_rows.open_batches(connection, run)

    assert saved == OpenBatch("b1", ready.request.body_sha256, reply)


def test_a_run_that_slept_before_its_sweep_ends_no_batch_of_another(store, run, ready):
    """What a run finds open after it was taken over may be on the wire for its successor."""
    _taken_over(store, run)
    ready.claim(_journal(store, run, run_id="r2"), batch_id="b2")

    with pytest.raises(NightHeldError, match="another run took the account over"):
        ready.journal.doubt("b2", reason="its sender is gone", at=AT)
    with pytest.raises(NightHeldError, match="another run took the account over"):
        ready.journal.record("b2", reply_of(*[ReplyOutcome.DONE] * 2), at=AT)
    assert states_of(store) == ["in_flight", "in_flight"]


def test_a_run_that_was_taken_over_stays_as_it_was_closed(store, run):
    """Its process wakes and comes to its end: neither finished nor a newer reason."""
    _taken_over(store, run)
    for status in ("finished", "stopped"):
        with (
            pytest.raises(NightHeldError, match="another run took the account over"),
            store.writing() as connection,
        ):
            runs.finish(connection, run.run_id, status=status, problem="", now=AT)
    with store.reading() as connection:
        states = {one: runs.get(connection, one).status for one in (run.run_id, "r2")}
        told = [row.event for row in history.links_of(connection, [run.run_id], entity="run")]

    assert states == {run.run_id: "stopped", "r2": "active"}
    assert told == ["started", "taken over"]


def _claim(journal, rows):
    return journal.claim("b1", rows, request=request_of(rows, body=b"body", sha="sha"), at=AT)


def _change(store, wanted, **values):
    with store.writing() as connection:
        changed = update(instruction).where(instruction.c.instruction_id == wanted)
        connection.execute(changed.values(**values))


def test_a_claim_writes_what_each_row_shows(store, run):
    eligible = eligible_captures(store, run, orders=3)
    _change(store, "i002", attempts=4)
    _claim(_journal(store, run, run_id=run.run_id), eligible)
    with store.reading() as connection:
        rows = connection.execute(select(instruction).order_by(instruction.c.line)).all()
        tries = connection.execute(select(attempt).order_by(attempt.c.position)).all()

    assert [(row.transaction_id, row.payment_amount) for row in rows] == [
        (f"T-A-{number}", 9_999) for number in (1, 2, 3)
    ]
    assert {(row.batch_id, row.baseline_status, row.sent_at) for row in rows} == {
        ("b1", "2000", AT)
    }
    numbers = {one.instruction_id: one.number for one in tries}
    assert numbers == {"i001": 1, "i002": 5, "i003": 1}


@pytest.mark.parametrize("state", ["withdrawn", "in_flight", "planned"])
def test_a_row_that_somebody_else_changed_is_named_and_nothing_is_claimed(store, run, state):
    """The bytes of the request have that row in them, so none of its rows may be claimed."""
    eligible = eligible_captures(store, run, orders=3)
    _change(store, "i002", state=state, message="by Ann: not meant")
    told = _claim(_journal(store, run, run_id=run.run_id), eligible)
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
def test_outcomes_go_only_to_rows_in_flight_in_their_batch(store, run, ask, change):
    """A row that left its batch keeps what was decided of it, and its neighbours wait with it."""
    eligible = eligible_captures(store, run, orders=3)
    journal = _journal(store, run, run_id=run.run_id)
    _claim(journal, eligible)
    _change(store, "i003", **change)
    with pytest.raises(Defect, match="i003 is not in flight in batch b1"):
        ask(journal)

    assert states_of(store) == ["in_flight", "in_flight", change.get("state", "in_flight")]


def test_each_row_of_a_batch_gets_its_own_outcome(store, run):
    results = (
        RowOutcome(0, "T-A-1", "A-1", ReplyOutcome.DONE, "0", "done", refund_reference_id="T-01"),
        RowOutcome(1, "T-A-2", "A-2", ReplyOutcome.UNKNOWN, "9", "who knows"),
        RowOutcome(2, "T-A-3", "A-3", ReplyOutcome.NOT_SENT, "", "not sent"),
        RowOutcome(3, "P-7", "", ReplyOutcome.DONE, "0", "paid", payout=PayoutRecord()),
        RowOutcome(4, "T-A-5", "A-5", ReplyOutcome.REJECTED, "5", "no"),
        RowOutcome(5, "T-A-6", "A-6", ReplyOutcome.ACCEPTED, "1", "taken on"),
        RowOutcome(6, "T-A-7", "A-7", ReplyOutcome.FAILED, "6", "no"),
        RowOutcome(7, "T-A-8", "A-8", ReplyOutcome.PENDING, "2", "later"),
    )
    eligible = eligible_captures(store, run, orders=8)
    journal = _journal(store, run, run_id=run.run_id)
    _claim(journal, eligible)
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
        ("confirmed", later, None),
        ("rejected", later, None),
        ("in_doubt", None, later),
    ]
    ids = ["T-A-1", "T-A-2", "T-A-3", "P-7", *(f"T-A-{number}" for number in range(5, 9))]
    assert [row.transaction_id for row in rows] == ids
    assert [(row.code, row.message, row.refund_reference_id) for row in rows] == [
        (one.code, one.message, one.refund_reference_id) for one in results
    ]
    assert [(one.outcome, one.code, one.message) for one in tries] == [
        (one.outcome.value, one.code, one.message) for one in results
    ]


PAYOUT = replace(
    CAPTURE,
    order_no="",
    kind=InstructionKind.PAYOUT,
    order_amount=25_000,
    action_amount=25_000,
    request_id="P-1",
    strict=True,
    payee="DE…3000",
    payee_digest="d" * 64,
    content_digest="c" * 64,
    sealed="sealed details",
)


def _planned(store, run):
    (payout,) = planned(store, run, PAYOUT)
    return Eligible(payout, QueriedPayment("", GatewayState.NONE, "", "EUR", 25_000))


def _sealed(store):
    with store.reading() as connection:
        found = connection.execute(select(instruction.c.state, instruction.c.sealed)).one()
    return found.state, found.sealed


def _answered(store, run, outcome):
    eligible = _planned(store, run)
    journal = journal_of(store, run, run_id=run.run_id)
    journal.claim("b1", [eligible], request=request_of([eligible], sha="0" * 64), at=AT)
    reply = RawReply(200, {}, b"to DE89370400440532013000", AT)
    journal.save_reply("b1", reply, saved=b"to ...")
    journal.record("b1", reply_of(outcome), at=AT)


@pytest.mark.parametrize(
    ("outcome", "expected", "known"),
    [
        (ReplyOutcome.DONE, ("confirmed", ""), {"d" * 64}),
        (ReplyOutcome.FAILED, ("rejected", ""), set()),
        (ReplyOutcome.UNKNOWN, ("in_doubt", "sealed details"), set()),
        (ReplyOutcome.NOT_SENT, ("approved", "sealed details"), set()),
    ],
)
def test_details_are_erased_when_the_payout_is_final(store, run, outcome, expected, known):
    """One that may still need them keeps them; doubt is no proof that a payee was ever paid."""
    _answered(store, run, outcome)
    with store.reading() as connection:
        paid, reply = (
            paid_payees(connection, run),
            connection.execute(select(batch.c.reply)).scalar(),
        )

    assert _sealed(store) == expected
    assert (paid, reply) == (known, b"to ...")


def test_a_withdrawn_payout_keeps_no_details(store, run):
    eligible = _planned(store, run)
    with store.writing() as connection:
        move(connection, eligible.instruction, to=InstructionState.WITHDRAWN, values={})

    assert _sealed(store) == ("withdrawn", "")


def sent(store, run, *script):
    eligible = eligible_captures(store, run, orders=2)
    send(store, run, eligible, gateway=ScriptedGateway(*script))


def change(store, what):
    with store.writing() as connection:
        connection.execute(text(f"UPDATE instruction SET {what}"))  # noqa: S608 - of this test


@pytest.mark.parametrize("other", [{"amount": 7}, {"order_no": "A-2"}], ids=str)
def test_what_would_leave_is_compared_too(store, run, other):
    """The bytes are made from memory: that the table is right is not enough."""
    (row,) = eligible_captures(store, run, orders=1)
    forged = replace(row, instruction=replace(row.instruction, **other))
    with store.reading() as connection:
        refuse_changed_rows(connection, [row])
        with pytest.raises(GateClosedError, match="it was changed past the journal"):
            refuse_changed_rows(connection, [forged])


def test_a_payment_that_was_named_from_the_beginning_is_the_one_that_is_sent(store, run):
    """A claim fills in what was open, and changes nothing that was said."""
    (row,) = eligible_captures(store, run, orders=1)
    wanted = row.instruction.instruction_id
    with store.writing() as connection:
        terms = {ROW: {"transaction_id": "T-9"}}
        append(connection, [Event("instruction", wanted, "approved", terms)], at=AT)
    with (
        store.reading() as connection,
        pytest.raises(GateClosedError, match="its transaction id is T-A-1, bound was T-9"),
    ):
        refuse_changed_rows(connection, [row])


def test_events_of_many_instructions_are_read_in_parts(store, run):
    rows = eligible_captures(store, run, orders=3)
    ids = [row.instruction.instruction_id for row in rows]
    with store.reading() as connection:
        found = events_of(connection, [*ids, *(f"none-{n}" for n in range(1_000))])

    assert sorted(found) == sorted(ids)
