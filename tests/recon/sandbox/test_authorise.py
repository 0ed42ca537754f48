import hashlib
from typing import Any

import httpx
import pytest
from lxml import etree

from recon.sandbox import SandboxOptions, serving
from recon.sandbox.authorise import luhn_holds, masked


def elements(reply: httpx.Response) -> dict[str, str]:
    """The elements under `respon`."""
    root = etree.fromstring(reply.content)
    assert root.tag == "respon"
    return {child.tag: child.text or "" for child in root}


def test_a_card_payment_is_authorised_and_found(gateway: Any) -> None:
    """The result is XML with order_status 1; the truth and the query have the payment."""
    reply = gateway.authorise()
    result = elements(reply)
    assert reply.headers["content-type"].startswith("application/xml")
    assert (result["order_status"], result["result_info"]) == ("1", "0000:Success")
    assert result["card"] == "411111***1111"
    (effect,) = gateway.effects()
    assert (effect["operation"], effect["amount"]) == ("authorise", "10.00")
    assert effect["transaction_id"] == result["transaction_id"]
    assert gateway.status("web-1") == "2000"


def test_the_result_is_signed_by_the_payment_reply_template(gateway: Any) -> None:
    """SHA-256 over eight fields of the reply and the key, spaces removed."""
    result = elements(gateway.authorise())
    names = (
        "merchant_id account_id transaction_id order_no currency amount order_status result_info"
    )
    plain = "".join(result[name] for name in names.split()) + "sandbox"
    expected = hashlib.sha256(plain.replace(" ", "").encode()).hexdigest()
    assert result["encryption_data"] == expected


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"card": "4111111111111112"}, "R0005"),
        ({"card": "4000000000000002"}, "R0001"),
        ({"card": "4000000000009995"}, "R0002"),
        ({"expiration_year": "2026", "expiration_month": "10"}, "R0006"),
        ({"expiration_month": "13"}, "R0006"),
    ],
)
def test_declined_cards_leave_an_attempt_and_no_effect(
    gateway: Any, changed: dict[str, str], code: str
) -> None:
    """Luhn, expiry and documented test numbers decline: order_status 0, status 6000, no effect."""
    result = elements(gateway.authorise(**changed))
    assert result["order_status"] == "0"
    assert result["result_info"].startswith(f"{code}:")
    assert gateway.effects() == []
    assert gateway.status("web-1") == "6000"


def test_a_card_is_good_to_the_end_of_its_month(gateway: Any) -> None:
    """The virtual clock decides, not the machine's."""
    result = elements(gateway.authorise(expiration_year="26", expiration_month="11"))
    assert result["order_status"] == "1"


def test_an_order_number_is_used_once_unless_every_attempt_was_declined(gateway: Any) -> None:
    """I0061 after a success; after declines the shopper may try again."""
    gateway.authorise(card="4000000000000002")
    assert elements(gateway.authorise())["order_status"] == "1"
    again = elements(gateway.authorise())
    assert again["result_info"].startswith("I0061:")
    assert again["transaction_id"] == ""
    assert len(gateway.effects()) == 1


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"merchant_id": "1"}, "I0003"),
        ({"account_id": "1"}, "I0004"),
        ({"encryption_data": "0" * 64, "amount": "x"}, "I0013"),
        ({"first_name": ""}, "I0002"),
        ({"security_code": ""}, "I0002"),
        ({"amount": "10.3"}, "I0002"),
        ({"amount": "0.00"}, "I0002"),
        ({"currency": "XXX"}, "I0002"),
        ({"order_no": "a,b"}, "I0002"),
    ],
)
def test_card_refusals_are_xml_with_status_0(
    gateway: Any, changed: dict[str, str], code: str
) -> None:
    """Merchant, account, signature, then the fields; nothing is kept of a refused payment."""
    reply = gateway.authorise(**changed)
    result = elements(reply)
    assert reply.status_code == 200
    assert result["order_status"] == "0"
    assert result["result_info"].startswith(f"{code}:")
    assert (result["encryption_data"] == "") == (code == "I0013")
    assert gateway.effects() == []


@pytest.mark.parametrize(("merchant", "status"), [("100042", 400), ("1", 404)])
def test_a_payment_without_a_card_is_refused(gateway: Any, merchant: str, status: int) -> None:
    """Other payment methods are not offered: JSON, and 404 for an unknown merchant."""
    reply = gateway.authorise(card="", merchant_id=merchant)
    assert reply.status_code == status
    assert set(reply.json()) == {"code", "source", "message"}
    assert gateway.effects() == []


def test_a_saved_card_alone_does_not_stand_in_for_the_card(gateway: Any) -> None:
    """All twelve signed fields are required of a card payment, also of one with a token."""
    result = elements(gateway.authorise(card="", token_id="t1"))
    assert result["result_info"].startswith("I0002:")


def test_amount_as_a_number_is_refused(gateway: Any) -> None:
    """A payment's amount is text."""
    assert elements(gateway.authorise(amount=10))["order_status"] == "0"


def test_capture_mode_auto_captures_at_once() -> None:
    """With --capture-mode auto a payment is paid when it is authorised."""
    fields = {
        "merchant_id": "100042",
        "account_id": "100042001",
        "order_no": "a1",
        "currency": "JPY",
        "amount": "500",
        "first_name": "A",
        "last_name": "B",
        "card": "4111111111111111",
        "expiration_year": "2030",
        "expiration_month": "1",
        "security_code": "123",
        "shopper_email": "a@b.example",
    }
    names = (
        "merchant_id account_id order_no currency amount first_name last_name card"
        " expiration_year expiration_month security_code shopper_email"
    )
    plain = "".join(fields[name] for name in names.split()) + "sandbox"
    fields["encryption_data"] = hashlib.sha256(plain.encode()).hexdigest()
    with serving(SandboxOptions(orders=0, capture_mode="auto")) as sandbox:
        httpx.post(f"{sandbox.base_url}/v1/authorise", json=fields, trust_env=False)
        truth = httpx.get(f"{sandbox.base_url}/_sandbox/effects", trust_env=False).text
    assert [line.split('"')[3] for line in truth.splitlines()] == ["authorise", "capture"]
    assert truth.count('"amount": "500.00"') == 2


def test_luhn_and_mask() -> None:
    """The check digit is looked at; of a card number only ten digits are ever shown."""
    assert luhn_holds("4111111111111111")
    assert not luhn_holds("4111111111111121")
    assert masked("4111 1111 1111 1111") == "411111***1111"
    assert masked("not a card") == ""
