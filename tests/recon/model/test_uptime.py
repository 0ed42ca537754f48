from datetime import UTC, datetime, timedelta

from recon.model.uptime import Uptime, between, uptime_of
from recon.steps.runtime.environment import machine_uptime

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)


def test_a_replayed_night_has_the_time_of_its_own_clock() -> None:
    """Readings from a clock that is passed in are comparable, and go with it."""
    early, late = uptime_of(lambda: NOW), uptime_of(lambda: NOW + timedelta(seconds=5))

    assert early.boot_id == late.boot_id
    assert late.milliseconds - early.milliseconds == 5_000


def test_the_machines_reading_only_grows() -> None:
    """Two readings of one boot are in order."""
    first, second = machine_uptime(), machine_uptime()

    assert first.boot_id == second.boot_id
    assert first.milliseconds <= second.milliseconds


def test_only_readings_of_one_known_boot_or_with_the_gateways_date_are_tied() -> None:
    """Two machines count from different moments, and one that does not know its boot is any."""
    day = timedelta(days=1)
    first = Uptime("a", 1_000, NOW)

    assert between(first, Uptime("a", 61_000, NOW + day)) == timedelta(minutes=1)
    assert between(first, Uptime("b", 5_000, NOW + day)) == day
    assert between(first, Uptime("b", 61_000)) is None
    assert between(Uptime(), Uptime(milliseconds=61_000)) is None
