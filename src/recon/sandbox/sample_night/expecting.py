"""Expectations in short: effects worked out from what each side holds, never by the engine."""

from dataclasses import replace

from recon.model.words import BreakCode, Flag, UnverifiedReason
from recon.sandbox.sample_night.records import BreakEffect, Expectation, OrderLine
from recon.sandbox.sample_night.true_payments import TruePayment

LEG_ORDERS = "orders"
LEG_LEDGER = "ledger"


def effects_of(
    record: TruePayment | OrderLine, *, gateway: int, order: int, ledger: int
) -> tuple[BreakEffect, ...]:
    """Both effects of one currency from the net of the three sides; those of 0 left out."""
    legs = ((LEG_ORDERS, gateway - order), (LEG_LEDGER, gateway - ledger))
    return tuple(
        BreakEffect(leg, record.account_id, record.currency, amount)
        for leg, amount in legs
        if amount
    )


def breaks(
    record: TruePayment | OrderLine,
    why: str,
    *,
    code: BreakCode,
    effects: tuple[BreakEffect, ...] = (),
) -> Expectation:
    """One break with this primary code."""
    return replace(_expect(record, why), code=code, effects=effects)


def flagged(record: TruePayment | OrderLine, why: str, *, flag: Flag) -> Expectation:
    """A match that carries this flag."""
    return replace(_expect(record, why), flag=flag)


def unverified(
    record: TruePayment | OrderLine, why: str, *, reason: UnverifiedReason
) -> Expectation:
    """A set that cannot be judged."""
    return replace(_expect(record, why), unverified=reason)


def pending(record: TruePayment | OrderLine, why: str) -> Expectation:
    """One-sided, and still within its grace."""
    return replace(_expect(record, why), pending=True)


def _expect(record: TruePayment | OrderLine, why: str) -> Expectation:
    return Expectation(
        merchant_id=record.merchant_id,
        account_id=record.account_id,
        order_no=record.order_no,
        transaction_id=record.transaction_id,
        why=why,
    )
