"""Reasons of what the books and the settlement say of a payment."""

from collections.abc import Mapping

from recon.matching.causes.reason_facts import Facts
from recon.matching.causes.sentence import Sentence
from recon.model.words import BreakCode

_C = BreakCode
_BOTH = Sentence("{Ledger_has}, {gateway_says}.")


def _covered(facts: Facts) -> bool:
    return facts.covered


def _refunded_by_reply(facts: Facts) -> bool:
    """Our reply tells of more refunded than the query shows."""
    return facts.refund_confirmed > facts.gateway_refunded


def _captured_less(facts: Facts) -> bool:
    """The query tells what was authorised, our reply what was taken of it."""
    return 0 < facts.capture_confirmed < facts.gateway_captured


def _only_settled(facts: Facts) -> bool:
    """The settlement has a chargeback; the gateway shows the payment with its money."""
    return facts.covered and facts.settled_charged > 0 and facts.state_gateway != "chargeback"


def _is_higher(facts: Facts) -> bool:
    return facts.fee_gap > 0


OF_BOOKS: Mapping[BreakCode, tuple[Sentence, ...]] = {
    _C.DUPLICATE_LEDGER_POSTING: (
        Sentence(
            "The same {booked_more_than_once} is booked more than once: {ledger_has}, "
            "{gateway_says}."
        ),
    ),
    _C.CHARGEBACK_AFTER_REFUND: (
        Sentence("{Gateway_says}, which was refunded: {evidence_of_refund}."),
    ),
    _C.CHARGEBACK_NOT_BOOKED: (
        Sentence(
            "Settled were {settled}; the ledger has no chargeback of it, and {gateway_says}.",
            _only_settled,
        ),
        Sentence("{Gateway_says}; the ledger has no chargeback of it.", _covered),
        Sentence("{Gateway_says}; no ledger was given to look for it in."),
    ),
    _C.CHARGEBACK_UNPROVEN: (
        Sentence("The ledger has chargebacks of {ledger_chargeback}; {gateway_says}."),
    ),
    _C.CHARGEBACK_REVERSED_NOT_BOOKED: (
        Sentence(
            "The gateway reported a chargeback before and took it back: {gateway_says}; the ledger "
            "still has chargebacks of {ledger_chargeback}."
        ),
    ),
    _C.BOOKED_NOT_AT_GATEWAY: (Sentence("{Ledger_has}, {order_says}; {gateway_says}."),),
    _C.REFUND_NOT_BOOKED: (
        Sentence(
            "Our refund of {refund_confirmed} was confirmed, {refund_seen}; the ledger has no "
            "refund.",
            _refunded_by_reply,
        ),
        Sentence("The gateway refunded {gateway_refunded}, the ledger has no refund."),
    ),
    _C.LEDGER_REFUND_ONLY: (
        Sentence(
            "The ledger has refunds of {ledger_refund}; {refund_seen}.",
            lambda facts: facts.refund_hidden,
        ),
        Sentence(
            "The ledger has refunds of {ledger_refund}, {refund_seen}: as far as it tells, the "
            "shopper was not paid."
        ),
    ),
    _C.LEDGER_AMOUNT_MISMATCH: (
        Sentence(
            "{Ledger_has}, {gateway_says}; our refund of {refund_confirmed} was confirmed.",
            _refunded_by_reply,
        ),
        Sentence(
            "{Ledger_has}, {gateway_says}; our capture of {capture_confirmed} was confirmed.",
            _captured_less,
        ),
        _BOTH,
    ),
    _C.FX_DIFFERENCE: (
        Sentence(
            "Booked in another currency: by the rate of that day {exchange_gap} too much "
            "is booked.",
            lambda facts: facts.exchange_gap > 0,
        ),
        Sentence(
            "Booked in another currency: by the rate of that day {exchange_gap} too little "
            "is booked."
        ),
    ),
    _C.MISSING_IN_LEDGER: (
        Sentence("Gateway captured {gateway_captured}, the ledger has no capture of it."),
    ),
    _C.LEDGER_ONLY: (
        Sentence("{Ledger_has}; {gateway_says}.", lambda facts: bool(facts.paid_under)),
        Sentence("{Ledger_has}; neither orders nor gateway know it."),
    ),
    _C.PAYOUT_NOT_BOOKED: (Sentence("{Paid_out}, the ledger has no payout of it."),),
    _C.PAYOUT_AMOUNT_MISMATCH: (Sentence("{Paid_out}, {payout_booked}."),),
    _C.LEDGER_PAYOUT_ONLY: (Sentence("{Payout_booked}; nobody else tells of it."),),
    _C.SETTLEMENT_MISSING: (
        Sentence("Gateway captured {gateway_captured}; no settlement file has the capture."),
    ),
    _C.SETTLEMENT_AMOUNT_MISMATCH: (
        Sentence(
            "Gateway captured {gateway_captured} and refunded {gateway_refunds}, settled were "
            "{settled}."
        ),
    ),
    _C.FEE_VARIANCE: (
        Sentence("The fee is {fee_gap} higher than agreed.", _is_higher),
        Sentence("The fee is {fee_gap} lower than agreed."),
    ),
    _C.UNEXPECTED_RECEIPT: (
        Sentence("Settled were {settled} for a payment that took no money: {gateway_says}."),
    ),
}
