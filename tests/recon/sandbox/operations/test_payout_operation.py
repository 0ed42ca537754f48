import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from recon.sandbox import SandboxOptions, serving
from tests.recon.sandbox.conftest import ACCOUNT, MERCHANT, Caller, signature

REQUEST_ID = "7b8c1f0e-54a1-4f65-9a0e-6d1f0c4b2a11"
PAYOUT: dict[str, Any] = {
    "merchant_id": MERCHANT,
    "account_id": ACCOUNT,
    "request_id": REQUEST_ID,
    "payment_amount": "250.10",
    "payment_currency": "EUR",
    "fee_paid_by": "PAYER",
    "beneficiary": {
        "entity_type": "COMPANY",
        "bank_details": {"iban": "DE89370400440532013000", "bank_code": "37040044"},
    },
    "payer": {"company_name": "Contoso"},
    "notify_url": "",
}


def payout_body(**changed: Any) -> dict[str, Any]:
    """A signed payout."""
    fields = PAYOUT | changed
    names = ("merchant_id", "account_id", "request_id", "payment_currency", "payment_amount")
    return {"encryption_data": signature(*(str(fields[name]) for name in names))} | fields


def paid(gateway: Caller, **changed: Any) -> dict[str, Any]:
    """The record of a payout that is not refused."""
    reply = gateway.http.post("/v1/payout", json=payout_body(**changed))
    assert reply.status_code == 200, reply.text
    return reply.json()


@pytest.fixture
def extended() -> Iterator[Caller]:
    """A sandbox of the profile extended."""
    with serving(SandboxOptions(orders=0, profile="extended")) as sandbox:
        caller = Caller(sandbox.base_url)
        with caller.http:
            yield caller


def test_a_payout_is_a_record_and_one_effect(gateway: Any) -> None:
    """Amounts are numbers; the request comes back, but for notify_url and the bank code."""
    body = payout_body()
    record = gateway.http.post("/v1/payout", json=body).json()
    assert (record["status"], record["failure_type"]) == ("COMPLETED", "")
    assert (record["amount_payer_pays"], record["amount_beneficiary_receives"]) == (255.1, 250.1)
    assert (record["fee_amount"], record["fee_currency"]) == (5, "EUR")
    assert record["payment_amount"] == "250.10"
    assert record["created_at"] == "2026-11-20T22:00:00+0000"
    assert record["encryption_data"] == body["encryption_data"]
    assert "notify_url" not in record
    details = record["beneficiary"]["bank_details"]
    assert details == {"iban": "DE89370400440532013000", "local_clearing_system": "SANDBOX"}
    (effect,) = gateway.effects()
    assert (effect["operation"], effect["amount"], effect["order_no"]) == ("payout", "250.10", "")
    assert (effect["request_id"], effect["currency"]) == (REQUEST_ID, "EUR")
    assert effect["transaction_id"] == record["transaction_id"]
    assert set(gateway.invariants().values()) == {0}


def test_the_beneficiary_may_pay_the_fee(gateway: Any) -> None:
    """Then the payer pays the amount and the fee comes off what arrives."""
    record = paid(gateway, fee_paid_by="BENEFICIARY")
    assert (record["amount_payer_pays"], record["amount_beneficiary_receives"]) == (250.1, 245.1)


@pytest.mark.parametrize(
    ("currency", "amount", "fee", "pays"),
    [("JPY", "700.00", 5, 705), ("KWD", "1.005", 5, 6.005), ("USD", "0.01", 5, 5.01)],
)
def test_the_flat_fee_is_in_the_payouts_currency(
    gateway: Any, currency: str, amount: str, fee: int, pays: float
) -> None:
    """5.00 of each currency, whatever its decimals."""
    record = paid(gateway, payment_currency=currency, payment_amount=amount)
    assert (record["fee_amount"], record["amount_payer_pays"]) == (fee, pays)


