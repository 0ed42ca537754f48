from typing import Any
from urllib.parse import parse_qs

from tests.recon.sandbox.conftest import elements, signature

SIGNED = (
    *("merchant_id", "account_id", "transaction_id", "order_no", "currency", "amount"),
    *("order_status", "result_info"),
)


def challenged(gateway: Any, **changed: Any) -> str:
    """The page of a card payment whose bank asks for a code."""
    fields = {"open3d": "do3DS", "card": "4000000000003220"} | changed
    return elements(gateway.authorise(**fields))["issuer_url"]


def told(location: str) -> dict[str, str]:
    """What the shopper's browser carries back."""
    return {name: values[0] for name, values in parse_qs(location.partition("?")[2]).items()}


def test_the_right_code_authorises_and_leads_back_with_a_signed_result(gateway: Any) -> None:
    """return_url gets the result, signed by the payment-reply template; the effect has its call."""
    page = challenged(gateway, return_url="http://127.0.0.1:9/done")
    done = gateway.http.post(page, data={"otp": "123456", "action": "pay"})
    result = told(done.headers["location"])
    assert (done.status_code, result["order_status"]) == (303, "1")
    assert result["encryption_data"] == signature(*(result[name] for name in SIGNED))
    (effect,) = gateway.effects()
    assert effect["operation"] == "authorise"
    assert set(gateway.invariants().values()) == {0}


def test_a_wrong_code_may_be_tried_three_times(gateway: Any) -> None:
    """Twice the page asks again and counts down, the third time the payment has failed."""
    page = challenged(gateway)
    answers = [gateway.http.post(page, data={"otp": "1", "action": "pay"}) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [422, 422, 303]
    for left, answer in zip((2, 1), answers, strict=False):
        assert f"The code is wrong. Tries left: {left}." in answer.text
    right = gateway.http.post(page, data={"otp": "123456", "action": "pay"})
    assert "The payment was not made; nothing was taken." in right.text
    assert gateway.effects() == []
    assert gateway.status("web-1") == "6000"


def test_who_gives_up_goes_to_the_cancel_url(gateway: Any) -> None:
    """The attempt is over; without a cancel_url it is the return_url, without both the page."""
    page = challenged(gateway, cancel_url="https://shop.example/no", return_url="https://a.example")
    left = gateway.http.post(page, data={"action": "cancel"})
    assert left.headers["location"].startswith("https://shop.example/no?")
    assert told(left.headers["location"])["order_status"] == "0"
    other = challenged(gateway, order_no="web-2")
    stays = gateway.http.post(other, data={"action": "cancel"})
    assert other.endswith(stays.headers["location"])
    assert "The payment was not made; nothing was taken." in gateway.http.get(other).text


def test_a_return_url_that_is_no_web_address_is_not_followed(gateway: Any) -> None:
    """Neither a script nor another scheme: the shopper stays and no link leads there."""
    page = challenged(gateway, return_url="javascript:alert(1)")
    done = gateway.http.post(page, data={"otp": "123456", "action": "pay"})
    assert done.headers["location"].startswith("/v1/pay/")
    assert "javascript" not in gateway.http.get(page).text


def test_an_address_that_leads_nowhere_is_404(gateway: Any) -> None:
    """A page that was guessed shows nothing, and changes nothing."""
    challenged(gateway)
    for path in ("/v1/pay/", "/v1/pay/0000", "/v1/pay/%00"):
        assert gateway.http.get(path).status_code == 404
    assert gateway.http.post("/v1/pay/0000", data={"action": "pay"}).status_code == 404
    assert gateway.effects() == []


def test_everything_of_a_page_is_escaped_and_may_be_framed(gateway: Any) -> None:
    """No markup of a client becomes markup; no header forbids a frame."""
    reply = gateway.http.get(challenged(gateway))
    assert 'id="pay"' in reply.text
    assert "x-frame-options" not in reply.headers
    assert "frame-ancestors" not in reply.headers["content-security-policy"]


def test_a_visit_stands_in_the_story_of_its_payment(gateway: Any) -> None:
    """The timeline has the call and the visit, each with what is true."""
    page = challenged(gateway)
    gateway.http.post(page, data={"otp": "123456", "action": "pay"})
    transaction_id = gateway.effects()[0]["transaction_id"]
    story = gateway.http.get(f"/_sandbox/transactions/{transaction_id}").text
    assert "pay<br>RL" in story
    assert "The client was told the truth, every time." in story
