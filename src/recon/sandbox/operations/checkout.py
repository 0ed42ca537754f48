"""`checkout`: a page that sends the shopper's browser on to the hosted card form.

The page is an HTML form of hidden inputs that submits itself back to `checkout`; there the input
gbc_id leads to the form. What the browser carries is shown and not believed: the amount is the one
that the merchant asked for.

The hidden inputs of the checkout page: the gateway's own, the request's, their other names.
"""

import json
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from recon.sandbox.ground.operation_call import (
    Call,
    OperationReply,
    Sandbox,
    json_refusal,
    merchant_refusal,
    signature_refusal,
    wrong,
)
from recon.sandbox.ground.payment_result import CONNECTOR, Detail, detail_behind, row_reply_of
from recon.sandbox.ground.wire import signed_fields, text_of
from recon.sandbox.operations.payment_course import (
    attempted,
    order_refusal,
    reuse_refusal,
    waiting,
)

OWN = "gbc_id"
NEVER_SHOWN = frozenset({"card", "security_code", "expiration_month", "expiration_year", OWN})
"""Fields that no hosted payment has; a page would show them."""

ALL = "allParams"


def answer_checkout(sandbox: Sandbox, call: Call) -> OperationReply:
    """The page of hidden inputs, the way to the card form, or a refusal as JSON with HTTP 400."""
    if call.text(OWN):
        return _card_form(sandbox, call)
    reason = merchant_refusal(sandbox, call) or signature_refusal(sandbox, call)
    # Signed as empty where it is not given: table 2.1 lists it for other methods alone.
    required = [name for name in signed_fields(call.operation) if name != "return_url"]
    reason = reason or order_refusal(call, required=required) or reuse_refusal(sandbox, call)
    if reason:
        return json_refusal(sandbox, call, reason=reason)
    payment, detail = attempted(sandbox, call, method="hosted")
    payment, detail = waiting(sandbox, payment, detail=replace(detail, stage="hosted"))
    row_reply = row_reply_of(payment, detail)
    return OperationReply(
        _inputs(call, detail),
        form="html",
        row_replies=(row_reply,),
        outcome=row_reply.status,
        address=f"{call.base_url}/v1/checkout",
    )


def _card_form(sandbox: Sandbox, call: Call) -> OperationReply:
    detail = detail_behind(sandbox.book, call.text(OWN))
    if detail is None:
        return json_refusal(sandbox, call, reason=wrong(OWN))
    address = f"{call.base_url}/v1/pay/{detail.page_key}"
    return OperationReply({}, form="see_other", address=address, outcome="303")


def _inputs(call: Call, detail: Detail) -> dict[str, Any]:
    """Every input of the page by name, each once."""
    given = {name: text for name, text in call.fields.items() if name not in NEVER_SHOWN}
    asked = {name: as_text(value) for name, value in given.items()}
    inputs = dict.fromkeys(HOSTED_FIELDS, "") | FIXED | asked
    inputs |= {alias: asked.get(name, "") for alias, name in ALIASES.items()}
    inputs["source_request_ip"] = call.client_ip
    inputs[OWN] = detail.page_key
    return inputs | {ALL: urlencode(asked)}


def as_text(value: Any) -> str:
    """A field as an input holds it, objects and lists as JSON."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return text_of(value)


FIXED = {
    "connector_code": CONNECTOR,
    "account_name": "Sandbox merchant",
    "website": "",
    "pm_id": "1",
    "apm_type": "",
    "descriptor": "SANDBOX",
    "orderprefix": "",
    "rrtimezone": "UTC",
    "ordernumlength": "50",
    "sendbgoods": "1",
    "replacename": "0",
    "send_bank_website": "0",
    "replace_up_id": "0",
    "replace_match_address": "0",
    "to_pass_page": "1",
}
"""Inputs that are the gateway's own; `website` is what the request says of it."""

HOSTED_FIELDS = (
    *("merchant_id", "account_id", "order_no", "currency", "amount", "item_total", "shipping"),
    *("handling", "tax_total", "insurance", "shipping_discount", "discount", "website", "items"),
    *("note", "shopper_id", "shopper_email", "shopper_ip", "shopper_phone", "shopper_level"),
    *("open3d", "token_flag", "token_id", "first_name", "last_name", "notify_url", "document"),
    *("birth_date", "billing_country", "billing_state", "billing_city", "billing_address"),
    *("billing_postal_code", "os", "browser", "browser_lang", "time_zone", "resolution"),
    *("cookie_new", "cookie_old", "challenge_window_size", "session_id", "delivery_firstname"),
    *("delivery_lastname", "delivery_country", "delivery_state", "delivery_city"),
    *("delivery_address", "delivery_postal_code", "custom", "installments", "installments_id"),
    *("device_fingerprint", "encryption_data", "platform_source", "device_type", "order_type"),
    *("checkout_time", "user_agent", "cart_items", "account_owner", "total_discount"),
    *("additional_information", "price_id", "quote_id", "quote_price", "color_depth"),
    *("storefront_domains", "subscription"),
)
"""The fields of a hosted payment, all of them inputs whether they were given or not."""

ALIASES = {
    "merNo": "merchant_id",
    "gatewayNo": "account_id",
    "orderNo": "order_no",
    "orderCurrency": "currency",
    "orderAmount": "amount",
    "itemTotal": "item_total",
    "taxTotal": "tax_total",
    "shipFee": "shipping",
    "shippingDiscount": "shipping_discount",
    "goodsInfo": "items",
    "remark": "note",
    "email": "shopper_email",
    "phone": "shopper_phone",
    "firstName": "first_name",
    "lastName": "last_name",
    "address": "billing_address",
    "city": "billing_city",
    "state": "billing_state",
    "zip": "billing_postal_code",
    "country": "billing_country",
    "shipFirstName": "delivery_firstname",
    "shipLastName": "delivery_lastname",
    "shipCountry": "delivery_country",
    "shipState": "delivery_state",
    "shipCity": "delivery_city",
    "shipAddress": "delivery_address",
    "shipZip": "delivery_postal_code",
    "notifyUrl": "notify_url",
    "source_notify_url": "notify_url",
    "returnUrl": "return_url",
    "return_url": "return_url",
    "cancelUrl": "cancel_url",
    "cancel_url": "cancel_url",
    "defaultLang": "browser_lang",
    "default_lang": "browser_lang",
    "shopperId": "shopper_id",
    "shopperLevel": "shopper_level",
    "signInfo": "encryption_data",
    "token": "session_id",
    "paymentToken": "token_id",
    "isOpen3D": "open3d",
    "cardType": "card_type",
    "card_type": "card_type",
    "merSendLogoNo": "logo_name",
    "logo_name": "logo_name",
    "verifyBillingAddress": "verify_billing_address",
    "verify_billing_address": "verify_billing_address",
    "APMType": "payment_method",
    "payment_method": "payment_method",
}
"""Inputs that repeat a field of the request under another name, or whether it was given or not."""
