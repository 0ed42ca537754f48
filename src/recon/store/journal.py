"""The journal of money: instructions and batches, every change with its event in the history.

Implements `settlement.sender.Journal`. Each method is one transaction; a claim is a compare-and-set
on the state of every row, so that no instruction is ever in two batches on the wire.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select, update

from recon.errors import Defect, NightHeldError
from recon.model import InstructionKind, InstructionState, Outcome
from recon.settlement.instruction import FOLLOWS, Instruction
from recon.settlement.masking import masked
from recon.settlement.sender import BatchResult, Prepared, Reply, RowResult
from recon.store import runs, sending_rows
from recon.store.columns import ID_CHARACTERS, REASON_CHARACTERS
from recon.store.engine import Store
from recon.store.history import Event, append
from recon.store.night_lock import lock_stands
from recon.store.schema import attempt, batch, instruction

STATE_OF: Mapping[Outcome, InstructionState] = {
    Outcome.DONE: InstructionState.CONFIRMED,
    Outcome.ACCEPTED: InstructionState.CONFIRMED,
    Outcome.FAILED: InstructionState.REJECTED,
    Outcome.REJECTED: InstructionState.REJECTED,
    Outcome.NOT_SENT: InstructionState.APPROVED,
    Outcome.PENDING: InstructionState.IN_DOUBT,
    Outcome.UNKNOWN: InstructionState.IN_DOUBT,
}
"""Row outcome -> state; what is not known is in doubt, never failed."""

_TERMINAL = frozenset({InstructionState.CONFIRMED, InstructionState.REJECTED})


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a batch stands in the database."""

    state: str
    run_id: str
    body_sha256: str
    reply_sha256: str
    claimed_at: datetime


