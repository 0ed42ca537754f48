"""What a tidy merchant's files say of a payment: orders and ledger that agree with the gateway."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from recon.model.words import EntryType, GatewayState, OrderStatus
from recon.sandbox.sample_night.records import LedgerLine, OrderLine, Story
from recon.sandbox.sample_night.true_payments import TruePayment

CHECKOUT_TIME = timedelta(seconds=40)
"""From placing an order to its authorisation."""
BOOKING_TIME = timedelta(minutes=25)
"""From a movement to its ledger entry."""

STATUS_OF: Mapping[GatewayState, OrderStatus] = {
    GatewayState.AUTHORISED: OrderStatus.AUTHORISED,
    GatewayState.PAID: OrderStatus.PAID,
    GatewayState.PARTIALLY_REFUNDED: OrderStatus.PARTIALLY_REFUNDED,
    GatewayState.REFUNDED: OrderStatus.REFUNDED,
    GatewayState.CANCELLED: OrderStatus.CANCELLED,
    GatewayState.EXPIRED: OrderStatus.FAILED,
    GatewayState.CHARGEBACK: OrderStatus.PAID,
}
"""What the shop thinks of a payment in each state; it never hears of chargebacks."""

_PREFIX: Mapping[EntryType, str] = {
    EntryType.CAPTURE: "LC",
    EntryType.REFUND: "LR",
    EntryType.CHARGEBACK: "LB",
    EntryType.WRITE_OFF: "LW",
}


def order_of(payment: TruePayment) -> OrderLine:
    """The order line that agrees with the payment."""
    part = payment.state is GatewayState.PARTIALLY_REFUNDED
    return OrderLine(
        merchant_id=payment.merchant_id,
        account_id=payment.account_id,
        order_no=payment.order_no,
        currency=payment.currency,
        amount=payment.authorised,
        status=STATUS_OF[payment.state],
        ordered_at=payment.authorised_at - CHECKOUT_TIME,
        transaction_id=payment.transaction_id,
        refund_amount=payment.refunded if part else None,
    )


def entry_of(
    payment: TruePayment, *, entry_type: EntryType, amount: int, moved_at: datetime, number: int = 1
) -> LedgerLine:
    """The ledger entry of one movement of the payment; `number` tells equal ones apart."""
    suffix = "" if number == 1 else f"-{number}"
    return LedgerLine(
        entry_id=f"{_PREFIX[entry_type]}-{payment.order_no}{suffix}",
        merchant_id=payment.merchant_id,
        account_id=payment.account_id,
        order_no=payment.order_no,
        entry_type=entry_type,
        currency=payment.currency,
        amount=amount,
        booked_at=moved_at + BOOKING_TIME,
        transaction_id=payment.transaction_id,
        reference_no=payment.refund_reference_id if entry_type is EntryType.REFUND else "",
    )


def capture_entry(payment: TruePayment) -> LedgerLine:
    """The booking of the payment's capture."""
    return entry_of(
        payment,
        entry_type=EntryType.CAPTURE,
        amount=payment.captured,
        moved_at=payment.captured_at or payment.last_at,
    )


def entries_of(payment: TruePayment) -> tuple[LedgerLine, ...]:
    """Every movement of the payment, booked."""
    entries: list[LedgerLine] = []
    if payment.captured:
        entries.append(capture_entry(payment))
    if payment.refunded:
        entries.append(_booked(payment, EntryType.REFUND, amount=payment.refunded))
    if payment.state is GatewayState.CHARGEBACK:
        entries.append(_booked(payment, EntryType.CHARGEBACK, amount=payment.captured))
    return tuple(entries)


def plain_story(payment: TruePayment) -> Story:
    """Files that agree with the gateway."""
    return Story(orders=(order_of(payment),), ledger=entries_of(payment))


def _booked(payment: TruePayment, entry_type: EntryType, *, amount: int) -> LedgerLine:
    return entry_of(payment, entry_type=entry_type, amount=amount, moved_at=payment.last_at)
