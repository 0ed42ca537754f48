"""Subscriptions: what a card payment asks for, how they stand in the book, and how they end.

Each period is a contract that the clock charges at its end; the payment that made the subscription
is none. One that was ended (`cancelsubscription`) makes no new contract, but the one that is
already there is still charged at the end of its period.
"""

from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from recon.sandbox.book import Book, Effect, Payment, RowReply, columns_of, effect_of, ids_of
from recon.sandbox.call import (
    STATUS_DONE,
    STATUS_FAILED,
    Call,
    OperationReply,
    Sandbox,
    SandboxOperation,
    echoed_signature,
    wrong,
)
from recon.sandbox.options import DAY_SECONDS, MOVE_SECONDS_MAX
from recon.sandbox.payment import SUCCESS, Detail, detail_of, tell_payment
from recon.sandbox.population import paid_at_once
from recon.sandbox.wire import wire_minor_units

ACTIVE = "active"
INACTIVE = "Inactived"
NAME_LENGTH_MAX = 200
INTERVAL_COUNT_MAX = 365
CHARGES_MAX = 10_000
"""Of one subscription in its whole life."""

DIGITS_MAX = 9
FOREVER = 2**53
"""The end, in seconds, of a subscription that names none."""

_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "year": 12}
MONTHS_OF_A_YEAR = 12


@dataclass(frozen=True, slots=True)
class Subscription:
    """A recurring contract of a shopper."""

    recurring_id: str
    merchant_id: str
    account_id: str
    order_no: str
    """Of the payment that made it."""
    transaction_id: str
    contract_name: str
    currency: str
    amount: int
    interval: str
    interval_count: int
    charges_max: int
    """Contracts it may have in all."""
    starts_at: int
    ends_at: int
    """No contract is charged later."""
    state: str = ACTIVE

    def due_at(self, number: int) -> int:
        """When the contract of a number, counted from 1, ends; a day is never beyond its month."""
        count, interval = number * self.interval_count, self.interval
        if interval in _DAYS:
            return self.starts_at + count * _DAYS[interval] * DAY_SECONDS
        first = datetime.fromtimestamp(self.starts_at, UTC)
        years, month = divmod(first.month - 1 + count * _MONTHS[interval], MONTHS_OF_A_YEAR)
        year = first.year + years
        day = min(first.day, monthrange(year, month + 1)[1])
        return int(first.replace(year=year, month=month + 1, day=day).timestamp())


COLUMNS = columns_of(Subscription)


def asked_for(given: Mapping[str, Any], *, payment: Payment, now: int) -> Subscription | None:
    """The subscription that a payment asks for, not yet named; None when it is malformed.

    Amounts that are not given are the payment's, an interval that is not given is a month.
    """
    text = {name: str(value).strip() for name, value in given.items() if value is not None}
    amount = payment.authorised
    if text.get("contract_amount"):
        amount = wire_minor_units(given["contract_amount"], currency=payment.currency) or 0
    interval = text.get("interval", "").lower() or "month"
    count = _count(text.get("interval_count", "") or "1", most=INTERVAL_COUNT_MAX)
    cycles = _count(text.get("billing_cycle", "") or str(CHARGES_MAX), most=CHARGES_MAX)
    starts_at = _instant(text.get("contract_start", ""), otherwise=now)
    ends_at = _instant(text.get("contract_end", ""), otherwise=FOREVER)
    name = text.get("contract_name", "")
    known = interval in _DAYS or interval in _MONTHS
    if not (name and known and amount and count and cycles and starts_at and ends_at):
        return None
    if len(name) > NAME_LENGTH_MAX or starts_at > now + MOVE_SECONDS_MAX:
        return None
    return Subscription(
        **ids_of(payment),
        recurring_id="",
        contract_name=name,
        amount=amount,
        interval=interval,
        interval_count=count,
        charges_max=cycles,
        starts_at=max(starts_at, now),
        ends_at=ends_at,
    )


