from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from recon.instructions.contradiction import (
    Opposite,
    number_unexplained,
    shown_against,
)
from recon.instructions.instruction import Instruction
from recon.instructions.resolution import Seen
from recon.model.uptime import Uptime
from recon.model.words import GatewayState, InstructionKind, InstructionState
from tests.recon.instructions.sample_instructions import INSTRUCTION

ENDED = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
QUARANTINE = timedelta(minutes=15)
CAPTURE = replace(INSTRUCTION, state=InstructionState.CONFIRMED, attempts=1, baseline_status="2000")
REFUND = replace(CAPTURE, kind=InstructionKind.REFUND, amount=100)
S, K, J = GatewayState, InstructionKind, InstructionState


def _told(
    item: Instruction, *answers: tuple[float, GatewayState], others: tuple[Instruction, ...] = ()
) -> str:
    """The words of a case."""
    opposite = _opposite(item, *answers, others=others)
    return opposite.words if opposite.is_steady else ""


def _opposite(
    item: Instruction, *answers: tuple[float, GatewayState], others: tuple[Instruction, ...] = ()
) -> Opposite:
    return shown_against(
        replace(item, outcome_at=ENDED),
        seen=[
            Seen(state, ENDED, Uptime("boot", round(minutes * 60_000)))
            for minutes, state in answers
        ],
        readings=[Uptime("boot", 0)],
        others=others,
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
def test_the_opposite_in_two_answers_is_a_case(
    kind: InstructionKind, state: InstructionState, shown: GatewayState, *, is_case: bool
) -> None:
    """What the journal believes against what the payment shows, kind by kind."""
    item = replace(CAPTURE, kind=kind, state=state)

    assert bool(_told(item, (20, shown), (30, shown))) == is_case


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
def test_a_lagging_or_single_answer_contradicts_nothing(
    answers: list[tuple[float, GatewayState]],
) -> None:
    """One answer, answers too near, too early, or not the newest make no case."""
    assert _told(CAPTURE, *answers) == ""


def test_one_opposite_answer_is_told_and_no_case_yet() -> None:
    """The newest answer alone, after the quarantine; what came too early says nothing at all."""
    once = _opposite(CAPTURE, (20, S.PAID), (30, S.AUTHORISED))

    assert "the gateway shows authorised" in once.words
    assert not once.is_steady
    assert not _opposite(CAPTURE, (14, S.AUTHORISED))


def test_another_instruction_that_moved_explains_what_is_shown() -> None:
    """A capture that came to nothing is not contradicted by the effect of its second."""
    first = replace(CAPTURE, state=J.RESOLVED_NOT_APPLIED)
    second = replace(CAPTURE, instruction_id="i2", again_for="i1")

    assert _told(first, (20, S.PAID), (30, S.PAID), others=(second,)) == ""


@pytest.mark.parametrize(
    ("known", "told", "expected"),
    [
        (["T1-01"], ["T1-03"], "refund -03 of this payment, and nobody of -02"),
        ([], ["T1-02"], "nobody of -01"),
        (["T1-01"], ["T1-02"], ""),
        (["T1-01"], ["T1-01"], ""),
        (["T1-01"], ["T1-03", "T1-02"], ""),
        ([], ["", "T1-xx"], ""),
    ],
)
def test_a_number_that_nobody_named_is_told(
    known: list[str], told: list[str], expected: str
) -> None:
    """A refund after ours that skips a number says that one between them took effect."""
    words = number_unexplained(known=known, refund_ids=told)

    assert expected in words
    assert bool(words) == bool(expected)
