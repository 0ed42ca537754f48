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

from recon.model.words import GatewayState
from recon.sandbox.ground.book import Book, Effect, Payment, RowReply, columns_of, effect_of
from recon.sandbox.ground.clock import DAY_SECONDS, MOVE_SECONDS_MAX
from recon.sandbox.ground.operation_call import (
    Call,
    OperationReply,
    Sandbox,
    amount_of,
    echoed_signature,
    merchant_refusal,
    signature_refusal,
    wrong,
)
from recon.sandbox.ground.payment_result import SUCCESS, Detail, details_of
from recon.sandbox.ground.population import transaction_id_of
from recon.sandbox.notify.notify_events import tell_payment

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
        """When the contract of a number ends, counted from 1."""
        return after(self.starts_at, interval=self.interval, count=number * self.interval_count)


COLUMNS = columns_of(Subscription)


def after(start: int, *, interval: str, count: int) -> int:
    """The instant so many intervals later; a month's day is never beyond its end."""
    if interval in _DAYS:
        return start + count * _DAYS[interval] * DAY_SECONDS
    first = datetime.fromtimestamp(start, UTC)
    years, month = divmod(first.month - 1 + count * _MONTHS[interval], MONTHS_OF_A_YEAR)
    year = first.year + years
    day = min(first.day, monthrange(year, month + 1)[1])
    return int(first.replace(year=year, month=month + 1, day=day).timestamp())


def asked_for(given: Mapping[str, Any], *, payment: Payment, now: int) -> Subscription | None:
    """The subscription that a payment asks for, not yet named; None when it is malformed.

    Amounts that are not given are the payment's, an interval that is not given is a month.
    """
    text = {name: str(value).strip() for name, value in given.items() if value is not None}
    amount = payment.authorised
    if text.get("contract_amount"):
        amount = amount_of(given["contract_amount"], currency=payment.currency)
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
        recurring_id="",
        merchant_id=payment.merchant_id,
        account_id=payment.account_id,
        order_no=payment.order_no,
        transaction_id=payment.transaction_id,
        contract_name=name,
        currency=payment.currency,
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
    next_contract(book, begun, number=1)
    return begun


def next_contract(book: Book, subscription: Subscription, *, number: int) -> None:
    """Write the contract of a number, unless the subscription is over before its end."""
    due_at = subscription.due_at(number)
    if number <= subscription.charges_max and due_at <= subscription.ends_at:
        values = (subscription.recurring_id, number, due_at)
        book.execute("INSERT INTO contract VALUES (?, ?, ?, '')", values)


def find(book: Book, recurring_id: str) -> Subscription | None:
    """A subscription by its own name."""
    statement = f"SELECT {COLUMNS} FROM subscription WHERE recurring_id = ?"  # noqa: S608
    rows = book.select(statement, (recurring_id,))
    return Subscription(*rows[0]) if rows else None


STATUS_DONE = "1"
STATUS_FAILED = "0"
NAMES = ("recurring_id", "contract_name")


def answer_cancel_subscription(sandbox: Sandbox, call: Call) -> OperationReply:
    """The subscription becomes Inactived; a second time, or under another name, is refused."""
    reason = merchant_refusal(sandbox, call) or signature_refusal(sandbox, call)
    if reason:
        return _reply(call, message=sandbox.terms.request_refusal(reason), reason=reason)
    missing = next((name for name in NAMES if not call.text(name)), "")
    subscription = find(sandbox.book, call.text("recurring_id"))
    refused = wrong(missing) or _refusal(call, subscription)
    message = sandbox.terms.subscription_refusal(refused) if refused else ""
    if subscription is not None and not refused:
        _end(sandbox.book, subscription, call=call)
    return _reply(call, message=message, subscription=subscription)


def _refusal(call: Call, subscription: Subscription | None) -> str:
    if subscription is None or subscription.account_id != call.text("account_id"):
        return "unknown"
    if subscription.contract_name != call.text("contract_name").strip():
        return "unknown"
    return "" if subscription.state == ACTIVE else "inactive"


