"""Contract 2, payment by another method, by the real client against the sandbox."""

from decimal import Decimal
from typing import Any

import pytest

from recon.gateway_client import ApmPayment, ReplyOutcome, SignatureState
from tests.conformance.conftest import way_back

ORDER = "conformance-apm"
RETURN_URL = "https://shop.example/done?basket=7"


def apm_payment(**changes):
    """A payment at the shopper's own bank."""
    fields: dict[str, Any] = {
        "order_no": ORDER,
        "currency": "EUR",
        "amount": Decimal("10.00"),
        "return_url": RETURN_URL,
        "payment_method": "ideal",
        "person": {"document_number": "4417119900", "birth_date": "1980-02-29"},
    }
    return ApmPayment.model_validate(fields | changes)


def test_a_payment_waits_on_the_issuers_page(sandbox, target):
    reply = target.pay(apm_payment())
    assert (reply.outcome, reply.signature) == (ReplyOutcome.PENDING, SignatureState.VALID)
    assert reply.record.issuer_url.startswith(sandbox.base_url)
    assert reply.findings == ()
    assert sandbox.effects() == []
    assert target.status(ORDER) == "1000"


@pytest.mark.parametrize(
    ("action", "order_status", "effects", "after"),
    [("pay", "1", ["authorise_apm", "capture"], "3000"), ("cancel", "0", [], "6000")],
)
def test_what_the_payer_does_there_is_what_the_query_shows(
    sandbox, target, *, action, order_status, effects, after
):
    page = target.pay(apm_payment()).record.issuer_url
    left = sandbox.http.post(page, data={"action": action})
    back = way_back(left.headers["location"], target=target)
    assert (back["order_status"], back["basket"]) == (order_status, "7")
    assert (back["order_no"], back["amount"], back["currency"]) == (ORDER, "10.00", "EUR")
    assert [effect["operation"] for effect in sandbox.effects()] == effects
    assert target.status(ORDER) == after


def test_an_order_that_was_given_up_may_be_tried_again(sandbox, target):
    page = target.pay(apm_payment()).record.issuer_url
    taken = target.pay(apm_payment())
    assert (taken.code, taken.http_status) == ("I0061", 400)
    assert taken.outcome is ReplyOutcome.REJECTED
    sandbox.http.post(page, data={"action": "cancel"})
    assert target.pay(apm_payment()).outcome is ReplyOutcome.PENDING


def test_an_account_nobody_knows_is_not_found(sandbox, target):
    """HTTP 404 is a refusal: the document says so, and nobody was sent anywhere to pay."""
    reply = target.but(account_id="100042999").pay(apm_payment())
    assert reply.outcome is ReplyOutcome.REJECTED
    assert reply.http_status == 404
    assert sandbox.effects() == []
