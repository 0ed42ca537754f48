from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recon.instructions.instruction import Instruction
from recon.instructions.resolution import (
    DoubtEvidence,
    SearchedRefund,
    Seen,
    SettledLine,
    by_settlement,
    quarantine,
    resolve,
)
from recon.model.uptime import Uptime
from recon.model.words import GatewayState, InstructionKind, InstructionState
from tests.recon.instructions.sample_instructions import INSTRUCTION

DOUBT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
QUARANTINE = timedelta(minutes=15)
_MINUTE = timedelta(minutes=1)
VISIBLE = DOUBT + timedelta(days=7)
CAPTURE = replace(
    INSTRUCTION,
    state=InstructionState.IN_DOUBT,
    attempts=1,
    baseline_status="2000",
    in_doubt_since=DOUBT,
)
S = GatewayState


def _read(minutes: float, boot_id: str = "boot", *, gateway: float | None = None) -> Uptime:
    """Clocks so long after the doubt; the gateway's too, where it had one."""
    dated = None if gateway is None else DOUBT + timedelta(minutes=gateway)
    return Uptime(boot_id, round(minutes * 60_000), dated)


def _seen(*answers: tuple[float, GatewayState]) -> list[Seen]:
    return [
        Seen(state, DOUBT + timedelta(minutes=minutes), _read(minutes))
        for minutes, state in answers
    ]


def _known(*, minutes: float, **parts: Any) -> DoubtEvidence:
    """Evidence on a machine that ran on since the doubt."""
    return DoubtEvidence(readings=[_read(0)], uptime=_read(minutes), **parts)


def _last(answers: Sequence[tuple[float, object]]) -> datetime:
    """The moment of the newest answer."""
    return DOUBT + timedelta(minutes=max((at for at, _ in answers), default=0))


def _state(instruction: Instruction, *answers: tuple[float, GatewayState]) -> str:
    ended = resolve(
        instruction,
        evidence=_known(seen=_seen(*answers), minutes=(_last(answers) - DOUBT) / _MINUTE),
        now=_last(answers),
        quarantined_for=QUARANTINE,
        refund_visible_until=VISIBLE,
    )
    return "" if ended is None else ended.state.value


@pytest.mark.parametrize(
    ("kind", "state", "expected"),
    [
        (InstructionKind.CAPTURE, S.PAID, "resolved_applied"),
        (InstructionKind.CAPTURE, S.AUTHORISED, "resolved_not_applied"),
        (InstructionKind.CAPTURE, S.CANCELLED, "needs_human"),
        (InstructionKind.CAPTURE, S.UNMAPPED, "needs_human"),
        (InstructionKind.CANCEL, S.CANCELLED, "resolved_applied"),
        (InstructionKind.CANCEL, S.AUTHORISED, "resolved_not_applied"),
        (InstructionKind.CANCEL, S.PAID, "needs_human"),
        (InstructionKind.REFUND, S.REFUNDED, "needs_human"),
        (InstructionKind.REFUND, S.PAID, ""),
    ],
)
def test_two_equal_answers_after_quarantine_decide(
    kind: InstructionKind, state: GatewayState, expected: str
) -> None:
    """Captures and cancels end by the payment's state; refunds are for people to end."""
    assert _state(replace(CAPTURE, kind=kind), (16, state), (30, state)) == expected


def test_one_answer_decides_nothing() -> None:
    """A single answer is not evidence, however late it is."""
    assert _state(CAPTURE, (60, S.PAID)) == ""


def test_answers_within_quarantine_decide_nothing() -> None:
    """A late effect may still arrive: answers before the quarantine ends do not count."""
    assert _state(CAPTURE, (1, S.AUTHORISED), (14, S.AUTHORISED)) == ""
    assert _state(CAPTURE, (1, S.AUTHORISED), (16, S.AUTHORISED)) == ""


def test_answers_too_close_together_decide_nothing() -> None:
    """Two answers less than five minutes apart are one."""
    assert _state(CAPTURE, (20, S.PAID), (24, S.PAID)) == ""


def test_answers_that_differ_decide_nothing() -> None:
    """When the newest answers differ, the next night asks again."""
    assert _state(CAPTURE, (16, S.AUTHORISED), (30, S.PAID)) == ""
    assert _state(CAPTURE, (1, S.PAID), (16, S.AUTHORISED), (30, S.PAID)) == ""


