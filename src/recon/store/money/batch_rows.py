"""One batch and its rows: claimed and settled by statements for many rows, each compare-and-set.

All rows change or none does: the bytes of a request are made before its rows are claimed, so a
row that somebody else changed meanwhile ends the transaction and is named. The statements are made
once: a night of 1,000,000 captures runs each of them 20,000 times.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Connection, Update, bindparam, insert, select, update

from recon.gateway_client import PreparedRequest, RawReply, ReplyOutcome
from recon.gateway_client.replies import RowOutcome
from recon.instructions.eligibility import Cleared
from recon.instructions.masking import masked
from recon.instructions.terms import filled_in
from recon.model.errors import Defect
from recon.model.words import InstructionState
from recon.store.database.bound_tables import INSTRUCTION, ROW
from recon.store.database.history import Event
from recon.store.database.record import cells_of
from recon.store.schema import attempt, batch, instruction
from recon.store.schema.columns import ID_CHARACTERS, REASON_CHARACTERS

STATE_OF: Mapping[ReplyOutcome, InstructionState] = {
    ReplyOutcome.DONE: InstructionState.CONFIRMED,
    ReplyOutcome.ACCEPTED: InstructionState.CONFIRMED,
    ReplyOutcome.FAILED: InstructionState.REJECTED,
    ReplyOutcome.REJECTED: InstructionState.REJECTED,
    ReplyOutcome.NOT_SENT: InstructionState.APPROVED,
    ReplyOutcome.PENDING: InstructionState.IN_DOUBT,
    ReplyOutcome.UNKNOWN: InstructionState.IN_DOUBT,
}
"""Row outcome -> state; what is not known is in doubt, never failed."""

CLOSED = "closed"
CODE_CHARACTERS = 40
STATUS_CHARACTERS = 20
_TERMINAL = frozenset({InstructionState.CONFIRMED, InstructionState.REJECTED})
_IN_FLIGHT = InstructionState.IN_FLIGHT.value
_NEW = "new_"
"""Before the name of a column: its parameter in an UPDATE, which may not have the column's own."""

_CLAIM = (
    update(instruction)
    .where(
        instruction.c.instruction_id == bindparam("wanted"),
        instruction.c.state == InstructionState.APPROVED.value,
    )
    .values(
        state=_IN_FLIGHT,
        batch_id=bindparam("of_batch"),
        transaction_id=bindparam("of_payment"),
        payment_amount=bindparam("payment_shown"),
        baseline_status=bindparam("status_shown"),
        attempts=instruction.c.attempts + 1,
        hold="",
        sent_at=bindparam("at"),
    )
)
_CLAIMED = select(instruction.c.instruction_id, instruction.c.attempts).where(
    instruction.c.instruction_id.in_(bindparam("wanted", expanding=True)),
    instruction.c.batch_id == bindparam("of_batch"),
    instruction.c.state == _IN_FLIGHT,
)
_KEEP_ATTEMPT = insert(attempt)
_KEEP_BATCH = insert(batch)
_STATE = select(batch.c.state).where(batch.c.batch_id == bindparam("of_batch"))
_BODY = select(batch.c.body).where(batch.c.batch_id == bindparam("of_batch"))
_KEPT: dict[str, Any] = {
    name: bindparam(f"{_NEW}{name}")
    for name in ("replied_at", "http_status", "reply_headers", "reply", "reply_sha256")
}
_UNANSWERED = update(batch).where(
    batch.c.batch_id == bindparam("of_batch"), batch.c.reply_sha256 == ""
)
_ANSWER = _UNANSWERED.where(batch.c.state == "claimed").values(state="replied", **_KEPT)
_ANSWER_LATE = _UNANSWERED.values(_KEPT)
_CLOSE = (
    update(batch)
    .where(batch.c.batch_id == bindparam("of_batch"), batch.c.state != CLOSED)
    .values(
        state=CLOSED,
        closed_at=bindparam("at"),
        return_status=bindparam("status_returned"),
        message=bindparam("message_returned"),
    )
)
_IN_BATCH = (
    select(attempt.c.instruction_id, instruction.c.state, instruction.c.batch_id)
    .join(instruction, instruction.c.instruction_id == attempt.c.instruction_id)
    .where(attempt.c.batch_id == bindparam("of_batch"))
    .order_by(attempt.c.position)
)
_SETTLE_ATTEMPT = (
    update(attempt)
    .where(
        attempt.c.batch_id == bindparam("of_batch"), attempt.c.position == bindparam("of_position")
    )
    .values({name: bindparam(f"{_NEW}{name}") for name in ("outcome", "code", "message")})
)


