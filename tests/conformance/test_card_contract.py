"""Contract 1, payment by card, by the real client against the sandbox."""

from decimal import Decimal
from typing import Any

import pytest
from pydantic import SecretStr

from recon.gateway_client import CardPayment, ReplyOutcome, SignatureState


def card_payment(**changes):
    """A payment by a card that works."""
    fields: dict[str, Any] = {
        "order_no": "conformance-1",
        "currency": "EUR",
        "amount": Decimal("10.00"),
        "first_name": "Ann",
        "last_name": "Lee",
        "shopper_email": "ann@example.com",
        "card": SecretStr("4111111111111111"),
        "expiration_month": SecretStr("05"),
        "expiration_year": SecretStr("2030"),
        "security_code": SecretStr("123"),
    }
    return CardPayment.model_validate(fields | changes)


def test_a_card_payment_is_authorised(sandbox, target):
    reply = target.pay(card_payment())
    assert (reply.outcome, reply.code) == (ReplyOutcome.DONE, "0000")
    assert reply.signature is SignatureState.VALID
    assert reply.findings == ()
    assert "4111111111111111" not in reply.record.card
    (effect,) = sandbox.effects()
    assert (effect["operation"], effect["amount"]) == ("authorise", "10.00")
    assert effect["transaction_id"] == reply.record.transaction_id
    (record,) = target.ask(order_nos=["conformance-1"]).found
    assert record.transaction_id == reply.record.transaction_id
    assert record.payment_status == "2000"


def test_a_reused_order_number_is_refused(sandbox, target):
    target.pay(card_payment())
    second = target.pay(card_payment())
    assert second.outcome in {ReplyOutcome.FAILED, ReplyOutcome.REJECTED}
    assert second.code == "I0061"
    assert len(sandbox.effects()) == 1


@pytest.mark.parametrize("changed", [{"card": "4000000000000002"}, {"order_no": "a-2"}])
def test_a_declined_card_leaves_no_effect(sandbox, target, changed):
    declined = {"card": "4000000000000002"} | changed
    reply = target.pay(card_payment(**declined))
    assert reply.outcome is ReplyOutcome.FAILED
    assert reply.message
    assert sandbox.effects() == []
