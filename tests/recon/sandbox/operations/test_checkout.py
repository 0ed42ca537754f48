import re
from typing import Any
from urllib.parse import parse_qs

import pytest
from lxml import etree

from recon.sandbox.operations.checkout import NEVER_SHOWN
from recon.sandbox.operations.checkout_inputs import ALIASES, FIXED, HOSTED_FIELDS

DOCUMENT_FIXED = [
    "gbc_id",
    "connector_code",
    "account_name",
    "website",
    "pm_id",
    "apm_type",
    "descriptor",
    "orderprefix",
    "rrtimezone",
    "ordernumlength",
    "sendbgoods",
    "replacename",
    "send_bank_website",
    "replace_up_id",
    "replace_match_address",
    "to_pass_page",
]
DOCUMENT_ALIASES = [
    "merNo",
    "orderNo",
    "orderCurrency",
    "orderAmount",
    "itemTotal",
    "taxTotal",
    "shipFee",
    "shippingDiscount",
    "goodsInfo",
    "remark",
    "email",
    "phone",
    "firstName",
    "lastName",
    "address",
    "city",
    "state",
    "zip",
    "country",
    "shipFirstName",
    "shipLastName",
    "shipCountry",
    "shipState",
    "shipCity",
    "shipAddress",
    "shipZip",
    "notifyUrl",
    "returnUrl",
    "cancelUrl",
    "cancel_url",
    "return_url",
    "defaultLang",
    "default_lang",
    "shopperId",
    "shopperLevel",
    "gatewayNo",
    "signInfo",
    "token",
    "isOpen3D",
    "paymentToken",
    "cardType",
    "card_type",
    "merSendLogoNo",
    "logo_name",
    "verifyBillingAddress",
    "verify_billing_address",
    "APMType",
    "payment_method",
    "source_request_ip",
    "source_notify_url",
]
CARD = {
    "card": "4111111111111111",
    "expiration_month": "05",
    "expiration_year": "2030",
    "security_code": "123",
    "action": "pay",
}


def inputs_of(page: str) -> dict[str, str]:
    """The hidden inputs of the page's one form."""
    root = etree.fromstring(page, etree.HTMLParser())
    names = [found.get("name") for found in root.iter("input")]
    assert len(names) == len(set(names))
    return {found.get("name"): found.get("value") for found in root.iter("input")}


def hosted_page(gateway: Any, **changed: Any) -> str:
    """The address of the card form, as a browser that submits the checkout page gets it."""
    page = gateway.checkout(**changed)
    assert page.status_code == 200, page.text
    sent_on = gateway.http.post("/v1/checkout", data=inputs_of(page.text))
    assert sent_on.status_code == 303
    return sent_on.headers["location"]


def test_the_checkout_page_has_every_input_the_document_lists(gateway: Any) -> None:
    """Fixed inputs, request fields, aliases and allParams, each once; it submits itself."""
    reply = gateway.checkout(item_total="9.00", first_name='Ann "<b>" & Lee')
    assert reply.headers["content-type"].startswith("text/html")
    inputs = inputs_of(reply.text)
    listed = {*DOCUMENT_FIXED, *DOCUMENT_ALIASES, *HOSTED_FIELDS, "allParams"}
    assert listed <= set(inputs)
    assert inputs["gbc_id"]
    assert (inputs["merNo"], inputs["orderNo"], inputs["orderAmount"]) == (
        "100042",
        "web-1",
        "10.00",
    )
    assert inputs["itemTotal"] == inputs["item_total"] == "9.00"
    assert inputs["firstName"] == 'Ann "<b>" & Lee'
    assert parse_qs(inputs["allParams"])["order_no"] == ["web-1"]
    assert f'action="{gateway.base_url}/v1/checkout"' in reply.text
    assert 'onload="document.forms[0].submit()"' in reply.text


