"""The answer key: every planted finding, written down from the truth, not by the engine."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from recon.model.money import format_minor_units
from recon.model.words import BreakCode
from recon.sandbox.sample_night.planted_night import SampleNight
from recon.sandbox.sample_night.records import BreakEffect, Expectation

_NO_SOURCE = "the sample night has no source for it (payouts, settlement files, rates, reviews)"
_NO_BANK = "the sample night has no statements of a bank"
_NO_FAULT = "the sandbox answers every call here; it takes a fault plan to leave a doubt"
_NOT_SENT = "what the gateway would refuse is seen before it is sent, and waits for a person"
_NO_AMOUNT = "the query shows neither captured nor refunded sums"
_ONE_PAYMENT = "an order number is used once at the gateway"

NOT_SHOWN: Mapping[BreakCode, str] = {
    BreakCode.DUPLICATE_PAYMENT: _ONE_PAYMENT,
    BreakCode.SPLIT_INCOMPLETE: _ONE_PAYMENT,
    BreakCode.AMBIGUOUS_MATCH: _ONE_PAYMENT,
    BreakCode.OVER_REFUND: _NO_AMOUNT,
    BreakCode.OVER_CAPTURE: _NO_AMOUNT,
    BreakCode.PARTIAL_CAPTURE_UNEXPECTED: _NO_AMOUNT,
    BreakCode.CAPTURE_UNCONFIRMED: _NO_FAULT,
    BreakCode.CANCEL_UNCONFIRMED: _NO_FAULT,
    BreakCode.REFUND_UNCONFIRMED: _NO_FAULT,
    BreakCode.CAPTURE_REJECTED: _NOT_SENT,
    BreakCode.CANCEL_REJECTED: _NOT_SENT,
    BreakCode.REFUND_REJECTED: _NOT_SENT,
    BreakCode.REFUND_FAILED_AFTER_ACCEPT: "an accepted refund fails only on a later night",
    BreakCode.CHARGEBACK_REVERSED_NOT_BOOKED: "it takes an earlier night",
    BreakCode.CHARGEBACK_AFTER_REFUND: "no seeded payment is both refunded and charged back",
    BreakCode.STATUS_UNMAPPED: "the sample's rules map every code of the sandbox",
    BreakCode.STALE_PENDING: "the truth lists no payment that is pending at the gateway",
    BreakCode.FX_DIFFERENCE: _NO_SOURCE,
    BreakCode.PAYOUT_UNCONFIRMED: _NO_SOURCE,
    BreakCode.PAYOUT_FAILED: _NO_SOURCE,
    BreakCode.PAYOUT_NOT_BOOKED: _NO_SOURCE,
    BreakCode.PAYOUT_AMOUNT_MISMATCH: _NO_SOURCE,
    BreakCode.LEDGER_PAYOUT_ONLY: _NO_SOURCE,
    BreakCode.SETTLEMENT_MISSING: _NO_SOURCE,
    BreakCode.SETTLEMENT_AMOUNT_MISMATCH: _NO_SOURCE,
    BreakCode.FEE_VARIANCE: _NO_SOURCE,
    BreakCode.UNEXPECTED_RECEIPT: _NO_SOURCE,
    BreakCode.HELD_BACK: _NO_SOURCE,
    BreakCode.FEE_NOT_BOOKED: _NO_SOURCE,
    BreakCode.FEE_BOOKED_DIFFERS: _NO_SOURCE,
    BreakCode.RESERVE_NOT_BOOKED: _NO_SOURCE,
    BreakCode.RESERVE_BOOKED_DIFFERS: _NO_SOURCE,
    BreakCode.PAYOUT_TWICE_AT_BANK: _NO_BANK,
    BreakCode.PAYOUT_RETURNED: _NO_BANK,
    BreakCode.BANK_AMOUNT_DIFFERS: _NO_BANK,
    BreakCode.BANK_FX_DIFFERENCE: _NO_BANK,
    BreakCode.PAYOUT_NOT_AT_BANK: _NO_BANK,
    BreakCode.BANK_RECEIPT_UNKNOWN: _NO_BANK,
    BreakCode.BANK_NOT_BOOKED: _NO_BANK,
    BreakCode.REVIEW_STUCK: _NO_SOURCE,
    BreakCode.SUBSCRIPTION_NOT_ENDED: "the sample night instructs no end of a subscription",
}
"""Codes that a sample night cannot show, and why."""


def answer_key(night: SampleNight) -> dict[str, Any]:
    """The expectations as plain values; amounts as text with the currency's decimals."""
    expected = [story.expected for story in night.stories if story.expected is not None]
    expected.sort(key=lambda expectation: (expectation.account_id, expectation.order_no))
    return {
        "business_date": night.business_date.isoformat(),
        "seed": night.seed,
        "merchant_id": night.account.merchant_id,
        "account_id": night.account.account_id,
        "instructions": _instructions(night),
        "breaks": [_break(expectation) for expectation in expected if expectation.code],
        "unverified": [
            _place(expectation) | {"reason": expectation.unverified}
            for expectation in expected
            if expectation.unverified
        ],
        "matched_with_flag": [
            _place(expectation) | {"flag": expectation.flag}
            for expectation in expected
            if expectation.flag
        ],
        "pending": [_place(expectation) for expectation in expected if expectation.pending],
        "not_shown": {code.value: why for code, why in NOT_SHOWN.items()},
        "payments_left_out": night.left_out,
    }


def _instructions(night: SampleNight) -> dict[str, int]:
    """How many instructions of each kind the files carry, repeats counted once."""
    waiting = ("cancel of a captured", "refund of a payment not captured")
    asked = [
        (line.action, story) for story in night.stories for line in story.orders if line.action
    ]
    held = sum(1 for _, s in asked if s.expected and s.expected.why.startswith(waiting))
    counts = Counter(action for action, _ in asked)
    return dict(sorted(counts.items())) | {"of_these_waiting": held}


def _place(expectation: Expectation) -> dict[str, Any]:
    return {
        "merchant_id": expectation.merchant_id,
        "account_id": expectation.account_id,
        "order_no": expectation.order_no,
        "transaction_id": expectation.transaction_id,
        "why": expectation.why,
    }


def _break(expectation: Expectation) -> dict[str, Any]:
    entry = _place(expectation) | {
        "code": expectation.code,
        "effects": [_effect(e) for e in expectation.effects],
    }
    if expectation.alone:
        entry["in_a_night_of_one_account"] = [
            {
                "account_id": alone.account_id,
                "code": alone.code,
                "effects": [_effect(effect) for effect in alone.effects],
            }
            for alone in expectation.alone
        ]
    return entry


def _effect(effect: BreakEffect) -> dict[str, str]:
    return {
        "leg": effect.leg,
        "account_id": effect.account_id,
        "currency": effect.currency,
        "amount": format_minor_units(effect.amount, currency=effect.currency),
    }
