from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from recon.steps import night
from recon.uptime import Uptime


@pytest.fixture
def doubtful(merchant: Any) -> Any:
    """A merchant with one capture that took effect although its answer never came."""
    one = merchant.payments("authorised")[0]
    merchant.drop("orders.csv", merchant.order(one, status="paid", action="capture"))
    merchant.fault({"operation": "capture", "kind": "reset", "when": "after"})
    merchant.night()
    merchant.fault()
    assert merchant.instruction_states() == {"in_doubt": 1}
    return merchant


def night_with(merchant: Any, *, uptime: Uptime) -> None:
    """A night on a machine whose own clock stands where the test says."""
    with merchant.environment() as environment:
        night.run(
            merchant.request,
            environment=replace(environment, uptime=lambda: uptime),
            workbooks=merchant.workbooks(),
            progress=merchant.told.append,
        )


def test_evidence_ends_a_doubt_in_a_later_night(doubtful: Any) -> None:
    """Two answers after the quarantine that agree: applied, and never sent again."""
    for _ in range(2):
        doubtful.wait(hours=1)
        doubtful.night()

    assert doubtful.instruction_states() == {"resolved_applied": 1}
    assert len(doubtful.effects()) == 1


def test_a_clock_that_was_put_forward_decides_nothing(doubtful: Any) -> None:
    """The wall says hours went by; the machine's own clock knows it was seconds."""
    boot = "boot-1"
    night_with(doubtful, uptime=Uptime(boot, 1_000))
    with doubtful.environment() as environment, environment.store.writing() as connection:
        connection.exec_driver_sql("UPDATE doubt_clock SET boot_id = 'boot-1', uptime_ms = 1000")
    for milliseconds in (5_000, 9_000):
        doubtful.now += timedelta(hours=1)
        night_with(doubtful, uptime=Uptime(boot, milliseconds))
    early = doubtful.instruction_states()
    night_with(doubtful, uptime=Uptime(boot, 3_600_000))

    assert early == {"in_doubt": 1}
    assert doubtful.instruction_states() == {"resolved_applied": 1}
