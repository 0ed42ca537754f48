"""Reasons of what order and gateway say of a payment."""

from collections.abc import Mapping

from recon.matching.causes.reason_facts import Facts
from recon.matching.causes.sentence import Sentence
from recon.model.words import BreakCode

_C = BreakCode
_BOTH = Sentence("{Order_says}, {gateway_says}.")


def _more(facts: Facts) -> bool:
    return (facts.gateway_amount or 0) > (facts.order_amount or 0)


def _less(facts: Facts) -> bool:
    return (facts.gateway_amount or 0) < (facts.order_amount or 0)


def _refunded_beyond(facts: Facts) -> bool:
    """We refunded more than the order tells of, and the query does not show it."""
    is_refunded = "refunded" in facts.state_orders
    return is_refunded and facts.refund_confirmed > max(
        facts.gateway_refunded, facts.order_refunded
    )


OF_PAYMENTS: Mapping[BreakCode, tuple[Sentence, ...]] = {
    _C.WRONG_ACCOUNT: (Sentence("Of the same payment {here}, {there}, over {moved}."),),
    _C.DUPLICATE_ORDER_ROW: (
        Sentence(
            "The order files have this order more than once with other content: {order_rows}."
        ),
    ),
    _C.DUPLICATE_PAYMENT: (
        Sentence(
            "The gateway holds {held} in several payments ({payments}), the order says "
            "{order_amount}."
        ),
    ),
    _C.AMBIGUOUS_MATCH: (
        Sentence(
            "The gateway tells payment {twice_told} in ways that exclude each other ({answers}); "
            "none was chosen.",
            lambda facts: (
                len({payment.transaction_id for payment in facts.rows.payments})
                < len(facts.rows.payments)
            ),
        ),
        Sentence(
            "This fits {rivals} by its {rivals_by} as well; nothing was chosen.",
            lambda facts: bool(facts.rows.rivals_by),
        ),
        Sentence(
            "More than one record fits ({rivals}); nothing was chosen. {Order_says}, "
            "{gateway_says}."
        ),
    ),
    _C.CURRENCY_MISMATCH: (Sentence("The sides name different currencies: {by_currency}."),),
    _C.STATUS_UNMAPPED: (
        Sentence(
            "The gateway answered status {codes}, which the status map does not know, for a "
            "payment of {unmapped_money}; {order_says}."
        ),
    ),
    _C.OVER_REFUND: (
        Sentence(
            "The gateway shows {gateway_refunded} refunded, more than the captured "
            "{gateway_captured}.",
            lambda facts: facts.gateway_refunded > facts.gateway_captured,
        ),
        Sentence(
            "At the gateway {excess_payment}.",
            lambda facts: facts.refund_excess,
        ),
        Sentence("Our refunds come to {our_refunds} against {gateway_captured} captured."),
    ),
    _C.STATUS_CONFLICT: (
        Sentence(
            "Our capture of {capture_rejected} counts as refused, yet {gateway_says}; "
            "{order_says}.",
            lambda facts: facts.capture_rejected > 0 and facts.gateway_captured > 0,
        ),
        Sentence(
            "Our capture of {capture_confirmed} was confirmed, {gateway_says}, but {order_says}.",
            lambda facts: facts.capture_confirmed == facts.gateway_captured > 0,
        ),
        Sentence(
            "Our capture of {capture_confirmed} was confirmed, but {gateway_says}; {order_says}.",
            lambda facts: facts.capture_confirmed > 0,
        ),
        Sentence(
            "Our cancellation counts as refused, yet {gateway_says}; {order_says}.",
            lambda facts: facts.cancel_rejected_any and facts.state_gateway == "cancelled",
        ),
        _BOTH,
    ),
    _C.REFUND_UNEXPECTED: (
        Sentence(
            "Our refund of {refund_rejected} counts as refused, yet {refund_seen}; {order_says}.",
            lambda facts: 0 < facts.refund_rejected <= facts.gateway_refunded,
        ),
        Sentence(
            "Our refund of {refund_confirmed} was confirmed, the order expects {order_refunded} "
            "refunded; {refund_seen}.",
            _refunded_beyond,
        ),
        Sentence(
            "The gateway refunded {gateway_refunded}, the order expects {order_refunded}.",
            lambda facts: facts.gateway_refunded > facts.order_refunded > 0,
        ),
        Sentence(
            "The gateway refunded {gateway_refunded}, the order expects no refund.",
            lambda facts: facts.gateway_refunded > 0 and not facts.order_refunded,
        ),
        _BOTH,
    ),
    _C.OVER_CAPTURE: (
        Sentence(
            "Gateway captured {gateway_captured}, the order expects {order_captured}.",
            lambda facts: facts.gateway_captured > facts.order_captured > 0,
        ),
        Sentence("At the gateway {over_authorised}.", lambda facts: facts.over_authorised),
        _BOTH,
    ),
    _C.PARTIAL_CAPTURE_UNEXPECTED: (
        Sentence("Gateway captured only {gateway_captured}, the order expects {order_captured}."),
    ),
    _C.AMOUNT_OVER: (
        Sentence("Gateway holds {gateway_amount}, the order says {order_amount}.", _more),
        _BOTH,
    ),
    _C.AMOUNT_UNDER: (
        Sentence("Gateway holds only {gateway_amount}, the order says {order_amount}.", _less),
        _BOTH,
    ),
    _C.SPLIT_INCOMPLETE: (
        Sentence("Several payments sum to {gateway_amount}, the order says {order_amount}."),
    ),
    _C.AUTHORISATION_EXPIRED: (Sentence("The authorisation of {stated} expired; {order_says}."),),
    _C.MISSING_AT_GATEWAY: (Sentence("{Order_says}, {gateway_says}."),),
    _C.MISSING_IN_ORDERS: (Sentence("{Gateway_says}; no order explains it."),),
    _C.STALE_PENDING: (Sentence("{Order_says}, {gateway_says}: longer than the longest grace."),),
}