class StoredJournal:
    """The journal of one account's run."""

    def __init__(self, store: Store, *, run_id: str, merchant_id: str, account_id: str) -> None:
        self._store = store
        self._run_id = run_id
        self._merchant_id = merchant_id
        self._account_id = account_id

    @property
    def place(self) -> dict[str, str]:
        """Run, merchant and account that this journal writes for."""
        return {
            "run_id": self._run_id,
            "merchant_id": self._merchant_id,
            "account_id": self._account_id,
        }

    def standing(self, batch_id: str) -> Standing | None:
        """Where a batch stands now; None when the database does not have it."""
        names = Standing.__dataclass_fields__
        with self._store.reading() as connection:
            found = connection.execute(
                select(*(batch.c[name] for name in names)).where(batch.c.batch_id == batch_id)
            ).one_or_none()
        return None if found is None else Standing(*found)

    def halted(self) -> str:
        """Why nothing more may be sent; "" when money may move and this run still has its place."""
        with self._store.reading() as connection:
            return str(sending_rows.stopped(connection) or "") or self._lost_place(connection)

    def _lost_place(self, connection: Connection) -> str:
        """A run that was taken over, or whose lock the server dropped, must not send."""
        if runs.is_closed(connection, self._run_id):
            return f"run {self._run_id} was closed: another run took the account over"
        place = {"merchant_id": self._merchant_id, "account_id": self._account_id}
        if not lock_stands(connection, **place):
            return "the database dropped the lock on this account: start the night again"
        return ""

    def claim(self, batch_id: str, prepared: Prepared, *, at: datetime) -> None:
        """T1: approved -> in flight for every row, or nothing at all.

        Raises:
            NightHeldError: this run lost its place since it last looked; nothing was claimed.
        """
        with self._store.writing() as connection:
            # Whoever takes over closes this run in a transaction before or after this one.
            if lost := self._lost_place(connection):
                raise NightHeldError(lost)
            connection.execute(
                insert(batch).values(
                    batch_id=batch_id,
                    run_id=self._run_id,
                    merchant_id=self._merchant_id,
                    account_id=self._account_id,
                    kind=prepared.kind.value,
                    rows=len(prepared.rows),
                    state="claimed",
                    body_sha256=prepared.body_sha256,
                    body=prepared.body,
                    claimed_at=at,
                )
            )
            for position, cleared in enumerate(prepared.rows):
                number = self._claim_row(connection, batch_id, cleared=cleared, at=at)
                connection.execute(
                    insert(attempt).values(
                        batch_id=batch_id,
                        position=position,
                        instruction_id=cleared.instruction.instruction_id,
                        number=number,
                    )
                )
            ids = [cleared.instruction.instruction_id for cleared in prepared.rows]
            told = {"kind": prepared.kind, "body_sha256": prepared.body_sha256, "rows": ids}
            in_flight = InstructionState.IN_FLIGHT.value
            events = [Event("instruction", one, in_flight, {"batch": batch_id}) for one in ids]
            append(connection, [Event("batch", batch_id, "claimed", told), *events], at=at)

    def _claim_row(
        self, connection: Connection, batch_id: str, *, cleared: Any, at: datetime
    ) -> int:
        wanted = cleared.instruction.instruction_id
        found = connection.execute(
            update(instruction)
            .where(
                instruction.c.instruction_id == wanted,
                instruction.c.state == InstructionState.APPROVED.value,
            )
            .values(
                state=InstructionState.IN_FLIGHT.value,
                batch_id=batch_id,
                transaction_id=cleared.payment.transaction_id,
                payment_amount=cleared.payment.amount,
                baseline_status=cleared.payment.payment_status,
                attempts=instruction.c.attempts + 1,
                hold="",
                sent_at=at,
            )
            .returning(instruction.c.attempts)
        ).one_or_none()
        if found is None:
            msg = f"instruction {wanted} was to be sent but is no longer approved; nothing was sent"
            raise Defect(msg)
        return int(found.attempts)

    def release(self, batch_id: str, *, reason: str, at: datetime) -> None:
        """The request surely did not leave: in flight -> approved."""
        result = RowResult(Outcome.NOT_SENT, message=reason)
        self._close_all(batch_id, result=result, event="not sent", at=at)

    def doubt(self, batch_id: str, *, reason: str, at: datetime) -> None:
        """Nothing usable came back: in flight -> in doubt."""
        result = RowResult(Outcome.UNKNOWN, message=reason)
        self._close_all(batch_id, result=result, event="in doubt", at=at)

    def keep_reply(self, batch_id: str, reply: Reply) -> None:
        """T2a: the reply (card numbers masked) and the hash of what was received.

        Raises:
            NightHeldError: another run took the account over and closed the batch; the reply is
                kept with it, and changes nothing.
        """
        with self._store.writing() as connection:
            sent = connection.execute(
                select(batch.c.body).where(batch.c.batch_id == batch_id)
            ).scalar_one()
            mine = update(batch).where(batch.c.batch_id == batch_id, batch.c.reply_sha256 == "")
            received = {
                "replied_at": reply.received_at,
                "http_status": reply.status,
                "reply_headers": json.dumps(reply.headers, sort_keys=True),
                "reply": masked(reply.kept or reply.body, known=sent),
                "reply_sha256": hashlib.sha256(reply.body).hexdigest(),
            }
            open_one = mine.where(batch.c.state == "claimed").values(state="replied", **received)
            in_place = connection.execute(open_one).rowcount == 1
            if not in_place:
                connection.execute(mine.values(**received))
        if not in_place:
            raise NightHeldError(_taken_over(batch_id))

    def record(self, batch_id: str, result: BatchResult, *, at: datetime) -> None:
        """T2b: the outcome of every row; closes the batch."""
        with self._store.writing() as connection:
            ids = _rows_of(connection, batch_id)
            if len(ids) != len(result.rows):
                msg = f"batch {batch_id} has {len(ids)} rows, its result {len(result.rows)}"
                raise Defect(msg)
            events = [
                _settle_row(connection, instruction_id, batch_id=batch_id, result=row, at=at)
                for instruction_id, row in zip(ids, result.rows, strict=True)
            ]
            told = {"return_status": result.return_status, "message": result.message}
            events.append(Event("batch", batch_id, "closed", told))
            _close_batch(
                connection,
                batch_id,
                at=at,
                return_status=result.return_status,
                message=result.message,
            )
            append(connection, events, at=at)

    def _close_all(self, batch_id: str, *, result: RowResult, event: str, at: datetime) -> None:
        with self._store.writing() as connection:
            if _is_closed(connection, batch_id):
                # Another run took the account over and decided these rows; they stay as they are.
                raise NightHeldError(_taken_over(batch_id))
            events = [
                _settle_row(connection, instruction_id, batch_id=batch_id, result=result, at=at)
                for instruction_id in _rows_of(connection, batch_id)
            ]
            events.append(Event("batch", batch_id, event, {"reason": result.message}))
            _close_batch(connection, batch_id, at=at, return_status="", message=result.message)
            append(connection, events, at=at)


