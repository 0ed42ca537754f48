import asyncio
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import pytest
from sqlalchemy import Engine, event, select

from recon.gateway_client import RawReply, ReplyOutcome
from recon.instructions.eligibility import Cleared
from recon.instructions.sender import Sender, Sent
from recon.model.errors import Defect, NightHeldError
from recon.model.nights import Mode, NightRequest
from recon.store.database import history
from recon.store.database.engine import Store
from recon.store.money import instruction_rows
from recon.store.money.instruction_rows import OpenBatch
from recon.store.money.journal import StoredJournal
from recon.store.nights import runs
from recon.store.nights.runs import Run
from recon.store.schema import batch
from tests.recon.instructions.sample_instructions import not_sent, reply_of, silence
from tests.recon.store.scripted import AT, LoneJournal, ScriptedGateway, cleared_captures, states_of


class Crash(BaseException):
    """The process ends here."""


def _send(
    store: Store,
    run: Run,
    *,
    cleared: Sequence[Cleared],
    gateway: ScriptedGateway,
    crash_point: Callable[[str], None] = lambda _: None,
    prefix: str = "b",
) -> Sent:
    journal = LoneJournal(store, run, run_id=run.run_id)
    numbers = count(1)
    sender = Sender(
        gateway=gateway,
        journal=journal,
        clock=lambda: AT,
        new_id=lambda: f"{prefix}{next(numbers)}",
        crash_point=crash_point,
    )
    return asyncio.run(sender.send_all(cleared))


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (ReplyOutcome.DONE, "confirmed"),
        (ReplyOutcome.ACCEPTED, "confirmed"),
        (ReplyOutcome.FAILED, "rejected"),
        (ReplyOutcome.REJECTED, "rejected"),
        (ReplyOutcome.UNKNOWN, "in_doubt"),
        (ReplyOutcome.PENDING, "in_doubt"),
        (silence(), "in_doubt"),
    ],
)
def test_each_answer_has_its_state(store: Store, run: Run, answer: object, state: str) -> None:
    """What an answer proves decides the state; what proves nothing is doubt, never failure."""
    cleared = cleared_captures(store, run, orders=2)
    _send(store, run, cleared=cleared, gateway=ScriptedGateway(answer))

    assert states_of(store) == [state, state]


