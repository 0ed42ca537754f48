"""Card payments: an order becomes an authorised payment, or a declined attempt.

A card number lives in memory while its request is answered: the book keeps nothing of it.
"""

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from recon.model import GatewayState
from recon.sandbox.population import transaction_id_of
from recon.sandbox.records import Payment, Told, effect_of
from recon.sandbox.request import (
    HTTP_BAD_REQUEST,
    Call,
    Reply,
    Sandbox,
    amount_of,
    merchant_refusal,
    signature_refusal,
)
from recon.sandbox.signing import sign, signed_fields

TEMPLATE = "authorise_card"
SUCCESS = "0000:Success"
STATUS_SUCCESS = "1"
STATUS_FAILED = "0"
CARD_NUMBER = re.compile(r"[0-9]{12,19}", re.ASCII)
HTTP_NOT_FOUND = 404
CENTURY = 2000
TEN = 10
_ORDER_NO = re.compile(r"[A-Za-z0-9#][A-Za-z0-9._#/:-]{0,49}", re.ASCII)
_ELEMENTS = (
    "merchant_id",
    "account_id",
    "order_no",
    "amount",
    "currency",
    "transaction_id",
    "card",
    "order_status",
    "result_info",
    "contract_name",
    "recurring_id",
    "recurring_deduction_period",
    "recurring_deduction_time",
    "note",
    "token_id",
    "connector",
    "threeds_result",
    "risk_action",
    "risk_score",
)


def answer_authorise(sandbox: Sandbox, call: Call) -> Reply:
    """The XML result of a card payment; a payment without a card is not offered and refused."""
    if not call.text("card") and not call.text("token_id"):
        return _no_card(sandbox, call)
    reason = merchant_refusal(sandbox, call) or signature_refusal(sandbox, call, template=TEMPLATE)
    reason = reason or _field_refusal(call) or _reuse_refusal(sandbox, call)
    if reason:
        return _reply(sandbox, call, info=sandbox.terms.request_refusal(reason), reason=reason)
    payment = _attempt(sandbox, call)
    declined = _decline(sandbox, call)
    if declined:
        sandbox.book.write_payments([replace(payment, state=GatewayState.FAILED)])
        return _reply(sandbox, call, info=declined, payment=payment)
    _authorise(sandbox, call, payment)
    return _reply(sandbox, call, info=SUCCESS, payment=payment)


def _no_card(sandbox: Sandbox, call: Call) -> Reply:
    """The refusal of a payment by another method: JSON, 404 for a merchant that is not known."""
    reason = merchant_refusal(sandbox, call)
    status = HTTP_NOT_FOUND if reason else HTTP_BAD_REQUEST
    code, text = sandbox.terms.request_refusal(reason or "parameters").split(":", 1)
    content = {"code": code, "source": "authorise", "message": text}
    return Reply(content, http_status=status, outcome=str(status))


def _field_refusal(call: Call) -> str:
    if not all(call.text(name) for name in signed_fields(TEMPLATE)):
        return "parameters"
    if _ORDER_NO.fullmatch(call.text("order_no")) is None or not _amount(call):
        return "parameters"
    return ""


def _amount(call: Call) -> int:
    return amount_of(call.fields.get("amount"), currency=call.text("currency"))


def _reuse_refusal(sandbox: Sandbox, call: Call) -> str:
    """An order may be tried again only while every attempt was declined."""
    earlier = [
        payment
        for payment in sandbox.book.payments("order_no", keys=(call.text("order_no"),))
        if payment.account_id == call.text("account_id")
    ]
    declined = all(payment.state is GatewayState.FAILED for payment in earlier)
    return "" if declined else "duplicate_order"


def _attempt(sandbox: Sandbox, call: Call) -> Payment:
    number = sandbox.book.next_number("payments")
    return Payment(
        transaction_id=transaction_id_of(call.now, number=number),
        order_no=call.text("order_no"),
        merchant_id=call.text("merchant_id"),
        account_id=call.text("account_id"),
        currency=call.text("currency"),
        authorised=_amount(call),
        state=GatewayState.AUTHORISED,
        created_at=call.now,
        reference_no=f"R{number:09d}",
    )


def _decline(sandbox: Sandbox, call: Call) -> str:
    """What the shopper's bank says against it, else ""."""
    card = call.text("card").replace(" ", "")
    if CARD_NUMBER.fullmatch(card) is None or not luhn_holds(card):
        return sandbox.terms.request_refusal("card_number")
    if _has_expired(call):
        return sandbox.terms.request_refusal("card_expired")
    return sandbox.terms.declined_cards.get(card, "")


def luhn_holds(card: str) -> bool:
    """Whether the check digit of a card number is right."""
    digits = [int(digit) for digit in reversed(card)]
    doubled = (sum(divmod(2 * digit, TEN)) for digit in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % TEN == 0


def _has_expired(call: Call) -> bool:
    """A card is good to the end of its month; what is no month is no good."""
    year, month = call.text("expiration_year"), call.text("expiration_month")
    if re.fullmatch(r"(?:20)?[0-9]{2}", year) is None or re.fullmatch(r"[0-9]{1,2}", month) is None:
        return True
    today = datetime.fromtimestamp(call.now, UTC)
    expires = (CENTURY + int(year) % 100, int(month))
    return not 1 <= int(month) <= 12 or expires < (today.year, today.month)  # noqa: PLR2004 - months


def _authorise(sandbox: Sandbox, call: Call, payment: Payment) -> None:
    amount, now = payment.authorised, call.now
    operations = ["authorise"]
    if sandbox.options.capture_mode == "auto":
        operations.append("capture")
        payment = replace(payment, state=GatewayState.PAID, captured=amount, captured_at=now)
    sandbox.book.write_payments([payment])
    for operation in operations:
        effect = effect_of(
            payment, operation=operation, origin="api", amount=amount, committed_at=now
        )
        sandbox.book.append_effects([replace(effect, request_log_id=call.request_log_id)])


def _reply(
    sandbox: Sandbox, call: Call, *, info: str, payment: Payment | None = None, reason: str = ""
) -> Reply:
    status = STATUS_SUCCESS if info == SUCCESS else STATUS_FAILED
    content: dict[str, Any] = dict.fromkeys(_ELEMENTS, "")
    for name in ("merchant_id", "account_id", "order_no", "amount", "currency", "note"):
        content[name] = call.text(name)
    content["transaction_id"] = payment.transaction_id if payment else ""
    content |= {"card": masked(call.text("card")), "order_status": status, "result_info": info}
    content |= {"connector": "sandbox", "risk_reasons": {"name": "", "status": ""}}
    content["encryption_data"] = (
        ""
        if reason == "signature"
        else sign("payment_reply", content, sign_key=sandbox.options.sign_key)
    )
    told = (Told(content["transaction_id"], content["order_no"], status, info),)
    return Reply(content, form="xml", told=told, outcome=status)


def masked(card: str) -> str:
    """A card number as a reply may show it: first six and last four digits."""
    digits = card.replace(" ", "")
    return f"{digits[:6]}***{digits[-4:]}" if CARD_NUMBER.fullmatch(digits) else ""