@pytest.mark.parametrize(
    ("changed", "pays", "receives", "fee"),
    [
        ({}, 275.11, 250.1, "USD"),
        ({"source_amount": "300.00"}, 305, 250.1, "USD"),
        ({"source_amount": "300.00", "fee_paid_by": "BENEFICIARY"}, 300, 245.1, "EUR"),
        ({"source_currency": "JPY"}, 40_646, 250.1, "JPY"),
        ({"source_currency": "SEK"}, 255.1, 250.1, "SEK"),
    ],
)
def test_a_payout_is_paid_from_another_currency(
    gateway: Any, changed: dict[str, str], pays: float, receives: float, fee: str
) -> None:
    """As much as its source amount says, else at a fixed rate; the fee is in either currency."""
    sent = {"source_currency": "USD"} | changed
    record = paid(gateway, **sent)
    assert (record["amount_payer_pays"], record["amount_beneficiary_receives"]) == (pays, receives)
    assert (record["fee_amount"], record["fee_currency"]) == (5, fee)
    assert {name: record[name] for name in sent} == sent
    (effect,) = gateway.effects()
    assert (effect["currency"], effect["amount"]) == ("EUR", "250.10")


def test_what_a_payout_is_paid_from_is_the_balance_that_it_uses(gateway: Any) -> None:
    """Dollars are short, euros are not."""
    fields = {"source_currency": "USD", "source_amount": "999995.01"}
    assert paid(gateway, **fields)["failure_type"] == "INSUFFICIENT_FUNDS"
    assert paid(gateway, payment_amount="999995.00")["status"] == "COMPLETED"
    assert paid(gateway, **(fields | {"source_amount": "999995.00"}))["status"] == "COMPLETED"


def test_a_balance_is_spent_to_the_last_cent_and_no_further(gateway: Any) -> None:
    """Fee included; a shortage is HTTP 200 with status FAILED and a failure_type, no effect."""
    assert paid(gateway, payment_amount="999000.00")["status"] == "COMPLETED"
    short = paid(gateway, payment_amount="990.01")
    assert (short["status"], short["failure_type"]) == ("FAILED", "INSUFFICIENT_FUNDS")
    assert short["failure_reason"]
    assert paid(gateway, payment_amount="990.00")["status"] == "COMPLETED"
    assert paid(gateway, payment_amount="0.01")["status"] == "FAILED"
    assert paid(gateway, payment_currency="USD")["status"] == "COMPLETED"
    assert paid(gateway, account_id="100042002")["status"] == "COMPLETED"
    assert len(gateway.effects()) == 4


@pytest.mark.parametrize(
    ("changed", "parameter"),
    [
        ({"request_id": "first"}, "request_id"),
        ({"request_id": "7B8C1F0E54A14F659A0E6D1F0C4B2A11"}, "request_id"),
        ({"payment_currency": "XQZ"}, "payment_currency"),
        ({"payment_amount": "250"}, "payment_amount"),
        ({"payment_currency": "JPY", "payment_amount": "1000"}, "payment_amount"),
        ({"payment_date": "20.11.2026"}, "payment_date"),
        ({"payment_date": "2026-02-30"}, "payment_date"),
        ({"source_amount": "250.11"}, "source_amount"),
        ({"source_amount": "250", "source_currency": "USD"}, "source_amount"),
        ({"source_currency": "XQZ"}, "source_currency"),
        ({"fee_paid_by": "NOBODY"}, "fee_paid_by"),
        ({"beneficiary": {}, "beneficiary_id": ""}, "beneficiary"),
        ({"beneficiary": {"date_of_birth": "1980"}}, "beneficiary.date_of_birth"),
        (
            {"beneficiary": {"address": {"country_code": "DEU"}}},
            "beneficiary.address.country_code",
        ),
        (
            {"beneficiary": {"bank_details": {"bank_country_code": "de"}}},
            "beneficiary.bank_details.bank_country_code",
        ),
        ({"payer": {"address": {"country_code": "D1"}}}, "payer.address.country_code"),
    ],
)
def test_the_refusal_of_a_payout_names_its_parameter(
    gateway: Any, changed: dict[str, Any], parameter: str
) -> None:
    """UUID, currency, two decimals, dates, countries and a payee are wanted in every profile."""
    reply = gateway.http.post("/v1/payout", json=payout_body(**changed))
    assert reply.json()["code"] == "I0002"
    assert reply.json()["message"].endswith(f"({parameter})")
    assert gateway.effects() == []


def test_a_payout_smaller_than_the_fee_cannot_pay_it(gateway: Any) -> None:
    """Nothing would arrive."""
    record = paid(gateway, payment_amount="5.00", fee_paid_by="BENEFICIARY")
    assert (record["status"], record["failure_type"]) == ("FAILED", "AMOUNT_TOO_SMALL")
    assert gateway.effects() == []


