import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from recon.gateway_client import (
    BatchReply,
    CertificateError,
    NotSentError,
    PreparedRequest,
    RawReply,
    ReplyOutcome,
    UnknownOutcomeError,
    UnsignedError,
)
from recon.instructions.eligibility import Cleared, ShownPayment
from recon.instructions.money_requests import GatewayOfMoney
from recon.instructions.sender import Sender, Sent
from recon.model.errors import Defect, OutputError
from recon.model.words import GatewayState, InstructionKind
from tests.recon.instructions.sample_instructions import (
    IBAN,
    INSTRUCTION,
    not_sent,
    reply_of,
    request_of,
    silence,
)

AT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)


class Tape(GatewayOfMoney):
    """Plays gateway and journal, and writes down what happened in order."""

    def __init__(self, *answers: object, stop: str = "") -> None:
        self.answers = list(answers)
        self.stop = stop
        self.halts: list[str] = []
        self.gone: dict[str, str] = {}
        self.stray: dict[str, str] = {}
        self.events: list[str] = []
        self.unsigned: list[UnsignedError] = []
        self.outside: Exception | None = None
        self.noted: list[str] = []
        self.kept: list[bytes] = []
        self.outcomes: list[ReplyOutcome] = []

    def prepare(self, rows: Sequence[Cleared]) -> PreparedRequest:
        if self.unsigned:
            self.events.append("unsigned")
            raise self.unsigned.pop(0)
        return request_of(rows)

    async def send(self, request: PreparedRequest) -> RawReply:
        rows: Any = request.rows
        ids = ",".join(row.instruction.instruction_id for row in rows)
        self.events.append(f"send {rows[0].instruction.kind} {ids}")
        answer = self.answers.pop(0) if self.answers else RawReply(200, {}, b"", AT)
        if isinstance(answer, NotSentError | UnknownOutcomeError):
            raise answer
        assert isinstance(answer, RawReply)
        return answer

    def read(self, request: PreparedRequest, reply: RawReply) -> BatchReply:
        del reply
        self.events.append("judge")
        outcome = self.outcomes.pop(0) if self.outcomes else ReplyOutcome.DONE
        return reply_of(*[outcome] * len(request.rows), stop=self.stop)

    def halted(self) -> str:
        return self.halts.pop(0) if self.halts else ""

    def claim(
        self, batch_id: str, rows: Sequence[Cleared], *, request: PreparedRequest, at: datetime
    ) -> Mapping[str, str]:
        del request, at
        ids = [row.instruction.instruction_id for row in rows]
        if gone := {one: self.gone[one] for one in ids if one in self.gone}:
            self.events.append(f"refuse {batch_id}")
            return gone
        self.events.append(f"claim {batch_id}")
        return self.stray

    def note_outside(self) -> None:
        if self.outside:
            raise self.outside
        self.noted.append(self.events[-1])

    def release(self, batch_id: str, *, reason: str, at: datetime) -> None:
        del reason, at
        self.events.append(f"release {batch_id}")

    def doubt(self, batch_id: str, *, reason: str, at: datetime) -> None:
        del reason, at
        self.events.append(f"doubt {batch_id}")

    def keep_reply(self, batch_id: str, reply: RawReply, *, kept: bytes) -> None:
        del reply
        self.kept.append(kept)
        self.events.append(f"keep {batch_id}")

    def record(self, batch_id: str, reply: BatchReply, *, at: datetime) -> None:
        del reply, at
        self.events.append(f"record {batch_id}")


def _cleared(number: int, *, kind: InstructionKind, transaction: str = "") -> Cleared:
    instruction = replace(
        INSTRUCTION,
        instruction_id=f"i{number}",
        natural_key=f"k{number}",
        kind=kind,
        order_no=f"A-{number}",
        transaction_id="",
        amount=100,
        payment_amount=100,
        line=number,
    )
    payment = ShownPayment(transaction or f"T{number}", GatewayState.PAID, "3000", "EUR", 100)
    return Cleared(instruction, payment)


