"""Which payments fit which story."""

from collections.abc import Callable
from datetime import datetime

from recon.model.business_date import BusinessCalendar, Grace
from recon.model.words import GatewayState
from recon.sandbox.sample_night.true_payments import TruePayment

BOOKING_GRACE = Grace(2, "bd")
"""How long the ledger may be without a movement, as in the bundled rules."""

Wants = Callable[[TruePayment], bool]


def in_state(state: GatewayState) -> Wants:
    """Payments in one state."""
    return lambda payment: payment.state is state


def in_currency(*currencies: str) -> Wants:
    """Payments in one of these currencies."""
    return lambda payment: payment.currency in currencies


def all_of(*wanted: Wants) -> Wants:
    """Payments that every condition wants."""
    return lambda payment: all(wants(payment) for wants in wanted)


def of_account(account_id: str) -> Wants:
    """Payments of one account."""
    return lambda payment: payment.account_id == account_id


def past_grace(closes_at: datetime) -> Wants:
    """Every movement is so old that the ledger should have it."""
    calendar = BusinessCalendar.of()
    return lambda payment: calendar.due_at(payment.last_at, grace=BOOKING_GRACE) <= closes_at


def within_grace(closes_at: datetime) -> Wants:
    """Authorised so lately that the ledger may still be without the capture."""
    calendar = BusinessCalendar.of()
    return lambda payment: calendar.due_at(payment.authorised_at, grace=BOOKING_GRACE) > closes_at
