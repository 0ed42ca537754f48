"""The journal of money: instructions and batches, every change with its event in the history.

Implements `sender.Journal`. Each method is one transaction; a claim is a compare-and-set
on the state of every row, so that no instruction is ever in two batches on the wire. A claim is on
the disk when it returns. What came back outlives this process at once, and on SQLite the machine
with the next claim or the end of the pass (`Store.flush`): before another byte leaves.

The last look at a batch's rows, in the transaction that claims them: may each still leave?

Between the judgement of a night and its claim people may have taken a row back, and another night
may have carried out what a row means. Nothing leaves on the word of an earlier look.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, select

from recon.desk.held_keys import NO_KEYS, HeldKeys
from recon.gateway_client import BatchReply, FindingKind, PreparedRequest, RawReply, ReplyOutcome
from recon.gateway_client.replies import RowOutcome
from recon.instructions.eligibility import Cleared
from recon.instructions.instruction import Instruction
from recon.instructions.intention import told_repeats, unagreed
from recon.model.errors import Defect, NightHeldError
from recon.model.words import InstructionKind, InstructionState
from recon.store.database.engine import Store
from recon.store.database.history import CLAIMED, Event, append
from recon.store.database.night_lock import lock_stands
from recon.store.money import sending_rows
from recon.store.money.batch_rows import (
    CLOSED,
    claim_rows,
    close_batch,
    rows_in_flight,
    save_batch,
    save_reply,
    settle_rows,
    state_of,
)
from recon.store.money.bound_rows import refuse_changed_rows
from recon.store.money.endorsement_rows import Endorsed
from recon.store.money.instruction_rows import find
from recon.store.nights import runs
from recon.store.nights.proofs import MAY_HAVE_MOVED
from recon.store.schema import batch

FOREIGN_ROW = "foreign row"
"""The event of a row in a batch's reply that belongs to no request of ours."""


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

    def __init__(
        self,
        store: Store,
        *,
        run_id: str,
        merchant_id: str,
        account_id: str,
        ids_unique: bool = False,
        desk: HeldKeys = NO_KEYS,
    ) -> None:
        """The journal of a run.

        `ids_unique` is what the merchant declares of request ids; without the public key of the
        `desk` nothing that people approved is ever claimed.
        """
        self._store = store
        self._endorsed = Endorsed(desk)
        self._ids_unique = ids_unique
        self._run_id = run_id
        self._merchant_id = merchant_id
        self._account_id = account_id

    @property
    def keys(self) -> dict[str, str]:
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
            row = connection.execute(
                select(*(batch.c[name] for name in names)).where(batch.c.batch_id == batch_id)
            ).one_or_none()
        return None if row is None else Standing(*row)

    def halted(self) -> str:
        """Why nothing more may be sent; "" when money may move and this run still has its place."""
        with self._store.reading() as connection:
            return (
                str(sending_rows.stopped(connection) or "")
                or self._endorsed.start_problem(connection)
                or self._lost_place(connection)
            )

    def _lost_place(self, connection: Connection) -> str:
        """A run that was taken over, or whose lock the server dropped, must not send."""
        if runs.is_closed(connection, self._run_id):
            return f"run {self._run_id} was closed: another run took the account over"
        of_account = {"merchant_id": self._merchant_id, "account_id": self._account_id}
        if not lock_stands(connection, **of_account):
            return "the database dropped the lock on this account: start the night again"
        return ""

    def claim(
        self, batch_id: str, rows: Sequence[Cleared], *, request: PreparedRequest, at: datetime
    ) -> Mapping[str, str]:
        """T1: approved -> in flight for every row, or nothing at all.

        Returns:
            Why rows may not leave after all, by instruction id; then nothing was claimed.

        Raises:
            NightHeldError: this run lost its place since it last looked; nothing was claimed.
            GateClosedError: a row is not what the history bound, or not what people agreed to as
                far as the desk's signature shows; nothing was claimed.
        """
        with self._store.writing() as connection:
            # Whoever takes over closes this run in a transaction before or after this one.
            if lost := self._lost_place(connection):
                raise NightHeldError(lost)
            if refused := left_out(connection, rows, ids_unique=self._ids_unique):
                return refused
            refuse_changed_rows(connection, rows)
            ids = [row.instruction.instruction_id for row in rows]
            self._endorsed.refuse_rows(connection, ids)
            save_batch(connection, batch_id, rows, request=request, of_account=self.keys, at=at)
            events = claim_rows(connection, batch_id, rows=rows, at=at)
            kind = rows[0].instruction.kind
            claimed = {"kind": kind, "body_sha256": request.body_sha256, "rows": ids}
            append(connection, [Event("batch", batch_id, CLAIMED, claimed), *events], at=at)
        return {}

    def release(self, batch_id: str, *, reason: str, at: datetime) -> None:
        """The request surely did not leave: in flight -> approved."""
        self._close_all(batch_id, ReplyOutcome.NOT_SENT, reason=reason, event="not sent", at=at)

    def doubt(self, batch_id: str, *, reason: str, at: datetime) -> None:
        """Nothing usable came back: in flight -> in doubt."""
        self._close_all(batch_id, ReplyOutcome.UNKNOWN, reason=reason, event="in doubt", at=at)

    def keep_reply(self, batch_id: str, reply: RawReply, *, kept: bytes) -> None:
        """T2a: what of the reply may be `kept` (card numbers masked), and the hash of all of it.

        Raises:
            NightHeldError: another run took the account over and closed the batch; the reply is
                kept with it, and changes nothing.
        """
        with self._store.writing(flushed=False) as connection:
            in_place = save_reply(connection, batch_id, reply=reply, kept=kept)
        if not in_place:
            raise NightHeldError(_taken_over(batch_id))

    def record(self, batch_id: str, reply: BatchReply, *, at: datetime) -> None:
        """T2b: the outcome of every row; closes the batch."""
        with self._store.writing(flushed=False) as connection:
            self._refuse_foreign(connection, batch_id)
            ids = rows_in_flight(connection, batch_id)
            if len(ids) != len(reply.rows):
                msg = f"batch {batch_id} has {len(ids)} rows, its result {len(reply.rows)}"
                raise Defect(msg)
            events = settle_rows(connection, batch_id, ids=ids, results=reply.rows, at=at)
            details = {"return_status": reply.return_status, "message": reply.in_words}
            events.append(Event("batch", batch_id, "closed", details))
            for finding in reply.findings:
                if finding.kind is FindingKind.FOREIGN_ROW:
                    kind = connection.execute(_KIND, {"of_batch": batch_id}).scalar()
                    sentence = (
                        f"{finding.message} in the reply to a {kind}: order "
                        f"{finding.order_no or 'none'}, transaction "
                        f"{finding.transaction_id or 'none'}"
                    )
                    events.append(Event("batch", batch_id, FOREIGN_ROW, {"what": sentence}))
            close_batch(connection, batch_id, **details, at=at)
            append(connection, events, at=at)

    def _close_all(
        self, batch_id: str, outcome: ReplyOutcome, *, reason: str, event: str, at: datetime
    ) -> None:
        with self._store.writing() as connection:
            if state_of(connection, batch_id) == CLOSED:
                # Another run took the account over and decided these rows; they stay as they are.
                raise NightHeldError(_taken_over(batch_id))
            self._refuse_foreign(connection, batch_id)
            ids = rows_in_flight(connection, batch_id)
            results = [
                RowOutcome(position, "", "", outcome, message=reason)
                for position in range(len(ids))
            ]
            events = settle_rows(connection, batch_id, ids=ids, results=results, at=at)
            events.append(Event("batch", batch_id, event, {"reason": reason}))
            close_batch(connection, batch_id, return_status="", message=reason, at=at)
            append(connection, events, at=at)

    def _refuse_foreign(self, connection: Connection, batch_id: str) -> None:
        """A run that lost its place may bring its own batch to an end, and nobody else's.

        It slept before its sweep: what it finds open then may be on the wire for another.
        """
        owner = connection.execute(_OWNER, {"of_batch": batch_id}).scalar()
        if owner != self._run_id and (lost := self._lost_place(connection)):
            raise NightHeldError(lost)