def test_batches_have_fifty_rows_at_most(store: Store, run: Run) -> None:
    """A hundred and one captures go in three batches, every one once."""
    gateway = ScriptedGateway()
    sent = _send(store, run, cleared=cleared_captures(store, run, orders=101), gateway=gateway)

    assert [len(rows) for rows in gateway.reached] == [50, 50, 1]
    assert (sent.batches, sent.rows, sent.stop_reason) == (3, 101, "")


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_no_batch_reads_the_whole_history(store: Store, run: Run) -> None:
    """What a batch asks the database costs the same, however many nights the history has."""
    cleared, asked = cleared_captures(store, run, orders=2), dict[str, Any]()

    def note(_: Any, _cursor: Any, text: str, values: Any, *more: Any) -> None:
        asked[text] = values[0] if more[-1] else values

    event.listen(Engine, "before_cursor_execute", note)
    _send(store, run, cleared=cleared, gateway=ScriptedGateway())
    event.remove(Engine, "before_cursor_execute", note)
    with store.reading() as connection:
        steps = {
            text: [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", it)]
            for text, it in asked.items()
            if text.startswith("SELECT")
        }

    assert any("instruction.approved_by" in text and "history" in text for text in steps)
    assert [text for text, how in steps.items() if "SCAN history" in how] == []


def test_what_surely_did_not_leave_is_tried_three_times(store: Store, run: Run) -> None:
    """A refused connection is tried again as a new batch, three times, and then sending stops."""
    gateway = ScriptedGateway(*[not_sent()] * 9)
    sent = _send(store, run, cleared=cleared_captures(store, run, orders=60), gateway=gateway)

    assert gateway.reached == []
    assert set(states_of(store)) == {"approved"}
    assert "nothing could be sent 3 times in a row" in sent.stop_reason


def test_two_doubtful_batches_stop_the_night(store: Store, run: Run) -> None:
    """After two batches in a row without an answer nothing more is sent."""
    gateway = ScriptedGateway(silence(), silence())
    sent = _send(store, run, cleared=cleared_captures(store, run, orders=150), gateway=gateway)

    assert len(gateway.reached) == 2
    assert states_of(store).count("approved") == 50
    assert "2 batches in a row" in sent.stop_reason


def test_an_instruction_is_never_claimed_twice(store: Store, run: Run) -> None:
    """A second claim of the same instruction changes nothing and sends nothing."""
    cleared = cleared_captures(store, run, orders=3)
    _send(store, run, cleared=cleared, gateway=ScriptedGateway())
    gateway = ScriptedGateway()

    sent = _send(store, run, cleared=cleared, gateway=gateway, prefix="again")
    assert gateway.reached == []
    assert (sent.rows, len(sent.left_out)) == (0, 3)
    with store.reading() as connection:
        assert len(connection.execute(select(batch)).all()) == 1


def test_a_claim_takes_only_what_is_approved(
    store: Store, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the last look lets through: the statement that claims asks for the state itself."""
    cleared = cleared_captures(store, run, orders=3)
    _send(store, run, cleared=cleared[1:2], gateway=ScriptedGateway())
    monkeypatch.setattr("recon.store.money.journal.left_out", lambda *_, **__: {})
    gateway = ScriptedGateway()

    with pytest.raises(Defect, match="no longer approved; nothing was sent"):
        _send(store, run, cleared=cleared, gateway=gateway, prefix="again")

    assert gateway.reached == []
    assert sorted(states_of(store)) == ["approved", "approved", "confirmed"]


POINTS = ("before claim", "after claim", "after send", "after reply", "after record")


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_leaves_approved_or_in_flight_and_never_half(
    store: Store, run: Run, point: str
) -> None:
    """Wherever the process ends, a row that may have left is on record as in flight or settled."""

    def mark(at: str) -> None:
        if at == point:
            raise Crash

    gateway = ScriptedGateway()
    with pytest.raises(Crash):
        _send(
            store,
            run,
            cleared=cleared_captures(store, run, orders=2),
            gateway=gateway,
            crash_point=mark,
        )
    expected = {"before claim": "approved", "after record": "confirmed"}.get(point, "in_flight")

    assert states_of(store) == [expected, expected]
    assert not gateway.reached or expected != "approved"


def test_every_change_stands_in_a_closed_chain(store: Store, run: Run) -> None:
    """Claims and outcomes are events of the history, and the chain closes."""
    _send(store, run, cleared=cleared_captures(store, run, orders=2), gateway=ScriptedGateway())
    with store.reading() as connection:
        events = [e.event for e in history.links_of(connection, ["i001"])]
        _, problem = history.verify(connection)

    assert events == ["approved", "in_flight", "confirmed"]
    assert problem == ""


def test_a_run_that_was_taken_over_sends_nothing_more(store: Store, run: Run) -> None:
    """A process that was stopped and woken finds that another run has its place."""
    cleared = cleared_captures(store, run, orders=2)
    with store.writing() as connection:
        request = NightRequest(run.merchant_id, run.account_id, run.business_date, Mode.LIVE)
        runs.start(connection, request, run_id="r2", as_of=AT, now=AT)
    gateway = ScriptedGateway(ReplyOutcome.DONE)
    sent = _send(store, run, cleared=cleared, gateway=gateway)

    assert (states_of(store), gateway.reached) == (["approved", "approved"], [])
    assert "another run took the account over" in sent.stop_reason


def _taken_over(store: Store, run: Run) -> None:
    """Another run starts on the account and doubts what it finds in flight."""
    other = _journal(store, run, run_id="r2")
    with store.writing() as connection:
        request = NightRequest(run.merchant_id, run.account_id, run.business_date, Mode.LIVE)
        runs.start(connection, request, run_id="r2", as_of=AT, now=AT)
        held = connection.execute(select(batch.c.batch_id).where(batch.c.state == "claimed"))
        found = list(held.scalars())
    for batch_id in found:
        other.doubt(batch_id, reason="its sender is gone", at=AT)


def _journal(store: Store, run: Run, *, run_id: str) -> StoredJournal:
    return StoredJournal(store, run, run_id=run_id)


def test_a_run_that_lost_its_place_claims_nothing(store: Store, run: Run) -> None:
    """Taken over after it last looked: the claim itself finds out."""
    journal = _journal(store, run, run_id=run.run_id)
    ready = cleared_captures(store, run, orders=2)
    prepared = ScriptedGateway().prepare(ready)
    _taken_over(store, run)

    with pytest.raises(NightHeldError, match="another run took the account over"):
        journal.claim("b1", ready, request=prepared, at=AT)
    assert states_of(store) == ["approved", "approved"]


def test_a_reply_after_a_takeover_is_kept_and_decides_nothing(store: Store, run: Run) -> None:
    """What another run doubted stays in doubt; the late reply rests with its batch."""
    journal = _journal(store, run, run_id=run.run_id)
    ready = cleared_captures(store, run, orders=2)
    prepared = ScriptedGateway().prepare(ready)
    journal.claim("b1", ready, request=prepared, at=AT)
    _taken_over(store, run)

    with pytest.raises(NightHeldError, match="while batch b1 was under way"):
        journal.keep_reply("b1", RawReply(200, {}, b"DONE", AT), kept=b"DONE")
    with pytest.raises(NightHeldError):
        journal.release("b1", reason="held up", at=AT)
    with store.reading() as connection:
        kept = connection.execute(select(batch.c.state, batch.c.reply)).one()
    assert states_of(store) == ["in_doubt", "in_doubt"]
    assert tuple(kept) == ("closed", b"DONE")


def test_a_kept_reply_comes_back_with_its_head(store: Store, run: Run) -> None:
    """What is judged after a crash is what came: status, head, body and instant."""
    journal = _journal(store, run, run_id=run.run_id)
    ready = cleared_captures(store, run, orders=1)
    prepared = ScriptedGateway().prepare(ready)
    reply = RawReply(429, {"retry-after": "30"}, b"slow down", AT)
    journal.claim("b1", ready, request=prepared, at=AT)
    journal.keep_reply("b1", reply, kept=reply.body)
    with store.reading() as connection:
        (kept,) = instruction_rows.open_batches(connection, run)

    assert kept == OpenBatch("b1", prepared.body_sha256, reply)


def test_a_run_that_slept_before_its_sweep_ends_no_batch_of_another(store: Store, run: Run) -> None:
    """What a run finds open after it was taken over may be on the wire for its successor."""
    late = _journal(store, run, run_id=run.run_id)
    ready = cleared_captures(store, run, orders=1)
    prepared = ScriptedGateway().prepare(ready)
    _taken_over(store, run)
    _journal(store, run, run_id="r2").claim("b2", ready, request=prepared, at=AT)

    with pytest.raises(NightHeldError, match="another run took the account over"):
        late.doubt("b2", reason="its sender is gone", at=AT)
    with pytest.raises(NightHeldError, match="another run took the account over"):
        late.record("b2", reply_of(ReplyOutcome.DONE), at=AT)
    assert states_of(store) == ["in_flight"]


def test_a_run_that_was_taken_over_stays_as_it_was_closed(store: Store, run: Run) -> None:
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
        told = [row.event for row in history.links_of(connection, [run.run_id])]

    assert states == {run.run_id: "stopped", "r2": "active"}
    assert told == ["started", "taken over"]
