import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

import pytest
from sqlalchemy import select

from recon.errors import Defect
from recon.model import GatewayState, InstructionKind, Mode, NightRequest, Outcome
from recon.settlement.eligibility import Cleared, Payment
from recon.settlement.planning import Action, Known, plan
from recon.settlement.sender import (
    BatchResult,
    NoReply,
    Prepared,
    Reply,
    RowResult,
    Sender,
    Sent,
    SurelyNotSent,
)
from recon.store import history, instruction_rows, runs
from recon.store.engine import Store
from recon.store.journal import StoredJournal
from recon.store.runs import Run
from recon.store.schema import batch, instruction

AT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)


class Crash(BaseException):
    """The process ends here."""


class ScriptedGateway:
    """Answers each send with the next entry of its script, and counts what reached it."""

    def __init__(self, *script: object) -> None:
        self._script = list(script)
        self.reached: list[tuple[str, ...]] = []

    def prepare(self, kind: InstructionKind, rows: Sequence[Cleared]) -> Prepared:
        ids = ",".join(row.instruction.instruction_id for row in rows)
        return Prepared(kind, tuple(rows), ids.encode(), f"sha-{ids}", None)

    async def send(self, prepared: Prepared) -> Reply | SurelyNotSent | NoReply:
        answer = self._script.pop(0) if self._script else Outcome.DONE
        if not isinstance(answer, SurelyNotSent):
            self.reached.append(tuple(r.instruction.instruction_id for r in prepared.rows))
        if isinstance(answer, SurelyNotSent | NoReply):
            return answer
        return Reply(200, {}, str(answer).encode(), AT)

    def judge(self, prepared: Prepared, reply: Reply) -> BatchResult:
        outcome = Outcome(reply.body.decode())
        rows = tuple(RowResult(outcome, "c", "m") for _ in prepared.rows)
        return BatchResult(rows, "1", "OK", "")


def _cleared(store: Store, run: Run, *, orders: int) -> list[Cleared]:
    ids = count(1)
    actions = [
        Action(
            action_id=n,
            file_id=1,
            file_name="orders.csv",
            line=n,
            merchant_id=run.merchant_id,
            account_id=run.account_id,
            order_no=f"A-{n}",
            transaction_id="",
            kind=InstructionKind.CAPTURE,
            currency="EUR",
            order_amount=1_000 + n,
            action_amount=None,
            reason="",
            request_id="",
            occurrence=1,
        )
        for n in range(1, orders + 1)
    ]
    made = plan(actions, known=Known(), new_id=lambda: f"i{next(ids):03}", auto_approve=True)
    with store.writing() as connection:
        instruction_rows.save_plan(connection, run, plan=replace(made, links=()), at=AT)
    return [
        Cleared(item, Payment(f"T-{item.order_no}", GatewayState.AUTHORISED, "2000", "EUR", 9_999))
        for item in made.new
    ]


def _send(
    store: Store,
    run: Run,
    *,
    cleared: Sequence[Cleared],
    gateway: ScriptedGateway,
    mark: Callable[[str], None] = lambda _: None,
    prefix: str = "b",
) -> Sent:
    journal = StoredJournal(
        store, run_id=run.run_id, merchant_id=run.merchant_id, account_id=run.account_id
    )
    numbers = count(1)
    sender = Sender(
        gateway=gateway,
        journal=journal,
        clock=lambda: AT,
        new_id=lambda: f"{prefix}{next(numbers)}",
        mark=mark,
    )
    return asyncio.run(sender.send_all(cleared))