def move(
    connection: Connection,
    wanted: Instruction,
    *,
    to: InstructionState,
    values: Mapping[str, Any],
) -> Event:
    """Change the state of one instruction by compare-and-set; the caller appends the event."""
    if to not in FOLLOWS[wanted.state]:
        msg = f"instruction {wanted.instruction_id}: {wanted.state} cannot become {to}"
        raise Defect(msg)
    changed = connection.execute(
        update(instruction)
        .where(
            instruction.c.instruction_id == wanted.instruction_id,
            instruction.c.state == wanted.state.value,
        )
        # A final payout needs its payee's details no more.
        .values(state=to.value, **values, **({} if FOLLOWS[to] else {"sealed": ""}))
    )
    if changed.rowcount != 1:
        msg = f"instruction {wanted.instruction_id} is no longer {wanted.state}"
        raise Defect(msg)
    data = {"from": wanted.state, **{name: str(value) for name, value in values.items()}}
    return Event("instruction", wanted.instruction_id, to.value, data)


def instructions_where(connection: Connection, *conditions: Any) -> list[Instruction]:
    """Journal rows as domain values, oldest first."""
    found = connection.execute(
        select(instruction)
        .where(*conditions)
        .order_by(instruction.c.planned_at, instruction.c.file_id, instruction.c.line)
    ).mappings()
    return [instruction_of(row) for row in found]


def instruction_of(row: Mapping[Any, Any]) -> Instruction:
    """One journal row as a domain value."""
    names = set(Instruction.__dataclass_fields__) - {"kind", "state"}
    return Instruction(
        kind=InstructionKind(row["kind"]),
        state=InstructionState(row["state"]),
        **{name: row[name] for name in names},
    )


def _is_closed(connection: Connection, batch_id: str) -> bool:
    state = connection.execute(select(batch.c.state).where(batch.c.batch_id == batch_id)).scalar()
    return state == "closed"


def _taken_over(batch_id: str) -> str:
    return (
        f"another run took the account over while batch {batch_id} was under way, and closed it; "
        "this run ends here: that run's report tells what became of the rows"
    )


def _rows_of(connection: Connection, batch_id: str) -> Sequence[str]:
    found = connection.execute(
        select(attempt.c.instruction_id)
        .where(attempt.c.batch_id == batch_id)
        .order_by(attempt.c.position)
    )
    return [row.instruction_id for row in found]


def _settle_row(
    connection: Connection,
    instruction_id: str,
    *,
    batch_id: str,
    result: RowResult,
    at: datetime,
) -> Event:
    """One instruction from in flight to what its outcome means."""
    state = STATE_OF[result.outcome]
    values: dict[str, Any] = {
        "state": state.value,
        "outcome": result.outcome.value,
        "code": result.code[:40],
        "message": result.message[:REASON_CHARACTERS],
        "refund_reference_id": result.refund_reference_id[:64],
    }
    if result.payout_id:
        values["transaction_id"] = result.payout_id[:ID_CHARACTERS]
    if state in _TERMINAL:
        values |= {"outcome_at": at, "sealed": ""}
    if state is InstructionState.IN_DOUBT:
        values["in_doubt_since"] = at
    changed = connection.execute(
        update(instruction)
        .where(
            instruction.c.instruction_id == instruction_id,
            instruction.c.state == InstructionState.IN_FLIGHT.value,
            instruction.c.batch_id == batch_id,
        )
        .values(**values)
    )
    if changed.rowcount != 1:
        msg = f"instruction {instruction_id} is not in flight in batch {batch_id}"
        raise Defect(msg)
    connection.execute(
        update(attempt)
        .where(attempt.c.batch_id == batch_id, attempt.c.instruction_id == instruction_id)
        .values(outcome=values["outcome"], code=values["code"], message=values["message"])
    )
    told = {"batch": batch_id, "outcome": result.outcome, "code": result.code}
    return Event("instruction", instruction_id, state.value, told)


def _close_batch(
    connection: Connection, batch_id: str, *, at: datetime, return_status: str, message: str
) -> None:
    connection.execute(
        update(batch)
        .where(batch.c.batch_id == batch_id, batch.c.state != "closed")
        .values(
            state="closed",
            closed_at=at,
            return_status=return_status[:20],
            message=message[:REASON_CHARACTERS],
        )
    )
