import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from recon.config.rules import GatewayRules, Rules
from recon.gateway_client import (
    FailedKey,
    FindingKind,
    FraudCheck,
    OrderRecord,
    QueryAnswers,
    RefundRecord,
    ReplyFinding,
    RiskFacts,
)
from recon.instructions.queries import DETAIL_CHARACTERS_MAX, RefundAnswer, answers_of
from recon.model.terms import KeyAnswer

RECORD = OrderRecord(
    key="A-1",
    order_no="A-1",
    transaction_id="T1",
    currency="EUR",
    amount=Decimal("10.00"),
    payment_status="3000",
    query_result="1",
    reference_no="R1",
    transaction_date="20261120101010",
    transaction_at=None,
    queried_at=datetime(2026, 11, 21, tzinfo=UTC),
    extra={"risk": "low"},
)


def _reported(*records):
    return QueryAnswers(records, ("B-1",), (FailedKey("C-1", "silence"),), (), 1)


def test_every_key_gets_its_answer_and_payment():
    """Found, not found and failed stay apart; a payment is a row of the time of its answer."""
    found = answers_of(_reported(RECORD), rules=Rules())

    assert found.answers == {
        "A-1": (KeyAnswer.FOUND, ""),
        "B-1": (KeyAnswer.NOT_FOUND, ""),
        "C-1": (KeyAnswer.FAILED, "silence"),
    }
    (row,) = found.observations
    assert (row["amount"], row["currency"], row["transaction_id"]) == (1_000, "EUR", "T1")
    assert '"risk": "low"' in row["detail"]
    assert row["queried_at"] == RECORD.queried_at


def test_a_cell_that_cannot_be_read_is_told_of_a_row_that_counts():
    told = ("A-1: transaction_date is no date", "C-1: silence")
    findings = tuple(ReplyFinding(FindingKind.MALFORMED, endorsements) for endorsements in told)
    replies = replace(_reported(RECORD), findings=findings)

    assert answers_of(replies, rules=Rules()).unused == told[:1]


def test_what_is_said_of_risk_is_kept_first():
    """Undocumented fields that make the detail too long go, the risk stays; it is always JSON."""
    facts = RiskFacts(risk_action="review", risk_score="82", fraud_checks=(FraudCheck("ip", "ok"),))
    long = {"note": "x" * DETAIL_CHARACTERS_MAX}
    found = answers_of(_reported(RECORD._replace(risk=facts, extra=long)), rules=Rules())

    assert json.loads(found.observations[0]["detail"]) == {
        "cut": True,
        "risk": {
            "fraud_checks": [{"check_items": "ip", "status": "ok"}],
            "risk_action": "review",
            "risk_score": "82",
        },
    }


def test_a_code_that_is_not_mapped_is_told():
    found = answers_of(_reported(RECORD._replace(query_result="77")), rules=Rules())

    assert found.answers["A-1"] == (KeyAnswer.UNMAPPED, "query_result 77")


def test_dates_are_read_in_the_gateways_zone():
    """The 14 digits are local time of `[gateway] timezone`; digits that are no date are blank."""
    rules = Rules(gateway=GatewayRules(timezone="Asia/Tokyo"))
    bad = RECORD._replace(transaction_id="T2", transaction_date="20261320101010")
    found = answers_of(_reported(RECORD, bad), rules=rules)

    assert [row["transaction_date"] for row in found.observations] == [
        datetime(2026, 11, 20, 1, 10, 10, tzinfo=UTC),
        None,
    ]


def test_a_date_that_the_client_read_in_another_zone_is_read_anew():
    rules = Rules(gateway=GatewayRules(timezone="Asia/Tokyo"))
    read = datetime(2026, 11, 20, 10, 10, 10, tzinfo=ZoneInfo("UTC"))
    same = read.replace(tzinfo=ZoneInfo("Asia/Tokyo"))
    records = [
        RECORD._replace(transaction_id=str(at), transaction_at=at) for at in (None, read, same)
    ]
    found = answers_of(_reported(*records), rules=rules)

    dates = {row["transaction_date"] for row in found.observations}
    assert dates == {datetime(2026, 11, 20, 1, 10, 10, tzinfo=UTC)}


def test_each_payment_keeps_its_own_detail():
    shared, other = {"website": "a.example"}, {"website": "b.example"}
    risky = RECORD._replace(extra=shared, risk=RiskFacts(risk_score="82"))
    records = [RECORD._replace(extra=extra) for extra in (shared, shared, other)]
    found = answers_of(_reported(*records, risky), rules=Rules())

    details = [json.loads(row["detail"]) for row in found.observations]
    assert [detail["row"]["website"][0] for detail in details] == ["a", "a", "b", "a"]
    assert [detail["risk"] for detail in details] == [{}, {}, {}, {"risk_score": "82"}]


def test_one_unreadable_payment_makes_its_order_unknown():
    odd = RECORD._replace(transaction_id="T2", amount=Decimal("10.001"))
    found = answers_of(_reported(RECORD, odd), rules=Rules())

    answer, reason = found.answers["A-1"]
    assert (answer, found.observations) == (KeyAnswer.FAILED, ())
    assert "amount cannot be read" in reason


AT = datetime(2026, 11, 21, 9, tzinfo=UTC)
OURS = RefundRecord(
    key="i1",
    order_no="A1",
    transaction_id="T1",
    currency="EUR",
    amount=Decimal("100.00"),
    refund_amount=Decimal("12.50"),
    refund_status="1",
    payment_status="4000",
    refund_reference="i1",
    refund_reference_id="T1-01",
    refund_reason="",
    refund_date="",
    refund_at=None,
    refund_processing_date="",
    processed_at=None,
    queried_at=AT,
)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ((), ""),
        ((OURS,), "T1-01"),
        ((OURS._replace(refund_amount=Decimal("12.51")),), None),
        ((OURS._replace(currency="USD"),), None),
        ((OURS._replace(refund_reference_id=""),), None),
        ((OURS, OURS), None),
        ((OURS, OURS._replace(refund_amount=Decimal("1.00"))), None),
    ],
)
def test_only_one_fitting_refund_is_evidence(records, expected):
    answer = RefundAnswer(records, AT)

    assert answer.reference_of(amount=1250, currency="EUR") == expected