def _end(book: Book, subscription: Subscription, *, call: Call) -> None:
    book.execute(
        "UPDATE subscription SET state = ? WHERE recurring_id = ?",
        (INACTIVE, subscription.recurring_id),
    )
    effect = Effect(
        operation="cancelsubscription",
        origin="api",
        merchant_id=subscription.merchant_id,
        account_id=subscription.account_id,
        order_no=subscription.order_no,
        transaction_id=subscription.transaction_id,
        currency=subscription.currency,
        amount=None,
        committed_at=call.now,
        request_log_id=call.request_log_id,
    )
    book.append_effects([effect])


def _reply(
    call: Call, *, message: str, reason: str = "", subscription: Subscription | None = None
) -> OperationReply:
    status = STATUS_FAILED if message else STATUS_DONE
    names = ("merchant_id", "account_id", "recurring_id", "contract_name")
    content = {name: call.text(name) for name in names}
    content |= {"cancel_status": status, "error_message": message}
    content["encryption_data"] = echoed_signature(call, reason=reason)
    row_reply = RowReply(
        subscription.transaction_id if subscription else "",
        subscription.order_no if subscription else "",
        status,
        message,
    )
    return OperationReply(content, row_replies=(row_reply,), outcome=status)


_FIRST_DUE = f"""
SELECT number, due_at, {COLUMNS} FROM contract JOIN subscription USING (recurring_id)
WHERE charged_as = '' AND due_at <= ? ORDER BY due_at, recurring_id LIMIT 1
"""  # noqa: S608 - our own names


def charge_what_is_due(sandbox: Sandbox) -> int:
    """Charge every contract whose end has come, in the order of time; returns how many."""
    now, charged = sandbox.clock.now(), 0
    while due := sandbox.book.select(_FIRST_DUE, (now,)):
        number, due_at, *values = due[0]
        with sandbox.book.transaction():
            _charge(sandbox, Subscription(*values), number=number, due_at=due_at)
        charged += 1
    return charged


def _charge(sandbox: Sandbox, subscription: Subscription, *, number: int, due_at: int) -> None:
    """One payment, authorised and captured by the gateway itself; the next contract follows."""
    book = sandbox.book
    count = book.next_number("payments")
    payment = Payment(
        transaction_id=transaction_id_of(due_at, number=count),
        order_no=f"{subscription.recurring_id}-{number:05d}",
        merchant_id=subscription.merchant_id,
        account_id=subscription.account_id,
        currency=subscription.currency,
        authorised=subscription.amount,
        state=GatewayState.PAID,
        created_at=due_at,
        captured=subscription.amount,
        captured_at=due_at,
        reference_no=f"R{count:09d}",
    )
    book.write_payments([payment])
    book.append_effects(
        effect_of(
            payment,
            operation=operation,
            origin="gateway",
            amount=payment.authorised,
            committed_at=due_at,
        )
        for operation in ("authorise", "capture")
    )
    _tell(sandbox, subscription, payment=payment)
    book.execute(
        "UPDATE contract SET charged_as = ? WHERE recurring_id = ? AND number = ?",
        (payment.transaction_id, subscription.recurring_id, number),
    )
    if subscription.state == ACTIVE:
        next_contract(book, subscription, number=number + 1)


def _tell(sandbox: Sandbox, subscription: Subscription, *, payment: Payment) -> None:
    """Tell of a charge where its first payment told of itself."""
    first = details_of(sandbox.book, [subscription.transaction_id])
    detail = first.get(subscription.transaction_id, Detail("", "card"))
    notified = Detail(
        payment.transaction_id,
        "card",
        info=SUCCESS,
        notify_url=detail.notify_url,
        contract_name=subscription.contract_name,
        recurring_id=subscription.recurring_id,
    )
    tell_payment(sandbox, payment, detail=notified, at=payment.created_at)
