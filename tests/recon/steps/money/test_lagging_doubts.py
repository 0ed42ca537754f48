"""Doubt about a capture ends as it went, while the query lags and two machines disagree on time."""

from datetime import timedelta

import pytest

from tests.recon.steps.conftest import Merchant
from tests.recon.steps.night.test_sealed_settle import capture

NIGHTS = ("2026-11-20", "2026-11-21", "2026-11-22", "2026-11-23")


@pytest.mark.parametrize("apart", [timedelta(), timedelta(minutes=10), timedelta(minutes=-10)])
def test_a_capture_without_a_reply_takes_effect_once_and_is_found(
    merchant: Merchant, apart: timedelta
) -> None:
    """The query shows it after 14 minutes, and every other night runs on a machine whose clock is
    ten minutes apart: never is it sent again or recorded as not applied."""
    capture(merchant)
    merchant.fault(
        {"operation": "capture", "kind": "reset", "when": "after", "nth": 1},
        {"operation": "retrievalTrans", "kind": "lag", "seconds": 14 * 60},
    )
    for number, night in enumerate(NIGHTS):
        merchant.now += apart if number % 2 else -apart
        merchant.move_money(date=night)
        assert "resolved_not_applied" not in merchant.instruction_states()
        merchant.wait(hours=24)

    assert [row["operation"] for row in merchant.effects()] == ["capture"]
    assert merchant.instruction_states() == {"resolved_applied": 1}
