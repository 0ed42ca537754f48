from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pydantic import SecretStr

from recon.gateway_client import (
    FindingKind,
    FraudCheck,
    GatewayInterface,
    OurAccount,
    RiskFacts,
    RiskReason,
)
from recon.gateway_client.messages import PreparedCall
from recon.gateway_client.queries import (
    ORDER_FIELDS,
    REFUND_FIELDS,
    REFUND_QUERY,
    GroupAnswer,
    OrderRecord,
    RefundRecord,
    _extra,
    read_group,
)
from recon.privacy.foreign_text import PRIVATE_NAMES, is_private, without_private
from tests.recon.gateway_client.played import NOW, asked, raw_of

ROW = {
    "order_no": "SO1",
    "transaction_id": "T1",
    "currency": "EUR",
    "amount": "10.00",
    "payment_status": 3000,
    "query_result": "1",
    "reference_no": "R1",
    "transaction_date": "20261119010203",
    "website": "shop 4111111111111111",
    "card": "4111111111111111",
}


@pytest.fixture(scope="session")
def context(account: OurAccount) -> PreparedCall:
    """An enforcing reader of a query by order number."""
    return asked(account)


def read(context: PreparedCall, *rows: object, **head: object) -> GroupAnswer[OrderRecord]:
    """The answer of a reply with these rows to a query of SO1."""
    reply = {"return_status": "1", "orders_list": list(rows)} | head
    return read_group(["SO1"], raw=raw_of(reply), sent=context, kind="order_no")


def test_a_record_keeps_what_the_gateway_said(context: PreparedCall) -> None:
    (record,) = read(context, ROW, is3ds="Y").records

    assert (record.amount, record.payment_status) == (Decimal("10.00"), "3000")
    assert record.transaction_at == datetime(2026, 11, 19, 1, 2, 3, tzinfo=UTC)
    assert (record.transaction_date, record.queried_at) == ("20261119010203", NOW)
    assert record.extra == {"website": "shop 411111******1111"}
    assert record.reply_extra == {"is3ds": "Y"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("amount", "10.3"),
        ("amount", 7.5),
        ("amount", "-10.00"),
        ("amount", "1,000.00"),
        ("amount", ""),
        ("amount", "1e3"),
        ("amount", "10"),
        ("amount", "10.005"),
        ("currency", "eur"),
        ("currency", "XYZ"),
        ("currency", None),
        ("transaction_id", ""),
        ("transaction_id", "a b"),
        ("payment_status", ["3000"]),
        ("query_result", ["1"]),
        ("query_result", {"code": "1"}),
        ("query_result", True),
    ],
)
def test_a_malformed_row_fails_its_key_and_is_never_guessed(
    context: PreparedCall, field: str, value: object
) -> None:
    """A finding names it; a good second row does not save the key."""
    got = read(context, ROW | {field: value}, ROW | {"transaction_id": "T2"})

    assert (got.records, list(got.failed)) == ([], ["SO1"])
    assert FindingKind.MALFORMED in {finding.kind for finding in got.findings}


def test_what_stands_beside_a_row_of_nobody_is_of_nobody(context: PreparedCall) -> None:
    """Risk said once a reply is of its only row, else of none: who knows of which payment it is."""
    beside = {"antifraud_provider": "P", "is3ds": "1"}
    others = ([ROW | {"order_no": "SO9"}], ["no row"], [ROW | {"order_no": "SO9"}, ROW])

    assert read(context, ROW, **beside).records[0].risk.antifraud_provider == "P"
    for other in others:
        (record,) = read(context, ROW, *other, **beside).records
        assert record.risk == RiskFacts()


@pytest.mark.parametrize("code", ["3", "4", "5", "6", "7", "999"])
def test_a_row_that_says_it_failed_fails_its_key(context: PreparedCall, code: str) -> None:
    """Not an answer about the payment."""
    assert read(context, {"order_no": "SO1", "query_result": code}).failed == {
        "SO1": f"query_result {code}"
    }


