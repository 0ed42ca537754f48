"""What the gateway tells by itself: of payments, reviews, refunds and payouts, signed as assumed.

The document names notify_url and not what is sent there; types and retries are those of public
documentation of the same interface, names and signature are assumption A-13. A notification is
planned inside the transaction of the effect it tells of, and the courier sends it after the commit:
to the notify_url of the request, else to that of the sandbox, and only to this machine.

Faults of notifications: lost, doubled, late, out of order, cut, forged, contradicted.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from recon.privacy.this_machine import is_loopback
from recon.sandbox.faults.fault_plan import draw
from recon.sandbox.faults.fault_rule import Fault
from recon.sandbox.ground.book import Effect, Payment, on_wire
from recon.sandbox.ground.clock import DAY_SECONDS, fourteen_digits
from recon.sandbox.ground.operation_call import Sandbox
from recon.sandbox.ground.payment_result import Detail, details_of, result_of
from recon.sandbox.ground.wire import sign
from recon.sandbox.notify.notify_rows import Notification, add, release_held, withdraw

PAYMENT = "PAYMENT"
REVIEW_RESULT = "REVIEW RESULT"
REFUND_RECEIVED = "REFUND RECIEVED"
"""Spelt as the gateway spells it."""
REFUND_ACCEPTED = "REFUND ACCEPTED"
REFUND_RESULT = "REFUND RESULT"
NO_TYPE = ""
"""A payout's message: no document names a type for it."""

STATUS_DONE, STATUS_FAILED = "1", "0"
_OF_PAYMENT = (
    *("merchant_id", "account_id", "transaction_id", "order_no", "currency", "amount"),
    *("order_status", "result_info", "note", "card", "threeds_result", "risk_action"),
    *("contract_name", "recurring_id"),
)
_OPERATIONS = {"hosted": "checkout"}
"""Of a payment by its method; every other one is `authorise`."""
URL_LENGTH_MAX = 2_000


def tell_payment(
    sandbox: Sandbox, payment: Payment, *, detail: Detail, at: int, reviewed: bool = False
) -> None:
    """Tell what a payment has come to; `reviewed` tells of the review that decided it."""
    result = result_of(sandbox, payment, detail)
    fields = {name: str(result[name]) for name in _OF_PAYMENT}
    operation = _OPERATIONS.get(detail.method, "authorise")
    if reviewed:
        operation = "review"
        fields |= {"review_flag": payment.review_flag, "review_status": STATUS_DONE}
    type_ = REVIEW_RESULT if reviewed else PAYMENT
    url = detail.notify_url
    _tell(sandbox, fields, operation=operation, type_=type_, notify_url=url, at=at)


def tell_refund(sandbox: Sandbox, effect: Effect) -> None:
    """Tell that a refund was received and accepted, and, when its time has come, processed."""
    for type_ in (REFUND_RECEIVED, REFUND_ACCEPTED):
        _tell_of_refund(sandbox, effect, type_=type_, at=effect.committed_at)
    processed = effect.committed_at + sandbox.terms.windows.refund_processing_days * DAY_SECONDS
    _tell_of_refund(sandbox, effect, type_=REFUND_RESULT, at=processed)


def tell_refund_failed(sandbox: Sandbox, effect: Effect, *, at: int) -> None:
    """Tell that an accepted refund was taken back, in place of what was still to be told of it."""
    withdraw(sandbox.book, type_=REFUND_RESULT, about=effect.refund_reference_id)
    _tell_of_refund(sandbox, effect, type_=REFUND_RESULT, at=at, status=STATUS_FAILED)


def tell_payout(sandbox: Sandbox, record: Mapping[str, Any], *, notify_url: str, at: int) -> None:
    """Tell what a payout has come to."""
    names = (
        *("merchant_id", "account_id", "request_id", "transaction_id", "short_reference_id"),
        *("payment_currency", "payment_amount", "status", "failure_type", "failure_reason"),
    )
    fields = {name: str(record[name]) for name in names}
    about = fields["request_id"]
    _tell(
        sandbox,
        fields,
        operation="payout",
        type_=NO_TYPE,
        notify_url=notify_url,
        at=at,
        about=about,
    )


def _tell_of_refund(
    sandbox: Sandbox, effect: Effect, *, type_: str, at: int, status: str = STATUS_DONE
) -> None:
    payment = sandbox.book.payment(effect.transaction_id)
    if payment is None:
        return
    detail = details_of(sandbox.book, [effect.transaction_id]).get(effect.transaction_id)
    fields = {
        "merchant_id": payment.merchant_id,
        "account_id": payment.account_id,
        "transaction_id": payment.transaction_id,
        "order_no": payment.order_no,
        "currency": payment.currency,
        "amount": payment.amount,
        "payment_status": sandbox.terms.code_of[payment.state],
        "refund_amount": on_wire(effect.amount or 0, currency=payment.currency),
        "refund_status": status,
        "refund_reason": effect.refund_reason,
        "refund_reference": effect.refund_reference,
        "refund_reference_id": effect.refund_reference_id,
        "refund_date": fourteen_digits(effect.committed_at),
        "refund_processing_date": fourteen_digits(at) if type_ == REFUND_RESULT else "",
    }
    url, about = detail.notify_url if detail else "", effect.refund_reference_id
    _tell(sandbox, fields, operation="refund", type_=type_, notify_url=url, at=at, about=about)


