from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from recon.instructions.eligibility import (
    Baseline,
    Eligible,
    Ineligible,
    QueriedPayment,
    batches,
    clear,
    clear_alone,
    planned_batches,
    queue,
)
from recon.instructions.instruction import ROWS_PER_BATCH_MAX
from recon.model.terms import GatewayState, InstructionKind, InstructionState, KeyAnswer
from tests.recon.instructions.sample_instructions import INSTRUCTION

K, S = InstructionKind, InstructionState
CAPTURE = replace(INSTRUCTION, transaction_id="")
REFUND = replace(CAPTURE, kind=InstructionKind.REFUND, amount=4_000)
CANCEL = replace(CAPTURE, kind=InstructionKind.CANCEL)
AUTHORISED = QueriedPayment("T1", GatewayState.AUTHORISED, "2000", "EUR", 10_000)
PAID = replace(AUTHORISED, state=GatewayState.PAID, payment_status="3000")


def _other(kind=K.REFUND, state=S.CONFIRMED, *, amount=10000, **changed):
    changed |= {"kind": kind, "state": state, "amount": amount, "transaction_id": "T1"}
    return replace(CAPTURE, **{"instruction_id": "i0", **changed})


def _evaluated(instruction, *payments, others=(), answer=KeyAnswer.FOUND, **options):
    return clear(instruction, baseline=Baseline(answer, payments), others=others, **options)


def _reason(*asked, **options):
    evaluated = _evaluated(*asked, **options)
    return evaluated.reason if isinstance(evaluated, Ineligible) else ""


@pytest.mark.parametrize(
    ("instruction", "payment"), [(CAPTURE, AUTHORISED), (CANCEL, AUTHORISED), (REFUND, PAID)]
)
def test_what_fits_is_cleared_with_its_payment(instruction, payment):
    assert _evaluated(instruction, payment) == Eligible(instruction, payment)


@pytest.mark.parametrize("answer", [KeyAnswer.FAILED, KeyAnswer.NOT_FOUND, KeyAnswer.UNMAPPED])
def test_nothing_is_sent_without_an_answer(answer):
    assert isinstance(_evaluated(CAPTURE, answer=answer), Ineligible)


SHOWN = GatewayState
REVIEW = replace(CAPTURE, kind=K.REVIEW)
IN_REVIEW = replace(AUTHORISED, state=SHOWN.IN_REVIEW)
DEAD = replace(AUTHORISED, transaction_id="T0", state=SHOWN.FAILED)
LARGER = replace(REFUND, amount=4_001)


