from typing import Any

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


def test_a_payout_smaller_than_the_fee_cannot_pay_it(gateway: Any) -> None:
    """Nothing would arrive."""
    record = paid(gateway, payment_amount="5.00", fee_paid_by="BENEFICIARY")
    assert (record["status"], record["failure_type"]) == ("FAILED", "AMOUNT_TOO_SMALL")
    assert gateway.effects() == []


def test_a_source_amount_may_repeat_the_payment_amount(gateway: Any) -> None:
    """The same money said twice is no exchange."""
    record = paid(gateway, source_amount="250.10", source_currency="EUR")
    assert (record["status"], record["source_amount"]) == ("COMPLETED", "250.10")
