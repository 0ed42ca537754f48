"""A gateway that answers payments, payouts and subscriptions well and quotes all it was told."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from tests.loopback import Answer, answering

SIGNED = (
    *("merchant_id", "account_id", "transaction_id", "order_no", "currency", "amount"),
    *("order_status", "result_info"),
)


@contextmanager
def played_gateway() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Its base URL, and what it was asked."""
    asked: list[dict[str, Any]] = []

    def reply(request: BaseHTTPRequestHandler, sent: bytes) -> Answer:
        body = sent.decode()
        fields = json.loads(body) if body.startswith("{") else dict(parse_qsl(body))
        asked.append({"path": request.path, **fields})
        return 200, {}, ANSWERS[request.path](fields)

    with answering(reply) as url:
        yield url, asked


def _authorised(fields: dict[str, Any]) -> bytes:
    """The XML result; another method than a card gets an issuer's page."""
    result = {
        **{name: str(fields[name]) for name in ("merchant_id", "account_id", "order_no")},
        **{name: str(fields[name]) for name in ("amount", "currency")},
        "note": f"quoted {fields.get('card', '')} {fields.get('birth_date', '')}",
    }
    if "card" in fields:
        result |= {"transaction_id": "T1", "card": str(fields["card"]), "order_status": "1"}
        result["result_info"] = f"0000:Success for {fields['card']} {fields.get('document', '')}"
    else:
        result["issuer_url"] = "https://issuer.example.test/pay"
    plain = "".join(result.get(name, "") for name in SIGNED).replace(" ", "")
    result["encryption_data"] = hashlib.sha256(f"{plain}sandbox".encode()).hexdigest()
    elements = "".join(f"<{name}>{escape(text)}</{name}>" for name, text in result.items())
    return f"<?xml version='1.0' encoding='UTF-8'?><respon>{elements}</respon>".encode()


def _hosted(fields: dict[str, Any]) -> bytes:
    inputs = {
        **fields,
        "merNo": fields["merchant_id"],
        "gatewayNo": fields["account_id"],
        "orderNo": fields["order_no"],
        "orderAmount": fields["amount"],
        "orderCurrency": fields["currency"],
        "allParams": f"order_no={fields['order_no']}",
    }
    hidden = "".join(f'<input type="hidden" name="{n}" value="{v}">' for n, v in inputs.items())
    page = f'<form method="post" action="/v1/checkout">{hidden}</form>'
    return f"<html><title>Loading</title><body>{page}</body></html>".encode()


def _paid_out(fields: dict[str, Any]) -> bytes:
    record = {"status": "COMPLETED", "transaction_id": "P1", "fee_amount": 5, "fee_currency": "EUR"}
    quoted = {"failure_reason": json.dumps(fields.get("beneficiary", {})), "failure_type": ""}
    return json.dumps({**fields, **record, **quoted}).encode()


def _ended(fields: dict[str, Any]) -> bytes:
    return json.dumps({**fields, "cancel_status": "1", "error_message": ""}).encode()


ANSWERS = {
    "/v1/authorise": _authorised,
    "/v1/checkout": _hosted,
    "/v1/payout": _paid_out,
    "/v1/cancelsubscription": _ended,
}