def _count(text: str, *, most: int) -> int:
    """A whole number from 1, 0 when it is none or too large."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX else 0
    return number if number <= most else 0


def _instant(text: str, *, otherwise: int) -> int:
    """A date or an instant in ISO 8601, UTC where it says nothing; 0 when it is neither."""
    if not text:
        return otherwise
    try:
        read = datetime.fromisoformat(text)
        return max(0, int((read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()))
    except (ValueError, OverflowError):
        return 0


def begin(book: Book, subscription: Subscription) -> Subscription:
    """Write a subscription with its first contract; the payment that made it is no contract."""
    number = book.next_number("subscriptions")
    begun = replace(subscription, recurring_id=f"RC{number:09d}")
    book.write("subscription", [begun], kind=Subscription)
    _next_contract(book, begun, number=1)
    return begun


def _next_contract(book: Book, subscription: Subscription, *, number: int) -> None:
    """Write the contract of a number, unless the subscription is over before its end."""
    due_at = subscription.due_at(number)
    if number <= subscription.charges_max and due_at <= subscription.ends_at:
        values = (subscription.recurring_id, number, due_at)
        book.execute("INSERT INTO contract VALUES (?, ?, ?, '')", values)


def _answer(sandbox: Sandbox, call: Call) -> OperationReply:
    """The subscription becomes Inactived; a second time, or under another name, is refused."""
    statement = f"SELECT {COLUMNS} FROM subscription WHERE recurring_id = ?"  # noqa: S608
    rows = sandbox.book.select(statement, (call.text("recurring_id"),))
    found = Subscription(*rows[0]) if rows else None
    reason = wrong(call.missing(("recurring_id", "contract_name")))
    if not reason and (
        found is None
        or found.account_id != call.text("account_id")
        or found.contract_name != call.text("contract_name").strip()
    ):
        reason = "unknown"
    elif not reason and found and found.state != ACTIVE:
        reason = "inactive"
    if found and not reason:
        sandbox.book.execute(
            "UPDATE subscription SET state = ? WHERE recurring_id = ?",
            (INACTIVE, found.recurring_id),
        )
        effect = Effect(
            operation="cancelsubscription",
            origin="api",
            **ids_of(found),
            amount=None,
            committed_at=call.now,
            request_log_id=call.request_log_id,
        )
        sandbox.book.append_effects([effect])
    message = sandbox.terms.refusal(reason, "subscription") if reason else ""
    return _reply(call, message=message, subscription=found)


def _reply(
    call: Call, *, message: str, reason: str = "", subscription: Subscription | None = None
) -> OperationReply:
    status = STATUS_FAILED if message else STATUS_DONE
    content = {
        **call.texts("merchant_id", "account_id", "recurring_id", "contract_name"),
        "cancel_status": status,
        "error_message": message,
        "encryption_data": echoed_signature(call, reason=reason),
    }
    ids = (subscription.transaction_id, subscription.order_no) if subscription else ("", "")
    row_reply = RowReply(*ids, status, message)
    return OperationReply(content, row_replies=(row_reply,), outcome=status)


CANCEL_SUBSCRIPTION = SandboxOperation(
    _answer,
    refuse=lambda sandbox, call, reason: _reply(
        call, message=sandbox.terms.refusal(reason), reason=reason
    ),
)

_FIRST_DUE = f"""
SELECT number, due_at, {COLUMNS} FROM contract JOIN subscription USING (recurring_id)
WHERE charged_as = '' AND due_at <= ? ORDER BY due_at, recurring_id LIMIT 1
"""  # noqa: S608 - our own names


def charge_what_is_due(sandbox: Sandbox) -> None:
    """Charge every contract whose end has come, in the order of time."""
    now = sandbox.clock.now()
    while due := sandbox.book.select(_FIRST_DUE, (now,)):
        number, due_at, *values = due[0]
        with sandbox.book.transaction():
            _charge(sandbox, Subscription(*values), number=number, due_at=due_at)


def _charge(sandbox: Sandbox, subscription: Subscription, *, number: int, due_at: int) -> None:
    """One payment, authorised and captured by the gateway itself; the next contract follows."""
    book, amount = sandbox.book, subscription.amount
    payment = paid_at_once(
        book.next_number("payments"),
        order_no=f"{subscription.recurring_id}-{number:05d}",
        merchant_id=subscription.merchant_id,
        account_id=subscription.account_id,
        currency=subscription.currency,
        amount=amount,
        at=due_at,
    )
    book.write_payments([payment])
    book.append_effects(
        effect_of(payment, operation, origin="gateway", amount=amount, at=due_at)
        for operation in ("authorise", "capture")
    )
    # Told where its first payment told of itself.
    first = detail_of(book, subscription.transaction_id)
    detail = Detail(
        payment.transaction_id,
        "card",
        info=SUCCESS,
        notify_url=first.notify_url if first else "",
        contract_name=subscription.contract_name,
        recurring_id=subscription.recurring_id,
    )
    tell_payment(sandbox, payment, detail=detail, at=due_at)
    book.execute(
        "UPDATE contract SET charged_as = ? WHERE recurring_id = ? AND number = ?",
        (payment.transaction_id, subscription.recurring_id, number),
    )
    if subscription.state == ACTIVE:
        _next_contract(book, subscription, number=number + 1)
