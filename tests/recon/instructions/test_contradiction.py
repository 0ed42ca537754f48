from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from recon.instructions.contradiction import (
    against,
    contradicted,
    contradicted_by,
    number_unexplained,
)
from recon.instructions.resolution import ObservedPayment
from recon.model.terms import GatewayState, InstructionKind, InstructionState
from recon.model.uptime import Uptime
from tests.recon.instructions.sample_instructions import INSTRUCTION

ENDED = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
QUARANTINE = timedelta(minutes=15)
CAPTURE = replace(INSTRUCTION, state=InstructionState.CONFIRMED, attempts=1, baseline_status="2000")
S, K, J = GatewayState, InstructionKind, InstructionState


def _reported(item, *answers, others=()):
    opposite = _opposite(item, *answers, others=others)
    return opposite.text if opposite and opposite.is_steady else ""


def _opposite(item, *answers, others=()):
    return contradicted_by(
        replace(item, outcome_at=ENDED),
        observed=[
            ObservedPayment(state, ENDED, Uptime("boot", round(minutes * 60_000)))
            for minutes, state in answers
        ],
        readings=[Uptime("boot", 0)],
        opposite=against(item, others=others),
        quarantined_for=QUARANTINE,
    )


@pytest.mark.parametrize(
    ("kind", "state", "shown", "is_case"),
    [
        (K.CAPTURE, J.CONFIRMED, S.AUTHORISED, True),
        (K.CAPTURE, J.RESOLVED_APPLIED, S.EXPIRED, True),
        (K.CAPTURE, J.CONFIRMED, S.REFUNDED, False),
        (K.CAPTURE, J.CONFIRMED, S.UNMAPPED, False),
        (K.CAPTURE, J.RESOLVED_NOT_APPLIED, S.PAID, True),
        (K.CAPTURE, J.RESOLVED_NOT_APPLIED, S.AUTHORISED, False),
        (K.CAPTURE, J.REJECTED, S.PAID, True),
        (K.CAPTURE, J.REJECTED, S.AUTHORISED, False),
        (K.CANCEL, J.REJECTED, S.CANCELLED, True),
        (K.REFUND, J.REJECTED, S.REFUNDED, True),
        (K.CANCEL, J.CONFIRMED, S.PAID, True),
        (K.CANCEL, J.CONFIRMED, S.CANCELLED, False),
        (K.CANCEL, J.RESOLVED_NOT_APPLIED, S.CANCELLED, True),
        (K.REFUND, J.RESOLVED_NOT_APPLIED, S.PARTIALLY_REFUNDED, True),
        (K.REFUND, J.RESOLVED_NOT_APPLIED, S.PAID, False),
        (K.REFUND, J.CONFIRMED, S.PAID, False),
    ],
)
def test_the_opposite_in_two_answers_is_a_case(kind, state, shown, *, is_case):
    item = replace(CAPTURE, kind=kind, state=state)

    assert bool(_reported(item, (20, shown), (30, shown))) == is_case


@pytest.mark.parametrize(
    "answers",
    [
        [(30, S.AUTHORISED)],
        [(26, S.AUTHORISED), (30, S.AUTHORISED)],
        [(14, S.AUTHORISED), (20, S.AUTHORISED)],
        [(20, S.AUTHORISED), (25, S.PAID), (30, S.AUTHORISED)],
        [(20, S.AUTHORISED), (30, S.AUTHORISED), (40, S.PAID)],
    ],
)
def test_a_lagging_or_single_answer_contradicts_nothing(answers):
    assert _reported(CAPTURE, *answers) == ""


def test_one_opposite_answer_is_told_and_no_case_yet():
    """The newest answer alone, after the quarantine; what came too early says nothing at all."""
    once = _opposite(CAPTURE, (20, S.PAID), (30, S.AUTHORISED))

    assert ("the gateway shows authorised" in once.text, once.is_steady) == (True, False)
    assert _opposite(CAPTURE, (14, S.AUTHORISED)) is None


