"""Contract 3, the hosted page, by the real client against the sandbox."""

from decimal import Decimal
from typing import Any

import pytest

from recon.gateway_client import HostedPayment, ReplyOutcome
from tests.conformance.conftest import way_back

ORDER = "conformance-hosted"
CARD = {
    "card": "4111111111111111",
    "expiration_month": "05",
    "expiration_year": "2030",
    "security_code": "123",
    "action": "pay",
}


def hosted_payment(**changes):
    fields: dict[str, Any] = {
        "order_no": ORDER,
        "currency": "EUR",
        "amount": Decimal("10.00"),
        "return_url": "https://shop.example/done?basket=7",
        "first_name": 'Ann "<b>" & Lee',
    }
    return HostedPayment.model_validate(fields | changes)


def card_page(sandbox, reply):
    """Where a browser that submits the page's form is led."""
    sent_on = sandbox.http.post(reply.form.action, data=reply.form.inputs)
    assert sent_on.status_code == 303
    return str(sent_on.headers["location"])


def test_the_page_is_read_as_data_and_compared_with_the_request(sandbox, target):
    """Pending, with the form to hand on: aliases and allParams say what was asked for."""
    reply = target.pay(hosted_payment())
    assert (reply.outcome, reply.findings) == (ReplyOutcome.PENDING, ())
    inputs = reply.form.inputs
    assert (inputs["merNo"], inputs["orderNo"], inputs["orderAmount"]) == ("100042", ORDER, "10.00")
    assert inputs["gbc_id"]
    assert reply.form.parameters["first_name"] == 'Ann "<b>" & Lee'
    assert "Lee" not in repr(reply)
    assert sandbox.effects() == []
    assert target.status(ORDER) == "1000"


def test_a_card_on_the_gateways_page_pays(sandbox, target):
    page = card_page(sandbox, target.pay(hosted_payment()))
    back = way_back(sandbox.http.post(page, data=CARD).headers["location"], target=target)
    (effect,) = sandbox.effects()
    assert (effect["operation"], effect["amount"]) == ("authorise", "10.00")
    assert (back["order_status"], back["transaction_id"]) == ("1", effect["transaction_id"])
    assert target.status(ORDER) == "2000"


@pytest.mark.parametrize(
    "given", [CARD | {"card": "4000000000000002"}, {"action": "cancel"}], ids=["declined", "left"]
)
def test_a_payment_that_is_not_made_leads_back_and_has_no_effect(sandbox, target, given):
    page = card_page(sandbox, target.pay(hosted_payment()))
    back = way_back(sandbox.http.post(page, data=given).headers["location"], target=target)
    assert back["order_status"] == "0"
    assert (target.status(ORDER), sandbox.effects()) == ("6000", [])
    assert target.pay(hosted_payment()).outcome is ReplyOutcome.PENDING


def test_a_mistyped_card_is_asked_for_again(sandbox, target):
    page = card_page(sandbox, target.pay(hosted_payment()))
    again = sandbox.http.post(page, data=CARD | {"card": "4242424242424243"}).text
    assert "The card number is not valid" in again
    assert ("42424243" in again, sandbox.effects()) == (False, [])
    sandbox.http.post(page, data=CARD)
    assert target.status(ORDER) == "2000"


def test_a_hosted_page_needs_no_way_back(sandbox, target):
    """Table 2.1 has no return_url here: it is signed as empty, and the shopper stays there."""
    page = card_page(sandbox, target.pay(hosted_payment(return_url="")))
    sandbox.http.post(page, data=CARD)
    assert target.status(ORDER) == "2000"
