from dataclasses import replace
from typing import Any

import pytest

from recon.instructions.eligibility import (
    Baseline,
    Cleared,
    Refused,
    ShownPayment,
    clear,
    clear_alone,
)
from recon.instructions.instruction import Instruction
from recon.model.words import GatewayState, InstructionKind, InstructionState, KeyAnswer
from tests.recon.instructions.sample_instructions import INSTRUCTION

CAPTURE = replace(INSTRUCTION, transaction_id="")
REFUND = replace(CAPTURE, kind=InstructionKind.REFUND, amount=4_000)
CANCEL = replace(CAPTURE, kind=InstructionKind.CANCEL)
AUTHORISED = ShownPayment("T1", GatewayState.AUTHORISED, "2000", "EUR", 10_000)
PAID = replace(AUTHORISED, state=GatewayState.PAID, payment_status="3000")


def _other(kind: InstructionKind, state: InstructionState, *, amount: int = 10_000) -> Instruction:
    return replace(
        CAPTURE, instruction_id="i0", kind=kind, state=state, amount=amount, transaction_id="T1"
    )


def _reason(
    instruction: Instruction, *payments: ShownPayment, others: tuple[Instruction, ...] = ()
) -> str:
    judged = clear(instruction, baseline=Baseline(KeyAnswer.FOUND, payments), others=others)
    return judged.reason if isinstance(judged, Refused) else ""


@pytest.mark.parametrize(
    ("instruction", "payment"), [(CAPTURE, AUTHORISED), (CANCEL, AUTHORISED), (REFUND, PAID)]
)
def test_what_fits_is_cleared_with_its_payment(
    instruction: Instruction, payment: ShownPayment
) -> None:
    """An instruction that fits the one payment of its order may be sent for it."""
    judged = clear(instruction, baseline=Baseline(KeyAnswer.FOUND, (payment,)), others=())

    assert judged == Cleared(instruction, payment)


@pytest.mark.parametrize("answer", [KeyAnswer.FAILED, KeyAnswer.NOT_FOUND, KeyAnswer.UNMAPPED])
def test_nothing_is_sent_without_an_answer(answer: KeyAnswer) -> None:
    """Without a usable answer of tonight the instruction waits."""
    judged = clear(CAPTURE, baseline=Baseline(answer), others=())

    assert isinstance(judged, Refused)


@pytest.mark.parametrize(
    ("instruction", "payment", "words"),
    [
        (CAPTURE, PAID, "not authorised"),
        (CANCEL, PAID, "not authorised"),
        (REFUND, AUTHORISED, "needs a captured payment"),
        (REFUND, replace(PAID, state=GatewayState.REFUNDED), "nothing to refund"),
        (REFUND, replace(PAID, state=GatewayState.PARTIALLY_REFUNDED), "does not know"),
        (CAPTURE, replace(AUTHORISED, currency="USD"), "is in USD"),
        (CAPTURE, replace(AUTHORISED, amount=9_999), "larger than the payment"),
        (CAPTURE, replace(AUTHORISED, state=GatewayState.UNMAPPED), "not mapped"),
        (CAPTURE, replace(AUTHORISED, closed_because="there is a case"), "there is a case"),
        (replace(CANCEL, amount=9_000), AUTHORISED, "own amount"),
        (
            replace(CAPTURE, transaction_id="T9"),
            AUTHORISED,
            "the instruction names transaction T9, the gateway shows T1 for this order",
        ),
    ],
)
def test_what_does_not_fit_waits_with_a_reason(
    instruction: Instruction, payment: ShownPayment, words: str
) -> None:
    """Each misfit between instruction and payment is refused in its own words."""
    assert words in _reason(instruction, payment)


@pytest.mark.parametrize(
    "state",
    [InstructionState.IN_FLIGHT, InstructionState.IN_DOUBT, InstructionState.NEEDS_HUMAN],
)
def test_one_open_instruction_of_a_payment_blocks_the_next(state: InstructionState) -> None:
    """At most one instruction of a payment is open at any time."""
    other = _other(InstructionKind.REFUND, state, amount=1)

    assert "not settled yet" in _reason(REFUND, PAID, others=(other,))


def test_refunds_never_exceed_what_was_captured() -> None:
    """Confirmed refunds count against the captured amount, to the minor unit."""
    done = _other(InstructionKind.REFUND, InstructionState.CONFIRMED, amount=6_000)

    assert _reason(REFUND, PAID, others=(done,)) == ""
    assert "exceed" in _reason(replace(REFUND, amount=4_001), PAID, others=(done,))


