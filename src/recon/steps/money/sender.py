"""The sender: journal before the first byte, send once, store the reply, then evaluate it.

Each batch is claimed, sent, its reply stored and its outcomes recorded. All but the sending are one
database transaction each, with no network call inside, and the sending has no database access
inside. Only requests that surely did not leave are retried. A crash at any point leaves either
nothing sent, or rows in flight that the next start turns into IN_DOUBT.

The connection is opened after the claim, not before it: the transport knows what surely did not
leave by watching one connection from its first byte, and a socket left idle during a commit may be
closed by then, which looks like doubt. Instead, a clock that cannot be set stops a process that
slept between claim and send.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from recon.gateway_client import (
    CertificateError,
    NotSentError,
    PreparedRequest,
    RawReply,
    ReplyOutcome,
    UnknownOutcomeError,
    UnsignedError,
)
from recon.instructions.eligibility import Eligible, batches
from recon.instructions.instruction import NOT_SENT_TRIES_MAX
from recon.instructions.money_requests import GatewayOfMoney
from recon.model.errors import Defect, ReconError
from recon.model.step_progress import WorkProgress
from recon.model.terms import Clock
from recon.store.money.journal import StoredJournal

BATCHES_IN_DOUBT_MAX = 2
"""After this many consecutive batches with doubt, nothing more is sent in this run."""

CLAIM_TO_SEND_MAX = timedelta(seconds=20)
"""A process held up longer between claim and send may have lost its lock: it sends nothing."""


END_WITHIN = timedelta(seconds=6)
"""How long a process that was asked to end still waits for the reply to its batch."""

LOOK_AGAIN = timedelta(milliseconds=250)


def since_boot() -> timedelta:
    """Return the time since boot, including time while the process or machine slept."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return timedelta(microseconds=time.clock_gettime_ns(clock) // 1_000)


async def pause(much: timedelta) -> None:
    """Sleep for this long."""
    await asyncio.sleep(much.total_seconds())


@dataclass(frozen=True, slots=True)
class Sent:
    """What one pass of the sender did."""

    batches: int = 0
    rows: int = 0
    stop_reason: str = ""
    left_out: dict[str, str] = field(default_factory=dict)
    """Instruction id -> why it was not sent after all; found when it was signed or claimed."""


@dataclass(slots=True)
class Circuit:
    """Circuit breaker: sets a reason to stop after repeated doubt or repeated failure to send."""

    in_doubt: int = 0
    not_sent: int = 0
    stop_reason: str = ""

    def note(self, *, doubtful: bool, left: bool, reason: str) -> None:
        """Count one batch; `reason` describes its newest problem."""
        self.in_doubt = self.in_doubt + 1 if doubtful else 0
        self.not_sent = 0 if left else self.not_sent + 1
        if self.in_doubt >= BATCHES_IN_DOUBT_MAX:
            self.stop_reason = f"{self.in_doubt} batches in a row ended in doubt ({reason})"
        if self.not_sent >= NOT_SENT_TRIES_MAX:
            self.stop_reason = f"nothing could be sent {self.not_sent} times in a row ({reason})"


class _HeldUpError(NotSentError):
    """This process was suspended between claim and send."""