def save_batch(
    connection: Connection,
    batch_id: str,
    rows: Sequence[Cleared],
    *,
    request: PreparedRequest,
    of_account: Mapping[str, str],
    at: datetime,
) -> None:
    """A new batch, claimed by the run, merchant and account of `of_account`."""
    values = {
        "batch_id": batch_id,
        **of_account,
        "kind": rows[0].instruction.kind.value,
        "rows": len(rows),
        "state": "claimed",
        "body_sha256": request.body_sha256,
        "body": request.masked(request.body),
        "claimed_at": at,
    }
    connection.execute(_KEEP_BATCH, values)


def state_of(connection: Connection, batch_id: str) -> str | None:
    """Where a batch stands; None when there is none of that id."""
    return connection.execute(_STATE, {"of_batch": batch_id}).scalar()


def save_reply(connection: Connection, batch_id: str, *, reply: RawReply, kept: bytes) -> bool:
    """Keep a reply, masked, with its hash; False when the batch was closed before it came."""
    sent = connection.execute(_BODY, {"of_batch": batch_id}).scalar_one()
    received = {
        "of_batch": batch_id,
        f"{_NEW}replied_at": reply.received_at,
        f"{_NEW}http_status": reply.status,
        f"{_NEW}reply_headers": json.dumps(dict(reply.headers), sort_keys=True),
        f"{_NEW}reply": masked(kept, known=sent),
        f"{_NEW}reply_sha256": hashlib.sha256(reply.body).hexdigest(),
    }
    in_place = connection.execute(_ANSWER, received).rowcount == 1
    if not in_place:
        connection.execute(_ANSWER_LATE, received)
    return in_place


def close_batch(
    connection: Connection, batch_id: str, *, return_status: str, message: str, at: datetime
) -> None:
    """Nothing more happens to this batch."""
    details = {
        "of_batch": batch_id,
        "at": at,
        "status_returned": return_status[:STATUS_CHARACTERS],
        "message_returned": message[:REASON_CHARACTERS],
    }
    connection.execute(_CLOSE, details)


def claim_rows(
    connection: Connection, batch_id: str, *, rows: Sequence[Cleared], at: datetime
) -> list[Event]:
    """Approved -> in flight for every row, with its attempt; the caller appends the events.

    Raises:
        Defect: a row is no longer approved; the caller's transaction must end.
    """
    ids = [cleared.instruction.instruction_id for cleared in rows]
    connection.execute(
        _CLAIM,
        [
            {
                "wanted": cleared.instruction.instruction_id,
                "of_batch": batch_id,
                "of_payment": cleared.payment.transaction_id,
                "payment_shown": cleared.payment.amount,
                "status_shown": cleared.payment.payment_status,
                "at": at,
            }
            for cleared in rows
        ],
    )
    # No other batch has this id: what is in flight in it was changed by the statement above.
    claimed = connection.execute(_CLAIMED, {"wanted": ids, "of_batch": batch_id})
    numbers = {row.instruction_id: row.attempts for row in claimed}
    for wanted in ids:
        if wanted not in numbers:
            msg = f"instruction {wanted} was to be sent but is no longer approved; nothing was sent"
            raise Defect(msg)
    connection.execute(
        _KEEP_ATTEMPT,
        [
            {
                "batch_id": batch_id,
                "position": position,
                "instruction_id": wanted,
                "number": numbers[wanted],
            }
            for position, wanted in enumerate(ids)
        ],
    )
    return [
        Event("instruction", wanted, _IN_FLIGHT, {"batch": batch_id} | _filled_in(cleared))
        for wanted, cleared in zip(ids, rows, strict=True)
    ]


