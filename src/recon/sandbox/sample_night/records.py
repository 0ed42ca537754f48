"""What a sample night is made of: order lines, ledger lines, and what is expected of them.

A `Story` is everything the merchant's files say of one order, with what a correct reconciliation
must find written down beside it: worked out from what each side holds, never by the engine.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from datetime import datetime

from recon.model.business_date import BusinessCalendar, Grace
from recon.model.money import format_minor_units
from recon.model.words import BreakCode, Flag, GatewayState, UnverifiedReason
from recon.sandbox.sample_night.true_payments import TruePayment


@dataclass(frozen=True, slots=True)
class OrderLine:
    """One row of an order file of the inbox; the field names are its columns, in order."""

    merchant_id: str
    account_id: str
    order_no: str
    currency: str
    amount: int
    status: str
    ordered_at: datetime
    transaction_id: str = ""
    expected_captured_amount: int | None = None
    refund_amount: int | None = None
    updated_at: datetime | None = None
    action: str = ""
    action_amount: int | None = None
    action_reason: str = ""
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One ledger entry; the field names are the columns, in order."""

    entry_id: str
    merchant_id: str
    account_id: str
    order_no: str
    entry_type: str
    currency: str
    amount: int
    booked_at: datetime
    transaction_id: str = ""
    reference_no: str = ""
    reverses_entry_id: str = ""


@dataclass(frozen=True, slots=True)
class BreakEffect:
    """What a break means in money, on one leg and in one currency; minor units."""

    leg: str
    """"orders": gateway minus order; "ledger": gateway minus ledger."""
    account_id: str
    currency: str
    amount: int


@dataclass(frozen=True, slots=True)
class Alone:
    """What a night of one account alone shows where it takes both accounts to see the truth."""

    account_id: str
    code: BreakCode
    effects: tuple[BreakEffect, ...]


@dataclass(frozen=True, slots=True)
class Expectation:
    """What must be found of one order; only one of the kinds of finding is given."""

    merchant_id: str
    account_id: str
    order_no: str
    transaction_id: str
    why: str
    """What was done to the files, in words."""
    code: BreakCode | None = None
    effects: tuple[BreakEffect, ...] = ()
    alone: tuple[Alone, ...] = ()
    unverified: UnverifiedReason | None = None
    flag: Flag | None = None
    """The order matches, with this flag."""
    pending: bool = False


@dataclass(frozen=True, slots=True)
class Story:
    """One order: its lines, in the order in which the files carry them, and the expectation."""

    orders: tuple[OrderLine, ...] = ()
    ledger: tuple[LedgerLine, ...] = ()
    expected: Expectation | None = None
    """None: it simply matches."""
    later: tuple[OrderLine, ...] = ()
    """Lines that another file brings: repeats, newer versions."""


ORDER_HEADER = tuple(field.name for field in fields(OrderLine))
LEDGER_HEADER = tuple(field.name for field in fields(LedgerLine))


def cells_of(line: OrderLine | LedgerLine) -> tuple[str, ...]:
    """A line as the texts of its columns."""
    values = (getattr(line, field.name) for field in fields(line))
    return tuple(_text(value, currency=line.currency) for value in values)


def _text(value: str | int | datetime | None, *, currency: str) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    if isinstance(value, int):
        return format_minor_units(value, currency=currency)
    return value


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


def _expect(record: TruePayment | OrderLine, why: str) -> Expectation:
    return Expectation(
        merchant_id=record.merchant_id,
        account_id=record.account_id,
        order_no=record.order_no,
        transaction_id=record.transaction_id,
        why=why,
    )


def unverified(
    record: TruePayment | OrderLine, why: str, *, reason: UnverifiedReason
) -> Expectation:
    """A set that cannot be judged."""
    return replace(_expect(record, why), unverified=reason)


def pending(record: TruePayment | OrderLine, why: str) -> Expectation:
    """One-sided, and still within its grace."""
    return replace(_expect(record, why), pending=True)
