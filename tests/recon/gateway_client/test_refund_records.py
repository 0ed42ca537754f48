from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recon.gateway_client import FindingKind, GatewayInterface, OurAccount
from recon.gateway_client.query_records import (
    REFUND_QUERY,
    GroupAnswer,
    KeyKind,
    RefundRecord,
    read_group,
)
from recon.gateway_client.replies import ReplyContext
from tests.recon.gateway_client.played import NOW, query_context, raw_of

SIGNATURE = "ab" * 32
ROW: dict[str, Any] = {
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
def context(tables: dict[str, Any], account: OurAccount) -> ReplyContext:
    """An enforcing reader of a search by our own reference, profile extended."""
    interface = GatewayInterface.of(**tables, profile="extended")
    return query_context(replace(account, interface=interface), operation=REFUND_QUERY)


def read(context: ReplyContext, *rows: object, **head: object) -> GroupAnswer[RefundRecord]:
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
        ["ours-1", "ours-2"], raw=raw_of(reply), context=context, kind=KeyKind.REFUND_REFERENCE
    )


def test_a_refund_is_read_with_its_dates_and_its_number(context: ReplyContext) -> None:
    """Accepted, not yet paid back; a search that finds nothing leaves its key open."""
    answer = read(context, ROW, ROW)

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


def test_a_refund_that_was_paid_back_says_when(context: ReplyContext) -> None:
    """Accepted and processed are two facts."""
    record = read(context, ROW | {"refund_processing_date": "20241115000000"}).records[0]

    assert record.processed_at == datetime(2024, 11, 15, tzinfo=UTC)


@pytest.mark.parametrize("name", ["refund_date", "refund_processing_date"])
@pytest.mark.parametrize("text", ["2024-11-15", "20241315000000", "\ud800", "\x00", "\u202e"])
def test_a_date_that_cannot_be_read_is_told(context: ReplyContext, name: str, text: str) -> None:
    """It must not pass for a refund that is not yet paid back, even where none of it is shown."""
    answer = read(context, *[ROW | {name: text}] * 2)

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
def test_a_malformed_refund_fails_its_key(context: ReplyContext, field: str, value: object) -> None:
    """Never repaired, and never beside a good row of the same key."""
    answer = read(context, ROW, ROW | {field: value})

    assert (list(answer.failed), answer.records) == (["ours-1"], [])
    assert [found.kind for found in answer.findings] == [FindingKind.MALFORMED]


@pytest.mark.parametrize("signature", ["", "0" * 64])
def test_a_refund_search_must_be_signed(context: ReplyContext, signature: str) -> None:
    """Evidence about money needs proof."""
    answer = read(context, ROW, encryption_data=signature)

    assert (list(answer.failed), answer.records) == (["ours-1", "ours-2"], [])


@given(st.binary(max_size=400))
def test_any_bytes_of_a_refund_search_are_an_answer(context: ReplyContext, body: bytes) -> None:
    """Never an exception, never a record out of nothing."""
    answer = read_group(
        ["ours-1"], raw=raw_of(body), context=context, kind=KeyKind.REFUND_REFERENCE
    )

    assert answer.records == []