@pytest.mark.parametrize("kind", [InstructionKind.CAPTURE, InstructionKind.REFUND])
def test_answers_that_never_agree_go_to_people_after_a_bound(kind: InstructionKind) -> None:
    """A gateway that says this and that every night keeps no doubt for ever."""
    day = 24 * 60
    changing = [
        (number * day + minutes, state)
        for number, state in enumerate((S.PAID, S.AUTHORISED) * 2, start=1)
        for minutes in (0, 1)
    ]

    assert _state(replace(CAPTURE, kind=kind), *changing[:-2]) == ""
    assert _state(replace(CAPTURE, kind=kind), *changing) == "needs_human"
    assert _state(CAPTURE, *changing, (5 * day, S.AUTHORISED)) == "resolved_not_applied"


def test_a_refund_that_never_shows_goes_to_a_person() -> None:
    """A refund still not visible after its time is a person's to decide, never resent."""
    days = 8 * 24 * 60
    refund = replace(CAPTURE, kind=InstructionKind.REFUND)

    assert _state(refund, (days, S.PAID), (days + 10, S.PAID)) == "needs_human"


def test_quarantine_is_never_shorter_than_three_deadlines() -> None:
    """Quarantine is fifteen minutes, or three gateway deadlines when those are longer."""
    assert quarantine(timedelta(seconds=60)) == timedelta(minutes=15)
    assert quarantine(timedelta(minutes=10)) == timedelta(minutes=30)


def test_a_part_capture_is_a_persons_to_decide() -> None:
    """The state does not say how much was captured; only the whole amount is decided by it."""
    part = replace(CAPTURE, amount=6_000)

    assert _state(part, (16, S.PAID), (30, S.PAID)) == "needs_human"
    assert _state(part, (16, S.AUTHORISED), (30, S.AUTHORISED)) == "resolved_not_applied"
    ended = resolve(
        part,
        evidence=_known(seen=_seen((16, S.PAID), (30, S.PAID)), minutes=30),
        now=_last([(30, S.PAID)]),
        quarantined_for=QUARANTINE,
        refund_visible_until=VISIBLE,
    )
    assert ended is not None
    assert ended.evidence.endswith("does not say whether the part that we asked for moved")


@pytest.mark.parametrize("kind", [InstructionKind.PAYOUT, InstructionKind.CANCEL_SUBSCRIPTION])
def test_what_no_query_shows_goes_to_people_at_once(kind: InstructionKind) -> None:
    """A doubtful payout or end of a subscription is a person's to look up, never sent again."""
    assert _state(replace(CAPTURE, kind=kind, transaction_id="", order_no="")) == "needs_human"


def _with(
    evidence: DoubtEvidence, *, kind: InstructionKind = InstructionKind.REFUND, minutes: float = 90
) -> str:
    ended = resolve(
        replace(CAPTURE, kind=kind),
        evidence=replace(evidence, readings=[_read(0)], uptime=_read(minutes)),
        now=DOUBT + timedelta(minutes=minutes),
        quarantined_for=QUARANTINE,
        refund_visible_until=VISIBLE,
    )
    return "" if ended is None else ended.state.value


def _searches(*found: tuple[float, str], beside: str = "") -> list[SearchedRefund]:
    return [
        SearchedRefund(number, DOUBT + timedelta(hours=at), beside, _read(at * 60))
        for at, number in found
    ]


def test_a_refund_with_our_reference_happened() -> None:
    """Our own reference is proof at once, whatever the state still shows."""
    assert _with(DoubtEvidence(refunds=_searches((1, "T1-01")))) == "resolved_applied"


def test_a_reference_that_two_working_searches_do_not_know_did_not_happen() -> None:
    """Both a day after the doubt, five minutes apart, and each showed another refund of ours."""
    proven = {"beside": "T9-01"}

    assert _searched(*_searches((24, ""), (25, ""), **proven)) == "resolved_not_applied"
    assert _searched(*_searches((23, ""), (25, ""), **proven)) == ""
    assert _searched(*_searches((24, ""), (24.05, ""), **proven)) == ""


