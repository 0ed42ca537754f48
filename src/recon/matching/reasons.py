"""Why a break is open, as one sentence that finance can read."""

from collections.abc import Mapping
from string import Formatter
from typing import NamedTuple

from recon.model import BreakCode
from recon.money import Money


class Told(NamedTuple):
    """The amounts of one break, minor units of its currency; None when that side is absent."""

    currency: str
    order: int | None
    gateway: int | None
    ledger: int | None
    instruction: int
    settled: int
    fee_gap: int
    exchange_gap: int
    order_captured: int
    order_refunded: int
    captured: int
    refunded: int
    state_orders: str
    state_gateway: str


_SENTENCES: Mapping[BreakCode, str] = {
    BreakCode.WRONG_ACCOUNT: "The payment of {captured} sits in another account of the merchant.",
    BreakCode.DUPLICATE_ORDER_ROW: (
        "The order file has this order more than once with different content; together "
        "the rows say {order}."
    ),
    BreakCode.DUPLICATE_PAYMENT: (
        "The gateway took {gateway} in several payments, the order says {order}."
    ),
    BreakCode.DUPLICATE_LEDGER_POSTING: (
        "The same movement is booked more than once: the ledger has {ledger}, the "
        "gateway {gateway}."
    ),
    BreakCode.AMBIGUOUS_MATCH: (
        "More than one record fits; nothing was chosen. Order {order}, gateway "
        "{gateway}, ledger {ledger}."
    ),
    BreakCode.CURRENCY_MISMATCH: (
        "The sides name different currencies: order {order}, gateway {gateway}, ledger "
        "{ledger} in this one."
    ),
    BreakCode.STATUS_UNMAPPED: (
        "The gateway answered a status code that the status map does not know; the order "
        "says {state_orders}."
    ),
    BreakCode.OVER_REFUND: (
        "Refunds of {refunded} (with those in doubt) exceed the captured {captured}."
    ),
    BreakCode.CHARGEBACK_AFTER_REFUND: (
        "A chargeback came after a refund of the same payment of {captured}."
    ),
    BreakCode.CHARGEBACK_NOT_BOOKED: (
        "The gateway reports a chargeback of {captured}; the ledger has none."
    ),
    BreakCode.CHARGEBACK_UNPROVEN: "The ledger has a chargeback; the gateway says {state_gateway}.",
    BreakCode.CHARGEBACK_REVERSED_NOT_BOOKED: (
        "The chargeback was won back at the gateway; the ledger still has it."
    ),
    BreakCode.STATUS_CONFLICT: "The order is {state_orders}, the gateway says {state_gateway}.",
    BreakCode.CANCEL_UNCONFIRMED: "We cancelled, but the gateway still says {state_gateway}.",
    BreakCode.CANCEL_REJECTED: "The gateway refused our cancellation; it says {state_gateway}.",
    BreakCode.CANCEL_DUE: (
        "The order is {state_orders}, the authorisation is still open at the gateway."
    ),
    BreakCode.CAPTURE_UNCONFIRMED: (
        "Our capture of {instruction} is not visible: the gateway says {state_gateway}."
    ),
    BreakCode.CAPTURE_REJECTED: (
        "The gateway refused our capture of {instruction}; it says {state_gateway}."
    ),
    BreakCode.AUTHORISATION_EXPIRED: (
        "The authorisation expired before {order_captured} was captured."
    ),
    BreakCode.CAPTURE_DUE: (
        "The order is {state_orders}, the gateway has only authorised; {order_captured} "
        "is to be captured."
    ),
    BreakCode.REFUND_UNCONFIRMED: (
        "Our refund of {instruction} is not visible: the gateway shows {refunded} refunded."
    ),
    BreakCode.REFUND_REJECTED: "The gateway refused our refund of {instruction}.",
    BreakCode.REFUND_FAILED_AFTER_ACCEPT: (
        "The gateway accepted our refund of {instruction}, later it was found not paid."
    ),
    BreakCode.REFUND_DUE: (
        "The order expects {order_refunded} refunded, the gateway shows {refunded}."
    ),
    BreakCode.REFUND_UNEXPECTED: (
        "The gateway refunded {refunded}, the order expects {order_refunded}."
    ),
    BreakCode.OVER_CAPTURE: "Gateway captured {captured}, the order expects {order_captured}.",
    BreakCode.PARTIAL_CAPTURE_UNEXPECTED: (
        "Gateway captured only {captured}, the order expects {order_captured}."
    ),
    BreakCode.AMOUNT_OVER: "Gateway holds {gateway}, the order says {order}.",
    BreakCode.AMOUNT_UNDER: "Gateway holds only {gateway}, the order says {order}.",
    BreakCode.BOOKED_NOT_AT_GATEWAY: (
        "The ledger has {ledger}, the gateway does not know the order."
    ),
    BreakCode.MISSING_AT_GATEWAY: (
        "The order is {state_orders} with {order_captured}, the gateway does not know it."
    ),
    BreakCode.MISSING_IN_ORDERS: (
        "The gateway has a payment ({state_gateway}) of {gateway} that no order explains."
    ),
    BreakCode.REFUND_NOT_BOOKED: "The gateway refunded {refunded}, the ledger has no refund.",
    BreakCode.LEDGER_REFUND_ONLY: (
        "The ledger has a refund that the gateway does not show; the shopper was not paid."
    ),
    BreakCode.LEDGER_AMOUNT_MISMATCH: "The ledger has {ledger}, the gateway {gateway}.",
    BreakCode.MISSING_IN_LEDGER: "Gateway captured {captured}, the ledger has no entry.",
    BreakCode.LEDGER_ONLY: "The ledger has {ledger} that neither orders nor gateway know.",
    BreakCode.SPLIT_INCOMPLETE: "Several payments sum to {gateway}, the order says {order}.",
    BreakCode.FX_DIFFERENCE: (
        "Booked in another currency: the rate agreed leaves {exchange_gap} unexplained."
    ),
    BreakCode.PAYOUT_UNCONFIRMED: "A payout was sent and nobody knows yet whether it left.",
    BreakCode.PAYOUT_FAILED: "The gateway refused a payout; nothing left.",
    BreakCode.PAYOUT_NOT_BOOKED: "Paid out {gateway}, the ledger has no payout.",
    BreakCode.PAYOUT_AMOUNT_MISMATCH: "Paid out {gateway}, the ledger has {ledger}.",
    BreakCode.LEDGER_PAYOUT_ONLY: "The ledger has a payout of {ledger} that nobody sent.",
    BreakCode.SETTLEMENT_MISSING: "Gateway captured {captured}; no settlement file has it.",
    BreakCode.SETTLEMENT_AMOUNT_MISMATCH: (
        "Gateway captured {captured} and refunded {refunded}, settled was {settled}."
    ),
    BreakCode.FEE_VARIANCE: "The fee is {fee_gap} away from the one that was agreed.",
    BreakCode.UNEXPECTED_RECEIPT: (
        "Settled {settled} for a payment that took no money (gateway: {state_gateway})."
    ),
    BreakCode.REVIEW_STUCK: "We decided the review, the gateway still shows {state_gateway}.",
    BreakCode.STALE_PENDING: (
        "Still {state_gateway} at the gateway after the longest grace; the order is {state_orders}."
    ),
}
_WORDS = frozenset({"state_orders", "state_gateway"})
_NAMED: Mapping[BreakCode, tuple[str, ...]] = {
    code: tuple(name for _, name, _, _ in Formatter().parse(sentence) if name)
    for code, sentence in _SENTENCES.items()
}
"""What each sentence says of a break: only that is put into words."""


def reason_of(code: BreakCode, *, told: Told) -> str:
    """The sentence for a code, amounts with their currency."""
    shown = {
        name: _words(getattr(told, name))
        if name in _WORDS
        else _money(getattr(told, name), currency=told.currency)
        for name in _NAMED[code]
    }
    return _SENTENCES[code].format(**shown)


def _words(state: str) -> str:
    return "absent" if state == "none" else state.replace("_", " ")


def _money(amount: int | None, *, currency: str) -> str:
    if amount is None or not currency:
        return "nothing"
    return str(Money.of_minor_units(amount, currency=currency))
