from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from recon.gateway_client import RefundRecord
from recon.instructions.queries import RefundAnswer

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
        ((replace(OURS, refund_amount=Decimal("12.51")),), None),
        ((replace(OURS, currency="USD"),), None),
        ((replace(OURS, refund_reference_id=""),), None),
        ((OURS, OURS), None),
        ((OURS, replace(OURS, refund_amount=Decimal("1.00"))), None),
    ],
)
def test_only_one_fitting_refund_is_evidence(
    records: tuple[RefundRecord, ...], expected: str | None
) -> None:
    """Our reference with another amount, or twice, proves neither that it happened nor not."""
    answer = RefundAnswer(records, AT)

    assert answer.reference_of(amount=1250, currency="EUR") == expected