@pytest.mark.parametrize(
    ("instruction", "payments", "others", "endorsements"),
    [
        (CAPTURE, [PAID], [], "not authorised"),
        (CANCEL, [PAID], [], "not authorised"),
        (REFUND, [AUTHORISED], [], "needs a captured payment"),
        (REFUND, [replace(PAID, state=SHOWN.REFUNDED)], [], "nothing to refund"),
        # What the shopper's bank took back is not given a second time.
        (REFUND, [replace(PAID, state=SHOWN.CHARGEBACK)], [], "nothing to refund"),
        (REFUND, [replace(PAID, state=SHOWN.PARTIALLY_REFUNDED)], [], "does not know"),
        (CAPTURE, [replace(AUTHORISED, currency="USD")], [], "is in USD"),
        (CAPTURE, [replace(AUTHORISED, amount=9_999)], [], "larger than the payment"),
        (CAPTURE, [replace(AUTHORISED, state=SHOWN.UNMAPPED)], [], "not mapped"),
        (CAPTURE, [replace(AUTHORISED, closed_because="there is a case")], [], "there is a case"),
        (replace(CANCEL, amount=9_000), [AUTHORISED], [], "own amount"),
        (
            *(replace(CAPTURE, transaction_id="T9"), [AUTHORISED], []),
            "the instruction names transaction T9, the gateway shows T1 for this order",
        ),
        # A review flag on a payment that is past its review is not sent.
        (REVIEW, [PAID], [], "not in review"),
        (REVIEW, [AUTHORISED], [], "not in review"),
        (REVIEW, [IN_REVIEW], [], ""),
        # With several payments the one in the needed state is meant, if there is one only.
        (CAPTURE, [DEAD, AUTHORISED], [], ""),
        (CAPTURE, [AUTHORISED, replace(AUTHORISED, transaction_id="T2")], [], "several"),
        # The same row twice is one payment.
        (REFUND, [PAID, PAID], [], ""),
        # At most one instruction of a payment is open at any time.
        *(
            (REFUND, [PAID], [_other(state=state, amount=1)], "not settled yet")
            for state in (S.IN_FLIGHT, S.IN_DOUBT, S.NEEDS_HUMAN)
        ),
        # Confirmed refunds count against the captured amount, to the minor unit.
        (REFUND, [PAID], [_other(amount=6_000)], ""),
        (LARGER, [PAID], [_other(amount=6_000)], "exceed"),
        # Only what this journal captured can be refunded, though the payment was larger.
        (REFUND, [PAID], [_other(K.CAPTURE, amount=3_000)], "exceed"),
        # What the shopper's bank took back counts as refunds do.
        (REFUND, [replace(PAID, charged_back=6_000)], [], ""),
        (REFUND, [replace(PAID, charged_back=6_001)], [], "refunds and chargebacks would exceed"),
        # What was refused leaves all to refund, or to cancel.
        *(
            (instruction, [payment], [_other(kind, state)], "")
            for instruction, payment, kind in (
                (REFUND, PAID, K.REFUND),
                (CANCEL, AUTHORISED, K.CAPTURE),
            )
            for state in (S.REJECTED, S.RESOLVED_NOT_APPLIED)
        ),
        # A query that shows authorised after our own confirmed capture is not believed.
        (
            *(CAPTURE, [AUTHORISED]),
            [_other(K.CAPTURE, S.RESOLVED_APPLIED, amount=9_999)],
            "less than this journal knows",
        ),
        # Only what may have taken effect for the same amount is a first one of its intention.
        (REFUND, [PAID], [_other(amount=3_999)], ""),
        *(
            (REFUND, [PAID], [_other(state=state, amount=4_000)], "")
            for state in (S.REJECTED, S.RESOLVED_NOT_APPLIED, S.WITHDRAWN)
        ),
        # Approved beside the first, whichever of the two names the other.
        (replace(REFUND, repeats="i9 i0"), [PAID], [_other(amount=4_000)], ""),
        (REFUND, [PAID], [_other(amount=4_000, repeats="i1")], ""),
        (replace(REFUND, repeats="i9"), [PAID], [_other(amount=4_000)], "repeat"),
        # A payment numbers its refunds with two digits; the hundredth has no number.
        (REFUND, [PAID], [_other(amount=1)] * 99, "99 refunds"),
    ],
)
def test_what_does_not_fit_waits_with_a_reason(instruction, payments, others, endorsements):
    said = _reason(instruction, *payments, others=others)

    assert (endorsements in said, bool(said)) == (True, bool(endorsements))


@pytest.mark.parametrize("state", [S.CONFIRMED, S.RESOLVED_APPLIED])
def test_a_second_one_of_an_intention_is_for_people(state):
    evaluated = _evaluated(REFUND, PAID, others=[_other(state=state, amount=4_000)])

    assert isinstance(evaluated, Ineligible)
    assert (evaluated.is_for_people, evaluated.repeats) == (True, ("i0",))
    assert f"repeat of instruction i0, which is {state}" in evaluated.reason


@pytest.mark.parametrize("parts", [False, True])
@pytest.mark.parametrize("instruction", [CAPTURE, CANCEL, replace(CAPTURE, amount=4_000)])
def test_a_review_that_released_the_payment_moved_nothing(instruction, *, parts):
    """A confirmed review neither makes the answer stale nor counts as money that moved."""
    evaluated = _evaluated(
        instruction, AUTHORISED, others=[_other(K.REVIEW)], multiple_captures=parts
    )

    assert evaluated == Eligible(instruction, AUTHORISED)


