import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from recon.gateway_client import (
    CertificateError,
    NotSentError,
    RawReply,
    ReplyOutcome,
    UnknownOutcomeError,
    UnsignedError,
)
from recon.instructions.eligibility import Eligible, QueriedPayment
from recon.instructions.money_requests import GatewayOfMoney
from recon.model.errors import Defect, OutputError
from recon.model.terms import GatewayState, InstructionKind
from recon.steps.money.sender import Sender
from tests.recon.instructions.sample_instructions import (
    IBAN,
    INSTRUCTION,
    not_sent,
    reply_of,
    request_of,
    silence,
)

AT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
K = InstructionKind


class Tape(GatewayOfMoney):
    """Plays gateway and journal, and writes down what happened in order."""

    def __init__(self, *answers, stop=""):
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

    def prepare(self, rows):
        if self.unsigned:
            self.events.append("unsigned")
            raise self.unsigned.pop(0)
        return request_of(rows)

    async def send(self, request):
        rows: Any = request.rows
        ids = ",".join(row.instruction.instruction_id for row in rows)
        self.events.append(f"send {rows[0].instruction.kind} {ids}")
        answer = self.answers.pop(0) if self.answers else RawReply(200, {}, b"", AT)
        if isinstance(answer, NotSentError | UnknownOutcomeError):
            raise answer
        assert isinstance(answer, RawReply)
        return answer

    def read(self, request, reply):
        del reply
        self.events.append("judge")
        outcome = self.outcomes.pop(0) if self.outcomes else ReplyOutcome.DONE
        return reply_of(*[outcome] * len(request.rows), stop=self.stop)

    def halted(self):
        return self.halts.pop(0) if self.halts else ""

    def claim(self, batch_id, rows, *, request, at):
        del request, at
        ids = [row.instruction.instruction_id for row in rows]
        if gone := {one: self.gone[one] for one in ids if one in self.gone}:
            self.events.append(f"refuse {batch_id}")
            return gone
        self.events.append(f"claim {batch_id}")
        return self.stray

    def note_outside(self):
        if self.outside:
            raise self.outside
        self.noted.append(self.events[-1])

    def release(self, batch_id, *, reason, at):
        del reason, at
        self.events.append(f"release {batch_id}")

    def doubt(self, batch_id, *, reason, at):
        del reason, at
        self.events.append(f"doubt {batch_id}")

    def save_reply(self, batch_id, reply, *, saved):
        del reply
        self.kept.append(saved)
        self.events.append(f"keep {batch_id}")

    def record(self, batch_id, reply, *, at):
        del reply, at
        self.events.append(f"record {batch_id}")


class Time:
    """Passes when the sender waits, and writes down until when on the tape."""

    def __init__(self, tape):
        self.now = timedelta(days=1)
        self._began = self.now
        self._tape = tape

    async def sleep(self, much):
        self.now += much
        waited = f"until {(self.now - self._began).total_seconds():g} s"
        if self._tape.events[-1].startswith("until"):
            self._tape.events.pop()
        self._tape.events.append(waited)


def _eligible(number, kind=K.CAPTURE, *, transaction=""):
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
    payment = QueriedPayment(transaction or f"T{number}", GatewayState.PAID, "3000", "EUR", 100)
    return Eligible(instruction, payment)


def _send(tape, *eligible, seconds=None, interval=0, **how):
    """One pass in a time of its own, or one whose clock shows these seconds, one after another."""
    numbers, time, readings = count(1), Time(tape), iter(seconds or ())
    sender = Sender(
        gateway=tape,
        journal=tape,
        clock=lambda: AT,
        new_id=lambda: f"b{next(numbers)}",
        crash_point=str,
        elapsed=lambda: time.now if seconds is None else timedelta(seconds=next(readings, 0)),
        sleep=time.sleep,
        interval=timedelta(seconds=interval),
    )
    return asyncio.run(sender.send_all(eligible, **how))


ONE, TWO, THREE = (_eligible(number) for number in (1, 2, 3))
REFUND = _eligible(2, K.REFUND)
EACH_KIND = (ONE, _eligible(2, K.CANCEL), _eligible(3, K.REFUND))
"""Each a batch of its own, in this order."""


def _busy(seconds):
    return RawReply(429, {"retry-after": str(seconds)}, b"", AT)


def _unsigned(**how):
    return UnsignedError("the signer did not answer", **how)


REFUSED_ONE = _unsigned(refused={0: "nobody endorsed it"}, final=True)


@dataclass(frozen=True)
class Pass:
    """What is to be sent, what happens at the gateway and in the journal, and what comes of it."""

    eligible: tuple[Eligible, ...]
    events: str
    """What is written down, `; ` between them; "…" at the end: as ever from there on."""
    answers: tuple[object, ...] = ()
    tape: Mapping[str, Any] = field(default_factory=dict)
    how: Mapping[str, Any] = field(default_factory=dict)
    rows: int | None = None
    """That count as sent, where it matters."""
    stop: str = ""
    """Within the reason why nothing more is sent; "" where there is none."""
    left_out: Mapping[str, str] = field(default_factory=dict)


