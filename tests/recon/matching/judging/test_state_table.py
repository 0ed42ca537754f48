from collections.abc import Callable
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


def outcomes_at(case: Any, *, at: datetime) -> dict[str, str]:
    """What every pair comes to, in one run: `<order>-<gateway>` to its word and flags."""
    refunds = {"partially_refunded": 3000}
    for order in ORDERS:
        for gateway in GATEWAY:
            key = f"{order}-{gateway}"
            if order != "none":
                refund = refunds.get(order)
                case.order(order, order_no=key, refund_amount=refund, ordered_at=at)
            if gateway != "none":
                refund = refunds.get(gateway)
                ids = {"order_no": key, "transaction_id": key}
                case.payment(gateway, refunded_amount=refund, transaction_date=at, **ids)
    result = case.run()
    assert [total for total in result.control_totals if not total.passed] == []
    words = {}
    for frame, word in (
        (result.breaks, ""),
        (result.matches, "MATCHED"),
        (result.pending, "PENDING"),
    ):
        for row in frame.to_dict("records"):
            shown = [word or row["code"], row["flags"]]
            words[row["order_no"]] = " ".join(filter(None, shown))
    return words


@pytest.fixture(scope="module")
def after_grace(make_case: Callable[[], Any]) -> dict[str, str]:
    """All pairs, long ago."""
    return outcomes_at(make_case(), at=datetime(2026, 10, 1, tzinfo=UTC))


@pytest.fixture(scope="module")
def within_grace(make_case: Callable[[], Any]) -> dict[str, str]:
    """All pairs, just now."""
    return outcomes_at(make_case(), at=datetime(2026, 11, 20, 20, tzinfo=UTC))


@pytest.mark.parametrize(("order", "gateway", "expected"), CELLS)
def test_every_pair_of_states_after_grace(
    after_grace: dict[str, str], order: str, gateway: str, expected: str
) -> None:
    """After grace a pair means what the contract's table says."""
    assert after_grace.get(f"{order}-{gateway}", "") == expected


@pytest.mark.parametrize(("order", "gateway", "expected"), CELLS)
def test_every_pair_of_states_within_grace(
    within_grace: dict[str, str], order: str, gateway: str, expected: str
) -> None:
    """Grace delays one-sided sets and pending payments; two present sides conflict at once."""
    found = within_grace.get(f"{order}-{gateway}", "")

    assert found == WITHIN_GRACE.get(expected, expected)