def _send(
    tape: Tape,
    *cleared: Cleared,
    seconds: Sequence[float] = (),
    crash_point: Callable[[str], None] = str,
) -> Sent:
    numbers = count(1)
    readings = iter(seconds)
    sender = Sender(
        gateway=tape,
        journal=tape,
        clock=lambda: AT,
        new_id=lambda: f"b{next(numbers)}",
        crash_point=crash_point,
        elapsed=lambda: timedelta(seconds=next(readings, 0)),
    )
    return asyncio.run(sender.send_all(cleared))


class Time:
    """Passes when the sender waits, and writes down until when on the tape."""

    def __init__(self, tape: Tape) -> None:
        self.now = timedelta(days=1)
        self._began = self.now
        self._tape = tape

    async def sleep(self, much: timedelta) -> None:
        self.now += much
        waited = f"until {(self.now - self._began).total_seconds():g} s"
        if self._tape.events[-1].startswith("until"):
            self._tape.events.pop()
        self._tape.events.append(waited)


KINDS = (InstructionKind.CAPTURE, InstructionKind.CANCEL, InstructionKind.REFUND)
"""Each a batch of its own, in this order."""


def _send_in_time(
    tape: Tape,
    *,
    interval: float = 0,
    ends_in: float = 3_600,
    told_to_end: Callable[[], str] = str,
) -> Sent:
    """Three batches, in a time of their own."""
    numbers, time = count(1), Time(tape)
    sender = Sender(
        gateway=tape,
        journal=tape,
        clock=lambda: AT,
        new_id=lambda: f"b{next(numbers)}",
        crash_point=str,
        elapsed=lambda: time.now,
        sleep=time.sleep,
        interval=timedelta(seconds=interval),
    )
    cleared = [_cleared(number, kind=kind) for number, kind in enumerate(KINDS, start=1)]
    sending = sender.send_all(cleared, told_to_end=told_to_end, ends_in=timedelta(seconds=ends_in))
    return asyncio.run(sending)


def _busy(seconds: int) -> RawReply:
    return RawReply(429, {"retry-after": str(seconds)}, b"", AT)


def _steps(tape: Tape) -> list[str]:
    """What was claimed, sent and waited for."""
    return [one for one in tape.events if one.split()[0] in {"claim", "send", "until"}]


def test_the_next_batch_waits_as_long_as_the_gateway_asked_and_is_not_claimed_before() -> None:
    """A process that dies while it waits leaves nothing in flight."""
    tape = Tape(_busy(12))
    sent = _send_in_time(tape)

    assert _steps(tape) == [
        *("claim b1", "send capture i1", "until 12 s", "claim b2", "send cancel i2"),
        *("claim b3", "send refund i3"),
    ]
    assert (sent.rows, sent.stop_reason) == (3, "")


def test_batches_begin_an_interval_apart() -> None:
    """Money has a pace, as reads have."""
    tape = Tape()
    _send_in_time(tape, interval=0.2)

    assert [one for one in _steps(tape) if one.startswith("until")] == [
        "until 0.2 s",
        "until 0.4 s",
    ]


@pytest.mark.parametrize(
    ("ends_in", "sent_rows", "says"),
    [(60, 1, "asked to wait another 7200 s"), (0, 0, "time for sending was over")],
)
def test_no_wait_goes_beyond_the_end_of_the_run(ends_in: float, sent_rows: int, says: str) -> None:
    """Nothing more is claimed, at once, and the reason is said."""
    tape = Tape(_busy(7_200))
    sent = _send_in_time(tape, ends_in=ends_in)

    assert _steps(tape) == ["claim b1", "send capture i1"][: 2 * sent_rows]
    assert sent.rows == sent_rows
    assert says in sent.stop_reason
    assert "night_deadline_seconds" in sent.stop_reason


