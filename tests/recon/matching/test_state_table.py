from datetime import UTC, datetime
from typing import Any

import pytest

ORDERS = (
    "paid",
    "authorised",
    "partially_refunded",
    "refunded",
    "cancelled",
    "failed",
    "pending",
    "none",
)
GATEWAY = (
    "none",
    "pending",
    "in_review",
    "authorised",
    "paid",
    "partially_refunded",
    "refunded",
    "cancelled",
    "expired",
    "failed",
)

# Written from the contract, one line per order state, in the order of GATEWAY, after grace.
CONTRACT = """
MISSING_AT_GATEWAY STALE_PENDING STALE_PENDING CAPTURE_DUE MATCHED REFUND_UNEXPECTED REFUND_UNEXPECTED STATUS_CONFLICT AUTHORISATION_EXPIRED STATUS_CONFLICT
MISSING_AT_GATEWAY STALE_PENDING STALE_PENDING MATCHED STATUS_CONFLICT STATUS_CONFLICT STATUS_CONFLICT STATUS_CONFLICT AUTHORISATION_EXPIRED STATUS_CONFLICT
MISSING_AT_GATEWAY STALE_PENDING STALE_PENDING CAPTURE_DUE REFUND_DUE MATCHED REFUND_UNEXPECTED STATUS_CONFLICT STATUS_CONFLICT STATUS_CONFLICT
MISSING_AT_GATEWAY STALE_PENDING STALE_PENDING CANCEL_DUE REFUND_DUE REFUND_DUE MATCHED MATCHED+refunded_by_void MATCHED+refunded_by_void STATUS_CONFLICT
MATCHED STALE_PENDING STALE_PENDING CANCEL_DUE STATUS_CONFLICT STATUS_CONFLICT MATCHED MATCHED MATCHED MATCHED
MATCHED STALE_PENDING STALE_PENDING CANCEL_DUE STATUS_CONFLICT STATUS_CONFLICT MATCHED MATCHED MATCHED MATCHED
MATCHED+never_paid STALE_PENDING STALE_PENDING STALE_PENDING STATUS_CONFLICT STATUS_CONFLICT STATUS_CONFLICT MATCHED MATCHED MATCHED
- STALE_PENDING STALE_PENDING MISSING_IN_ORDERS MISSING_IN_ORDERS MISSING_IN_ORDERS MISSING_IN_ORDERS MATCHED MATCHED MATCHED
"""  # noqa: E501 - a table is read by its columns
WITHIN_GRACE = {
    "MISSING_AT_GATEWAY": "PENDING",
    "STALE_PENDING": "PENDING",
    "MISSING_IN_ORDERS": "PENDING",
    "MATCHED never_paid": "PENDING",
}
CELLS = [
    pytest.param(order, gateway, word.replace("+", " ").replace("-", ""), id=f"{order}-{gateway}")
    for order, line in zip(ORDERS, CONTRACT.strip().splitlines(), strict=True)
    for gateway, word in zip(GATEWAY, line.split(), strict=True)
]


def pair(case: Any, *, order: str, gateway: str, at: object) -> Any:
    """An order and a payment in these states; partial refunds of 30.00."""
    refunds = {"partially_refunded": 3000}
    if order != "none":
        case.order(order, refund_amount=refunds.get(order), ordered_at=at)
    if gateway != "none":
        case.payment(gateway, refunded_amount=refunds.get(gateway), transaction_date=at)
    return case


@pytest.mark.parametrize(("order", "gateway", "expected"), CELLS)
def test_every_pair_of_states_after_grace(
    case: Any, order: str, gateway: str, expected: str
) -> None:
    """After grace a pair means what the contract's table says."""
    filled = pair(case, order=order, gateway=gateway, at=datetime(2026, 10, 1, tzinfo=UTC))

    assert filled.outcome() == expected


@pytest.mark.parametrize(("order", "gateway", "expected"), CELLS)
def test_every_pair_of_states_within_grace(
    case: Any, order: str, gateway: str, expected: str
) -> None:
    """Grace delays one-sided sets and pending payments; two present sides conflict at once."""
    filled = pair(case, order=order, gateway=gateway, at=datetime(2026, 11, 20, 20, tzinfo=UTC))

    assert filled.outcome() == WITHIN_GRACE.get(expected, expected)