GONE = {"i1": "it is withdrawn", "i3": "it is withdrawn"}
PASSES: dict[str, Pass] = {
    # The journal is written before the first byte: always in this order.
    "one batch": Pass((ONE,), "claim b1; send capture i1; keep b1; judge; record b1", rows=1),
    # What people took back meanwhile is named and left out; the rest goes under a new id.
    "rows that may not leave": Pass(
        (ONE, TWO, THREE),
        "refuse b1; claim b2; send capture i2; …",
        tape={"gone": GONE},
        rows=1,
        left_out=GONE,
    ),
    # No request, no try counted, the next batch goes.
    "a batch of which nothing is left": Pass(
        (ONE, REFUND),
        "refuse b1; claim b2; send refund i2; …",
        tape={"gone": {"i1": "it is withdrawn"}},
        rows=1,
        left_out={"i1": "it is withdrawn"},
    ),
    # It failed before the journal knew of it: nothing in flight, nothing in doubt.
    "nobody signs": Pass(
        (ONE, REFUND),
        "unsigned",
        tape={"unsigned": (_unsigned(),)},
        rows=0,
        stop="the signer did not answer",
    ),
    "the signer refuses a row": Pass(
        (ONE, TWO),
        "unsigned; claim b2; send capture i2; …",
        tape={"unsigned": (REFUSED_ONE,)},
        rows=1,
        left_out={"i1": "the signer refused it: nobody endorsed it"},
    ),
    "the signer refuses a batch": Pass(
        (ONE, REFUND),
        "unsigned; claim b2; send refund i2; …",
        tape={"unsigned": (REFUSED_ONE,)},
        left_out={"i1": "the signer refused it: nobody endorsed it"},
    ),
    # What surely did not leave goes again under a new batch id, never the old one.
    "a batch that did not leave": Pass(
        (REFUND,),
        "claim b1; send refund i2; release b1; claim b2; send refund i2; …",
        (not_sent(),),
        rows=1,
    ),
    # Only tries in a row count: one that left begins the count anew.
    "two tries behind a batch that left": Pass(
        (ONE, REFUND),
        "claim b1; send capture i1; keep b1; judge; record b1; claim b2; send refund i2; "
        "release b2; claim b3; send refund i2; release b3; claim b4; send refund i2; …",
        (RawReply(200, {}, b"", AT), not_sent(), not_sent()),
        rows=2,
    ),
    "a certificate that is not accepted": Pass(
        (ONE,),
        "claim b1; send capture i1; release b1",
        (CertificateError("certificate", kind="ConnectError"),),
        rows=0,
        stop="certificate; name its authority as ca_file",
    ),
    # A batch without a reply is sent exactly once.
    "silence": Pass((ONE,), "claim b1; send capture i1; doubt b1", (silence(),), rows=1),
    # Two in a row: whatever is wrong, a third would be in doubt as well.
    "silence again": Pass(
        EACH_KIND,
        "claim b1; send capture i1; doubt b1; claim b2; send cancel i2; doubt b2",
        (silence(), silence()),
        rows=2,
        stop="2 batches in a row ended in doubt (silence)",
    ),
    # After a reply that must not be trusted, the next batch is not sent.
    "a reply that says stop": Pass(
        (ONE, REFUND),
        "claim b1; send capture i1; keep b1; judge; record b1",
        tape={"stop": "wrong signature"},
        stop="wrong signature",
    ),
    # Held up for longer than 20 s: nothing leaves, the claim is undone, nothing more is sent.
    "a process that slept": Pass(
        (ONE, REFUND),
        "claim b1; release b1",
        how={"seconds": (0, 20.5, 30, 30)},
        rows=0,
        stop="held up for 20 s",
    ),
    "a process that slept 20 s": Pass(
        (ONE,), "claim b1; send capture i1; …", how={"seconds": (0, 20)}, rows=1
    ),
    "stopped during the night": Pass(
        (ONE, REFUND),
        "claim b1; send capture i1; keep b1; judge; record b1",
        tape={"halts": ("", "stopped by Ann")},
        rows=1,
        stop="stopped by Ann",
    ),
    "stopped before it is tried again": Pass(
        (ONE,),
        "claim b1; send capture i1; release b1",
        (not_sent(), not_sent()),
        tape={"halts": ("", "sending is stopped")},
        rows=0,
        stop="sending is stopped",
    ),
}


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_writes_down_and_sends_in_its_order(name):
    case = PASSES[name]
    tape = Tape(*case.answers)
    for attribute, value in case.tape.items():
        setattr(tape, attribute, [*value] if isinstance(value, tuple) else value)
    sent = _send(tape, *case.eligible, **case.how)
    *events, last = case.events.split("; ")

    if last == "…":
        assert tape.events[: len(events)] == events
    else:
        assert tape.events == [*events, last]
    assert case.rows in {None, sent.rows}
    assert (case.stop in sent.stop_reason, bool(sent.stop_reason)) == (True, bool(case.stop))
    assert sent.left_out == case.left_out