def test_a_process_that_is_told_to_end_waits_no_longer() -> None:
    """The signal is heard while it waits, and nothing more is claimed."""
    signals = iter(["", "", "SIGTERM"])
    tape = Tape(_busy(600))
    sent = _send_in_time(tape, told_to_end=lambda: next(signals, "SIGTERM"))

    assert _steps(tape)[:2] == ["claim b1", "send capture i1"]
    assert len(_steps(tape)) <= 3
    assert "told to end (SIGTERM)" in sent.stop_reason


def test_a_batch_that_was_refused_for_sure_goes_again_as_a_new_one_after_the_wait() -> None:
    """As what surely did not leave; the other batches go on."""
    tape = Tape(_busy(30), _busy(5))
    tape.outcomes = [ReplyOutcome.NOT_SENT, ReplyOutcome.NOT_SENT]
    sent = _send_in_time(tape)

    assert _steps(tape)[:8] == [
        *("claim b1", "send capture i1", "until 30 s"),
        *("claim b2", "send capture i1", "until 35 s"),
        *("claim b3", "send capture i1"),
    ]
    assert (sent.rows, sent.batches, sent.stop_reason) == (3, 3, "")


def test_a_gateway_that_refuses_every_time_stops_the_sending() -> None:
    """Three times in a row; none of it counts as sent."""
    tape = Tape(*[_busy(1)] * 3)
    tape.outcomes = [ReplyOutcome.NOT_SENT] * 3
    sent = _send_in_time(tape)

    assert [one for one in _steps(tape) if one.startswith("send")] == ["send capture i1"] * 3
    assert (sent.rows, sent.batches) == (0, 0)
    assert "nothing could be sent 3 times in a row" in sent.stop_reason


def test_the_journal_is_written_before_the_first_byte() -> None:
    """Claim, send, keep the reply, judge it, record: always in this order."""
    tape = Tape()
    _send(tape, _cleared(1, kind=InstructionKind.CAPTURE))

    assert tape.events == ["claim b1", "send capture i1", "keep b1", "judge", "record b1"]


def test_what_names_a_payee_is_not_kept_of_a_reply() -> None:
    """The private values of a request are masked before its reply reaches the journal."""
    tape = Tape(RawReply(200, {}, f'{{"iban": "{IBAN}", "status": "1"}}'.encode(), AT))
    _send(tape, _cleared(1, kind=InstructionKind.CAPTURE))

    assert IBAN.encode() not in tape.kept[0]
    assert b'"status": "1"' in tape.kept[0]


def test_rows_that_may_not_leave_are_dropped_and_the_batch_is_built_again() -> None:
    """What people took back meanwhile is named and left out; the rest goes under a new id."""
    tape = Tape()
    tape.gone = {"i1": "it is withdrawn", "i3": "it is withdrawn"}
    sent = _send(tape, *(_cleared(one, kind=InstructionKind.CAPTURE) for one in (1, 2, 3)))

    assert tape.events[:3] == ["refuse b1", "claim b2", "send capture i2"]
    assert (sent.batches, sent.rows, sent.left_out) == (1, 1, tape.gone)


def test_what_nobody_signed_is_not_claimed_and_stops_the_sending() -> None:
    """It failed before the journal knew of it: nothing in flight, nothing in doubt, said why."""
    tape = Tape()
    tape.unsigned = [UnsignedError("the signer did not answer")]
    refund = _cleared(2, kind=InstructionKind.REFUND)
    sent = _send(tape, _cleared(1, kind=InstructionKind.CAPTURE), refund)

    assert tape.events == ["unsigned"]
    assert (sent.batches, sent.stop_reason) == (0, "the signer did not answer")