def test_a_search_that_never_showed_a_refund_of_ours_proves_nothing() -> None:
    """Silence of a search that may not work at all goes to a person, also when one half worked."""
    worked_once = [*_searches((24, "")), *_searches((25, ""), beside="T9-01")]

    assert _searched(*_searches((24, ""), (25, ""))) == "needs_human"
    assert _searched(*worked_once) == "needs_human"


def _searched(*found: SearchedRefund) -> str:
    return _with(DoubtEvidence(refunds=found), minutes=26 * 60)


def test_a_message_with_our_reference_brings_a_person() -> None:
    """The signature of a message does not cover its refund: it never ends a doubt by itself."""
    searched = _searches((24, ""), (25, ""), beside="T9-01")

    assert _with(DoubtEvidence(messages=("message abc",))) == "needs_human"
    assert _with(DoubtEvidence(messages=("message abc",)), minutes=14) == ""
    assert (
        _with(DoubtEvidence(refunds=searched, messages=("message abc",)), minutes=1560)
        == "needs_human"
    )


def _ended(
    *answers: tuple[Uptime, GatewayState], readings: Sequence[Uptime], now: datetime = DOUBT
) -> str:
    """How a capture ends by answers that were all dated alike, as a wrong clock would."""
    seen = [Seen(state, DOUBT, uptime) for uptime, state in answers]
    evidence = DoubtEvidence(seen=seen, readings=readings, uptime=answers[-1][0])
    ended = resolve(
        CAPTURE,
        evidence=evidence,
        now=now,
        quarantined_for=QUARANTINE,
        refund_visible_until=VISIBLE,
    )
    return "" if ended is None else f"{ended.state}: {ended.evidence}"


def test_no_date_on_the_wall_makes_an_answer_older_or_younger() -> None:
    """Only the uptime when it was asked says so, for each answer by itself."""
    young = [(_read(2), S.PAID), (_read(14), S.PAID)]
    old = [(_read(15), S.PAID), (_read(20), S.PAID)]
    too_near = [(_read(15), S.PAID), (_read(19.9), S.PAID)]

    told = [_ended(*seen, readings=[_read(0)]) for seen in (young, [young[0], old[0]], too_near)]
    assert told == ["", "", ""]
    assert _ended(*old, readings=[_read(0)]).startswith("resolved_applied")


def test_after_another_boot_the_wait_begins_again_or_the_gateways_date_tells() -> None:
    """The new boot's first reading starts it; a Date ties what another machine asked."""
    second = [(_read(minutes, "second"), S.AUTHORISED) for minutes in (100, 114, 115, 120)]
    dated = [(_read(1, f"boot {day}", gateway=day * 24 * 60), S.AUTHORISED) for day in range(1, 4)]

    def read(answers: Sequence[tuple[Uptime, GatewayState]]) -> list[Uptime]:
        return [_read(0), *(uptime for uptime, _ in answers)]

    assert _ended(*second[:3], readings=read(second[:3])) == ""
    assert _ended(*second, readings=read(second)).startswith("resolved_not_applied")
    assert _ended(*dated[:2], readings=read(dated[:2])) == ""
    assert _ended(*dated, readings=read(dated)).startswith("resolved_not_applied")


def test_where_no_clock_ties_the_answers_people_are_asked_in_the_end() -> None:
    """Machines without a boot id, or new ones and no Date: no evidence, but nobody waits for ever.

    The clock on the wall may stand before the doubt as well as long after it.
    """
    for boots in (["unknown"] * 3, ["one", "two", "three"]):
        untied = [(_read(20 + 10 * at, boot), S.PAID) for at, boot in enumerate(boots)]
        readings = [_read(0, "unknown"), *(uptime for uptime, _ in untied)]
        days = (2, 4, -3)
        told = [_ended(*untied, readings=readings, now=DOUBT + timedelta(days=at)) for at in days]

        assert told[0] == ""
        assert told[1].startswith("needs_human: no clock says how old the doubt was")
        assert told[2] == told[1]


def test_a_payment_that_is_no_longer_shown_goes_to_a_person() -> None:
    """A doubt never waits for ever because the gateway forgot the payment."""
    gone = _seen((16, S.NONE), (30, S.NONE))

    assert _with(DoubtEvidence(seen=gone), kind=InstructionKind.CAPTURE) == "needs_human"