def test_a_code_outside_the_table_stays_a_record_with_a_finding(context: PreparedCall) -> None:
    """The reconciliation decides what an unmapped code is worth."""
    got = read(context, ROW | {"query_result": "42"})

    assert [record.query_result for record in got.records] == ["42"]
    assert [finding.kind for finding in got.findings] == [FindingKind.UNMAPPED_CODE]


def test_found_and_not_found_at_once_is_failed(context: PreparedCall) -> None:
    got = read(context, ROW, {"order_no": "SO1", "query_result": "2"})

    assert (got.records, got.not_found, list(got.failed)) == ([], [], ["SO1"])


@pytest.mark.parametrize(
    ("head", "trusted"),
    [
        ({}, True),
        ({"encryption_data": ""}, True),
        ({"encryption_data": "AB" * 32}, True),
        ({"encryption_data": "cd" * 32}, False),
        ({"merchant_id": "100042", "account_id": "100042001"}, True),
        ({"merchant_id": "1"}, False),
        ({"account_id": "1"}, False),
    ],
)
def test_a_reply_that_is_not_ours_fails_its_keys(
    context: PreparedCall, head: dict[str, str], *, trusted: bool
) -> None:
    """The signature may be absent but not wrong; the account may be absent but not another."""
    assert bool(read(context, ROW, **head).records) is trusted


def test_facts_of_risk_are_typed_at_both_levels(context: PreparedCall) -> None:
    """The row comes first, the whole reply where the row is silent."""
    row = ROW | {
        "risk_action": "REVIEW",
        "risk_score": 71,
        "risk_reasons": {"name": "ip", "status": "high"},
        "fraud_check_result": "",
    }
    head = {
        "antifraud_provider": "watcher",
        "is3ds": "Y",
        "risk_action": "ACCEPT",
        "fraud_check_result": [{"check_items": f"cvv {ROW['card']}", "status": "pass"}, "x"],
    }
    record = read(context, row, **head).records[0]

    assert record.risk == RiskFacts(
        antifraud_provider="watcher",
        fraud_checks=(FraudCheck("cvv 411111******1111", "pass"),),
        is3ds="Y",
        risk_action="REVIEW",
        risk_score="71",
        risk_reasons=(RiskReason("ip", "high"),),
    )


def test_a_key_that_a_reply_quotes_is_kept_nowhere(account: OurAccount) -> None:
    """Whatever field it stands in; the row counts."""
    ours = asked(replace(account, sign_key=SecretStr("the-sign-key-77ab")))
    (record,) = read(
        ours, ROW | {"reference_no": "the-sign-key-77ab", "note": "the-sign-key-77ab"}
    ).records

    assert "the-sign-key-77ab" not in repr(record)


SIGNATURE = "ab" * 32
REFUND_ROW: dict[str, Any] = {
    "transaction_id": "1379868618653958144",
    "order_no": "SO1",
    "amount": "10.36",
    "currency": "USD",
    "refund_status": 1,
    "payment_status": "4100",
    "refund_amount": "3.33",
    "refund_reference": "ours-1",
    "refund_reason": "No stock",
    "refund_reference_id": "1379868618653958144-02",
    "refund_date": "20241113063528",
    "refund_processing_date": "",
}


@pytest.fixture(scope="session")
def searched(tables: dict[str, Any], account: OurAccount) -> PreparedCall:
    """An enforcing reader of a search by our own reference, profile extended."""
    interface = GatewayInterface.of(**tables, profile="extended")
    return asked(replace(account, interface=interface), operation=REFUND_QUERY)


def read_refunds(
    searched: PreparedCall, *rows: object, **head: object
) -> GroupAnswer[RefundRecord]:
    """The answer about the refunds ours-1 and ours-2."""
    reply = {
        "merchant_id": "100042",
        "account_id": "100042001",
        "return_status": "1",
        "refunds_list": list(rows),
        "encryption_data": SIGNATURE,
        **head,
    }
    return read_group(
        ["ours-1", "ours-2"], raw=raw_of(reply), sent=searched, kind="refund_reference"
    )


