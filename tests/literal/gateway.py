"""A second gateway, for tests only: the API document's tables, taken literally.

Requests have the fields of their table or are refused; replies have the fields of theirs, every one
of them and nothing else. Amounts have a point and two decimals in every currency. Of a signature's
values U+0020 is removed. The query's status of a payment never changes by a refund, since the
document names no such status. Where the document is silent about codes, these are none of the
sandbox's.
"""

import hashlib
import html
import json
import re
import threading
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from xml.sax.saxutils import escape

from tests.literal.tables import (
    APM_RESULT,
    BATCH_ANSWERS,
    BATCH_FIELDS,
    CANCEL_SUBSCRIPTION,
    CARD_RESULT,
    CONTENT_TYPES,
    COUNTRY,
    CURRENCY,
    HOSTED_ALIASES,
    HOSTED_FIXED,
    MONEY,
    PAYMENT_AMOUNTS,
    PAYMENT_COUNTRIES,
    PAYMENT_FIELDS,
    PAYMENT_TYPES,
    PAYOUT_FIELDS,
    PAYOUT_FORMS,
    PAYOUT_NOT_ANSWERED,
    PAYOUT_RECORD,
    QUERY_ROW,
    ROWS_MAX,
    SIGNED,
)

MERCHANT, ACCOUNT, KEY = "100042", "100042001", "literal key"
BODY_BYTES_MAX = 2 * 1024 * 1024
STATUS = {"authorised": "2100", "in_review": "1510", "paid": "3000", "cancelled": "5100"}
"""Only 3000 stands in the document."""
FEE = Decimal("5.00")
RATE = Decimal("1.25")
"""Of a payout from another currency."""
Reply = tuple[int, str, str]
"""Status, content type and text."""


class RefusedError(Exception):
    """A request that is not as its table says."""


class NoSuchAccountError(RefusedError):
    """A request for a merchant or account that is not here."""


@dataclass
class Payment:
    """A payment and what happened to it."""

    order_no: str
    transaction_id: str
    currency: str
    amount: str
    at: str
    """14 digits."""
    state: str = "authorised"
    captured: Decimal = Decimal(0)
    refunds: list[Decimal] = field(default_factory=list)


