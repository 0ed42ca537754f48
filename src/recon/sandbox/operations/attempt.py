"""An attempt to pay an order, whatever the method: what it must say, and how it begins."""

import re
from collections.abc import Iterable
from typing import Literal

from recon.model.money import is_currency
from recon.model.words import GatewayState
from recon.sandbox.ground.book_records import Payment
from recon.sandbox.ground.operation_call import Call, Sandbox, amount_of, wrong
from recon.sandbox.ground.payment_result import Detail
from recon.sandbox.ground.population import transaction_id_of
from recon.sandbox.ground.wire import wire_minor_units
from recon.sandbox.operations.subscription import asked_for

_ORDER_NO = re.compile(r"[A-Za-z0-9#][A-Za-z0-9._#/:-]{0,49}", re.ASCII)
YES = "YES"
PARTS = (
    *("item_total", "shipping", "handling", "tax_total", "insurance"),
    *("shipping_discount", "discount"),
)
"""Amounts beside the total."""


def order_refusal(call: Call, *, required: Iterable[str]) -> str:
    """`parameters` and the first field that is missing or malformed, else ""."""
    missing = next((name for name in required if not call.text(name)), "")
    if missing:
        return wrong(missing)
    if _ORDER_NO.fullmatch(call.text("order_no")) is None:
        return wrong("order_no")
    refused = _amount_refusal(call)
    if refused:
        return refused
    asked = call.table("subscription")
    if not asked.get("contract_name"):
        return ""
    begun = asked_for(asked, payment=_payment(call, number=0), now=call.now)
    return "" if begun else wrong("subscription")


def _amount_refusal(call: Call) -> str:
    """The total is more than 0, its parts are amounts where they are given."""
    currency = call.text("currency")
    if not is_currency(currency):
        return wrong("currency")
    if not _amount(call):
        return wrong("amount")
    given = (name for name in PARTS if call.text(name))
    parts = {name: wire_minor_units(call.fields[name], currency=currency) for name in given}
    return wrong(next((name for name, amount in parts.items() if amount is None), ""))


def reuse_refusal(sandbox: Sandbox, call: Call) -> str:
    """An order may be tried again only while every attempt was declined."""
    earlier = [
        payment
        for payment in sandbox.book.payments("order_no", keys=(call.text("order_no"),))
        if payment.account_id == call.text("account_id")
    ]
    declined = all(payment.state is GatewayState.FAILED for payment in earlier)
    return "" if declined else "duplicate_order"


def attempted(
    sandbox: Sandbox, call: Call, *, method: Literal["card", "apm", "hosted"]
) -> tuple[Payment, Detail]:
    """A new payment, pending and not yet written, and what was asked for with it."""
    payment = _payment(call, number=sandbox.book.next_number("payments"))
    detail = Detail(
        transaction_id=payment.transaction_id,
        method=method,
        base_url=call.base_url,
        return_url=call.text("return_url"),
        cancel_url=call.text("cancel_url"),
        notify_url=call.text("notify_url"),
        note=call.text("note"),
        installments=call.text("installments"),
        installments_id=call.text("installments_id"),
        open3d=call.text("open3d"),
        wants_token=call.text("token_flag").upper() == YES,
        subscription=call.table("subscription"),
    )
    return payment, detail


def _payment(call: Call, *, number: int) -> Payment:
    return Payment(
        transaction_id=transaction_id_of(call.now, number=number),
        order_no=call.text("order_no"),
        merchant_id=call.text("merchant_id"),
        account_id=call.text("account_id"),
        currency=call.text("currency"),
        authorised=_amount(call),
        state=GatewayState.PENDING,
        created_at=call.now,
        reference_no=f"R{number:09d}",
    )


def _amount(call: Call) -> int:
    return amount_of(call.fields.get("amount"), currency=call.text("currency"))