def _filled_in(cleared: Cleared) -> dict[str, object]:
    """What a claim adds to the terms that were bound: the payment that is meant."""
    payment = cleared.payment
    terms = filled_in(
        cleared.instruction,
        transaction_id=payment.transaction_id,
        payment_amount=payment.amount,
    )
    return {ROW: terms} if terms else {}


def rows_in_flight(connection: Connection, batch_id: str) -> list[str]:
    """The instructions of a batch, in its order.

    Raises:
        Defect: one of them is not in flight in this batch.
    """
    ids = []
    for row in connection.execute(_IN_BATCH, {"of_batch": batch_id}):
        if (row.state, row.batch_id) != (_IN_FLIGHT, batch_id):
            raise Defect(_not_in_flight(row.instruction_id, batch_id))
        ids.append(row.instruction_id)
    return ids


def settle_rows(
    connection: Connection,
    batch_id: str,
    *,
    ids: Sequence[str],
    results: Sequence[RowOutcome],
    at: datetime,
) -> list[Event]:
    """In flight -> what its outcome means, for every row; the caller appends the events.

    Raises:
        Defect: a row is no longer in flight; the caller's transaction must end.
    """
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for wanted, result in zip(ids, results, strict=True):
        values = _values(result, at=at)
        row = {f"{_NEW}{name}": value for name, value in values.items()}
        row |= {"wanted": wanted, "of_batch": batch_id}
        groups.setdefault(tuple(values), []).append(row)
    for names, rows in groups.items():
        if connection.execute(_settling(names), rows).rowcount != len(rows):
            raise Defect(_not_in_flight(f"{rows[0]['wanted']} or one beside it", batch_id))
    connection.execute(
        _SETTLE_ATTEMPT,
        [
            {
                "of_batch": batch_id,
                "of_position": position,
                f"{_NEW}outcome": result.outcome.value,
                f"{_NEW}code": result.code[:CODE_CHARACTERS],
                f"{_NEW}message": result.message[:REASON_CHARACTERS],
            }
            for position, result in enumerate(results)
        ],
    )
    return [
        Event(
            "instruction",
            wanted,
            STATE_OF[result.outcome].value,
            {"batch": batch_id, "outcome": result.outcome, "code": result.code}
            | _bound(_values(result, at=at)),
        )
        for wanted, result in zip(ids, results, strict=True)
    ]


def _bound(values: Mapping[str, Any]) -> dict[str, object]:
    """What an outcome adds to the terms: since when it is in doubt, the gateway's id of a payout.

    That what was sealed is erased with the end needs no telling.
    """
    cells = cells_of(INSTRUCTION, {name: values[name] for name in values if name != "sealed"})
    return {ROW: cells} if cells else {}


@cache
def _settling(names: tuple[str, ...]) -> Update:
    """The statement that sets these columns; there are five sets of them."""
    return (
        update(instruction)
        .where(
            instruction.c.instruction_id == bindparam("wanted"),
            instruction.c.state == _IN_FLIGHT,
            instruction.c.batch_id == bindparam("of_batch"),
        )
        .values({name: bindparam(f"{_NEW}{name}") for name in names})
    )


def _values(result: RowOutcome, *, at: datetime) -> dict[str, Any]:
    """Columns of an instruction whose outcome is known now."""
    state = STATE_OF[result.outcome]
    values: dict[str, Any] = {
        "state": state.value,
        "outcome": result.outcome.value,
        "code": result.code[:CODE_CHARACTERS],
        "message": result.message[:REASON_CHARACTERS],
        "refund_reference_id": result.refund_reference_id[:ID_CHARACTERS],
    }
    if result.payout is not None and result.transaction_id:
        values["transaction_id"] = result.transaction_id[:ID_CHARACTERS]
    if state in _TERMINAL:
        values |= {"outcome_at": at, "sealed": ""}
    if state is InstructionState.IN_DOUBT:
        values["in_doubt_since"] = at
    return values


def _not_in_flight(wanted: str, batch_id: str) -> str:
    return f"instruction {wanted} is not in flight in batch {batch_id}"