def test_rows_that_the_signer_refuses_are_left_out_with_its_reason() -> None:
    """The others are signed and sent; a batch of which all are refused stops nothing."""
    tape = Tape()
    refused = {0: "nobody endorsed it"}
    tape.unsigned = [UnsignedError("refused", refused=refused, final=True)]
    rows = [_cleared(one, kind=InstructionKind.CAPTURE) for one in (1, 2)]
    sent = _send(tape, *rows)
    assert tape.events[:3] == ["unsigned", "claim b2", "send capture i2"]
    assert (sent.rows, sent.left_out) == (1, {"i1": "the signer refused it: nobody endorsed it"})

    alone = Tape()
    alone.unsigned = [UnsignedError("refused", refused=refused, final=True)]
    refund = _cleared(2, kind=InstructionKind.REFUND)
    sent = _send(alone, rows[0], refund)
    assert alone.events[:3] == ["unsigned", "claim b2", "send refund i2"]
    assert not sent.stop_reason


def test_a_batch_of_which_nothing_is_left_is_not_sent() -> None:
    """All its rows taken back: no request, no try counted, the next batch goes."""
    tape = Tape()
    tape.gone = {"i1": "it is withdrawn"}
    refund = _cleared(2, kind=InstructionKind.REFUND)
    sent = _send(tape, _cleared(1, kind=InstructionKind.CAPTURE), refund)

    assert tape.events[:3] == ["refuse b1", "claim b2", "send refund i2"]
    assert (sent.rows, sent.stop_reason) == (1, "")


def test_a_journal_that_leaves_out_what_is_in_no_batch_ends_the_night() -> None:
    """Rather an end than a loop."""
    tape = Tape()
    tape.stray = {"i9": "who knows"}
    with pytest.raises(Defect, match="in no batch"):
        _send(tape, _cleared(1, kind=InstructionKind.CAPTURE))

    assert [event for event in tape.events if event.startswith("send")] == []


def test_a_released_batch_is_a_new_batch() -> None:
    """What surely did not leave goes again under a new batch id, never the old one."""
    tape = Tape(not_sent())
    _send(tape, _cleared(1, kind=InstructionKind.REFUND))

    assert tape.events[:5] == [
        *("claim b1", "send refund i1", "release b1"),
        *("claim b2", "send refund i1"),
    ]


def test_a_final_refusal_to_connect_is_not_tried_again() -> None:
    """A certificate that is not accepted stops the night after one try."""
    tape = Tape(CertificateError("certificate", kind="ConnectError"))
    sent = _send(tape, _cleared(1, kind=InstructionKind.CAPTURE))

    assert tape.events == ["claim b1", "send capture i1", "release b1"]
    assert sent.stop_reason.startswith("certificate; name its authority as ca_file")


def test_a_silent_batch_is_doubted_and_never_sent_again() -> None:
    """A batch without a reply is sent exactly once."""
    tape = Tape(silence())
    _send(tape, _cleared(1, kind=InstructionKind.CAPTURE))

    assert tape.events == ["claim b1", "send capture i1", "doubt b1"]


def test_a_reply_that_says_stop_stops_the_night() -> None:
    """After a reply that must not be trusted, the next batch is not sent."""
    tape = Tape(stop="wrong signature")
    sent = _send(
        tape,
        _cleared(1, kind=InstructionKind.CAPTURE),
        _cleared(2, kind=InstructionKind.REFUND),
    )

    assert [event for event in tape.events if event.startswith("send")] == ["send capture i1"]
    assert sent.stop_reason == "wrong signature"


def test_captures_go_first_and_each_payment_once() -> None:
    """Captures leave before cancels and refunds; a payment's second instruction waits."""
    tape = Tape()
    _send(
        tape,
        _cleared(1, kind=InstructionKind.REFUND),
        _cleared(2, kind=InstructionKind.REFUND, transaction="T1"),
        _cleared(3, kind=InstructionKind.CANCEL),
        _cleared(4, kind=InstructionKind.CAPTURE),
    )

    assert [event for event in tape.events if event.startswith("send")] == [
        *("send capture i4", "send cancel i3", "send refund i1"),
    ]


