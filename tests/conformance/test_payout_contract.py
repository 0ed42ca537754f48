"""Contract 10, payout, by the real client against the sandbox."""

from decimal import Decimal
from typing import Any

import pytest

from recon.gateway_client import PayoutRow, ReplyOutcome, SignatureState

REQUEST_ID = "7b8c1f0e-54a1-4f65-9a0e-6d1f0c4b2a11"
IBAN = "DE89370400440532013000"


def payout_row(**changes):
    """A payout to a person with a bank account."""
    fields: dict[str, Any] = {
        "request_id": REQUEST_ID,
        "payment_amount": "250.10",
        "payment_currency": "EUR",
        "fee_paid_by": "PAYER",
        "beneficiary": {
            "entity_type": "PERSONAL",
            "first_name": "Ann",
            "last_name": "Lee",
            "date_of_birth": "1980-02-29",
            "bank_details": {"iban": IBAN, "bank_country_code": "DE"},
        },
        "payer": {"company_name": "Contoso", "entity_type": "COMPANY"},
    }
    return PayoutRow.model_validate(fields | changes)


def paid(target, **changes):
    """The reply to one payout and its one row."""
    reply = target.move("payout", [payout_row(**changes)])
    (row,) = reply.rows
    return reply, row


@pytest.mark.parametrize(
    ("payer", "pays", "receives"),
    [("PAYER", "255.10", "250.10"), ("BENEFICIARY", "250.10", "245.10")],
)
def test_a_payout_is_one_effect_and_says_who_paid_the_fee(sandbox, target, payer, pays, receives):
    reply, row = paid(target, fee_paid_by=payer)
    assert (row.outcome, reply.signature) == (ReplyOutcome.DONE, SignatureState.VALID)
    assert reply.findings == ()
    record = row.payout
    assert (record.amount_payer_pays, record.amount_beneficiary_receives) == (
        Decimal(pays),
        Decimal(receives),
    )
    assert (record.fee_amount, record.fee_currency) == (Decimal("5.00"), "EUR")
    (effect,) = sandbox.effects()
    assert (effect["operation"], effect["request_id"]) == ("payout", REQUEST_ID)
    assert (effect["amount"], effect["transaction_id"]) == ("250.10", row.transaction_id)
    assert IBAN not in repr(reply)


@pytest.mark.parametrize(
    ("changes", "pays", "receives", "fee"),
    [
        ({}, "275.11", "250.10", "USD"),
        ({"source_amount": "300.00"}, "305.00", "250.10", "USD"),
        ({"source_amount": "300.00", "fee_paid_by": "BENEFICIARY"}, "300.00", "245.10", "EUR"),
    ],
)
def test_a_payout_from_another_currency_is_done(sandbox, target, changes, pays, receives, fee):
    reply, row = paid(target, source_currency="USD", **changes)
    assert (row.outcome, reply.findings) == (ReplyOutcome.DONE, ())
    record = row.payout
    assert (record.amount_payer_pays, record.amount_beneficiary_receives) == (
        Decimal(pays),
        Decimal(receives),
    )
    assert record.fee_currency == fee
    assert len(sandbox.effects()) == 1


@pytest.mark.parametrize(
    ("changes", "failure"),
    [
        ({"payment_amount": "2000000.00"}, "INSUFFICIENT_FUNDS"),
        ({"payment_amount": "4.00", "fee_paid_by": "BENEFICIARY"}, "AMOUNT_TOO_SMALL"),
    ],
)
def test_a_payout_that_cannot_be_made_is_a_record_with_its_reason(
    sandbox, target, changes, failure
):
    reply, row = paid(target, **changes)
    assert (row.outcome, row.payout.failure_type) == (ReplyOutcome.FAILED, failure)
    assert row.payout.failure_reason
    assert not reply.stop_reason
    assert sandbox.effects() == []


def test_a_request_that_comes_again_is_paid_once(sandbox, target):
    paid(target)
    _, second = paid(target)
    assert second.outcome in {ReplyOutcome.REJECTED, ReplyOutcome.UNKNOWN}
    assert len(sandbox.effects()) == 1
    assert sandbox.invariants()["double_effects"] == 0