class Sender:
    """One pass over the eligible instructions of one account; used for one settle step.

    At most one instruction of a transaction is sent in a pass; the second is sent in a later run,
    when the gateway shows the first. `crash_point` names the points at which a test may end the
    process. Batches start `interval` apart, and only once the wait of a Retry-After header is over.
    """

    def __init__(
        self,
        *,
        gateway: GatewayOfMoney,
        journal: StoredJournal,
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
        self._ending_signal: Callable[[], str] = str
        self._circuit = Circuit()
        self._left_out: dict[str, str] = {}

    async def send_all(
        self,
        eligible: Sequence[Eligible],
        *,
        ending_signal: Callable[[], str] = str,
        ends_in: timedelta | None = None,
    ) -> Sent:
        """Send every eligible instruction once, in batches, until done or until the circuit opens.

        `ending_signal` names the signal that asked this process to end; "" if there was none.
        After `ends_in` no further batch is claimed, and no wait goes beyond it.
        """
        self._ending_signal = ending_signal
        self._ends_at = None if ends_in is None else self._elapsed() + ends_in
        count = rows = 0
        progress = WorkProgress("instructions sent", of=len(eligible))
        for _, group in batches(eligible):
            if left := await self._send_until_left(group):
                count, rows = count + 1, rows + left
                progress.advance_to(rows)
            if self._circuit.stop_reason:
                break
        return Sent(count, rows, self._circuit.stop_reason, self._left_out)

    async def _send_until_left(self, group: tuple[Eligible, ...]) -> int:
        """Send one group, as a new batch while it surely did not leave; return how many rows left.

        Rows that may not be sent after all are dropped, and the batch is built without them.
        """
        tries = 0
        while group and tries < NOT_SENT_TRIES_MAX:
            if reason := await self._turn():
                self._circuit.stop_reason = reason
                break
            request: PreparedRequest | UnsignedError
            try:
                request = self._gateway.prepare(group)
            except UnsignedError as error:
                request = error
            batch_id = self._new_id()
            # Checked after signing, which may have waited for a person.
            if reason := self._ending() or self._journal.halted():
                self._circuit.stop_reason = reason
                break
            if isinstance(request, UnsignedError):
                group = self._signable(group, request)
                continue
            self._crash_point("before claim")
            claimed_at = self._elapsed()
            left_out = self._journal.claim(batch_id, group, request=request, at=self._clock())
            if left_out:
                group = self._without(group, left_out)
                continue
            left = await self._send_once(batch_id, request, claimed_at=claimed_at)
            if left is not None:
                return left
            tries += 1
            if self._circuit.stop_reason:
                break
        return 0

    async def _turn(self) -> str:
        """Wait until the next batch may begin, with nothing claimed; return why it may not."""
        while self._ends_at is not None or self._next_at is not None:
            now = self._elapsed()
            wait = max(timedelta(), (self._next_at or now) - now)
            if self._ends_at is not None and now + wait >= self._ends_at:
                seconds = f"; the gateway asked to wait another {wait.total_seconds():.0f} s"
                over = "this run's time for sending was over (night_deadline_seconds)"
                return f"{over}{seconds if wait > self._interval else ''}"
            if not wait:
                break
            if reason := self._ending():
                return reason
            await self._sleep(min(wait, LOOK_AGAIN))
        return ""

    def _signable(
        self, group: tuple[Eligible, ...], unsigned: UnsignedError
    ) -> tuple[Eligible, ...]:
        """Return the rows that the signer did not refuse; none if it refused no single row."""
        unsigned_ids = {
            row.instruction.instruction_id: f"the signer refused it: {unsigned.refused[position]}"
            for position, row in enumerate(group)
            if position in unsigned.refused
        }
        if not unsigned_ids:
            self._circuit.stop_reason = str(unsigned)
            return ()
        return self._without(group, unsigned_ids)

    def _without(
        self, group: tuple[Eligible, ...], left_out: Mapping[str, str]
    ) -> tuple[Eligible, ...]:
        others = tuple(row for row in group if row.instruction.instruction_id not in left_out)
        if len(others) == len(group):
            msg = "the journal left out rows that are in no batch; nothing of this batch was sent"
            raise Defect(msg)
        self._left_out.update(left_out)
        return others

    async def _send_once(
        self, batch_id: str, request: PreparedRequest, *, claimed_at: timedelta
    ) -> int | None:
        """Send a claimed batch and handle the answer; return how many rows count as sent.

        None if the request surely did not leave, or was surely not processed.
        """
        try:
            self._journal.note_outside()
        except ReconError as error:
            # A claim that cannot be noted outside the database is undone.
            self._journal.release(batch_id, reason=str(error), at=self._clock())
            raise
        self._crash_point("after claim")
        held_up = self._elapsed() - claimed_at
        answer: RawReply | NotSentError | UnknownOutcomeError
        if held_up > CLAIM_TO_SEND_MAX:
            answer = _HeldUpError(
                f"this process was held up for {held_up.total_seconds():.0f} s before it could "
                "send; it may have lost its place and sends nothing more",
                kind="HeldUp",
            )
        else:
            try:
                answer = await self._answer_to(request)
            except (NotSentError, UnknownOutcomeError) as error:
                answer = error
        self._crash_point("after send")
        if isinstance(answer, NotSentError):
            is_certificate = isinstance(answer, CertificateError)
            cure = "; name its authority as ca_file in gateway.toml" if is_certificate else ""
            reason = f"{answer}{cure}"
            self._journal.release(batch_id, reason=reason, at=self._clock())
            self._circuit.note(doubtful=False, left=False, reason=reason)
            if is_certificate or isinstance(answer, _HeldUpError):
                self._circuit.stop_reason = self._circuit.stop_reason or reason
            return None
        seconds = answer.retry_after_seconds if isinstance(answer, RawReply) else 0.0
        if wait := max(self._interval, timedelta(seconds=seconds)):
            self._next_at = self._elapsed() + wait
        if isinstance(answer, UnknownOutcomeError):
            self._journal.doubt(batch_id, reason=str(answer), at=self._clock())
            self._circuit.note(doubtful=True, left=True, reason=str(answer))
            return len(request.rows)
        return self._evaluate(batch_id, request, answer)

    async def _answer_to(self, request: PreparedRequest) -> RawReply:
        """Send (S); a process that was asked to end waits for the reply only a little longer."""
        sending = asyncio.ensure_future(self._gateway.send(request))
        sent_at: timedelta | None = None
        while not sending.done():
            await asyncio.wait({sending}, timeout=LOOK_AGAIN / timedelta(seconds=1))
            if sending.done() or not (reason := self._ending()):
                continue
            sent_at = sent_at or self._elapsed()
            if self._elapsed() - sent_at > END_WITHIN:
                sending.cancel()
                await asyncio.wait({sending})
                if sending.cancelled():
                    raise UnknownOutcomeError(reason, kind="ReportedToEnd")
        return sending.result()

    def _ending(self) -> str:
        signal = self._ending_signal()
        return f"this process received the signal to end ({signal})" if signal else ""

    def _evaluate(self, batch_id: str, request: PreparedRequest, reply: RawReply) -> int | None:
        """Store the reply, record outcomes; return how many rows count as sent.

        None if the reply proves that every row was refused before processing.
        """
        self._journal.save_reply(batch_id, reply, saved=request.masked(reply.body))
        self._crash_point("after reply")
        read = self._gateway.read(request, reply)
        self._journal.record(batch_id, read, at=self._clock())
        self._crash_point("after record")
        outcomes = [row.outcome for row in read.rows]
        doubtful = not {ReplyOutcome.UNKNOWN, ReplyOutcome.PENDING}.isdisjoint(outcomes)
        trouble = read.as_text or f"HTTP {reply.status}"
        left = sum(outcome is not ReplyOutcome.NOT_SENT for outcome in outcomes)
        self._circuit.note(doubtful=doubtful, left=bool(left), reason=trouble)
        self._circuit.stop_reason = read.stop_reason or self._circuit.stop_reason
        return left or None