def test_a_process_that_slept_after_its_claim_does_not_send() -> None:
    """Held up for longer than 20 s: nothing leaves, the claim is undone, nothing more is sent."""
    tape = Tape()
    sent = _send(
        tape,
        _cleared(1, kind=InstructionKind.CAPTURE),
        _cleared(2, kind=InstructionKind.REFUND),
        seconds=(0, 20.5, 30, 30),
    )

    assert tape.events == ["claim b1", "release b1"]
    assert (sent.rows, "held up for 20 s" in sent.stop_reason) == (0, True)


def test_a_claim_whose_note_cannot_be_written_is_undone() -> None:
    """What must be noted before the first byte could not be: nothing leaves, no doubt is made."""
    tape = Tape()
    tape.outside = OutputError("the disk is full")
    with pytest.raises(OutputError):
        _send(tape, _cleared(1, kind=InstructionKind.CAPTURE))

    assert tape.events == ["claim b1", "release b1"]


def test_every_claim_is_noted_outside_before_its_bytes_leave() -> None:
    """The head of the history stands outside the database between the claim and the first byte."""
    tape = Tape()
    cleared = [_cleared(number, kind=InstructionKind.CAPTURE) for number in (1, 2)]
    _send(tape, *cleared)
    _send(tape, _cleared(3, kind=InstructionKind.REFUND))

    claims = [event for event in tape.events if event.startswith("claim")]
    assert tape.noted == claims


def test_a_short_pause_after_the_claim_sends() -> None:
    """Twenty seconds are within the bound."""
    tape = Tape()
    _send(tape, _cleared(1, kind=InstructionKind.CAPTURE), seconds=(0, 20))

    assert tape.events[:2] == ["claim b1", "send capture i1"]


def test_the_switch_is_looked_at_before_every_batch() -> None:
    """Sending that is stopped during a night ends before the next batch is claimed."""
    tape = Tape()
    tape.halts = ["", "stopped by Ann"]
    sent = _send(
        tape,
        _cleared(1, kind=InstructionKind.CAPTURE),
        _cleared(2, kind=InstructionKind.REFUND),
    )

    assert [event for event in tape.events if event.startswith("send")] == ["send capture i1"]
    assert (sent.batches, sent.stop_reason) == (1, "stopped by Ann")


def test_the_switch_is_looked_at_before_a_batch_is_tried_again() -> None:
    """What surely did not leave is not tried again once sending was stopped."""
    tape = Tape(*[not_sent()] * 3)
    tape.halts = ["", "sending is stopped"]

    sent = _send(tape, _cleared(1, kind=InstructionKind.CAPTURE))

    assert sent == Sent(stop_reason="sending is stopped")
    assert tape.events == ["claim b1", "send capture i1", "release b1"]


class Silent(Tape):
    """A gateway that never answers."""

    async def send(self, request: PreparedRequest) -> RawReply:
        self.events.append(f"send {len(request.rows)}")
        await asyncio.Event().wait()
        raise AssertionError


def test_a_process_that_is_told_to_end_waits_six_seconds_for_its_reply() -> None:
    """By the clock that nobody can set; then the batch is in doubt and nothing more is sent."""
    tape = Silent()
    readings = [0.0, 0, 100, 100, 106, 107]
    cleared = [_cleared(number, kind=InstructionKind.CAPTURE) for number in (1, 2)]
    left = iter(readings)
    sender = Sender(
        gateway=tape,
        journal=tape,
        clock=lambda: AT,
        new_id=lambda: "b1",
        crash_point=str,
        elapsed=lambda: timedelta(seconds=next(left)),
    )
    told = iter(["", *["SIGTERM"] * len(readings)])

    sent = asyncio.run(sender.send_all(cleared, told_to_end=lambda: next(told)))

    assert tape.events == ["claim b1", "send 2", "doubt b1"]
    assert (sent.batches, list(left)) == (1, [])