@dataclass
class Gateway:
    """Payments, subscriptions, and every effect in its order."""

    payments: dict[str, Payment] = field(default_factory=dict)
    """By transaction_id."""
    effects: list[tuple[str, str, str]] = field(default_factory=list)
    """Operation, transaction (request, recurring) id and amount."""
    subscriptions: dict[str, str] = field(default_factory=dict)
    """recurring_id -> contract_name, while active."""
    instead: dict[str, Reply | None] = field(default_factory=dict)
    """Operations that take effect, and what they get as a reply; None: the connection ends."""
    beside: list[dict[str, str]] = field(default_factory=list)
    """Rows that every query answers beside what was asked."""
    figures: dict[str, float] = field(default_factory=dict)
    """Of a payout's record, other ones than are true."""
    asked: list[tuple[str, bytes]] = field(default_factory=list)
    """Path and body of every request."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def seed(self, payment: Payment) -> Payment:
        """A payment that was made elsewhere."""
        self.payments[payment.transaction_id] = payment
        return payment

    def took(self, *operations: str) -> list[tuple[str, str, str]]:
        """The effects of these operations."""
        return [one for one in self.effects if one[0] in operations]

    def answer(self, path: str, body: bytes, *, content_type: str) -> tuple[int, str, str]:
        """Status, content type and text of a reply."""
        with self.lock:
            self.asked.append((path, body))
            operation = path.removeprefix("/v1/")
            if content_type.partition(";")[0] not in CONTENT_TYPES.get(operation, (content_type,)):
                return 415, "text/plain", "Content-Type"
            if operation in BATCH_FIELDS and path.startswith("/v1/"):
                return _json(self._batch(operation, _object(body)))
            handle: Callable[[bytes], tuple[int, str, str]] | None = {
                "/v1/retrievalTrans": self._query,
                "/v1/authorise": self._authorise,
                "/v1/checkout": self._checkout,
                "/v1/payout": self._payout,
                "/v1/cancelsubscription": self._end_subscription,
            }.get(path)
            return handle(body) if handle else (404, "text/plain", "Record not found")

    # 4.4 to 4.7

    def _batch(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        named = f"{operation}_orders"
        rows: list[dict[str, str]] = []
        try:
            _fields(request, ("merchant_id", "account_id", "encryption_data", named))
            rows = list(request[named])
            for row in rows:
                _fields(row, BATCH_FIELDS[operation])
                _shaped(row, dict.fromkeys(row, str), name=named)
                _forms(row, {"amount": MONEY, "refund_amount": MONEY, "currency": CURRENCY})
            if not 0 < len(rows) <= ROWS_MAX[operation]:
                _refuse(f"{named} has {len(rows)} elements, at most {ROWS_MAX[operation]}")
            signed = [MERCHANT, ACCOUNT, *(row["transaction_id"] for row in rows)]
            _verify(request, signed)
        except RefusedError as refusal:
            status, message, rows = "0", str(refusal), []
        else:
            status, message = "1", "OK"
        return {
            "account_id": request.get("account_id", ""),
            "return_message": message,
            "return_status": status,
            "encryption_data": request.get("encryption_data", ""),
            "merchant_id": request.get("merchant_id", ""),
            named: [self._row(operation, row) for row in rows],
        }

    def _row(self, operation: str, row: dict[str, str]) -> dict[str, str]:
        payment = self.payments.get(row["transaction_id"])
        wrong = "no such transaction"
        if payment and [row[name] for name in ("order_no", "currency")] == [
            payment.order_no,
            payment.currency,
        ]:
            wrong = getattr(self, f"_{operation}")(payment, row)
        message = "refund_message" if operation == "refund" else "error_message"
        good = "V0000:OK" if operation == "refund" else ""
        number = len(payment.refunds) if payment and not wrong else 0
        answer = row | {
            f"{operation}_status": "0" if wrong else "1",
            message: f"L0001:{wrong}" if wrong else good,
        }
        if operation == "refund":
            answer["refund_reference"] = ""
            named = f"{row['transaction_id']}-{number:02}"
            answer["refund_reference_id"] = "" if wrong else named
        if not wrong:
            amount = row.get("refund_amount", row["amount"])
            self.effects.append((operation, row["transaction_id"], amount))
        return {name: answer[name] for name in BATCH_ANSWERS[operation]}

    @staticmethod
    def _capture(payment: Payment, row: dict[str, str]) -> str:
        amount = Decimal(row["amount"])
        if payment.state != "authorised":
            return f"the transaction is {payment.state}"
        if not 0 < amount <= Decimal(payment.amount):
            return "the amount is not that of the transaction"
        payment.state, payment.captured = "paid", amount
        return ""

    @staticmethod
    def _cancel(payment: Payment, row: dict[str, str]) -> str:
        if payment.state != "authorised" or row["amount"] != payment.amount:
            return f"the transaction is {payment.state} of {payment.amount}"
        payment.state = "cancelled"
        return ""

    @staticmethod
    def _review(payment: Payment, row: dict[str, str]) -> str:
        if payment.state != "in_review" or row["review_flag"] != "1":
            return f"the transaction is {payment.state}"
        payment.state = "authorised"
        return ""

    @staticmethod
    def _refund(payment: Payment, row: dict[str, str]) -> str:
        amount = Decimal(row["refund_amount"])
        if payment.state != "paid" or row["amount"] != payment.amount:
            return f"the transaction is {payment.state} of {payment.amount}"
        if amount <= 0 or sum(payment.refunds) + amount > payment.captured:
            return "more than is left"
        payment.refunds.append(amount)
        return ""

    # 4.8

    def _query(self, body: bytes) -> tuple[int, str, str]:
        fields = dict(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True))
        keys, by = [], ""
        try:
            by = next((name for name in ("orders", "trades") if name in fields), "")
            _fields(fields, ("merchant_id", "account_id", "encryption_data", by))
            keys = fields[by].split(",")
            if len(keys) > ROWS_MAX["query"]:
                _refuse(f"{len(keys)} orders, at most {ROWS_MAX['query']}")
            _verify(fields, [fields[name] for name in SIGNED["query"]])
        except RefusedError as refusal:
            status, message, keys = "3", str(refusal), []
        else:
            status, message = "1", "OK"
        rows = [row for key in keys for row in self._shown(key, by=by)] + self.beside
        return _json(
            {
                "merchant_id": fields.get("merchant_id", ""),
                "account_id": fields.get("account_id", ""),
                "return_status": status,
                "return_message": message,
                "orders_list": rows,
                "antifraud_provider": "",
                "fraud_check_result": [],
                "is3ds": "",
            }
        )

    def _shown(self, key: str, *, by: str) -> Iterator[dict[str, str]]:
        known = list(self.payments.values())
        found = [p for p in known if key == (p.order_no if by == "orders" else p.transaction_id)]
        for payment in found:
            row = {
                "amount": payment.amount,
                "currency": payment.currency,
                "order_no": payment.order_no,
                "payment_status": STATUS[payment.state],
                "query_result": "1",
                "reference_no": f"R{payment.transaction_id}",
                "transaction_date": payment.at,
                "transaction_id": payment.transaction_id,
                "website": "shop.example",
            }
            yield {name: row[name] for name in QUERY_ROW}
        if not found:
            named = {"order_no" if by == "orders" else "transaction_id": key, "query_result": "2"}
            yield {name: named.get(name, "") for name in QUERY_ROW}

    # 4.1 and 4.2

    def _authorise(self, body: bytes) -> tuple[int, str, str]:
        request = _object(body)
        kind = "card" if request.get("card") or request.get("token_id") else "apm"
        try:
            _payment(request, kind=kind)
        except RefusedError as refusal:
            if kind == "apm":
                unknown = isinstance(refusal, NoSuchAccountError)
                invalid = (400, "text/plain", "Invalid input")
                return (404, "text/plain", "Record not found") if unknown else invalid
            return _xml(CARD_RESULT, self._card_result(request, result=f"L0001:{refusal}"))
        if kind == "apm":
            url = f"https://bank.example/pay?order={request['order_no']}"
            return _xml(APM_RESULT, request | {"issuer_url": url})
        made = Payment(
            request["order_no"],
            f"L{len(self.payments) + 1:08}",
            request["currency"],
            request["amount"],
            "20261120120000",
        )
        self.seed(made)
        self.effects.append(("authorise", made.transaction_id, made.amount))
        result = self._card_result(request, result="0000:Success", payment=made)
        return _xml(CARD_RESULT, result)

    def _card_result(
        self, request: dict[str, Any], *, result: str, payment: Payment | None = None
    ) -> dict[str, str]:
        answer = dict.fromkeys(CARD_RESULT, "")
        for name in ("merchant_id", "account_id", "order_no", "amount", "currency", "note"):
            answer[name] = str(request.get(name, ""))
        answer["card"] = (
            f"{str(request.get('card', ''))[:6]}****{str(request.get('card', ''))[-4:]}"
        )
        answer["order_status"] = "1" if payment else "0"
        answer["result_info"] = result
        answer["transaction_id"] = payment.transaction_id if payment else ""
        contract = request.get("subscription", {}).get("contract_name", "")
        if payment and contract:
            answer |= {"contract_name": contract, "recurring_id": f"S{payment.transaction_id}"}
            self.subscriptions[answer["recurring_id"]] = contract
        answer["encryption_data"] = signature([answer[name] for name in SIGNED["card result"]])
        return answer

    # 4.3

    def _checkout(self, body: bytes) -> tuple[int, str, str]:
        request = dict(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True))
        try:
            _payment(request, kind="hosted", also=("return_url", "cancel_url"))
        except RefusedError as refusal:
            return _json({"code": "400", "message": str(refusal)}, status=400)
        inputs = dict.fromkeys(HOSTED_FIXED, "1") | request
        inputs |= {alias: request.get(name, "") for alias, name in HOSTED_ALIASES.items()}
        inputs["allParams"] = urllib.parse.urlencode(request)
        shown = "".join(
            f'<input type="hidden" name="{html.escape(name)}" value="{html.escape(value)}">'
            for name, value in inputs.items()
        )
        page = (
            "<!DOCTYPE html><html><head><title>loading</title></head>"
            '<body onload="document.forms[0].submit()">'
            f'<form method="post" action="/v1/checkout">{shown}</form></body></html>'
        )
        return 200, "text/html", page

    # 4.9 and 4.10

    def _end_subscription(self, body: bytes) -> tuple[int, str, str]:
        request = _object(body)
        answer = dict.fromkeys(CANCEL_SUBSCRIPTION, "") | {"cancel_status": "0"}
        answer |= {name: str(request[name]) for name in CANCEL_SUBSCRIPTION if name in request}
        try:
            _fields(request, (*SIGNED["cancelsubscription"], "encryption_data"))
            _verify(request, [request[name] for name in SIGNED["cancelsubscription"]])
            if self.subscriptions.get(request["recurring_id"]) != request["contract_name"]:
                _refuse("no such subscription")
        except RefusedError as refusal:
            answer["error_message"] = str(refusal)
        else:
            del self.subscriptions[request["recurring_id"]]
            self.effects.append(("cancelsubscription", request["recurring_id"], ""))
            answer["cancel_status"] = "1"
        return _json(answer)

    def _payout(self, body: bytes) -> tuple[int, str, str]:
        request = _object(body)
        try:
            _shaped(request, PAYOUT_FIELDS, name="payout")
            _everywhere(request, PAYOUT_FORMS)
            for name in ("request_id", "payment_amount", "payment_currency", "beneficiary"):
                if not request.get(name):
                    _refuse(f"{name} is missing")
            _verify(request, [str(request.get(name, "")) for name in SIGNED["payout"]])
        except RefusedError as refusal:
            return _json({"code": "400", "message": str(refusal)}, status=400)
        self.effects.append(("payout", request["request_id"], request["payment_amount"]))
        paid, on_top = (
            Decimal(request["payment_amount"]),
            request.get("fee_paid_by") != "BENEFICIARY",
        )
        source = request.get("source_currency") or request["payment_currency"]
        exchanged = paid if source == request["payment_currency"] else round(paid * RATE, 2)
        leaves = Decimal(request.get("source_amount") or exchanged)
        answer = _whole(request, PAYOUT_FIELDS)
        for name in PAYOUT_NOT_ANSWERED:
            del answer[name]
        bank = answer["beneficiary"]["bank_details"]
        del bank["bank_code"]
        bank["local_clearing_system"] = "SEPA"
        record = {
            "amount_beneficiary_receives": float(paid if on_top else paid - FEE),
            "amount_payer_pays": float(leaves + FEE if on_top else leaves),
            "fee_amount": float(FEE),
            "fee_currency": source if on_top else request["payment_currency"],
            "created_at": "2026-11-20T12:00:00+0000",
            "last_updated_at": "2026-11-20T12:00:00+0000",
            "failure_reason": "",
            "failure_type": "",
            "payer_id": "P1",
            "transaction_id": f"PO{len(self.effects):06}",
            "short_reference_id": f"20261120-{len(self.effects):06}",
            "status": "COMPLETED",
        }
        return _json(answer | {name: record[name] for name in PAYOUT_RECORD} | self.figures)


def signature(values: Sequence[str]) -> str:
    """SHA-256 over the values without U+0020, and the key."""
    plain = "".join(values).replace("\N{SPACE}", "")
    return hashlib.sha256(f"{plain}{KEY}".encode()).hexdigest()


def _verify(request: Mapping[str, Any], values: Sequence[str]) -> None:
    if (request["merchant_id"], request["account_id"]) != (MERCHANT, ACCOUNT):
        msg = "no such merchant or account"
        raise NoSuchAccountError(msg)
    if str(request["encryption_data"]).lower() != signature(values):
        _refuse("encryption_data is not the signature of this request")


def _payment(request: dict[str, Any], *, kind: str, also: Sequence[str] = ()) -> None:
    for name, value in request.items():
        cookie = name.endswith("_token_cookie") and kind != "apm"
        if name not in PAYMENT_FIELDS[kind] and name not in also and not cookie:
            _refuse(f"{name} is no field of this payment")
        wanted = PAYMENT_TYPES.get(name, str)
        given = json.loads(value) if kind == "hosted" and wanted is not str else value
        _shaped(given, wanted, name=name)
    for name in ("merchant_id", "account_id", "order_no", "currency", "amount"):
        if not request.get(name):
            _refuse(f"{name} is missing")
    _forms(request, dict.fromkeys(PAYMENT_AMOUNTS, MONEY) | {"currency": CURRENCY})
    _forms(request, dict.fromkeys(PAYMENT_COUNTRIES, COUNTRY))
    _verify(request, [str(request.get(name, "")) for name in SIGNED[kind]])


def _fields(given: Any, wanted: Sequence[str]) -> None:
    if not isinstance(given, dict) or sorted(given) != sorted(wanted):
        _refuse(f"the fields are not {', '.join(wanted)}")


def _shaped(given: Any, wanted: Any, *, name: str) -> None:
    """Refuse what is of another type, or an object with a field that its table does not have."""
    if isinstance(wanted, dict) and isinstance(given, dict):
        for inner, value in given.items():
            if inner not in wanted:
                _refuse(f"{name} has no field {inner}")
            _shaped(value, wanted[inner], name=inner)
    elif isinstance(wanted, list) and isinstance(given, list):
        for value in given:
            _shaped(value, wanted[0], name=name)
    elif isinstance(wanted, dict | list) or not isinstance(given, wanted):
        _refuse(f"{name} is of another type")


def _whole(given: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """An object with every field of its table, empty where the request has none."""
    return {
        name: _whole(given.get(name, {}), kind)
        if isinstance(kind, dict)
        else given.get(name, [] if isinstance(kind, list) else "")
        for name, kind in wanted.items()
    }


def _forms(given: Mapping[str, Any], forms: Mapping[str, str]) -> None:
    for name, form in forms.items():
        if given.get(name) and not re.fullmatch(form, str(given[name])):
            _refuse(f"{name} is not of the form {form}")


def _everywhere(value: Any, forms: Mapping[str, str]) -> None:
    if isinstance(value, dict):
        _forms({k: v for k, v in value.items() if not isinstance(v, (dict, list))}, forms)
        for inner in value.values():
            _everywhere(inner, forms)
    for inner in value if isinstance(value, list) else ():
        _everywhere(inner, forms)


def _refuse(why: str) -> None:
    raise RefusedError(why)


def _object(body: bytes) -> dict[str, Any]:
    found = json.loads(body)
    return found if isinstance(found, dict) else {}


def _json(document: object, *, status: int = 200) -> tuple[int, str, str]:
    return status, "application/json", json.dumps(document, ensure_ascii=False)


def _xml(names: Sequence[str], values: Mapping[str, Any]) -> tuple[int, str, str]:
    inner = "".join(
        "<risk_reasons><name></name><status></status></risk_reasons>"
        if name == "risk_reasons"
        else f"<{name}>{escape(str(values[name]))}</{name}>"
        for name in names
    )
    return 200, "application/xml", f'<?xml version="1.0" encoding="UTF-8"?><respon>{inner}</respon>'


@contextmanager
def literal_gateway() -> Iterator[tuple[str, Gateway]]:
    """A gateway on loopback, its base URL, and its truth."""
    gateway = Gateway()

    class Handler(BaseHTTPRequestHandler):
        """One request; nothing is written to stderr."""

        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            size = int(self.headers.get("Content-Length", "0"))
            body = self.rfile.read(min(size, BODY_BYTES_MAX))
            path = urllib.parse.urlsplit(self.path).path
            content_type = self.headers.get("Content-Type", "")
            reply = gateway.instead.get(
                path.removeprefix("/v1/"), gateway.answer(path, body, content_type=content_type)
            )
            if reply is None:
                self.close_connection = True
                return
            status, kind, text = reply
            content = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", f"{kind};charset=UTF-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", gateway
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