def _steps(tape):
    return [one for one in tape.events if one.split()[0] in {"claim", "send", "until"}]


def test_the_next_batch_waits_as_long_as_the_gateway_asked_and_is_not_claimed_before():
    tape = Tape(_busy(12))
    sent = _send(tape, *EACH_KIND)

    assert _steps(tape) == [
        *("claim b1", "send capture i1", "until 12 s", "claim b2", "send cancel i2"),
        *("claim b3", "send refund i3"),
    ]
    assert (sent.rows, sent.stop_reason) == (3, "")


def test_batches_begin_an_interval_apart():
    tape = Tape()
    _send(tape, *EACH_KIND, interval=0.2)

    waits = [one for one in _steps(tape) if one.startswith("until")]
    assert waits == ["until 0.2 s", "until 0.4 s"]


@pytest.mark.parametrize(
    ("ends_in", "sent_rows", "says"),
    [(60, 1, "asked to wait another 7200 s"), (0, 0, "time for sending was over")],
)
def test_no_wait_goes_beyond_the_end_of_the_run(ends_in, sent_rows, says):
    tape = Tape(_busy(7_200))
    sent = _send(tape, *EACH_KIND, ends_in=timedelta(seconds=ends_in))

    assert _steps(tape) == ["claim b1", "send capture i1"][: 2 * sent_rows]
    assert sent.rows == sent_rows
    assert says in sent.stop_reason
    assert "night_deadline_seconds" in sent.stop_reason


def test_a_process_that_is_told_to_end_waits_no_longer():
    signals = iter(["", "", "SIGTERM"])
    tape = Tape(_busy(600))
    told, hour = (lambda: next(signals, "SIGTERM")), timedelta(hours=1)
    sent = _send(tape, *EACH_KIND, ending_signal=told, ends_in=hour)

    assert _steps(tape)[:2] == ["claim b1", "send capture i1"]
    assert len(_steps(tape)) <= 3
    assert "received the signal to end (SIGTERM)" in sent.stop_reason


def test_a_batch_refused_for_sure_goes_again_as_a_new_one_after_the_wait_three_times():
    tape = Tape(_busy(30), _busy(5), _busy(1))
    tape.outcomes = [ReplyOutcome.NOT_SENT] * 3
    sent = _send(tape, *EACH_KIND)

    assert _steps(tape) == [
        *("claim b1", "send capture i1", "until 30 s"),
        *("claim b2", "send capture i1", "until 35 s", "claim b3", "send capture i1"),
    ]
    assert (sent.rows, sent.batches) == (0, 0)
    assert "nothing could be sent 3 times in a row" in sent.stop_reason


def test_what_names_a_payee_is_not_kept_of_a_reply():
    tape = Tape(RawReply(200, {}, f'{{"iban": "{IBAN}", "status": "1"}}'.encode(), AT))
    _send(tape, ONE)

    assert IBAN.encode() not in tape.kept[0]
    assert b'"status": "1"' in tape.kept[0]


def test_a_journal_that_leaves_out_what_is_in_no_batch_ends_the_night():
    tape = Tape()
    tape.stray = {"i9": "who knows"}
    with pytest.raises(Defect, match="in no batch"):
        _send(tape, ONE)

    assert [event for event in tape.events if event.startswith("send")] == []


def test_a_claim_whose_note_cannot_be_written_is_undone():
    tape = Tape()
    tape.outside = OutputError("the disk is full")
    with pytest.raises(OutputError):
        _send(tape, ONE)

    assert tape.events == ["claim b1", "release b1"]


class Silent(Tape):
    """A gateway that never answers."""

    async def send(self, request):
        self.events.append(f"send {len(request.rows)}")
        await asyncio.Event().wait()
        raise AssertionError


def test_a_process_that_is_told_to_end_waits_six_seconds_for_its_reply():
    """By the clock that nobody can set; then the batch is in doubt and nothing more is sent."""
    tape = Silent()
    readings = [0.0, 0, 100, 100, 106, 107]
    left = iter(readings)
    told = iter(["", *["SIGTERM"] * len(readings)])
    sent = _send(tape, ONE, TWO, seconds=left, ending_signal=lambda: next(told))

    assert tape.events == ["claim b1", "send 2", "doubt b1"]
    assert (sent.batches, list(left)) == (1, [])