def test_a_repeated_request_id_is_paid_again(gateway: Any) -> None:
    """What the real gateway does is not known: under base money moves twice, and it is counted."""
    first, second = paid(gateway), paid(gateway)
    assert first["transaction_id"] != second["transaction_id"]
    assert len(gateway.effects()) == 2
    assert gateway.invariants()["double_effects"] == 1


def test_a_repeated_request_id_is_refused_under_extended(extended: Caller) -> None:
    """Only a payout that took place uses its request_id up, and the id has to be a UUID."""
    assert paid(extended, payment_amount="2000000.00")["status"] == "FAILED"
    assert paid(extended)["status"] == "COMPLETED"
    again = extended.http.post("/v1/payout", json=payout_body())
    assert (again.status_code, again.json()["code"]) == (400, "I0062")
    malformed = extended.http.post("/v1/payout", json=payout_body(request_id="first"))
    assert malformed.json()["code"] == "I0002"
    assert len(extended.effects()) == 1


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"merchant_id": "1"}, "I0003"),
        ({"account_id": "1"}, "I0004"),
        ({"encryption_data": "0" * 64}, "I0013"),
        ({"request_id": ""}, "I0002"),
        ({"payment_amount": "10.3"}, "I0002"),
        ({"payment_amount": 10}, "I0002"),
        ({"payment_amount": "0.00"}, "I0002"),
        ({"payment_amount": "-1.00"}, "I0002"),
        ({"payment_currency": "XXX"}, "I0002"),
        ({"fee_paid_by": "NOBODY"}, "I0002"),
        ({"source_amount": "250.11"}, "I0002"),
        ({"source_amount": {}}, "I0002"),
    ],
)
def test_a_payout_is_refused_as_json_with_http_400(
    gateway: Any, changed: dict[str, Any], code: str
) -> None:
    """Before it is a record: code, source and message, nothing happened."""
    reply = gateway.http.post("/v1/payout", json=payout_body(**changed))
    assert reply.status_code == 400
    assert set(reply.json()) == {"code", "source", "message"}
    assert (reply.json()["code"], reply.json()["source"]) == (code, "payout")
    assert gateway.effects() == []


def test_a_source_amount_may_repeat_the_payment_amount(gateway: Any) -> None:
    """The same money said twice is no exchange."""
    record = paid(gateway, source_amount="250.10", source_currency="EUR")
    assert (record["status"], record["source_amount"]) == ("COMPLETED", "250.10")


def as_xml(fields: dict[str, Any]) -> str:
    """Elements under one root."""
    parts = (
        f"<{name}>{as_xml(value)[9:-10] if isinstance(value, dict) else value}</{name}>"
        for name, value in fields.items()
    )
    return f"<request>{''.join(parts)}</request>"


@pytest.mark.parametrize("wire", ["json", "form", "xml"])
def test_a_payout_comes_in_any_wire_format(gateway: Any, wire: str) -> None:
    """The first byte decides, whatever the Content-Type says."""
    fields = payout_body()
    flat = {k: json.dumps(v) if isinstance(v, dict) else v for k, v in fields.items()}
    bodies = {"json": json.dumps(fields), "form": urlencode(flat), "xml": as_xml(fields)}
    reply = gateway.http.post(
        "/v1/payout", content=bodies[wire], headers={"Content-Type": "text/plain"}
    )
    assert reply.json()["status"] == "COMPLETED"
    details = reply.json()["beneficiary"]["bank_details"]
    assert details["iban"] == "DE89370400440532013000"


def test_a_payout_that_got_no_answer_is_found_by_its_request_id(gateway: Any) -> None:
    """The connection breaks after the commit; the truth has the payout, the page finds it."""
    gateway.faults({"operation": "payout", "kind": "status", "order_no": REQUEST_ID})
    reply = gateway.http.post("/v1/payout", json=payout_body())
    assert reply.status_code == 500
    (effect,) = gateway.effects()
    assert effect["request_id"] == REQUEST_ID
    assert gateway.invariants()["effects_without_client_record"] == 0
    assert REQUEST_ID in gateway.http.get("/_sandbox/", params={"q": REQUEST_ID[:8]}).text
    story = gateway.http.get(f"/_sandbox/transactions/{effect['transaction_id']}").text
    assert "no answer (HTTP 500)" in story