@pytest.mark.parametrize(
    "state", [InstructionState.REJECTED, InstructionState.RESOLVED_NOT_APPLIED]
)
@pytest.mark.parametrize(
    ("instruction", "payment", "before"),
    [
        (REFUND, PAID, InstructionKind.REFUND),
        (CANCEL, AUTHORISED, InstructionKind.CAPTURE),
    ],
)
def test_what_did_not_take_effect_counts_against_no_bound(
    instruction: Instruction,
    payment: ShownPayment,
    before: InstructionKind,
    state: InstructionState,
) -> None:
    """A refund of the whole that was refused leaves all to refund, a refused capture a cancel."""
    assert _reason(instruction, payment, others=(_other(before, state),)) == ""


@pytest.mark.parametrize(("charged_back", "may"), [(6_000, True), (6_001, False)])
def test_a_chargeback_leaves_only_the_rest_to_refund(charged_back: int, *, may: bool) -> None:
    """What the shopper's bank took back counts against what was captured, as refunds do."""
    said = _reason(REFUND, replace(PAID, charged_back=charged_back))

    assert said.startswith("refunds and chargebacks would exceed") is not may


def test_a_partial_capture_bounds_the_refund() -> None:
    """Only what this journal captured can be refunded, though the payment was larger."""
    captured = _other(InstructionKind.CAPTURE, InstructionState.CONFIRMED, amount=3_000)

    assert "exceed" in _reason(REFUND, PAID, others=(captured,))


def test_a_stale_answer_sends_nothing() -> None:
    """A query that shows authorised after our own confirmed capture is not believed."""
    captured = _other(InstructionKind.CAPTURE, InstructionState.RESOLVED_APPLIED, amount=9_999)

    assert "less than this journal knows" in _reason(CAPTURE, AUTHORISED, others=(captured,))


@pytest.mark.parametrize("state", [InstructionState.CONFIRMED, InstructionState.RESOLVED_APPLIED])
def test_a_second_one_of_an_intention_is_for_people(state: InstructionState) -> None:
    """What took effect for this payment and amount is not done again on the word of a rule."""
    done = _other(InstructionKind.REFUND, state, amount=4_000)
    judged = clear(REFUND, baseline=Baseline(KeyAnswer.FOUND, (PAID,)), others=(done,))

    assert isinstance(judged, Refused)
    assert (judged.is_for_people, judged.repeats) == (True, ("i0",))
    assert f"repeat of instruction i0, which is {state}" in judged.reason


def test_people_who_saw_the_first_let_the_second_go() -> None:
    """Approved beside the first, whichever of the two names the other."""
    done = _other(InstructionKind.REFUND, InstructionState.CONFIRMED, amount=4_000)

    assert _reason(replace(REFUND, repeats="i9 i0"), PAID, others=(done,)) == ""
    assert _reason(REFUND, PAID, others=(replace(done, repeats="i1"),)) == ""
    assert "repeat" in _reason(replace(REFUND, repeats="i9"), PAID, others=(done,))


@pytest.mark.parametrize(
    ("state", "amount"),
    [
        (InstructionState.CONFIRMED, 3_999),
        (InstructionState.REJECTED, 4_000),
        (InstructionState.RESOLVED_NOT_APPLIED, 4_000),
        (InstructionState.WITHDRAWN, 4_000),
    ],
)
def test_what_had_no_effect_or_was_another_amount_is_no_first_one(
    state: InstructionState, amount: int
) -> None:
    """Only what may have taken effect for the same amount is held against it."""
    other = _other(InstructionKind.REFUND, state, amount=amount)

    assert _reason(REFUND, PAID, others=(other,)) == ""


def test_unique_ids_make_two_refunds() -> None:
    """Where ids are declared unique, two that are given and differ are two movements."""
    done = replace(
        _other(InstructionKind.REFUND, InstructionState.CONFIRMED, amount=4_000), request_id="R-1"
    )
    baseline = Baseline(KeyAnswer.FOUND, (PAID,))
    told = {
        name: isinstance(
            clear(
                replace(REFUND, request_id=name), baseline=baseline, others=(done,), ids_unique=True
            ),
            Cleared,
        )
        for name in ("R-2", "r-1", "")
    }

    assert told == {"R-2": True, "r-1": False, "": False}