def test_a_second_capture_needs_a_gateway_that_takes_parts():
    done = [_other(K.CAPTURE, amount=6_000)]
    part, beyond = replace(CAPTURE, amount=4_000), replace(CAPTURE, amount=4_001)

    assert _reason(part, AUTHORISED, others=done)
    assert _reason(part, AUTHORISED, others=done, multiple_captures=True) == ""
    assert _reason(beyond, AUTHORISED, others=done, multiple_captures=True) == (
        "captures would exceed what was authorised"
    )


def test_no_payout_goes_by_the_word_of_a_rule():
    """Whatever planning made of it: two people approve each."""
    payout = replace(INSTRUCTION, kind=InstructionKind.PAYOUT, payee_digest="d1")
    evaluated = [
        clear_alone(replace(payout, approved_by=by), others=[], rule_approver="rule: order file")
        for by in ("rule: order file", "ann, bob")
    ]

    assert [isinstance(one, Eligible) for one in evaluated] == [False, True]


AT = datetime(2026, 11, 20, tzinfo=UTC)
BASE = replace(
    INSTRUCTION,
    instruction_id="i",
    natural_key="k",
    transaction_id="",
    amount=100,
    payment_amount=100,
)


def _eligible(number, kind, *, payment="", days=0):
    instruction = replace(BASE, instruction_id=f"i{number}", kind=kind)
    shown = QueriedPayment(payment or f"T{number}", GatewayState.PAID, "3000", "EUR", 100)
    return Eligible(instruction, replace(shown, dated=AT - timedelta(days=days)))


def test_captures_leave_first_and_the_oldest_authorisation_before_all():
    queued = queue(
        [
            _eligible(1, InstructionKind.REFUND, days=9),
            _eligible(2, InstructionKind.CAPTURE, days=1),
            _eligible(3, InstructionKind.CAPTURE, days=6),
        ],
        refusal=lambda _: "",
    )

    assert [item.instruction.instruction_id for item in queued.eligible] == ["i3", "i2", "i1"]


def test_the_second_instruction_of_a_payment_waits_and_says_for_which():
    queued = queue(
        [
            _eligible(1, InstructionKind.REFUND, payment="T9"),
            _eligible(2, InstructionKind.CAPTURE, payment="T9"),
        ],
        refusal=lambda _: "",
    )

    assert [item.instruction.instruction_id for item in queued.eligible] == ["i2"]
    assert [item.reason for item in queued.ineligible] == [
        "instruction i2 of the same payment goes first"
    ]


def test_a_refused_instruction_does_not_block_the_next_of_its_payment():
    queued = queue(
        [
            _eligible(1, InstructionKind.REFUND, payment="T9"),
            _eligible(2, InstructionKind.REFUND, payment="T9"),
        ],
        refusal=lambda one: "too large" if one.instruction_id == "i1" else "",
    )

    assert [item.instruction.instruction_id for item in queued.eligible] == ["i2"]


def test_payouts_and_subscriptions_leave_one_by_one():
    """Their requests carry one row; the others fill batches of fifty."""
    rows = [_eligible(n, InstructionKind.CAPTURE) for n in range(ROWS_PER_BATCH_MAX + 1)]
    rows += [_eligible(100 + n, InstructionKind.PAYOUT) for n in range(2)]

    assert [(kind, len(group)) for kind, group in batches(rows)] == [
        (InstructionKind.CAPTURE, 50),
        (InstructionKind.CAPTURE, 1),
        (InstructionKind.PAYOUT, 1),
        (InstructionKind.PAYOUT, 1),
    ]


def test_a_planned_batch_tells_rows_and_sums_per_currency():
    yen = _eligible(2, InstructionKind.CAPTURE)
    yen = replace(yen, instruction=replace(yen.instruction, currency="JPY"))
    plans = planned_batches([_eligible(1, InstructionKind.CAPTURE), yen])

    assert [str(plan) for plan in plans] == ["capture 1 of 1.00 EUR and 1 of 100 JPY"]
