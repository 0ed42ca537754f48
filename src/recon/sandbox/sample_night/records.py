"""What a sample night is made of: order lines, ledger lines, and what is expected of them.

A `Story` is everything the merchant's files say of one order, with what a correct reconciliation
must find, written down beside it.
"""

from dataclasses import dataclass, fields
from datetime import datetime

from recon.model.money import format_minor_units
from recon.model.words import BreakCode, Flag, UnverifiedReason


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