def _tell(
    sandbox: Sandbox,
    fields: dict[str, str],
    *,
    operation: str,
    type_: str,
    notify_url: str,
    at: int,
    about: str = "",
) -> None:
    """Plan one message, with the faults of the plan; nothing where there is no address."""
    merchant_id, account_id = fields["merchant_id"], fields["account_id"]
    url = address_for(sandbox, notify_url, merchant_id=merchant_id, account_id=account_id)
    if not url or (type_ and type_ not in sandbox.terms.notifications.types):
        return
    typed = ({"webhooks_type": type_} if type_ else {}) | fields
    sign_key = sandbox.options.sign_key
    signed = typed | {"encryption_data": sign(TEMPLATE, typed, sign_key=sign_key)}
    notification = Notification(
        type=type_,
        operation=operation,
        merchant_id=merchant_id,
        account_id=account_id,
        transaction_id=fields["transaction_id"],
        order_no=fields.get("order_no", ""),
        about=about,
        url=url,
        body=urlencode(signed),
        fault="",
        created_at=sandbox.clock.now(),
        first_at=at,
        due_at=at,
        state="waiting" if is_own_address(url) else "not sent",
    )
    _plan(sandbox, notification)


def _plan(sandbox: Sandbox, notification: Notification) -> None:
    row = (notification.transaction_id, notification.order_no or notification.about)
    seed, book = sandbox.options.seed, sandbox.book
    faults = draw(book, operation=notification.operation, rows=[row], seed=seed, notifications=True)
    sent = played(notification, faults=faults, sign_key=sandbox.options.sign_key)
    for earlier in sent:
        add(book, earlier)
    if (
        notification.state == "waiting"
        and notification.due_at <= sandbox.clock.now()
        and not _held(sent)
    ):
        release_held(book, account_id=notification.account_id, at=notification.due_at)


def _held(sent: list[Notification]) -> bool:
    return any(earlier.rank == HELD_RANK for earlier in sent)


def address_for(sandbox: Sandbox, given: str, *, merchant_id: str, account_id: str) -> str:
    """The address to tell, "" when there is none; `{merchant_id}` and `{account_id}` are filled."""
    default = sandbox.options.notify_url or sandbox.terms.notifications.url
    filled = default.replace("{merchant_id}", merchant_id).replace("{account_id}", account_id)
    return (given or filled)[:URL_LENGTH_MAX]


def is_own_address(url: str) -> bool:
    """Whether an address is plain HTTP on this machine; a sandbox talks to nobody else."""
    try:
        parts = urlsplit(url)
        known = parts.scheme == "http" and bool(parts.hostname) and parts.username is None
        host, _ = parts.hostname or "", parts.port
        return known and (host == "localhost" or is_loopback(host))
    except ValueError:
        return False


TEMPLATE = "payment_reply"
FORGED_SIGNATURE = "0" * 64
MORE_DIGITS = ("refund_amount", "payment_amount", "amount")
"""The amount of a message, the one it is about first."""

HELD_RANK = -1
"""Of a message that waits for the next one."""


def played(notification: Notification, *, faults: list[Fault], sign_key: str) -> list[Notification]:
    """What is sent instead of one message."""
    notification = replace(notification, fault=" ".join(fault.rule.kind for fault in faults))
    copies: list[Notification] = []
    for fault in faults:
        notification, added = _one(notification, fault=fault, sign_key=sign_key)
        copies += added
    return [notification, *copies]


def _one(
    notification: Notification, *, fault: Fault, sign_key: str
) -> tuple[Notification, list[Notification]]:
    kind = fault.rule.kind
    later = notification.due_at + round(fault.rule.lasting)
    if kind == "notify_dropped":
        return replace(notification, state="dropped"), []
    if kind in {"notify_late", "notify_reordered"}:
        rank = HELD_RANK if kind == "notify_reordered" else notification.rank
        return replace(notification, due_at=later, first_at=later, rank=rank), []
    copy = replace(notification, fault=kind)
    if kind == "notify_twice":
        return notification, [copy]
    if kind == "notify_forged":
        forged = _changed(notification.body) | {"encryption_data": FORGED_SIGNATURE}
        return notification, [replace(copy, body=urlencode(forged), retried=0)]
    if kind == "notify_contradicting":
        changed = _changed(notification.body)
        changed["encryption_data"] = sign(TEMPLATE, changed, sign_key=sign_key)
        return notification, [replace(copy, body=urlencode(changed), retried=0)]
    return notification, []


def sent_body(notification: Notification) -> str:
    """The bytes of the next attempt; one that is cut arrives whole when it is repeated."""
    cut = "notify_truncated" in notification.fault.split() and not notification.attempts
    return notification.body[: len(notification.body) // 2] if cut else notification.body


def _changed(body: str) -> dict[str, str]:
    """The message with one digit more in the amount that it is about."""
    pairs = dict(parse_qsl(body, keep_blank_values=True))
    name = next((name for name in MORE_DIGITS if name in pairs), "amount")
    return pairs | {name: f"1{pairs.get(name, '')}"}