@pytest.mark.parametrize("kind", [InstructionKind.CAPTURE, InstructionKind.REFUND])
def test_a_payment_that_no_answer_shows_goes_to_people_after_a_bound(kind: InstructionKind) -> None:
    """With no answer about the payment for three days after the doubt, people look."""

    def after(days: float, *answers: tuple[float, GatewayState]) -> str:
        ended = resolve(
            replace(CAPTURE, kind=kind),
            evidence=_known(seen=_seen(*answers), minutes=days * 24 * 60),
            now=DOUBT + timedelta(days=days),
            quarantined_for=QUARANTINE,
            refund_visible_until=VISIBLE,
        )
        return "" if ended is None else ended.evidence

    assert after(2.99) == ""
    assert after(3).startswith("the gateway has not shown this payment since 2026-11-21 02:00")
    assert after(3, (60, S.PAID)) == ""
    assert after(4, (60, S.PAID)).startswith("the gateway has not shown this payment since")


def test_a_signed_state_and_one_answer_end_a_doubt_at_once() -> None:
    """Both show the effect: no second answer and no quarantine is needed."""
    signed, capture = _seen((1, S.PAID)), InstructionKind.CAPTURE
    paid = DoubtEvidence(signed=signed, seen=_seen((2, S.PAID)))
    cancelled = DoubtEvidence(signed=_seen((1, S.CANCELLED)), seen=_seen((2, S.CANCELLED)))

    assert _with(paid, kind=capture, minutes=3) == "resolved_applied"
    assert _with(cancelled, kind=InstructionKind.CANCEL, minutes=3) == "resolved_applied"
    assert _with(DoubtEvidence(signed=signed), kind=capture) == ""
    assert _with(DoubtEvidence(seen=_seen((2, S.PAID))), kind=capture) == ""


def test_a_signed_state_never_proves_that_nothing_happened() -> None:
    """A message from before the effect can be sent again; only answers say no."""
    signed, capture = _seen((1, S.AUTHORISED)), InstructionKind.CAPTURE
    answers = _seen((20, S.AUTHORISED))

    assert _with(DoubtEvidence(signed=signed, seen=answers), kind=capture) == ""


def test_a_signed_state_that_two_answers_deny_is_for_people() -> None:
    """Neither the message nor the answers are believed alone."""
    denied = DoubtEvidence(
        signed=_seen((1, S.PAID)), seen=_seen((20, S.AUTHORISED), (30, S.AUTHORISED))
    )
    later = DoubtEvidence(signed=_seen((1, S.PAID)), seen=_seen((2, S.PAID), (20, S.AUTHORISED)))

    assert _with(denied, kind=InstructionKind.CAPTURE) == "needs_human"
    assert _with(later, kind=InstructionKind.CAPTURE) == ""


def test_a_signed_state_decides_no_part_and_no_refund() -> None:
    """A state does not say how much moved, nor whose refund it was."""
    paid = DoubtEvidence(signed=_seen((1, S.PAID)), seen=_seen((2, S.PAID)))
    refunded = DoubtEvidence(signed=_seen((1, S.REFUNDED)), seen=_seen((2, S.REFUNDED)))
    part = resolve(
        replace(CAPTURE, amount=1),
        evidence=paid,
        now=DOUBT + timedelta(minutes=3),
        quarantined_for=QUARANTINE,
        refund_visible_until=VISIBLE,
    )

    assert part is None
    assert _with(refunded, minutes=3) == ""


ITEM = replace(
    INSTRUCTION,
    state=InstructionState.IN_DOUBT,
    in_doubt_since=DOUBT,
    gateway_request_id="G-1",
    payment_amount=INSTRUCTION.amount,
)
PART = replace(ITEM, payment_amount=ITEM.amount + 1)
OURS = {"own_reference": ITEM.instruction_id}


def line(kind: str, **changed: object) -> SettledLine:
    """A line of exactly the instruction's amount."""
    found = SettledLine(
        entry_type=kind,
        transaction_id=ITEM.transaction_id,
        reference_no="R-1",
        own_reference="",
        currency=ITEM.currency,
        gross=ITEM.amount if kind == "capture" else -ITEM.amount,
        settled_on="2026-11-21",
        source="S1.csv",
    )
    return replace(found, **changed)  # type: ignore[arg-type]


