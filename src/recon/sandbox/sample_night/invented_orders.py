"""Orders and ledger entries of which the gateway knows nothing."""

from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

from recon.model.words import BreakCode, EntryType, Flag, OrderStatus
from recon.sandbox.sample_night.expecting import breaks, effects_of, flagged, pending
from recon.sandbox.sample_night.plain_orders import BOOKING_TIME, CHECKOUT_TIME
from recon.sandbox.sample_night.records import LedgerLine, OrderLine, Story

FIRST_NUMBER = 9_000_001
"""Far above every order number of the population."""
AMOUNT_MIN = 1_000
AMOUNT_MAX = 30_000


def invented_stories(
    rng: Random, *, merchant_id: str, account_id: str, closes_at: datetime, times: int
) -> list[Story]:
    """One story of each kind, `times` over; kinds differ by age and by what is booked."""
    stories: list[Story] = []
    for number in range(times):
        for kind in (_never_arrived, _booked_only, _in_ledger_only, _just_placed, _unpaid, _stale):
            line = OrderLine(
                merchant_id=merchant_id,
                account_id=account_id,
                order_no=f"SO{FIRST_NUMBER + len(stories)}",
                currency=("EUR", "GBP", "USD")[number % 3],
                amount=rng.randint(AMOUNT_MIN, AMOUNT_MAX),
                status=OrderStatus.PAID,
                ordered_at=closes_at
                - timedelta(days=rng.randint(5, 9), minutes=rng.randint(1, 600)),
            )
            stories.append(kind(line, closes_at))
    return stories


def _never_arrived(line: OrderLine, _closes_at: datetime) -> Story:
    effects = effects_of(line, gateway=0, order=line.amount, ledger=0)
    why = "paid order that the gateway never saw"
    expected = breaks(line, why, code=BreakCode.MISSING_AT_GATEWAY, effects=effects)
    return Story((line,), (), expected)


def _booked_only(line: OrderLine, _closes_at: datetime) -> Story:
    effects = effects_of(line, gateway=0, order=line.amount, ledger=line.amount)
    why = "paid and booked order that the gateway never saw"
    expected = breaks(line, why, code=BreakCode.BOOKED_NOT_AT_GATEWAY, effects=effects)
    return Story((line,), (_capture_of(line),), expected)


def _in_ledger_only(line: OrderLine, _closes_at: datetime) -> Story:
    effects = effects_of(line, gateway=0, order=0, ledger=line.amount)
    expected = breaks(line, "booked only", code=BreakCode.LEDGER_ONLY, effects=effects)
    return Story((), (_capture_of(line),), expected)


def _just_placed(line: OrderLine, closes_at: datetime) -> Story:
    line = _moved(line, ordered_at=closes_at - timedelta(hours=4), status=OrderStatus.PAID)
    return Story((line,), (), pending(line, "placed four hours before the cut-off"))


def _unpaid(line: OrderLine, closes_at: datetime) -> Story:
    line = _moved(line, ordered_at=closes_at - timedelta(days=2), status=OrderStatus.PENDING)
    return Story((line,), (), pending(line, "not yet paid"))


def _stale(line: OrderLine, closes_at: datetime) -> Story:
    line = _moved(line, ordered_at=closes_at - timedelta(days=20), status=OrderStatus.PENDING)
    return Story((line,), (), flagged(line, "never paid", flag=Flag.NEVER_PAID))


def _moved(line: OrderLine, *, ordered_at: datetime, status: OrderStatus) -> OrderLine:
    return replace(line, ordered_at=ordered_at, status=status)


def _capture_of(line: OrderLine) -> LedgerLine:
    return LedgerLine(
        entry_id=f"LC-{line.order_no}",
        merchant_id=line.merchant_id,
        account_id=line.account_id,
        order_no=line.order_no,
        entry_type=EntryType.CAPTURE,
        currency=line.currency,
        amount=line.amount,
        booked_at=line.ordered_at + CHECKOUT_TIME + BOOKING_TIME,
    )
