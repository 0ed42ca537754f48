from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from pydantic import SecretStr

from recon.gateway_client import (
    CancelRow,
    CaptureRow,
    GatewayInterface,
    InvalidRequestError,
    OurAccount,
    RefundRow,
    ReviewRow,
    prepare,
)

CAPTURE = CaptureRow(transaction_id="T1", order_no="SO1", currency="EUR", amount=Decimal("10.00"))
REFUND = RefundRow(
    transaction_id="T1",
    order_no="SO1",
    currency="EUR",
    amount=Decimal("10.00"),
    refund_amount=Decimal("10.00"),
    refund_reason="late",
    refund_reference="ours-1",
)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"transaction_id": ""}, "transaction_id"),
        ({"transaction_id": "T,1"}, "transaction_id"),
        ({"transaction_id": "T" * 51}, "transaction_id"),
        ({"transaction_id": "T1\n"}, "transaction_id"),
        ({"order_no": "SO 1"}, "order_no"),
        ({"order_no": "S\u041e1"}, "order_no"),
        ({"currency": "eur"}, "currency"),
        ({"currency": "XQZ"}, "currency"),
        ({"currency": "XAU"}, "currency"),
        ({"amount": Decimal(12)}, "amount"),
        ({"amount": Decimal("12.345")}, "amount"),
        ({"currency": "JPY", "amount": Decimal("1000.5"), "refund_amount": Decimal(1)}, "amount"),
        ({"currency": "KWD", "refund_amount": Decimal("1.234")}, "amount"),
        ({"refund_amount": Decimal(1)}, "refund_amount"),
        ({"currency": "JPY", "refund_amount": Decimal("0.50")}, "refund_amount"),
        ({"amount": Decimal(0)}, "amount"),
        ({"amount": Decimal("-1.00")}, "amount"),
        ({"amount": Decimal("10.5")}, "amount"),
        ({"amount": Decimal("NaN")}, "amount"),
        ({"amount": Decimal("Infinity")}, "amount"),
        ({"amount": Decimal("1E+999999")}, "amount"),
        ({"amount": Decimal("1E-999999")}, "amount"),
        ({"amount": 10.0}, "amount"),
        ({"refund_amount": Decimal("10.01")}, "refund_amount"),
        ({"refund_amount": Decimal("0.00")}, "refund_amount"),
        ({"refund_reason": "x" * 51}, "refund_reason"),
        ({"refund_reason": "a\nb"}, "refund_reason"),
    ],
)
def test_a_row_that_must_not_be_sent_is_named(
    account: OurAccount, changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidRequestError, match="nothing was sent") as caught:
        prepare(
            "refund",
            [replace(REFUND, transaction_id="T0"), replace(REFUND, **changes)],
            account=account,
        )

    assert {(problem.position, problem.field) for problem in caught.value.problems} == {(1, field)}


def test_a_transaction_stands_in_a_batch_once(account: OurAccount) -> None:
    with pytest.raises(InvalidRequestError, match="more than once"):
        prepare("capture", [CAPTURE, CAPTURE], account=account)


@pytest.mark.parametrize(("count", "operation"), [(0, "capture"), (51, "capture"), (101, "review")])
def test_a_batch_has_the_documented_bounds(account: OurAccount, count: int, operation: str) -> None:
    """50 rows, 100 for review, never none."""
    kind = CaptureRow if operation == "capture" else ReviewRow
    rows = [
        kind(transaction_id=f"T{n}", order_no="SO1", currency="EUR", amount=Decimal("1.00"))
        for n in range(count)
    ]

    with pytest.raises(InvalidRequestError, match=f"{count} rows"):
        prepare(operation, rows, account=account)


def test_a_row_of_another_operation_is_refused(account: OurAccount) -> None:
    row = CancelRow(transaction_id="T1", order_no="SO1", currency="EUR", amount=Decimal("1.00"))

    with pytest.raises(InvalidRequestError, match="CancelRow, not a CaptureRow"):
        prepare("capture", [row], account=account)


@pytest.mark.parametrize(("merchant", "key"), [("", "k"), ("1,2", "k"), ("100042", "")])
def test_nothing_is_signed_without_ids_and_a_key(
    interface: GatewayInterface, merchant: str, key: str
) -> None:
    with pytest.raises(InvalidRequestError):
        prepare(
            "capture",
            [CAPTURE],
            account=OurAccount(merchant, "1", SecretStr(key), interface),
        )