def _states(store: Store) -> list[str]:
    with store.reading() as connection:
        found = connection.execute(select(instruction.c.state).order_by(instruction.c.natural_key))
        return list(found.scalars())


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (Outcome.DONE, "confirmed"),
        (Outcome.ACCEPTED, "confirmed"),
        (Outcome.FAILED, "rejected"),
        (Outcome.REJECTED, "rejected"),
        (Outcome.UNKNOWN, "in_doubt"),
        (Outcome.PENDING, "in_doubt"),
        (NoReply("silence"), "in_doubt"),
    ],
)
def test_each_answer_has_its_state(store: Store, run: Run, answer: object, state: str) -> None:
    """What an answer proves decides the state; what proves nothing is doubt, never failure."""
    cleared = _cleared(store, run, orders=2)
    _send(store, run, cleared=cleared, gateway=ScriptedGateway(answer))

    assert _states(store) == [state, state]


def test_batches_have_fifty_rows_at_most(store: Store, run: Run) -> None:
    """A hundred and one captures go in three batches, every one once."""
    gateway = ScriptedGateway()
    sent = _send(store, run, cleared=_cleared(store, run, orders=101), gateway=gateway)

    assert [len(rows) for rows in gateway.reached] == [50, 50, 1]
    assert (sent.batches, sent.rows, sent.stop_reason) == (3, 101, "")


def test_what_surely_did_not_leave_is_tried_three_times(store: Store, run: Run) -> None:
    """A refused connection is tried again as a new batch, three times, and then sending stops."""
    gateway = ScriptedGateway(*[SurelyNotSent("refused")] * 9)
    sent = _send(store, run, cleared=_cleared(store, run, orders=60), gateway=gateway)

    assert gateway.reached == []
    assert set(_states(store)) == {"approved"}
    assert "could not be reached 3 times" in sent.stop_reason


def test_two_doubtful_batches_stop_the_night(store: Store, run: Run) -> None:
    """After two batches in a row without an answer nothing more is sent."""
    gateway = ScriptedGateway(NoReply("silence"), NoReply("silence"))
    sent = _send(store, run, cleared=_cleared(store, run, orders=150), gateway=gateway)

    assert len(gateway.reached) == 2
    assert _states(store).count("approved") == 50
    assert "2 batches in a row" in sent.stop_reason


def test_an_instruction_is_never_claimed_twice(store: Store, run: Run) -> None:
    """A second claim of the same instruction changes nothing and sends nothing."""
    cleared = _cleared(store, run, orders=3)
    _send(store, run, cleared=cleared, gateway=ScriptedGateway())
    gateway = ScriptedGateway()

    with pytest.raises(Defect, match="no longer approved"):
        _send(store, run, cleared=cleared, gateway=gateway, prefix="again")
    assert gateway.reached == []
    with store.reading() as connection:
        assert len(connection.execute(select(batch)).all()) == 1


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
        _send(store, run, cleared=_cleared(store, run, orders=2), gateway=gateway, mark=mark)
    expected = {"before claim": "approved", "after record": "confirmed"}.get(point, "in_flight")

    assert _states(store) == [expected, expected]
    assert not gateway.reached or expected != "approved"


def test_every_change_stands_in_a_closed_chain(store: Store, run: Run) -> None:
    """Claims and outcomes are events of the history, and the chain closes."""
    _send(store, run, cleared=_cleared(store, run, orders=2), gateway=ScriptedGateway())
    with store.reading() as connection:
        events = [e["event"] for e in history.of_entity(connection, "i001")]
        _, problem = history.verify(connection)

    assert events == ["approved", "in_flight", "confirmed"]
    assert problem == ""


def test_a_run_that_was_taken_over_sends_nothing_more(store: Store, run: Run) -> None:
    """A process that was stopped and woken finds that another run has its place."""
    cleared = _cleared(store, run, orders=2)
    with store.writing() as connection:
        request = NightRequest(run.merchant_id, run.account_id, run.business_date, Mode.LIVE)
        runs.start(connection, request, run_id="r2", as_of=AT, now=AT)
    gateway = ScriptedGateway(Outcome.DONE)
    sent = _send(store, run, cleared=cleared, gateway=gateway)

    assert (_states(store), gateway.reached) == (["approved", "approved"], [])
    assert "another run took the account over" in sent.stop_reason
