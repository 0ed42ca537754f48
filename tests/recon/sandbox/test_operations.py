"""Operations over HTTP, where the conformance tests do not look."""

from typing import Any

import pytest

from tests.recon.sandbox.conftest import ACCOUNT, MERCHANT, signature


def euros(rows):
    return next(row for row in rows if row["currency"] == "EUR")


def refund_row(row, amount, **more):
    """A refund of some of a payment."""
    return row | {"refund_amount": amount, "refund_reason": "returned"} | more


def test_an_equal_refund_sent_twice_is_legal_and_only_the_invariant_shows_it(gateway):
    """The gateway cannot tell a repeat from a second refund; the truth can."""
    row = euros(gateway.captured())
    for _ in range(2):
        assert gateway.row("refund", refund_row(row, "1.00"))["refund_status"] == "1"
    assert gateway.invariants()["double_effects"] == 1
    gateway.row("refund", refund_row(row, "1.00", refund_reason="another"))
    assert gateway.invariants()["double_effects"] == 1


def test_one_intention_under_other_references_is_counted_by_its_money(gateway):
    """Equal money of one payment is one intention, whatever reason or reference it bears."""
    row = euros(gateway.captured())
    gateway.row("refund", refund_row(row, "1.00", refund_reference="mine"))
    gateway.row("refund", refund_row(row, "1.50", refund_reference="mine"))
    assert gateway.invariants()["double_intentions"] == 0
    gateway.row("refund", refund_row(row, "1.00", refund_reference="other", refund_reason="new"))
    counted = gateway.invariants()
    assert (counted["double_effects"], counted["double_intentions"]) == (0, 1)


def test_an_intention_that_the_gateway_took_back_may_take_effect_again(gateway):
    """A refund that flipped to a failure stands no more; the same one after it is the only one."""
    row = euros(gateway.captured())
    gateway.faults({"operation": "refund", "kind": "late_flip", "seconds": 3600, "times": 1})
    gateway.row("refund", refund_row(row, "1.00"))
    gateway.pass_days(1)
    gateway.row("refund", refund_row(row, "1.00", refund_reference="again"))
    assert gateway.invariants()["double_intentions"] == 0


def test_an_authorisation_expires_after_seven_days(gateway):
    row = euros(gateway.authorised())
    gateway.pass_days(4)
    assert gateway.status(row["order_no"]) == "2000"
    gateway.pass_days(3)
    assert gateway.status(row["order_no"]) == "6100"
    assert gateway.row("capture", row)["error_message"].startswith("A0009:")
    assert gateway.row("cancel", row)["error_message"].startswith("A0009:")
    assert gateway.effects() == []


def test_a_refund_is_refused_after_180_days(gateway):
    row = euros(gateway.captured())
    gateway.pass_days(150)
    assert gateway.row("refund", refund_row(row, "1.00"))["refund_status"] == "1"
    gateway.pass_days(31)
    late = gateway.row("refund", refund_row(row, "1.00"))
    assert late["refund_message"].startswith("V0027:")


def test_only_99_refunds_fit_one_payment(gateway):
    """The reference has two digits; the hundredth refund is refused."""
    row = euros(gateway.captured())
    for start in (0, 50):
        size = min(50, 99 - start)
        reply = gateway.batch("refund", [refund_row(row, "0.01")] * size).json()
        assert {answer["refund_status"] for answer in reply["refund_orders"]} == {"1"}
    assert reply["refund_orders"][-1]["refund_reference_id"].endswith("-99")
    assert gateway.row("refund", refund_row(row, "0.01"))["refund_message"].startswith("V0026:")


@pytest.mark.parametrize(("currency", "half"), [("JPY", "100.00"), ("KWD", "0.100")])
def test_currencies_keep_their_own_decimals(gateway, currency, half):
    row = next(row for row in gateway.captured() if row["currency"] == currency)
    assert gateway.row("refund", refund_row(row, half))["refund_status"] == "1"
    assert gateway.effects()[0]["amount"] == half
    for wrong in ("1.50", "1", "1000") if currency == "JPY" else ("0.1", "0.10", "1"):
        answer = gateway.row("refund", refund_row(row, wrong))
        assert answer["refund_message"].startswith("V0015:"), wrong


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


def payout_body(**changed):
    fields = PAYOUT | changed
    names = ("merchant_id", "account_id", "request_id", "payment_currency", "payment_amount")
    return {"encryption_data": signature(*(str(fields[name]) for name in names))} | fields


def paid(gateway, **changed):
    """The record of a payout that is not refused."""
    reply = gateway.http.post("/v1/payout", json=payout_body(**changed))
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_a_balance_is_spent_to_the_last_cent_and_no_further(gateway):
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
