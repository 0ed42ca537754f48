"""Leg B: what the gateway says against what is booked."""

from collections.abc import Iterator

from recon.matching.judging.finding import Finding, Leg
from recon.matching.judging.orders_leg import DEAD, MONEY
from recon.matching.judging.pattern import Pattern
from recon.matching.judging.state_table import Due
from recon.matching.sets.residuals import BOOKED_EXACTLY
from recon.model.words import BreakCode


def ledger_findings(pattern: Pattern) -> Iterator[Finding]:
    """Findings of the gateway against the ledger."""
    state = pattern.gateway
    if state == "none":
        yield from _booked_without_payment(pattern)
    elif state == "chargeback":
        yield from _chargeback(pattern)
    elif state in MONEY:
        yield from _money(pattern)
    elif state in DEAD or state == "authorised":
        yield from _mismatch(bool(pattern.ledger_net), pattern=pattern)
    elif state in {"pending", "in_review"} and pattern.ledger_net:
        yield Finding(BreakCode.LEDGER_AMOUNT_MISMATCH, Leg.LEDGER, Due.HARD)
    if pattern.exchange_differs:
        yield Finding(BreakCode.FX_DIFFERENCE, Leg.LEDGER)
    if state not in {"none", "chargeback", "unmapped"}:
        yield from _booked_chargeback(pattern)


def _booked_without_payment(pattern: Pattern) -> Iterator[Finding]:
    alone = pattern.order == "none"
    due = Due.BOOKED if alone else Due.ORDER
    if pattern.ledger_chargeback > 0:
        yield Finding(BreakCode.CHARGEBACK_UNPROVEN, Leg.LEDGER, due)
    if pattern.ledger_net:
        code = BreakCode.LEDGER_ONLY if alone else BreakCode.BOOKED_NOT_AT_GATEWAY
        yield Finding(code, Leg.LEDGER, due)


def _chargeback(pattern: Pattern) -> Iterator[Finding]:
    if pattern.refund_evidence:
        yield Finding(BreakCode.CHARGEBACK_AFTER_REFUND, Leg.LEDGER)
    if pattern.ledger_chargeback <= 0:
        yield Finding(BreakCode.CHARGEBACK_NOT_BOOKED, Leg.LEDGER, Due.LEDGER, "ledger")
    else:
        # Another payment of the set may have money left, which the books have as well.
        yield from _mismatch(bool(pattern.residual_ledger), pattern=pattern)


def _booked_chargeback(pattern: Pattern) -> Iterator[Finding]:
    """The gateway shows the payment otherwise; below 0 a reversal has no chargeback.

    A line of the settlement is evidence: the query of some gateways shows no chargeback at all.
    """
    if pattern.charged_by_lines and not pattern.ledger_chargeback:
        yield Finding(BreakCode.CHARGEBACK_NOT_BOOKED, Leg.LEDGER, Due.LEDGER, "ledger")
    elif pattern.charged_by_lines and pattern.ledger_chargeback > 0:
        yield from _mismatch(pattern.charged_by_lines != BOOKED_EXACTLY, pattern=pattern)
    elif pattern.ledger_chargeback > 0:
        yield Finding(_unproven(pattern), Leg.LEDGER)
    elif pattern.ledger_chargeback < 0 and pattern.gateway in MONEY:
        yield Finding(BreakCode.LEDGER_AMOUNT_MISMATCH, Leg.LEDGER)


def _unproven(pattern: Pattern) -> BreakCode:
    if pattern.chargeback_before:
        return BreakCode.CHARGEBACK_REVERSED_NOT_BOOKED
    return BreakCode.CHARGEBACK_UNPROVEN


def _money(pattern: Pattern) -> Iterator[Finding]:
    """Captures and refunds gross, each; a currency finding says it all for this leg."""
    if pattern.currency_mismatch:
        return
    if pattern.captured and not pattern.ledger_captured:
        yield Finding(BreakCode.MISSING_IN_LEDGER, Leg.LEDGER, Due.LEDGER, "ledger")
    else:
        yield from _mismatch(bool(pattern.ledger_capture_differs), pattern=pattern)
    if pattern.refund_unknown and not pattern.reply_only:
        return
    if pattern.refunded and not pattern.ledger_refunded:
        yield Finding(BreakCode.REFUND_NOT_BOOKED, Leg.LEDGER, Due.LEDGER_REFUND, "ledger")
    elif pattern.refunded or pattern.ledger_refunded < 0:
        yield from _mismatch(bool(pattern.ledger_refund_differs), pattern=pattern)
    elif pattern.ledger_refunded:
        yield Finding(BreakCode.LEDGER_REFUND_ONLY, Leg.LEDGER)


def _mismatch(differs: bool, *, pattern: Pattern) -> Iterator[Finding]:  # noqa: FBT001 - a guard
    if differs and not pattern.booked_twice:
        yield Finding(BreakCode.LEDGER_AMOUNT_MISMATCH, Leg.LEDGER)
