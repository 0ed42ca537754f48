"""Discrepancies between gateway and ledger, planted into the merchant's ledger."""

from dataclasses import replace
from random import Random

from recon.model.words import BreakCode, EntryType
from recon.sandbox.sample_night.expecting import breaks, effects_of
from recon.sandbox.sample_night.order_breaks import order_net, step
from recon.sandbox.sample_night.plain_orders import capture_entry, entry_of, order_of
from recon.sandbox.sample_night.records import LedgerLine, Story
from recon.sandbox.sample_night.true_payments import TruePayment


def missing_in_ledger(payment: TruePayment, _rng: Random) -> Story:
    """The capture was never booked."""
    return _booked_as(payment, (), code=BreakCode.MISSING_IN_LEDGER, why="capture not booked")


def ledger_amount_mismatch(payment: TruePayment, rng: Random) -> Story:
    """The capture was booked with another amount."""
    entry = capture_entry(payment)
    entry = replace(entry, amount=entry.amount + step(rng))
    code = BreakCode.LEDGER_AMOUNT_MISMATCH
    return _booked_as(payment, (entry,), code=code, why="capture booked with another amount")


def duplicate_posting(payment: TruePayment, _rng: Random) -> Story:
    """The capture was booked twice."""
    entry = capture_entry(payment)
    second = replace(entry, entry_id=f"{entry.entry_id}-2")
    code = BreakCode.DUPLICATE_LEDGER_POSTING
    return _booked_as(payment, (entry, second), code=code, why="capture booked twice")


def refund_not_booked(payment: TruePayment, _rng: Random) -> Story:
    """The order and the gateway are refunded, the ledger knows only the capture."""
    code = BreakCode.REFUND_NOT_BOOKED
    return _booked_as(payment, (capture_entry(payment),), code=code, why="refund not booked")


def refund_booked_only(payment: TruePayment, rng: Random) -> Story:
    """The ledger books a refund that the gateway never made."""
    refund = entry_of(
        payment, entry_type=EntryType.REFUND, amount=step(rng), moved_at=payment.last_at
    )
    entries = (capture_entry(payment), refund)
    code = BreakCode.LEDGER_REFUND_ONLY
    return _booked_as(payment, entries, code=code, why="refund booked that never happened")


def chargeback_not_booked(payment: TruePayment, _rng: Random) -> Story:
    """The gateway charged the payment back, the ledger knows only the capture."""
    code = BreakCode.CHARGEBACK_NOT_BOOKED
    return _booked_as(payment, (capture_entry(payment),), code=code, why="chargeback not booked")


def chargeback_unproven(payment: TruePayment, _rng: Random) -> Story:
    """The ledger books a chargeback of which the gateway shows nothing."""
    chargeback = entry_of(
        payment,
        entry_type=EntryType.CHARGEBACK,
        amount=payment.captured,
        moved_at=payment.last_at,
    )
    entries = (capture_entry(payment), chargeback)
    code = BreakCode.CHARGEBACK_UNPROVEN
    return _booked_as(payment, entries, code=code, why="chargeback booked without evidence")


def ledger_net(entries: tuple[LedgerLine, ...]) -> int:
    """What ledger entries come to: captures less refunds and chargebacks; minor units."""
    signs = {EntryType.CAPTURE: 1, EntryType.REFUND: -1, EntryType.CHARGEBACK: -1}
    return sum(signs.get(EntryType(entry.entry_type), 0) * entry.amount for entry in entries)


def _booked_as(
    payment: TruePayment, entries: tuple[LedgerLine, ...], *, code: BreakCode, why: str
) -> Story:
    """The order agrees with the gateway (but knows of no chargeback), the ledger does not."""
    line = order_of(payment)
    effects = effects_of(
        payment, gateway=payment.net, order=order_net(line), ledger=ledger_net(entries)
    )
    return Story((line,), entries, breaks(payment, why, code=code, effects=effects))