def test_the_inputs_are_those_of_the_api_document() -> None:
    """No name beside the document's, and none of a card among the fields."""
    assert {*DOCUMENT_FIXED} == {*FIXED, "gbc_id"}
    assert {*DOCUMENT_ALIASES} == {*ALIASES, "source_request_ip"}
    assert len(HOSTED_FIELDS) == len(set(HOSTED_FIELDS))
    assert not NEVER_SHOWN & set(HOSTED_FIELDS)


def test_a_hosted_payment_is_paid_by_card_on_the_gateways_own_page(gateway: Any) -> None:
    """Until then it is pending; then it is authorised, once, and the shopper is sent back."""
    page = hosted_page(gateway)
    assert gateway.status("web-1") == "1000"
    form = gateway.http.get(page)
    assert form.headers["cache-control"] == "no-store"
    assert {"card", "pay", "cancel"} <= set(re.findall(r'id="([a-z_]+)"', form.text))
    paid = gateway.http.post(page, data=CARD)
    told = parse_qs(paid.headers["location"].partition("?")[2])
    assert told["order_status"] == ["1"]
    (effect,) = gateway.effects()
    assert (effect["operation"], effect["transaction_id"]) == (
        "authorise",
        told["transaction_id"][0],
    )
    assert gateway.status("web-1") == "2000"
    assert set(gateway.invariants().values()) == {0}


def test_what_the_browser_carries_is_not_believed(gateway: Any) -> None:
    """An amount that was changed on the way pays the amount that the merchant asked for."""
    inputs = inputs_of(gateway.checkout().text) | {"amount": "0.01", "orderAmount": "0.01"}
    page = gateway.http.post("/v1/checkout", data=inputs).headers["location"]
    gateway.http.post(page, data=CARD)
    assert [effect["amount"] for effect in gateway.effects()] == ["10.00"]


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"merchant_id": "1"}, "I0003"),
        ({"account_id": "1"}, "I0004"),
        ({"encryption_data": "0" * 64}, "I0013"),
        ({"amount": "10.3"}, "I0002"),
        ({"gbc_id": "nobody's"}, "I0002"),
    ],
)
def test_checkout_refusals_are_json_with_400(
    gateway: Any, changed: dict[str, str], code: str
) -> None:
    """Code, source and message; no payment begins."""
    reply = gateway.checkout(**changed)
    assert (reply.status_code, reply.json()["code"]) == (400, code)
    assert gateway.query(orders="web-1").json()["orders_list"][0]["query_result"] == "2"


def test_no_card_is_ever_shown_by_the_checkout_page(gateway: Any) -> None:
    """A merchant that sends one by mistake does not get it back, in no input."""
    page = gateway.checkout(card="4111111111111111", security_code="123").text
    assert "4111111111111111" not in page
    assert not {"card", "security_code"} & set(inputs_of(page))


def test_a_declined_card_ends_the_attempt_and_a_mistyped_one_does_not(gateway: Any) -> None:
    """A wrong check digit is asked for again; the bank's no sends the shopper back with it."""
    page = hosted_page(gateway, open3d="do3DS")
    wrong = gateway.http.post(page, data=CARD | {"card": "4111111111111112"})
    assert (wrong.status_code, "not valid" in wrong.text) == (422, True)
    assert "4111111111111112" not in wrong.text
    assert gateway.status("web-1") == "1000"
    declined = gateway.http.post(page, data=CARD | {"card": "4000000000000002"})
    assert "order_status=0" in declined.headers["location"]
    assert gateway.status("web-1") == "6000"
    assert gateway.effects() == []
    assert gateway.checkout().status_code == 200


def test_a_hosted_payment_may_be_challenged(gateway: Any) -> None:
    """The same page then asks for the code; with it the payment takes effect."""
    page = hosted_page(gateway, open3d="do3DS", token_flag="YES")
    asked = gateway.http.post(page, data=CARD | {"card": "4000000000003220"})
    assert asked.headers["location"] in page
    assert 'id="otp"' in gateway.http.get(page).text
    gateway.http.post(page, data={"otp": "123456", "action": "pay"})
    assert [effect["operation"] for effect in gateway.effects()] == ["authorise"]
    assert "The payment is authorised" in gateway.http.get(page).text