@pytest.mark.parametrize(
    ("known", "told", "expected"),
    [
        (["T1-01"], ["T1-03"], "refund -03 of this payment, but not -02"),
        ([], ["T1-02"], "but not -01"),
        (["T1-01"], ["T1-02"], ""),
        (["T1-01"], ["T1-01"], ""),
        (["T1-01"], ["T1-03", "T1-02"], ""),
        ([], ["", "T1-xx"], ""),
    ],
)
def test_a_number_that_nobody_named_is_told(known, told, expected):
    """A refund after ours that skips a number says that one between them took effect."""
    endorsements = number_unexplained(known=known, refund_ids=told)

    assert expected in endorsements
    assert bool(endorsements) == bool(expected)


NUMBERED = replace(INSTRUCTION, kind=InstructionKind.REFUND, state=J.CONFIRMED, amount=100)
Sent = tuple[InstructionState, str]


def _cases(*sent):
    refunds = [
        replace(NUMBERED, instruction_id=f"i{place}", state=state, refund_reference_id=reference)
        for place, (state, reference) in enumerate(sent, start=1)
    ]
    return {item.instruction_id: told for item, told in contradicted(refunds)}


OK, DONE, NOT, NO = J.CONFIRMED, J.RESOLVED_APPLIED, J.RESOLVED_NOT_APPLIED, J.REJECTED
NUMBERS: dict[str, tuple[list[Sent], list[str]]] = {
    "none": ([], []),
    "the first": ([(OK, "T1-01")], []),
    "one after the other": ([(OK, "T1-01"), (OK, "T1-02"), (OK, "T1-03")], []),
    "left out for one that took effect": ([(OK, "T1-01"), (DONE, ""), (OK, "T1-03")], []),
    "none for one without effect": ([(OK, "T1-01"), (NOT, ""), (OK, "T1-02")], []),
    "none for one that was refused": ([(OK, "T1-01"), (NO, ""), (OK, "T1-02")], []),
    "left out for one with people": ([(OK, "T1-01"), (J.NEEDS_HUMAN, ""), (OK, "T1-03")], []),
    "one without effect at the end": ([(OK, "T1-01"), (NOT, "")], []),
    "ids of another form": ([(OK, "RF-9001"), (OK, "RF-9007")], []),
    "no ids": ([(OK, ""), (OK, "")], []),
    "ids that only look so": ([(OK, "T1-xx"), (OK, "T1")], []),
    "one left out": ([(OK, "T1-01"), (OK, "T1-03")], ["i2"]),
    "one left out before a refusal": ([(OK, "T1-01"), (NO, "T1-03")], ["i2"]),
    "the first left out": ([(OK, "T1-02")], ["i1"]),
    "more left out than took effect": ([(OK, "T1-01"), (DONE, ""), (OK, "T1-04")], ["i3"]),
    "left out for one without effect": ([(OK, "T1-01"), (NOT, ""), (OK, "T1-03")], ["i2"]),
    "left out for one that was refused": ([(OK, "T1-01"), (NO, ""), (OK, "T1-03")], ["i2"]),
    "the first left out for one without effect": ([(NOT, ""), (OK, "T1-02")], ["i1"]),
    "backwards": ([(OK, "T1-02"), (OK, "T1-01")], ["i1", "i2"]),
    # The refund that repeats may have the number that nobody has: one case, not two.
    "repeated, then one left out": ([(OK, "T1-01"), (OK, "T1-01"), (OK, "T1-03")], ["i2"]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_that_nobody_has_is_a_case(name):
    """Numbers that fit open none, also where a refund in between may have the one left out."""
    sent, cases = NUMBERS[name]

    assert list(_cases(*sent)) == cases


@pytest.mark.parametrize("first", [J.CONFIRMED, J.RESOLVED_APPLIED])
@pytest.mark.parametrize("second", [J.CONFIRMED, J.RESOLVED_APPLIED, J.RESOLVED_NOT_APPLIED])
@pytest.mark.parametrize("reference", ["T1-01", "RF-9001"])
def test_one_id_for_two_refunds_is_a_case_of_the_later(first, second, reference):
    """Two refunds under one id of the gateway had one effect at most, whatever its form."""
    told = _cases((first, reference), (second, reference))

    assert list(told) == ["i2"]
    assert f"gave it the id {reference}, which instruction i1 had before" in told["i2"]


def test_a_case_says_what_the_numbers_were():
    told = _cases((J.CONFIRMED, "T1-01"), (J.CONFIRMED, "T1-03"))

    assert told["i2"] == (
        "the journal has it as confirmed, but the gateway numbered it -03 after -01: one between "
        "them took effect, and it is not ours"
    )
