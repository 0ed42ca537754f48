"""The sender: journal before the first byte, send once, keep the reply, then judge it.

Each batch goes through T1 claim -> S send -> T2a keep the reply -> T2b outcomes; T1, T2a and T2b
are one database transaction each, with no network inside, and S has no database inside. There is
no retry but for requests that surely did not leave. A crash at any point leaves either nothing
sent, or rows in flight that the next start turns into doubt. Only `steps.settle` calls this.

The connection is opened after the claim, not before it: the transport tells what surely did not
leave by watching one connection from its first byte, and a socket that waits through a commit may
be closed by then, which looks like doubt. A process that slept between claim and send is stopped
by a clock that cannot be set instead.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from recon.model.errors import Defect, ReconError
from recon.model.headway import Way
from recon.model.words import Clock, InstructionKind, Outcome
from recon.settlement.eligibility import Cleared
from recon.settlement.instruction import NOT_SENT_TRIES_MAX
from recon.settlement.sending_order import batches

BATCHES_IN_DOUBT_MAX = 2
"""After this many batches with doubt in a row nothing more is sent tonight."""

CLAIM_TO_SEND_MAX = timedelta(seconds=20)
"""A process that slept longer between claim and send may have lost its place: it does not send."""


END_WITHIN = timedelta(seconds=6)
"""How long a process that was told to end still waits for the reply to its batch."""

LOOK_AGAIN = timedelta(milliseconds=250)


def since_boot() -> timedelta:
    """A reading that also passes while the process is stopped or the machine sleeps."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return timedelta(microseconds=time.clock_gettime_ns(clock) // 1_000)


async def pause(much: timedelta) -> None:
    """Let time pass."""
    await asyncio.sleep(much.total_seconds())


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that is ready to leave: canonical bytes, rows in order."""

    kind: InstructionKind
    rows: tuple[Cleared, ...]
    body: bytes = field(repr=False)
    """As it may be stored: a payee's details are masked."""
    body_sha256: str
    """Of the bytes that leave."""
    request: object
    """The gateway client's own form of it."""


@dataclass(frozen=True, slots=True)
class Unsigned:
    """Nobody signed the request, so it cannot leave; nothing was claimed."""

    reason: str
    refused: Mapping[str, str] = field(default_factory=dict)
    """Instruction id -> why it is not signed; without those the others may be."""
    final: bool = False
    """It was refused; else nobody was there to sign."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, unjudged."""

    status: int
    headers: dict[str, str]
    body: bytes = field(repr=False)
    received_at: datetime
    kept: bytes = field(default=b"", repr=False)
    """What may be stored of a body that names a payee; b"" where all of it may."""
    asks_to_wait: timedelta = timedelta()
    """How long the gateway wants no further request (Retry-After)."""


@dataclass(frozen=True, slots=True)
class SurelyNotSent:
    """The request did not leave this machine."""

    reason: str
    final: bool = False
    """Trying again tonight is no use."""


@dataclass(frozen=True, slots=True)
class NoReply:
    """The request may have arrived; nothing usable came back."""

    reason: str


