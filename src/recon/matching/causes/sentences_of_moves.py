"""Reasons of what we instructed, or should have."""

from collections.abc import Mapping

from recon.matching.causes.reason_clauses import MONEY, words_of
from recon.matching.causes.reason_facts import Facts
from recon.matching.causes.sentence import Sentence
from recon.model.words import BreakCode

_C = BreakCode


def _refund_is_owed(facts: Facts) -> bool:
    shows = words_of(facts.state_gateway) in MONEY and not facts.refund_unknown
    return shows and facts.order_refunded > facts.gateway_refunded


OF_MOVES: Mapping[BreakCode, tuple[Sentence, ...]] = {
    _C.CANCEL_UNCONFIRMED: (
        Sentence(
            "Our cancellation is in doubt: {gateway_says}.", lambda facts: facts.cancel_doubtful_any
        ),
        Sentence("Our cancellation was confirmed, but {gateway_says}."),
    ),
    _C.CANCEL_REJECTED: (Sentence("Our cancellation {cancel_not_done}: {gateway_says}."),),
    _C.CANCEL_DUE: (
        Sentence(
            "Our cancellation still waits {cancel_waits_for}; {gateway_says}.",
            lambda facts: facts.cancel_waiting_any,
        ),
        Sentence("{Order_says}, {gateway_says}: it is to be cancelled."),
    ),
    _C.CAPTURE_UNCONFIRMED: (
        Sentence(
            "Our capture of {capture_doubtful} is in doubt: {gateway_says}.",
            lambda facts: facts.capture_doubtful_any,
        ),
        Sentence("Our capture of {capture_confirmed} was confirmed, but {gateway_says}."),
    ),
    _C.CAPTURE_REJECTED: (
        Sentence("Our capture of {capture_rejected} {capture_not_done}: {gateway_says}."),
    ),
    _C.CAPTURE_DUE: (
        Sentence(
            "Our capture of {capture_waiting} still waits {capture_waits_for}; {gateway_says}.",
            lambda facts: facts.capture_waiting_any,
        ),
        Sentence("{Order_says}, {gateway_says}: it is to be captured."),
    ),
    _C.REFUND_UNCONFIRMED: (
        Sentence(
            "Our refund of {refund_doubtful} is in doubt: {refund_seen}.",
            lambda facts: facts.refund_doubtful_any,
        ),
        Sentence("Our refund of {refund_confirmed} was confirmed, but {refund_seen}."),
    ),
    _C.REFUND_REJECTED: (
        Sentence("Our refund of {refund_rejected} {refund_not_done}: {refund_seen}."),
    ),
    _C.REFUND_FAILED_AFTER_ACCEPT: (
        Sentence(
            "The gateway accepted our refund of {refund_failed_later_sum}, later it was found not "
            "paid: {refund_seen}."
        ),
    ),
    _C.REFUND_DUE: (
        Sentence(
            "Our refund of {refund_waiting} still waits {refund_waits_for}; {refund_seen}.",
            lambda facts: facts.refund_waiting_any,
        ),
        Sentence(
            "Our refund of {refund_confirmed} was confirmed, the order expects {order_refunded} "
            "refunded; {refund_seen}.",
            lambda facts: facts.order_refunded > facts.refund_confirmed > facts.gateway_refunded,
        ),
        Sentence("The order expects {order_refunded} refunded, {refund_seen}.", _refund_is_owed),
        Sentence("{Order_says}, {gateway_says}."),
    ),
    _C.REVIEW_STUCK: (
        Sentence(
            "Our decision of the review is in doubt: {gateway_says}.",
            lambda facts: facts.review_doubtful_any,
        ),
        Sentence(
            "Our decision of the review was refused or did not take effect: {gateway_says}.",
            lambda facts: facts.review_rejected_any,
        ),
        Sentence("We decided the review, but {gateway_says}."),
    ),
    _C.SUBSCRIPTION_NOT_ENDED: (
        Sentence(
            "Our end of the subscription is in doubt: the customer may be charged again.",
            lambda facts: facts.cancel_subscription_doubtful_any,
        ),
        Sentence(
            "The gateway did not end the subscription as we asked: the customer is charged again."
        ),
    ),
    _C.PAYOUT_UNCONFIRMED: (
        Sentence("Our payout of {payout_doubtful} is in doubt: nobody knows yet whether it left."),
    ),
    _C.PAYOUT_FAILED: (
        Sentence("The gateway did not carry out our payout of {payout_rejected}; nothing left."),
    ),
}
