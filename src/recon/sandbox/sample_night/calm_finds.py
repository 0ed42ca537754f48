"""What is no break: flags beside a match, bookings still to come, sets that cannot be judged."""

from dataclasses import replace
from datetime import timedelta
from random import Random

from recon.model.words import EntryType, Flag, OrderStatus, UnverifiedReason
from recon.sandbox.sample_night.expecting import flagged, pending, unverified
from recon.sandbox.sample_night.order_breaks import step
from recon.sandbox.sample_night.plain_orders import (
    capture_entry,
    entries_of,
    entry_of,
    order_of,
    plain_story,
)
from recon.sandbox.sample_night.records import Story
from recon.sandbox.sample_night.true_payments import TruePayment

ROUNDING_CURRENCY = "EUR"
"""The one currency for which the sample's rules have a tolerance."""


def rounding(payment: TruePayment, _rng: Random) -> Story:
    """One cent apart, inside the tolerance of the sample's rules."""
    line = replace(order_of(payment), amount=payment.captured - 1)
    expected = flagged(payment, "one cent apart", flag=Flag.ROUNDING)
    return Story((line,), entries_of(payment), expected)


def reference_conflict(payment: TruePayment, _rng: Random) -> Story:
    """The order carries another transaction than the gateway."""
    line = replace(order_of(payment), transaction_id=f"{payment.transaction_id}X")
    expected = flagged(payment, "order names another transaction", flag=Flag.REFERENCE_CONFLICT)
    return Story((line,), entries_of(payment), expected)


def refunded_by_void(payment: TruePayment, _rng: Random) -> Story:
    """The order is refunded; the gateway had only to cancel."""
    line = replace(order_of(payment), status=OrderStatus.REFUNDED)
    expected = flagged(payment, "refunded by a cancel", flag=Flag.REFUNDED_BY_VOID)
    return Story((line,), (), expected)


def written_off(payment: TruePayment, rng: Random) -> Story:
    """A small difference that finance has written off."""
    short = step(rng)
    line = replace(order_of(payment), amount=payment.captured - short)
    off = entry_of(payment, entry_type=EntryType.WRITE_OFF, amount=short, moved_at=payment.last_at)
    expected = flagged(payment, "difference written off", flag=Flag.WRITTEN_OFF)
    return Story((line,), (capture_entry(payment), off), expected)


def chargeback_booked(payment: TruePayment, _rng: Random) -> Story:
    """A chargeback that the ledger knows."""
    expected = flagged(payment, "chargeback booked", flag=Flag.CHARGEBACK_BOOKED)
    return replace(plain_story(payment), expected=expected)


def not_yet_booked(payment: TruePayment, _rng: Random) -> Story:
    """Captured yesterday or today; the ledger has two business days."""
    return Story((order_of(payment),), (), pending(payment, "capture not yet booked"))


def refunded_amount_unknown(payment: TruePayment, _rng: Random) -> Story:
    """Refunded in part elsewhere; the gateway's query does not show how much."""
    reason = UnverifiedReason.REFUND_AMOUNT_UNKNOWN
    expected = unverified(payment, "refund amount not shown by the query", reason=reason)
    return replace(plain_story(payment), expected=expected)


def entry_id_conflict(payment: TruePayment, rng: Random) -> Story:
    """Two ledger rows share an id and differ."""
    entry = capture_entry(payment)
    other = replace(entry, amount=entry.amount + step(rng))
    reason = UnverifiedReason.ENTRY_ID_CONFLICT
    expected = unverified(payment, "two unequal entries of one id", reason=reason)
    return Story((order_of(payment),), (entry, other), expected)


def newer_version(payment: TruePayment, _rng: Random) -> Story:
    """An earlier file said authorised, a later one says paid: the newer row counts."""
    line = order_of(payment)
    older = replace(line, status=OrderStatus.AUTHORISED, updated_at=payment.authorised_at)
    newer = replace(line, updated_at=payment.last_at + timedelta(seconds=1))
    return Story((older,), entries_of(payment), later=(newer,))


def repeated(payment: TruePayment, _rng: Random) -> Story:
    """The same row comes again in another file."""
    line = order_of(payment)
    return Story((line,), entries_of(payment), later=(line,))