@dataclass(frozen=True, slots=True)
class RowResult:
    """What the reply says of one row, in the batch's order."""

    outcome: Outcome
    code: str = ""
    message: str = ""
    refund_reference_id: str = ""
    payout_id: str = ""
    """The gateway's own id of a payout, "" for all else."""


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What the reply says of the batch."""

    rows: tuple[RowResult, ...]
    return_status: str
    message: str
    stop_reason: str
    """Not empty: nothing more may be sent tonight, and why."""
    foreign: tuple[str, ...] = ()
    """Rows that belong to no request of ours, each in words."""


class MoneyGateway(Protocol):
    """The gateway as the sender needs it; `gateway` implements it."""

    def prepare(self, kind: InstructionKind, rows: Sequence[Cleared]) -> Prepared | Unsigned:
        """Canonical bytes of a signed request; the same ones for the same rows."""
        ...

    async def send(self, prepared: Prepared) -> Reply | SurelyNotSent | NoReply:
        """One request on a fresh connection, once."""
        ...

    def judge(self, prepared: Prepared, reply: Reply) -> BatchResult:
        """Outcomes of a reply; total over any bytes."""
        ...


class Journal(Protocol):
    """The journal as the sender needs it; `store.journal` implements it."""

    def halted(self) -> str:
        """Why nothing more may be sent by anybody; "" when money may move."""
        ...

    def claim(self, batch_id: str, prepared: Prepared, *, at: datetime) -> Mapping[str, str]:
        """T1: approved -> in flight, with the batch and its body; all or nothing.

        Returns:
            Instruction id -> why it may not leave; empty when all rows were claimed, else none.
        """
        ...

    def note_outside(self) -> None:
        """Note the newest link of the history outside the database, before a byte leaves.

        Raises:
            ReconError: it cannot be noted, or what was noted is not in the database.
        """
        ...

    def release(self, batch_id: str, *, reason: str, at: datetime) -> None:
        """The request surely did not leave: in flight -> approved."""
        ...

    def doubt(self, batch_id: str, *, reason: str, at: datetime) -> None:
        """Nothing usable came back: in flight -> in doubt."""
        ...

    def keep_reply(self, batch_id: str, reply: Reply) -> None:
        """T2a: the reply as received (card numbers masked) and its hash."""
        ...

    def record(self, batch_id: str, result: BatchResult, *, at: datetime) -> None:
        """T2b: outcomes of every row; closes the batch."""
        ...


@dataclass(frozen=True, slots=True)
class Sent:
    """What one pass of the sender did."""

    batches: int = 0
    rows: int = 0
    stop_reason: str = ""
    left_out: dict[str, str] = field(default_factory=dict)
    """Instruction id -> why it may not leave after all; found when its batch was claimed."""


@dataclass(slots=True)
class Circuit:
    """Opens after what makes further sending unwise."""

    in_doubt: int = 0
    not_sent: int = 0
    stop_reason: str = ""

    def note(self, *, doubtful: bool, left: bool, reason: str) -> None:
        """Count one batch; `reason` is the newest trouble in words."""
        self.in_doubt = self.in_doubt + 1 if doubtful else 0
        self.not_sent = 0 if left else self.not_sent + 1
        if self.in_doubt >= BATCHES_IN_DOUBT_MAX:
            self.stop_reason = f"{self.in_doubt} batches in a row ended in doubt ({reason})"
        if self.not_sent >= NOT_SENT_TRIES_MAX:
            self.stop_reason = f"nothing could be sent {self.not_sent} times in a row ({reason})"


class Sender:
    """One pass over the cleared instructions of one account; lives for one settle step.

    At most one instruction of a transaction is sent in a pass; the second goes in a later run,
    when the first is visible at the gateway. `crash_point` names the points at which a test may end
    the process. Batches begin `interval` apart, and after a Retry-After when it has passed.
    """

    def __init__(
        self,
        *,
        gateway: MoneyGateway,
        journal: Journal,
        clock: Clock,
        new_id: Callable[[], str],
        crash_point: Callable[[str], None],
        elapsed: Callable[[], timedelta] = since_boot,
        sleep: Callable[[timedelta], Awaitable[None]] = pause,
        interval: timedelta = timedelta(),
    ) -> None:
        self._gateway = gateway
        self._journal = journal
        self._clock = clock
        self._new_id = new_id
        self._crash_point = crash_point
        self._elapsed = elapsed
        self._sleep = sleep
        self._interval = interval
        self._next_at: timedelta | None = None
        self._ends_at: timedelta | None = None
        self._told_to_end: Callable[[], str] = str
        self._circuit = Circuit()
        self._left_out: dict[str, str] = {}

    async def send_all(
        self,
        cleared: Sequence[Cleared],
        *,
        told_to_end: Callable[[], str] = str,
        ends_in: timedelta | None = None,
    ) -> Sent:
        """Send every cleared instruction once, in batches, until done or the circuit opens.

        `told_to_end` names the signal that asked this process to end; "" while none did. After
        `ends_in` no batch is claimed any more, and no wait goes beyond it.
        """
        self._told_to_end = told_to_end
        self._ends_at = None if ends_in is None else self._elapsed() + ends_in
        count = rows = 0
        way = Way("instructions sent", of=len(cleared))
        for kind, group in batches(cleared):
            if left := await self._send_until_left(kind, group):
                count, rows = count + 1, rows + left
                way.came_to(rows)
            if self._circuit.stop_reason:
                break
        return Sent(count, rows, self._circuit.stop_reason, self._left_out)

    async def _send_until_left(self, kind: InstructionKind, group: tuple[Cleared, ...]) -> int:
        """How many rows left; what surely did not leave is tried again, as a new batch.

        Rows that may not leave after all are dropped, and the batch is built without them.
        """
        tries = 0
        while group and tries < NOT_SENT_TRIES_MAX:
            if reason := await self._turn():
                self._circuit.stop_reason = reason
                break
            prepared, batch_id = self._gateway.prepare(kind, group), self._new_id()
            # Asked behind the signing, which may have waited for somebody.
            if reason := self._ending() or self._journal.halted():
                self._circuit.stop_reason = reason
                break
            if isinstance(prepared, Unsigned):
                group = self._signable(group, prepared)
                continue
            self._crash_point("before claim")
            claimed_at = self._elapsed()
            if left_out := self._journal.claim(batch_id, prepared, at=self._clock()):
                group = self._without(group, left_out)
                continue
            left = await self._send_once(batch_id, prepared, claimed_at=claimed_at)
            if left is not None:
                return left
            tries += 1
            if self._circuit.stop_reason:
                break
        return 0

    async def _turn(self) -> str:
        """Wait until the next batch may begin, with nothing claimed; why none may, else ""."""
        while self._ends_at is not None or self._next_at is not None:
            now = self._elapsed()
            wait = max(timedelta(), (self._next_at or now) - now)
            if self._ends_at is not None and now + wait >= self._ends_at:
                asked = f"; the gateway asked to wait another {wait.total_seconds():.0f} s"
                over = "this run's time for sending was over (night_deadline_seconds)"
                return f"{over}{asked if wait > self._interval else ''}"
            if not wait:
                break
            if reason := self._ending():
                return reason
            await self._sleep(min(wait, LOOK_AGAIN))
        return ""

    def _signable(self, group: tuple[Cleared, ...], unsigned: Unsigned) -> tuple[Cleared, ...]:
        """What is left of a group that was not signed: the rows that were not refused, or none."""
        if unsigned.refused:
            return self._without(group, unsigned.refused)
        self._circuit.stop_reason = unsigned.reason
        return ()

    def _without(
        self, group: tuple[Cleared, ...], left_out: Mapping[str, str]
    ) -> tuple[Cleared, ...]:
        rest = tuple(row for row in group if row.instruction.instruction_id not in left_out)
        if len(rest) == len(group):
            msg = "the journal left out rows that are in no batch; nothing of this batch was sent"
            raise Defect(msg)
        self._left_out.update(left_out)
        return rest

    async def _send_once(
        self, batch_id: str, prepared: Prepared, *, claimed_at: timedelta
    ) -> int | None:
        """S, then what the answer asks for: the rows that count as sent.

        None when the request surely did not leave, or was surely not processed.
        """
        self._note_outside(batch_id)
        self._crash_point("after claim")
        held_up = self._elapsed() - claimed_at
        if held_up > CLAIM_TO_SEND_MAX:
            answer: Reply | SurelyNotSent | NoReply = SurelyNotSent(
                f"this process was held up for {held_up.total_seconds():.0f} s before it could "
                "send; it may have lost its place and sends nothing more",
                final=True,
            )
        else:
            answer = await self._answer_to(prepared)
        self._crash_point("after send")
        if isinstance(answer, SurelyNotSent):
            self._journal.release(batch_id, reason=answer.reason, at=self._clock())
            self._circuit.note(doubtful=False, left=False, reason=answer.reason)
            self._circuit.stop_reason = self._circuit.stop_reason or answer.reason * answer.final
            return None
        asked = answer.asks_to_wait if isinstance(answer, Reply) else timedelta()
        if wait := max(self._interval, asked):
            self._next_at = self._elapsed() + wait
        if isinstance(answer, NoReply):
            self._journal.doubt(batch_id, reason=answer.reason, at=self._clock())
            self._circuit.note(doubtful=True, left=True, reason=answer.reason)
            return len(prepared.rows)
        return self._judge(batch_id, prepared, answer)

    async def _answer_to(self, prepared: Prepared) -> Reply | SurelyNotSent | NoReply:
        """S; a process that was told to end waits only a little longer for the reply."""
        sending = asyncio.ensure_future(self._gateway.send(prepared))
        told_to_end: timedelta | None = None
        while not sending.done():
            await asyncio.wait({sending}, timeout=LOOK_AGAIN / timedelta(seconds=1))
            if sending.done() or not (reason := self._ending()):
                continue
            told_to_end = told_to_end or self._elapsed()
            if self._elapsed() - told_to_end > END_WITHIN:
                sending.cancel()
                await asyncio.wait({sending})
                return NoReply(reason) if sending.cancelled() else sending.result()
        return sending.result()

    def _ending(self) -> str:
        signal = self._told_to_end()
        return f"this process was told to end ({signal})" if signal else ""

    def _note_outside(self, batch_id: str) -> None:
        """The claim is noted outside the database, or undone where that cannot be."""
        try:
            self._journal.note_outside()
        except ReconError as error:
            self._journal.release(batch_id, reason=str(error), at=self._clock())
            raise

    def _judge(self, batch_id: str, prepared: Prepared, reply: Reply) -> int | None:
        """T2a, T2b; how many rows the reply does not prove to be refused before processing.

        None when it proves that of all of them.
        """
        self._journal.keep_reply(batch_id, reply)
        self._crash_point("after reply")
        result = self._gateway.judge(prepared, reply)
        self._journal.record(batch_id, result, at=self._clock())
        self._crash_point("after record")
        doubtful = any(row.outcome in {Outcome.UNKNOWN, Outcome.PENDING} for row in result.rows)
        trouble = result.message or f"HTTP {reply.status}"
        left = sum(row.outcome is not Outcome.NOT_SENT for row in result.rows)
        self._circuit.note(doubtful=doubtful, left=bool(left), reason=trouble)
        self._circuit.stop_reason = result.stop_reason or self._circuit.stop_reason
        return left or None