_OWNER, _KIND = (
    select(column).where(batch.c.batch_id == bindparam("of_batch"))
    for column in (batch.c.run_id, batch.c.kind)
)


def _taken_over(batch_id: str) -> str:
    return (
        f"another run took the account over while batch {batch_id} was under way, and closed it; "
        "this run ends here: that run's report tells what became of the rows"
    )


_BY: Mapping[InstructionKind, str] = {
    InstructionKind.PAYOUT: "payee_digest",
    InstructionKind.CANCEL_SUBSCRIPTION: "recurring_id",
}
"""What others of the same intention have in common; the payment for all other kinds."""


def left_out(
    connection: Connection, rows: Sequence[Cleared], *, ids_unique: bool
) -> dict[str, str]:
    """Instruction id -> why it may not leave after all; empty when every row may.

    Args:
        connection: Of the transaction that would claim them.
        rows: Of one account and one kind.
        ids_unique: What the merchant declares of request ids.
    """
    reasons = _not_approved(connection, rows)
    for row, others in _beside(connection, rows):
        repeats = unagreed(
            row.instruction,
            others=others,
            transaction_id=row.payment.transaction_id,
            ids_unique=ids_unique,
        )
        if repeats:
            reasons.setdefault(row.instruction.instruction_id, told_repeats(repeats))
    return reasons


def _not_approved(connection: Connection, rows: Sequence[Cleared]) -> dict[str, str]:
    wanted = [row.instruction.instruction_id for row in rows]
    standing = {item.instruction_id: item for item in find(connection, instruction_id=wanted)}
    reasons = {}
    for instruction_id in wanted:
        stands = standing.get(instruction_id)
        if stands is None:
            reasons[instruction_id] = "the journal does not have it any more"
        elif stands.state is not InstructionState.APPROVED:
            why = f": {stands.message}" if stands.message else ""
            reasons[instruction_id] = f"it is {stands.state} since this run looked{why}"
    return reasons


def _beside(
    connection: Connection, rows: Sequence[Cleared]
) -> list[tuple[Cleared, list[Instruction]]]:
    """Each row with what may have moved for its payment, payee or subscription."""
    if not rows:
        return []
    first = rows[0].instruction
    name = _BY.get(first.kind, "transaction_id")
    about = [
        row.payment.transaction_id if name == "transaction_id" else getattr(row.instruction, name)
        for row in rows
    ]
    wanted = {name: {*about} - {""}, "state": MAY_HAVE_MOVED}
    others = find(connection, first, **wanted)
    return [
        (row, [other for other in others if getattr(other, name) == subject])
        for row, subject in zip(rows, about, strict=True)
    ]
