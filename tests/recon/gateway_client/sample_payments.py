"""Payments with the fields of the API document, and the gateway's replies to them."""

import hashlib
from datetime import date
from decimal import Decimal
from typing import Any
from xml.sax.saxutils import escape

from recon.gateway_client import ApmPayment, CardPayment, HostedPayment

TODAY = date(2026, 11, 20)
CARD = "4111111111111111"
PRIVATE = (CARD, "917", "Ana", "Example", "ana@example.test", "1980-02-29", "4417119900")
"""Values of a shopper that must show nowhere."""

COMMON: dict[str, Any] = {
    "order_no": "SO-1",
    "currency": "EUR",
    "amount": Decimal("42.50"),
    "item_total": Decimal("40.00"),
    "website": "shop.example.test",
    "items": "Tea#,#T1#,#20.00#,#2",
    "shopper_email": "ana@example.test",
    "first_name": "Ana",
    "last_name": "Example",
    "document": "4417119900",
    "birth_date": "1980-02-29",
    "notify_url": "https://shop.example.test/notify",
    "return_url": "https://shop.example.test/back",
}


def card_payment(**changes: Any) -> CardPayment:
    """A payment by card, nested objects and numbers included."""
    fields = COMMON | {
        "card": CARD,
        "expiration_month": "11",
        "expiration_year": "2026",
        "security_code": "917",
        "open3d": "do3DS",
        "checkout_time": 1_763_676_000,
        "antifraud_token_cookie": "",
        "cart_items": [
            {
                "basic_item_data": {
                    "name": "Tea",
                    "quantity": "2",
                    "price": {"amount_usd": "21.75", "currency": "EUR"},
                    "productId": "T1",
                }
            }
        ],
        "account_owner": [{"email": "ana@example.test", "past_orders_count": 3}],
        "additional_information": [{"mpi_info": {"eci": "05", "dsTransID": "d-1"}}],
        "subscription": {"contract_name": "Gold plan", "interval": "day", "billing_cycle": 12},
    }
    return CardPayment.model_validate(fields | changes)


def apm_payment(**changes: Any) -> ApmPayment:
    """A payment by another method, with a person."""
    person = {
        "document_number": "4417119900",
        "documents": {"labels": {"bank_account": {"bank": {"code": "001", "name": "Bank"}}}},
    }
    fields = COMMON | {"payment_method": "PIX", "person": person}
    return ApmPayment.model_validate(fields | changes)


def hosted_payment(**changes: Any) -> HostedPayment:
    """A payment by the hosted page."""
    return HostedPayment.model_validate(COMMON | changes)


def result_of(**changes: str) -> bytes:
    """The XML result of the card payment, signed; `risk` replaces the reasons as they stand."""
    fields = {
        "merchant_id": "100042",
        "account_id": "100042001",
        "order_no": "SO-1",
        "amount": "42.50",
        "currency": "EUR",
        "transaction_id": "T20261120000001",
        "card": "411111***1111",
        "order_status": "1",
        "result_info": "0000:Success",
        "connector": "bank-1",
        "risk_score": "12.5",
        "risk_action": "ACCEPT",
        "token_id": "",
    }
    reasons = "<risk_reasons><name>ip</name><status>low</status></risk_reasons>"
    risk = changes.pop("risk", reasons * 2)
    fields |= {name: value for name, value in changes.items() if name != "encryption_data"}
    signed = (
        *("merchant_id", "account_id", "transaction_id", "order_no", "currency", "amount"),
        *("order_status", "result_info"),
    )
    plain = "".join(fields.get(name, "").replace(" ", "") for name in signed)
    fields["encryption_data"] = changes.get(
        "encryption_data", hashlib.sha256(f"{plain}sandbox".encode()).hexdigest()
    )
    elements = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in fields.items())
    return f"<?xml version='1.0' encoding='UTF-8'?><respon>{elements}{risk}</respon>".encode()


def page_of(**changes: str) -> bytes:
    """The hosted page for the payment, as the document describes it."""
    inputs = {
        "gbc_id": "G1",
        "merchant_id": "100042",
        "account_id": "100042001",
        "order_no": "SO-1",
        "amount": "42.50",
        "currency": "EUR",
        "first_name": "Ana",
        "merNo": "100042",
        "gatewayNo": "100042001",
        "orderNo": "SO-1",
        "orderAmount": "42.50",
        "orderCurrency": "EUR",
        "allParams": "order_no=SO-1&first_name=Ana",
        **changes,
    }
    hidden = "".join(
        f'<input type="hidden" name="{name}" value="{escape(value)}">'
        for name, value in inputs.items()
    )
    return (
        "<!DOCTYPE html><html><head><title>Loading</title></head>"
        '<body onload="document.forms[0].submit()">'
        f'<form action="/v1/checkout" method="post">{hidden}</form></body></html>'
    ).encode()