def test_a_refund_is_read_with_its_dates_and_its_number(searched: PreparedCall) -> None:
    answer = read_refunds(searched, REFUND_ROW, REFUND_ROW)

    assert answer.records == [
        RefundRecord(
            key="ours-1",
            order_no="SO1",
            transaction_id="1379868618653958144",
            currency="USD",
            amount=Decimal("10.36"),
            refund_amount=Decimal("3.33"),
            refund_status="1",
            payment_status="4100",
            refund_reference="ours-1",
            refund_reference_id="1379868618653958144-02",
            refund_reason="No stock",
            refund_date="20241113063528",
            refund_at=datetime(2024, 11, 13, 6, 35, 28, tzinfo=UTC),
            refund_processing_date="",
            processed_at=None,
            queried_at=NOW,
        )
    ]
    assert answer.missing == ["ours-2"]


@pytest.mark.parametrize("name", ["refund_date", "refund_processing_date"])
@pytest.mark.parametrize("text", ["2024-11-15", "20241315000000", "\ud800", "\x00", "\u202e"])
def test_a_date_that_cannot_be_read_is_told(searched: PreparedCall, name: str, text: str) -> None:
    """It must not pass for a refund that is not yet paid back, even where none of it is shown."""
    answer = read_refunds(searched, *[REFUND_ROW | {name: text}] * 2)

    assert (len(answer.records), answer.records[0].processed_at) == (1, None)
    finding, doubled = answer.findings
    assert doubled.kind is FindingKind.DOUBLED_ROW
    assert (finding.kind, finding.order_no) == (FindingKind.MALFORMED, "SO1")
    assert finding.message == f"ours-1: {name} is not a date"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("refund_amount", "3.3"),
        ("refund_amount", "3"),
        ("refund_amount", "3.335"),
        ("currency", "XYZ"),
        ("amount", None),
        ("currency", "usd"),
        ("order_no", "a,b"),
        ("transaction_id", ""),
        ("refund_reference_id", "T2-02"),
        ("refund_reference_id", "1379868618653958144-2x"),
        ("refund_status", []),
    ],
)
def test_a_malformed_refund_fails_its_key(
    searched: PreparedCall, field: str, value: object
) -> None:
    """Never repaired, and never beside a good row of the same key."""
    answer = read_refunds(searched, REFUND_ROW, REFUND_ROW | {field: value})

    assert (list(answer.failed), answer.records) == (["ours-1"], [])
    assert [found.kind for found in answer.findings] == [FindingKind.MALFORMED]


@pytest.mark.parametrize("signature", ["", "0" * 64])
def test_a_refund_search_must_be_signed(searched: PreparedCall, signature: str) -> None:
    answer = read_refunds(searched, REFUND_ROW, encryption_data=signature)

    assert (list(answer.failed), answer.records) == (["ours-1", "ours-2"], [])


PERSON = {"birth_date": "1980-02-29", "Document": "4417119900", "personal_id_number": 917}


def test_what_is_private_goes_from_every_depth() -> None:
    """The name stays, the value does not, whatever its type; all else is as it was."""
    kept = without_private({"note": "ok", "more": [PERSON, {"amount": "1.00"}, 7, None]})
    hidden = dict.fromkeys(PERSON, "***")
    assert kept == {"note": "ok", "more": [hidden, {"amount": "1.00"}, 7, None]}


def test_an_unknown_field_of_a_query_keeps_its_name_only() -> None:
    """Fields that the document does not list are kept, but for the values of private ones."""
    row = {"order_no": "A-1", "acquirer": "bank-1", **PERSON, "payer": {"last_name": "Quill"}}
    kept = _extra(row, listed={"order_no"})
    assert kept == {
        "acquirer": "bank-1",
        **dict.fromkeys(PERSON, "***"),
        "payer": '{"last_name": "***"}',
    }


def test_no_field_that_a_query_needs_is_private() -> None:
    """The names cannot take away what an outcome is read from."""
    assert PRIVATE_NAMES.isdisjoint({*ORDER_FIELDS, *REFUND_FIELDS})
    assert not is_private("amount")
    assert is_private(" IBAN ")