def end(kind: InstructionKind, *lines: SettledLine, part: bool = False) -> str:
    """How the doubt ends; "" where it does not."""
    item = replace(PART if part else ITEM, kind=kind)
    if kind is InstructionKind.PAYOUT:
        item = replace(item, transaction_id="")
    found = by_settlement(item, lines=lines, known={"R-OURS"})
    return "" if found is None else found.state.value


K = InstructionKind


@pytest.mark.parametrize("kind", [K.CAPTURE, K.REFUND])
def test_the_one_movement_of_the_whole_payment_ends_the_doubt(kind: InstructionKind) -> None:
    """A line of this transaction over its whole amount, settled since the doubt began."""
    assert end(kind, line(kind.value)) == "resolved_applied"


def test_the_gateways_day_may_have_begun_before_ours() -> None:
    """A line of the day before the doubt counts: the gateway may date by another time zone."""
    assert end(K.CAPTURE, line("capture", settled_on="2026-11-20")) == "resolved_applied"


@pytest.mark.parametrize("kind", [K.CAPTURE, K.REFUND])
@pytest.mark.parametrize(
    "lines",
    [
        pytest.param((), id="nothing"),
        pytest.param(({"gross": 1},), id="other amount"),
        pytest.param(({"currency": "USD"},), id="other currency"),
        pytest.param(({"transaction_id": ""},), id="no transaction"),
        pytest.param(({"settled_on": "2026-11-19"},), id="before the doubt"),
        pytest.param(({}, {"reference_no": "R-2"}), id="two of them"),
        pytest.param(({"entry_type": "chargeback"},), id="another movement"),
        pytest.param(({"reference_no": "R-OURS"},), id="another refund of ours"),
        pytest.param(({"own_reference": "another"},), id="somebody else's reference"),
    ],
)
def test_what_may_be_of_another_movement_proves_nothing(
    kind: InstructionKind, lines: tuple[dict[str, object], ...]
) -> None:
    """Absence, and lines that need not be of this instruction, leave the doubt as it is."""
    shown = [line(kind.value, **changed) for changed in lines]
    assert end(kind, *shown) == ""


@pytest.mark.parametrize("kind", [K.CAPTURE, K.REFUND])
def test_a_part_ends_only_by_our_own_reference(kind: InstructionKind) -> None:
    """The same part may have been moved by people in the gateway's own pages."""
    assert end(kind, line(kind.value), part=True) == ""
    assert end(kind, line(kind.value, **OURS), part=True) == "resolved_applied"


def test_a_line_without_a_reference_is_not_of_whatever_has_none() -> None:
    """Some instructions have no request id at the gateway: a blank in a line names nobody."""
    unnamed = replace(PART, gateway_request_id="")
    assert by_settlement(unnamed, lines=[line("capture")], known=()) is None


@pytest.mark.parametrize("kind", [K.CANCEL, K.REVIEW, K.CANCEL_SUBSCRIPTION])
def test_kinds_that_move_no_settled_money_are_not_decided(kind: InstructionKind) -> None:
    """A capture of a payment whose cancel is in doubt is for the query and for people."""
    assert end(kind, line("capture"), line("refund")) == ""


def test_a_payout_ends_only_by_our_own_reference() -> None:
    """Payouts have no transaction: their amount alone may be another payee's."""
    alone = line("payout", transaction_id="")
    assert end(K.PAYOUT, alone) == ""
    assert end(K.PAYOUT, replace(alone, own_reference="G-1")) == "resolved_applied"
    numbered = replace(alone, own_reference="G-1", transaction_id="given by the gateway")
    assert end(K.PAYOUT, numbered) == "resolved_applied"
    known = replace(ITEM, kind=K.PAYOUT, transaction_id="another")
    ended = by_settlement(known, lines=[numbered], known=())
    assert ended is not None
    assert ended.state.value == "needs_human"
    paid = replace(ITEM, kind=K.PAYOUT)
    assert by_settlement(paid, lines=[line("payout")], known=()) is None


@pytest.mark.parametrize(
    "lines",
    [({"gross": -1},), ({"currency": "USD"},), ({"transaction_id": "other"},), ({}, {})],
)
def test_our_reference_with_anything_else_is_for_people(
    lines: tuple[dict[str, object], ...],
) -> None:
    """Another amount, currency or payment, or two lines, under our reference."""
    shown = [line("refund", **{**changed, **OURS}) for changed in lines]
    assert end(K.REFUND, *shown) == "needs_human"
