"""The journal of money movements: instructions and batches, each change with its history event.

Each method is one transaction and durable when it returns. A claim is a compare-and-set on the
state of every row, so that no instruction is ever in two batches on the wire.

Either all rows of a batch change or none: the request is built before its rows are claimed, so a
row that changed in between aborts the transaction and is named in the error.

The transaction that claims the rows checks once more that each may still be sent: after the
eligibility check people may have withdrawn a row, or another night may have done the same movement.

A database may fail at any moment, also during a commit, whose outcome is then unknown. So an error
proves nothing about a batch claimed here: it is read again by its id. If the claim is missing or
belongs to another run, nothing is sent. An answer that cannot be written to the database is first
saved in a file and written once the database is back; if that takes too long, the night stops and
the next one reads the file.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from recon.desk.held_keys import NO_KEYS, HeldKeys
from recon.gateway_client import BatchReply, FindingKind, PreparedRequest, RawReply, ReplyOutcome
from recon.gateway_client.replies import RowOutcome
from recon.instructions.eligibility import Eligible
from recon.instructions.instruction import FOLLOWS, Instruction, reported_repeats, unagreed
from recon.instructions.masking import masked
from recon.model.errors import Defect, NightHeldError, StoreError
from recon.model.terms import InstructionKind, InstructionState
from recon.store.database.bulk_rows import read
from recon.store.database.engine import Store
from recon.store.database.history import CLAIMED, Event, append
from recon.store.database.night_lock import lock_is_held
from recon.store.money import sending_rows
from recon.store.money.endorsement_rows import Endorsed, refuse_changed_rows, start_problem
from recon.store.money.instruction_rows import find, move, rows_of_batch
from recon.store.money.sending_rows import FOREIGN_ROW, MAY_HAVE_MOVED
from recon.store.money.spill import NOT_SENT, REPLY, Spill, Spilled, remove, replied
from recon.store.nights import runs
from recon.store.schema import attempt, batch, instruction
from recon.store.schema.columns import ID_CHARACTERS, REASON_CHARACTERS, Owner, account_of

STATE_OF: Mapping[ReplyOutcome, InstructionState] = {
    ReplyOutcome.DONE: InstructionState.CONFIRMED,
    ReplyOutcome.ACCEPTED: InstructionState.CONFIRMED,
    ReplyOutcome.FAILED: InstructionState.REJECTED,
    ReplyOutcome.REJECTED: InstructionState.REJECTED,
    ReplyOutcome.NOT_SENT: InstructionState.APPROVED,
    ReplyOutcome.PENDING: InstructionState.IN_DOUBT,
    ReplyOutcome.UNKNOWN: InstructionState.IN_DOUBT,
}
"""Outcome of a row -> new state; an unknown outcome means in doubt, never failed."""

CLOSED = "closed"
CODE_CHARACTERS = 40
STATUS_CHARACTERS = 20
BACK_AFTER = (timedelta(0), timedelta(seconds=1), timedelta(seconds=2), timedelta(seconds=4))
"""Pauses before the database is tried again; a PostgreSQL that was killed needs about five."""
_IN_FLIGHT = InstructionState.IN_FLIGHT
_SETTLE_ATTEMPT = (
    update(attempt)
    .where(
        attempt.c.batch_id == bindparam("of_batch"), attempt.c.position == bindparam("of_position")
    )
    .values({name: bindparam(name) for name in ("outcome", "code", "message")})
)


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """The state of a batch in the database."""

    state: str
    run_id: str
    body_sha256: str
    reply_sha256: str
    claimed_at: datetime

    @classmethod
    def of(cls, connection: Connection, batch_id: str) -> "BatchStatus | None":
        """Return the status of one batch; None if the database does not have it."""
        return next(iter(read(connection, cls, batch, batch.c.batch_id == batch_id)), None)


class StoredJournal:
    """The journal of one account for one run."""

    def __init__(
        self,
        store: Store,
        owner: Owner,
        *,
        run_id: str,
        spill: Spill,
        pause: Callable[[timedelta], None],
        note_outside: Callable[[], None],
        ids_unique: bool = False,
        desk: HeldKeys = NO_KEYS,
    ) -> None:
        """Open the journal of a run.

        Args:
            store: the database.
            owner: the account.
            run_id: of the run that writes.
            spill: where an answer is stored that the database does not take.
            pause: lets time pass.
            note_outside: notes the newest link of the history in the head file before a byte
                leaves; raises ReconError where it cannot, or where that file has a link that the
                database lacks.
            ids_unique: what the merchant declares of request ids.
            desk: without its public key nothing that people approved is ever claimed.
        """
        self._store = store
        self._desk, self._endorsed = desk, Endorsed(desk)
        self._ids_unique = ids_unique
        self._run_id = run_id
        self._account = account_of(owner)
        self.note_outside = note_outside
        self._spill = spill
        self._pause = pause
        self._requests: dict[str, PreparedRequest] = {}
        """Requests of batches that were claimed here and are not closed yet, by batch id."""

    @property
    def keys(self) -> dict[str, str]:
        """Columns that identify the run, merchant and account of this journal."""
        merchant_id, account_id = self._account
        return {"run_id": self._run_id, "merchant_id": merchant_id, "account_id": account_id}

    def status(self, batch_id: str) -> BatchStatus | None:
        """Return the current status of a batch; None if the database does not have it."""
        with self._store.reading() as connection:
            return BatchStatus.of(connection, batch_id)

    def halted(self) -> str:
        """Return why nothing more may be sent; "" if sending is allowed and the run is current."""
        with self._store.reading() as connection:
            return (
                str(sending_rows.stopped(connection) or "")
                or start_problem(connection, self._desk)
                or self._lost_place(connection)
            )

    def _lost_place(self, connection: Connection) -> str:
        """Return why this run may not send: it was taken over or lost its lock; "" otherwise."""
        if runs.is_closed(connection, self._run_id):
            return f"run {self._run_id} was closed: another run took the account over"
        if not lock_is_held(connection, self._account):
            return "the database dropped the lock on this account: start the night again"
        return ""

    def claim(
        self, batch_id: str, rows: Sequence[Eligible], *, request: PreparedRequest, at: datetime
    ) -> Mapping[str, str]:
        """Claim all rows for a batch (approved -> in flight), or none.

        It returns only once the claim is known to be committed by this run, or was refused.

        Returns:
            Why rows may not be sent after all, by instruction id; if any, nothing was claimed.

        Raises:
            NightHeldError: This run was taken over or lost its lock; nothing was claimed.
            GateClosedError: A row differs from what the history attests, or no valid endorsement
                covers it; nothing was claimed.
        """
        self._requests[batch_id] = request
        try:
            return self._claim(batch_id, rows, request=request, at=at)
        except StoreError:
            own = BatchStatus("claimed", self._run_id, request.body_sha256, "", claimed_at=at)
            if self._is_claimed(batch_id, own=own):
                return {}
            # The commit may still arrive later; the file tells the next night nothing was sent.
            reason = "the database ended the claim with an error, so nothing was sent"
            self._save(batch_id, {"kind": NOT_SENT, "at": at, "reason": reason})
            raise

    def _claim(
        self, batch_id: str, rows: Sequence[Eligible], *, request: PreparedRequest, at: datetime
    ) -> Mapping[str, str]:
        with self._store.writing() as connection:
            # A run that takes over closes this one in a transaction before or after this one.
            if lost := self._lost_place(connection):
                raise NightHeldError(lost)
            if unclaimed := left_out(connection, rows, ids_unique=self._ids_unique):
                return unclaimed
            refuse_changed_rows(connection, rows)
            ids = [row.instruction.instruction_id for row in rows]
            self._endorsed.refuse_rows(connection, ids)
            connection.execute(
                insert(batch).values(
                    batch_id=batch_id,
                    **self.keys,
                    kind=rows[0].instruction.kind,
                    rows=len(rows),
                    state="claimed",
                    body_sha256=request.body_sha256,
                    body=request.masked(request.body),
                    claimed_at=at,
                )
            )
            events = _claim_rows(connection, batch_id, rows=rows, at=at)
            kind = rows[0].instruction.kind
            claimed = {"kind": kind, "body_sha256": request.body_sha256, "rows": ids}
            append(connection, [Event("batch", batch_id, CLAIMED, claimed), *events], at=at)
        return {}

    def release(self, batch_id: str, *, reason: str, at: datetime) -> None:
        """Close a batch whose request was certainly not sent: in flight -> approved."""
        spilled = {"kind": NOT_SENT, "at": at, "reason": reason}
        outcome = ReplyOutcome.NOT_SENT
        self._close_all(batch_id, outcome, reason=reason, event="not sent", at=at, spilled=spilled)

    def doubt(self, batch_id: str, *, reason: str, at: datetime) -> None:
        """Close a batch without a usable reply: in flight -> in doubt.

        Rows that are still in flight when the next night starts become in doubt by themselves.
        """
        self._close_all(batch_id, ReplyOutcome.UNKNOWN, reason=reason, event="in doubt", at=at)

    def save_reply(self, batch_id: str, reply: RawReply, *, saved: bytes) -> None:
        """Store a reply: `saved`, its bytes with card numbers masked, and the full hash.

        Raises:
            NightHeldError: Another run took the account over and closed the batch; the reply is
                stored with the batch, but changes nothing.
        """
        own, digest = batch.c.batch_id == batch_id, hashlib.sha256(reply.body).hexdigest()

        def write() -> None:
            with self._store.writing() as connection:
                sent = connection.execute(select(batch.c.body).where(own)).scalar_one()
                unanswered = (
                    update(batch)
                    .where(own, batch.c.reply_sha256 == "")
                    .values(**replied(reply, sha256=digest), reply=masked(saved, known=sent))
                )
                in_place = unanswered.where(batch.c.state == "claimed").values(state="replied")
                is_in_place = connection.execute(in_place).rowcount == 1
                if not is_in_place:
                    connection.execute(unanswered)
            if not is_in_place:
                raise NightHeldError(_taken_over(batch_id))

        head = {"status": reply.status, "headers": dict(reply.headers)}
        spilled = {"kind": REPLY, "at": reply.received_at, **head, "reply_sha256": digest}
        self._commit(
            batch_id,
            write,
            is_done=lambda status: status.reply_sha256 == digest,
            spilled={**spilled, "reply": saved},
        )

    def record(self, batch_id: str, reply: BatchReply, *, at: datetime) -> None:
        """Record the outcome of every row and close the batch.

        The reply is stored by then, so the next night can evaluate it too.
        """

        def write() -> None:
            with self._store.writing() as connection:
                items = self._rows_in_flight(connection, batch_id)
                if len(items) != len(reply.rows):
                    msg = f"batch {batch_id} has {len(items)} rows, its result {len(reply.rows)}"
                    raise Defect(msg)
                events = _settle_rows(connection, batch_id, items=items, results=reply.rows, at=at)
                details = {"return_status": reply.return_status, "message": reply.as_text}
                events.append(Event("batch", batch_id, "closed", details))
                of_batch = select(batch.c.kind).where(batch.c.batch_id == batch_id)
                for finding in reply.findings:
                    if finding.kind is FindingKind.FOREIGN_ROW:
                        sentence = (
                            f"{finding.message} in the reply to a {connection.scalar(of_batch)}: "
                            f"order {finding.order_no or 'none'}, transaction "
                            f"{finding.transaction_id or 'none'}"
                        )
                        events.append(Event("batch", batch_id, FOREIGN_ROW, {"what": sentence}))
                _close(connection, batch_id, **details, at=at)
                append(connection, events, at=at)

        self._commit(batch_id, write, is_done=_is_closed)

    def _close_all(
        self,
        batch_id: str,
        outcome: ReplyOutcome,
        *,
        reason: str,
        event: str,
        at: datetime,
        spilled: Mapping[str, Any] | None = None,
    ) -> None:
        def write() -> None:
            with self._store.writing() as connection:
                status = BatchStatus.of(connection, batch_id)
                if status is not None and _is_closed(status):
                    # Another run took over and decided these rows; its outcomes remain.
                    raise NightHeldError(_taken_over(batch_id))
                items = self._rows_in_flight(connection, batch_id)
                results = [
                    RowOutcome(position, "", "", outcome, message=reason)
                    for position in range(len(items))
                ]
                events = _settle_rows(connection, batch_id, items=items, results=results, at=at)
                events.append(Event("batch", batch_id, event, {"reason": reason}))
                _close(connection, batch_id, return_status="", message=reason, at=at)
                append(connection, events, at=at)

        self._commit(batch_id, write, is_done=_is_closed, spilled=spilled)

    def _rows_in_flight(self, connection: Connection, batch_id: str) -> list[Instruction]:
        """Return the instructions of a batch in its order, if this run may close it.

        A run that lost its place may close its own batches only: another run may be sending those
        that it finds open.

        Raises:
            NightHeldError: The batch is another run's, and this run lost its place.
            Defect: A row of the batch is not in flight in it.
        """
        status = BatchStatus.of(connection, batch_id)
        is_own = status is not None and status.run_id == self._run_id
        if not is_own and (lost := self._lost_place(connection)):
            raise NightHeldError(lost)
        there = select(instruction.c.instruction_id).where(
            instruction.c.batch_id == batch_id, instruction.c.state == _IN_FLIGHT
        )
        in_flight = {*connection.execute(there).scalars()}
        items = rows_of_batch(connection, batch_id)
        for item in items:
            if item.instruction_id not in in_flight:
                msg = f"instruction {item.instruction_id} is not in flight in batch {batch_id}"
                raise Defect(msg)
        return items

    def _is_claimed(self, batch_id: str, *, own: BatchStatus) -> bool:
        """Return whether the database has the claim after an uncertain commit; retries a while."""
        for wait in BACK_AFTER:
            self._pause(wait)
            try:
                status = self.status(batch_id)
            except StoreError:
                continue
            if status is not None:
                return status == own
        return False

    def _commit(
        self,
        batch_id: str,
        write: Callable[[], None],
        *,
        is_done: Callable[[BatchStatus], bool],
        spilled: Mapping[str, Any] | None = None,
    ) -> None:
        """Run one transaction; for a batch claimed here, retry until it is known to be committed.

        `spilled` holds the fields of the answer to save in a file meanwhile.
        """
        saved: Path | None = None
        try:
            write()
        except StoreError as error:
            if batch_id not in self._requests:
                raise
            saved = self._save(batch_id, spilled) if spilled else None
            if not self._was_written(batch_id, write, is_done=is_done):
                raise StoreError(_reported(batch_id, saved=saved, cause=error)) from error
        if saved is not None:
            remove(saved)
        if is_done is _is_closed:
            self._requests.pop(batch_id, None)

    def _was_written(
        self, batch_id: str, write: Callable[[], None], *, is_done: Callable[[BatchStatus], bool]
    ) -> bool:
        for wait in BACK_AFTER:
            self._pause(wait)
            try:
                status = self.status(batch_id)
                if status is None or not is_done(status):
                    write()
            except StoreError:
                continue
            return True
        return False

    def _save(self, batch_id: str, spilled: Mapping[str, Any]) -> Path:
        request = self._requests[batch_id]
        reply = masked(spilled.get("reply", b""), known=request.masked(request.body))
        own = {"batch_id": batch_id, "body_sha256": request.body_sha256, **self.keys}
        return self._spill.save(Spilled(**{**spilled, **own, "reply": reply}))


def _is_closed(status: BatchStatus) -> bool:
    return status.state == CLOSED


def _reported(batch_id: str, *, saved: Path | None, cause: StoreError) -> str:
    where = (
        f"it is kept in {saved}, and the next night reads it from there"
        if saved
        else "the next night finds the batch and decides it by evidence"
    )
    return (
        f"what became of batch {batch_id} could not be written ({cause}); {where}. Nothing more "
        "was sent: put the database right, then start the night again"
    )


def _close(
    connection: Connection, batch_id: str, *, return_status: str, message: str, at: datetime
) -> None:
    connection.execute(
        update(batch)
        .where(batch.c.batch_id == batch_id, batch.c.state != CLOSED)
        .values(
            state=CLOSED,
            closed_at=at,
            return_status=return_status[:STATUS_CHARACTERS],
            message=message[:REASON_CHARACTERS],
        )
    )


def _claim_rows(
    connection: Connection, batch_id: str, *, rows: Sequence[Eligible], at: datetime
) -> list[Event]:
    """Move every row approved -> in flight with its attempt; the caller appends the events.

    Raises:
        Defect: A row is no longer approved; the caller's transaction must end.
    """
    ids = [eligible.instruction.instruction_id for eligible in rows]
    tried = {item.instruction_id: item.attempts for item in find(connection, instruction_id=ids)}
    events, attempts = [], []
    for position, eligible in enumerate(rows):
        own, payment = eligible.instruction, eligible.payment
        number = tried.get(own.instruction_id, 0) + 1
        # A claim adds to the attested terms which payment is meant.
        values = {
            "batch_id": batch_id,
            "transaction_id": payment.transaction_id,
            "payment_amount": payment.amount,
            "baseline_status": payment.payment_status,
            "attempts": number,
            "hold": "",
            "sent_at": at,
        }
        of_batch = {"batch": batch_id}
        events.append(move(connection, own, to=_IN_FLIGHT, values=values, details=of_batch))
        tries = {"position": position, "instruction_id": own.instruction_id, "number": number}
        attempts.append({"batch_id": batch_id, **tries})
    connection.execute(insert(attempt), attempts)
    return events


def _settle_rows(
    connection: Connection,
    batch_id: str,
    *,
    items: Sequence[Instruction],
    results: Sequence[RowOutcome],
    at: datetime,
) -> list[Event]:
    """Move every row from in flight to the state of its outcome; the caller appends the events.

    Raises:
        Defect: A row is no longer in flight; the caller's transaction must end.
    """
    events, attempts = [], []
    for position, (item, result) in enumerate(zip(items, results, strict=True)):
        # An outcome adds to the terms the start of a doubt and the gateway's id of a payout. That
        # encrypted payee details are erased at the end needs no event of its own.
        values, state = _values(result, at=at), STATE_OF[result.outcome]
        details = {"batch": batch_id, "outcome": result.outcome, "code": result.code}
        events.append(move(connection, item, to=state, values=values, details=details))
        outcome = {name: values[name] for name in ("outcome", "code", "message")}
        attempts.append({"of_batch": batch_id, "of_position": position, **outcome})
    if attempts:
        connection.execute(_SETTLE_ATTEMPT, attempts)
    return events


def _values(result: RowOutcome, *, at: datetime) -> dict[str, Any]:
    state = STATE_OF[result.outcome]
    values: dict[str, Any] = {
        "outcome": result.outcome,
        "code": result.code[:CODE_CHARACTERS],
        "message": result.message[:REASON_CHARACTERS],
        "refund_reference_id": result.refund_reference_id[:ID_CHARACTERS],
    }
    if result.payout is not None and result.transaction_id:
        values["transaction_id"] = result.transaction_id[:ID_CHARACTERS]
    if not FOLLOWS[state]:
        values["outcome_at"] = at
    if state is InstructionState.IN_DOUBT:
        values["in_doubt_since"] = at
    return values


def _taken_over(batch_id: str) -> str:
    return (
        f"another run took the account over while batch {batch_id} was under way, and closed it; "
        "this run ends here: that run's report states what became of the rows"
    )


_BY: Mapping[InstructionKind, str] = {
    InstructionKind.PAYOUT: "payee_digest",
    InstructionKind.CANCEL_SUBSCRIPTION: "recurring_id",
}
"""Column in which instructions of the same intention agree; the payment for all other kinds."""


def left_out(
    connection: Connection, rows: Sequence[Eligible], *, ids_unique: bool
) -> dict[str, str]:
    """Return why instructions may not be sent after all, by id; empty if every row may be sent.

    Args:
        connection: Of the transaction that would claim them.
        rows: Of one account and one kind.
        ids_unique: Whether the merchant declares request ids as unique.
    """
    reasons = _not_approved(connection, rows)
    for row, others in _related(connection, rows):
        repeats = unagreed(
            row.instruction,
            others=others,
            transaction_id=row.payment.transaction_id,
            ids_unique=ids_unique,
        )
        if repeats:
            reasons.setdefault(row.instruction.instruction_id, reported_repeats(repeats))
    return reasons


def _not_approved(connection: Connection, rows: Sequence[Eligible]) -> dict[str, str]:
    ids = [row.instruction.instruction_id for row in rows]
    status = {item.instruction_id: item for item in find(connection, instruction_id=ids)}
    reasons = {}
    for instruction_id in ids:
        current = status.get(instruction_id)
        if current is None:
            reasons[instruction_id] = "the journal does not have it any more"
        elif current.state is not InstructionState.APPROVED:
            why = f": {current.message}" if current.message else ""
            reasons[instruction_id] = f"it is {current.state} since this run looked{why}"
    return reasons


def _related(
    connection: Connection, rows: Sequence[Eligible]
) -> list[tuple[Eligible, list[Instruction]]]:
    """Pair each row with instructions that may have moved money for the same subject."""
    if not rows:
        return []
    first = rows[0].instruction
    name = _BY.get(first.kind, "transaction_id")
    about = [
        row.payment.transaction_id if name == "transaction_id" else getattr(row.instruction, name)
        for row in rows
    ]
    values = {name: {*about} - {""}, "state": MAY_HAVE_MOVED}
    others = find(connection, first, **values)
    return [
        (row, [other for other in others if getattr(other, name) == subject])
        for row, subject in zip(rows, about, strict=True)
    ]
