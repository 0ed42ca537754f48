"""A gateway that answers as it is told, and approved captures to send to it."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

from sqlalchemy import select

from recon.gateway_client import (
    BatchReply,
    NotSentError,
    PreparedRequest,
    RawReply,
    ReplyOutcome,
    UnknownOutcomeError,
)
from recon.instructions.eligibility import Eligible, QueriedPayment
from recon.instructions.instruction import Instruction
from recon.instructions.money_requests import GatewayOfMoney
from recon.instructions.planning import Action, Known, plan
from recon.model.terms import GatewayState, InstructionKind
from recon.steps.money.sender import Sender, Sent
from recon.store.database.engine import Store
from recon.store.money import instruction_rows
from recon.store.money.journal import StoredJournal
from recon.store.money.spill import Spill
from recon.store.nights.runs import Run
from recon.store.schema import instruction
from recon.store.schema.columns import Owner
from tests.recon.instructions.sample_instructions import reply_of, request_of

AT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)


class ScriptedGateway(GatewayOfMoney):
    """Answers each send with the next entry of its script, and counts what reached it."""

    def __init__(self, *script: object) -> None:
        self._script = list(script)
        self.reached: list[tuple[str, ...]] = []

    def prepare(self, rows: Sequence[Eligible]) -> PreparedRequest:
        ids = ",".join(row.instruction.instruction_id for row in rows)
        return request_of(rows, body=ids.encode(), sha=f"sha-{ids}")

    async def send(self, request: PreparedRequest) -> RawReply:
        answer = self._script.pop(0) if self._script else ReplyOutcome.DONE
        if not isinstance(answer, NotSentError):
            rows: Any = request.rows
            self.reached.append(tuple(row.instruction.instruction_id for row in rows))
        if isinstance(answer, NotSentError | UnknownOutcomeError):
            raise answer
        return RawReply(200, {}, str(answer).encode(), AT)

    def read(self, request: PreparedRequest, reply: RawReply) -> BatchReply:
        outcome = ReplyOutcome(reply.body.decode())
        return reply_of(*[outcome] * len(request.rows))


CAPTURE = Action(
    action_id=1,
    file_id=1,
    file_name="orders.csv",
    line=1,
    merchant_id="100042",
    account_id="100042001",
    order_no="A-1",
    transaction_id="",
    kind=InstructionKind.CAPTURE,
    currency="EUR",
    order_amount=1_000,
    action_amount=None,
    reason="",
    request_id="",
)
"""An action of the account of the fixture `run`."""


def planned(store: Store, run: Run, *actions: Action) -> Sequence[Instruction]:
    """Planned and approved by rule: i001, i002 and so on."""
    ids = count(1)
    made = plan(actions, known=Known(), new_id=lambda: f"i{next(ids):03}", auto_approve=True)
    with store.writing() as connection:
        instruction_rows.save_plan(connection, run, plan=replace(made, links=()), at=AT)
    return made.new


def eligible_captures(store: Store, run: Run, *, orders: int) -> list[Eligible]:
    """Planned, approved by rule, and ready to be sent."""
    actions = (
        replace(CAPTURE, action_id=n, line=n, order_no=f"A-{n}", order_amount=1_000 + n)
        for n in range(1, orders + 1)
    )
    return [
        Eligible(
            item,
            QueriedPayment(f"T-{item.order_no}", GatewayState.AUTHORISED, "2000", "EUR", 9_999),
        )
        for item in planned(store, run, *actions)
    ]


def journal_of(store: Store, owner: Owner, *, run_id: str, **given: Any) -> StoredJournal:
    """The journal of a run of the sandbox: it stores no file, waits for nothing, notes nothing."""
    nothing: dict[str, Any] = {
        "spill": Spill(()),
        "pause": lambda _: None,
        "note_outside": lambda: None,
    }
    return StoredJournal(store, owner, run_id=run_id, **nothing | given)


def send(
    store: Store,
    run: Run,
    eligible: Sequence[Eligible],
    *,
    gateway: GatewayOfMoney,
    journal: StoredJournal | None = None,
    crash_point: Callable[[str], None] = lambda _: None,
    prefix: str = "b",
) -> Sent:
    """A pass of the real sender."""
    numbers = count(1)
    sender = Sender(
        gateway=gateway,
        journal=journal or journal_of(store, run, run_id=run.run_id),
        clock=lambda: AT,
        new_id=lambda: f"{prefix}{next(numbers)}",
        crash_point=crash_point,
    )
    return asyncio.run(sender.send_all(eligible))


def states_of(store: Store) -> list[str]:
    """The state of every instruction."""
    with store.reading() as connection:
        found = connection.execute(select(instruction.c.state).order_by(instruction.c.natural_key))
        return list(found.scalars())
