"""A gateway that answers as it is told, and approved captures to send to it."""

from collections.abc import Sequence
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
from recon.instructions.eligibility import Cleared, ShownPayment
from recon.instructions.money_requests import GatewayOfMoney
from recon.instructions.planning import Action, Known, plan
from recon.model.words import GatewayState, InstructionKind
from recon.store.database.engine import Store
from recon.store.money import instruction_rows
from recon.store.money.journal import StoredJournal
from recon.store.nights.runs import Run
from recon.store.schema import instruction
from tests.recon.instructions.sample_instructions import reply_of, request_of

AT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)


class LoneJournal(StoredJournal):
    """A journal whose history nobody notes outside the database."""

    def note_outside(self) -> None:
        """There is no head file."""


class ScriptedGateway(GatewayOfMoney):
    """Answers each send with the next entry of its script, and counts what reached it."""

    def __init__(self, *script: object) -> None:
        self._script = list(script)
        self.reached: list[tuple[str, ...]] = []

    def prepare(self, rows: Sequence[Cleared]) -> PreparedRequest:
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


def cleared_captures(store: Store, run: Run, *, orders: int) -> list[Cleared]:
    """Planned, approved by rule, and ready to be sent."""
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
        )
        for n in range(1, orders + 1)
    ]
    made = plan(actions, known=Known(), new_id=lambda: f"i{next(ids):03}", auto_approve=True)
    with store.writing() as connection:
        instruction_rows.save_plan(connection, run, plan=replace(made, links=()), at=AT)
    return [
        Cleared(
            item, ShownPayment(f"T-{item.order_no}", GatewayState.AUTHORISED, "2000", "EUR", 9_999)
        )
        for item in made.new
    ]


def states_of(store: Store) -> list[str]:
    """The state of every instruction."""
    with store.reading() as connection:
        found = connection.execute(select(instruction.c.state).order_by(instruction.c.natural_key))
        return list(found.scalars())
