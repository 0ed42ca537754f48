from typing import Any

import pytest

from tests.recon.sandbox.conftest import elements, signature


def test_a_payment_by_another_method_waits_on_the_issuers_page(gateway: Any) -> None:
    """XML with the issuer_url, signed; the order is pending and nothing has happened yet."""
    reply = gateway.authorise_apm()
    result = elements(reply)
    assert reply.headers["content-type"].startswith("application/xml")
    names = {"merchant_id", "account_id", "order_no", "amount", "currency", "issuer_url"}
    assert set(result) == names | {"encryption_data"}
    assert result["issuer_url"].startswith(f"{gateway.base_url}/v1/pay/")
    signed = signature(*(result[name] for name in ("merchant_id", "account_id", "order_no")), "EUR")
    assert result["encryption_data"] != signed
    plain = ("100042", "100042001", "", "web-1", "EUR", "10.00", "", "")
    assert result["encryption_data"] == signature(*plain)
    assert gateway.status("web-1") == "1000"
    assert gateway.effects() == []


def test_paying_authorises_and_captures_at_once(gateway: Any) -> None:
    """Both effects come with the payer's click, once, and the shopper goes back with the result."""
    page = elements(gateway.authorise_apm())["issuer_url"]
    paid = gateway.http.post(page, data={"action": "pay"})
    assert paid.status_code == 303
    assert paid.headers["location"].startswith("https://shop.example/done?basket=7&merchant_id=")
    gateway.http.post(page, data={"action": "pay"})
    effects = gateway.effects()
    assert [(effect["operation"], effect["amount"]) for effect in effects] == [
        ("authorise_apm", "10.00"),
        ("capture", "10.00"),
    ]
    assert gateway.status("web-1") == "3000"
    assert set(gateway.invariants().values()) == {0}


@pytest.mark.parametrize(
    ("changed", "status", "code"),
    [
        ({"merchant_id": "1"}, 404, "I0003"),
        ({"account_id": "1"}, 404, "I0004"),
        ({"encryption_data": "0" * 64}, 400, "I0013"),
        ({"payment_method": ""}, 400, "I0002"),
        ({"return_url": ""}, 400, "I0002"),
        ({"amount": "10.3"}, 400, "I0002"),
        ({"order_no": "a,b"}, 400, "I0002"),
    ],
)
def test_apm_refusals_are_json_with_400_or_404(
    gateway: Any, changed: dict[str, Any], status: int, code: str
) -> None:
    """404 for a merchant or account that is not known, 400 for all else; nothing is kept."""
    reply = gateway.authorise_apm(**changed)
    assert reply.status_code == status
    assert set(reply.json()) == {"code", "source", "message"}
    assert reply.json()["code"] == code
    assert gateway.query(orders="web-1").json()["orders_list"][0]["query_result"] == "2"


def test_an_order_that_waits_for_its_payer_cannot_be_started_again(gateway: Any) -> None:
    """I0061 while it is pending; after the payer gave up the order may be tried again."""
    page = elements(gateway.authorise_apm())["issuer_url"]
    again = gateway.authorise_apm()
    assert (again.status_code, again.json()["code"]) == (400, "I0061")
    gateway.http.post(page, data={"action": "cancel"})
    assert gateway.status("web-1") == "6000"
    assert gateway.authorise_apm().status_code == 200
