"""Findings beyond orders, gateway and ledger of a payment: its settlement, and payouts."""

from collections.abc import Iterator

from recon.matching.judging.finding import Finding, Leg
from recon.matching.judging.orders_leg import DEAD, SHOWN_MONEY
from recon.matching.judging.pattern import Pattern
from recon.matching.judging.state_table import Due
from recon.matching.sides.payouts import KnownPayout
from recon.model.words import BreakCode

_NO_MONEY = DEAD | {"none", "authorised"}


def settlement_findings(pattern: Pattern) -> Iterator[Finding]:
    """What was settled against what the gateway took."""
    if pattern.settled and pattern.gateway in _NO_MONEY:
        yield Finding(BreakCode.UNEXPECTED_RECEIPT, Leg.SETTLEMENT)
    elif pattern.gateway in SHOWN_MONEY and pattern.captured:
        if pattern.settled_capture:
            if pattern.settled_differs:
                yield Finding(BreakCode.SETTLEMENT_AMOUNT_MISMATCH, Leg.SETTLEMENT)
        elif pattern.settlement_owed:
            code, side = BreakCode.SETTLEMENT_MISSING, "settlement"
            yield Finding(code, Leg.SETTLEMENT, Due.SETTLEMENT, side)
    if pattern.fee_differs:
        yield Finding(BreakCode.FEE_VARIANCE, Leg.SETTLEMENT)


def payout_findings(pattern: Pattern) -> Iterator[Finding]:
    """A payout against its booking."""
    paid = KnownPayout(pattern.payout)
    if KnownPayout.DOUBTFUL in paid:
        yield Finding(BreakCode.PAYOUT_UNCONFIRMED, Leg.OURS)
    if KnownPayout.REJECTED in paid and KnownPayout.CONFIRMED not in paid:
        yield Finding(BreakCode.PAYOUT_FAILED, Leg.OURS)
    if not pattern.covered:
        return
    if KnownPayout.CONFIRMED in paid and KnownPayout.BOOKED not in paid:
        yield Finding(BreakCode.PAYOUT_NOT_BOOKED, Leg.LEDGER, Due.PAYOUT, "ledger")
    elif KnownPayout.CONFIRMED in paid and KnownPayout.DIFFERS in paid:
        yield Finding(BreakCode.PAYOUT_AMOUNT_MISMATCH, Leg.LEDGER)
    elif KnownPayout.BOOKED in paid and not paid & (KnownPayout.CONFIRMED | KnownPayout.DOUBTFUL):
        yield Finding(BreakCode.LEDGER_PAYOUT_ONLY, Leg.LEDGER, Due.BOOKED)
