from datetime import UTC, datetime
from typing import Any

import pytest

from recon.sandbox.operations.subscription import after
from tests.recon.sandbox.conftest import elements
from tests.recon.sandbox.operations.test_subscription_end import charged


def instant(text: str) -> int:
    """Seconds of a day's midnight in UTC."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


@pytest.mark.parametrize(
    ("start", "interval", "count", "expected"),
    [
        ("2026-11-20", "day", 10, "2026-11-30"),
        ("2026-11-20", "week", 2, "2026-12-04"),
        ("2026-11-30", "month", 3, "2027-02-28"),
        ("2026-11-30", "month", 4, "2027-03-30"),
        ("2028-02-29", "year", 1, "2029-02-28"),
        ("2026-12-31", "month", 13, "2028-01-31"),
    ],
)
def test_intervals_follow_the_calendar(
    start: str, interval: str, count: int, expected: str
) -> None:
    """A month's day is never beyond its end, and a short month changes no later one."""
    assert after(instant(start), interval=interval, count=count) == instant(expected)


@pytest.mark.parametrize(
    ("plan", "count"),
    [
        ({"billing_cycle": 2}, 2),
        ({"contract_end": "2026-12-03"}, 1),
        ({"contract_start": "2026-12-20T22:00:00+00:00"}, 1),
        ({"contract_start": "2020-01-01"}, 4),
        ({"interval": "week"}, 0),
        ({"interval": "month", "interval_count": "1"}, 1),
    ],
)
def test_a_subscription_is_charged_as_its_terms_say(
    gateway: Any, plan: dict[str, Any], count: int
) -> None:
    """Cycles, end, start, and the length of its periods bound what 40 days charge."""
    terms = {"contract_name": "Gold", "interval": "day", "interval_count": "10"} | plan
    gateway.authorise(subscription=terms)
    gateway.pass_days(40)
    assert len(charged(gateway)) == count


@pytest.mark.parametrize(
    "wrong",
    [
        {"interval": "fortnight"},
        {"interval_count": "0"},
        {"interval_count": "x"},
        {"billing_cycle": -1},
        {"contract_amount": "4.0"},
        {"contract_start": "soon"},
        {"contract_start": "2200-01-01"},
        {"contract_end": "never"},
        {"contract_name": "x" * 201},
    ],
)
def test_a_subscription_that_cannot_be_read_refuses_its_payment(
    gateway: Any, wrong: dict[str, Any]
) -> None:
    """Nothing is paid for a contract that would not be the one that was meant."""
    result = elements(gateway.authorise(subscription={"contract_name": "Gold"} | wrong))
    assert result["result_info"].startswith("I0002:")
    assert gateway.effects() == []


def test_a_declined_payment_makes_no_subscription(gateway: Any) -> None:
    """And a contract without a name is none."""
    declined = gateway.authorise(card="4000000000000002", subscription={"contract_name": "Gold"})
    assert elements(declined)["recurring_id"] == ""
    assert elements(gateway.authorise(subscription={"interval": "day"}))["recurring_id"] == ""