@pytest.mark.parametrize("parts", [False, True])
@pytest.mark.parametrize("instruction", [CAPTURE, CANCEL, replace(CAPTURE, amount=4_000)])
def test_a_review_that_released_the_payment_moved_nothing(
    instruction: Instruction, *, parts: bool
) -> None:
    """A confirmed review neither makes the answer stale nor counts as money that moved."""
    reviewed = _other(InstructionKind.REVIEW, InstructionState.CONFIRMED)
    baseline = Baseline(KeyAnswer.FOUND, (AUTHORISED,))
    judged = clear(instruction, baseline=baseline, others=(reviewed,), multiple_captures=parts)

    assert judged == Cleared(instruction, AUTHORISED)


@pytest.mark.parametrize(
    "other",
    [
        {"state": GatewayState.REFUNDED, "payment_status": "4100"},
        {"amount": 9_000},
        {"currency": "USD"},
    ],
)
@pytest.mark.parametrize("named", ["", "T1"])
def test_a_transaction_shown_in_two_ways_is_left_alone(other: dict[str, Any], named: str) -> None:
    """Rows of one transaction that contradict each other hold it, whichever comes first."""
    twice = replace(PAID, **other)
    wanted = replace(REFUND, transaction_id=named)

    for rows in ((PAID, twice), (twice, PAID)):
        assert "shows transaction T1 in two ways" in _reason(wanted, *rows)
    assert _reason(wanted, PAID, PAID) == ""


def test_the_hundredth_refund_is_refused() -> None:
    """A payment numbers its refunds with two digits; the hundredth has no number."""
    done = tuple(
        _other(InstructionKind.REFUND, InstructionState.CONFIRMED, amount=1) for _ in range(99)
    )

    assert "99 refunds" in _reason(REFUND, PAID, others=done)


def test_the_one_fitting_payment_of_several_is_taken() -> None:
    """With several payments the one in the needed state is meant, if there is one only."""
    dead = replace(AUTHORISED, transaction_id="T0", state=GatewayState.FAILED)

    assert _reason(CAPTURE, dead, AUTHORISED) == ""
    assert "several" in _reason(CAPTURE, AUTHORISED, replace(AUTHORISED, transaction_id="T2"))


def test_a_second_capture_needs_a_gateway_that_takes_parts() -> None:
    """Parts of one authorisation are captured only where that is configured, up to its amount."""
    part = replace(CAPTURE, amount=4_000)
    done = (_other(InstructionKind.CAPTURE, InstructionState.CONFIRMED, amount=6_000),)
    baseline = Baseline(KeyAnswer.FOUND, (AUTHORISED,))

    def judged(amount: int, *, parts: bool) -> Cleared | Refused:
        return clear(
            replace(part, amount=amount), baseline=baseline, others=done, multiple_captures=parts
        )

    assert isinstance(judged(4_000, parts=False), Refused)
    assert isinstance(judged(4_000, parts=True), Cleared)
    assert judged(4_001, parts=True) == Refused(
        replace(part, amount=4_001), "captures would exceed what was authorised"
    )


@pytest.mark.parametrize("state", [GatewayState.PAID, GatewayState.AUTHORISED])
def test_only_a_payment_in_review_is_reviewed(state: GatewayState) -> None:
    """A review flag on a payment that is past its review is not sent."""
    review = replace(CAPTURE, kind=InstructionKind.REVIEW)

    assert "not in review" in _reason(review, replace(AUTHORISED, state=state))
    assert _reason(review, replace(AUTHORISED, state=GatewayState.IN_REVIEW)) == ""


def test_a_charged_back_payment_is_not_refunded() -> None:
    """What the shopper's bank took back is not given a second time."""
    assert "nothing to refund" in _reason(REFUND, replace(PAID, state=GatewayState.CHARGEBACK))


def test_no_payout_goes_by_the_word_of_a_rule() -> None:
    """Whatever planning made of it: two people approve each."""
    payout = replace(INSTRUCTION, kind=InstructionKind.PAYOUT, payee_digest="d1")
    judged = [
        clear_alone(replace(payout, approved_by=by), others=[], rule_approver="rule: order file")
        for by in ("rule: order file", "ann, bob")
    ]

    assert [isinstance(one, Cleared) for one in judged] == [False, True]
