"""Which business date a scheduled night is for."""

from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from flows.night_date import business_date_of_run, last_closed_business_date
from recon.model.business_date import BusinessCalendar
from recon.model.errors import ConfigurationError


@pytest.mark.parametrize(
    ("due_at", "zone", "expected"),
    [
        # 02:30 in London, winter and summer: the day before has closed.
        (datetime(2026, 11, 21, 2, 30, tzinfo=UTC), "Europe/London", date(2026, 11, 20)),
        (datetime(2026, 7, 2, 1, 30, tzinfo=UTC), "Europe/London", date(2026, 7, 1)),
        # Still the evening before in UTC, already the next day where the merchant is.
        (datetime(2026, 7, 1, 23, 30, tzinfo=UTC), "Europe/London", date(2026, 7, 1)),
        (datetime(2026, 7, 1, 23, 30, tzinfo=UTC), None, date(2026, 6, 30)),
        (datetime(2026, 11, 20, 16, 0, tzinfo=UTC), "Asia/Tokyo", date(2026, 11, 20)),
        # 25 October 2026, when clocks change: 01:30 in summer time and 01:30 in winter time.
        (datetime(2026, 10, 25, 0, 30, tzinfo=UTC), "Europe/London", date(2026, 10, 24)),
        (datetime(2026, 10, 25, 1, 30, tzinfo=UTC), "Europe/London", date(2026, 10, 24)),
    ],
)
def test_a_night_is_for_the_last_date_closed_in_the_zone_of_its_schedule(
    due_at: datetime, zone: str | None, expected: date
) -> None:
    """The schedule's zone decides; without one the zone of the business calendar."""
    calendar = BusinessCalendar.of(timezone="UTC")

    assert last_closed_business_date(due_at, calendar=calendar, schedule_zone=zone) == expected


def test_an_early_cut_off_closes_the_same_day() -> None:
    """With an 18:00 cut-off, a night at 20:00 is for the day itself."""
    calendar = BusinessCalendar.of(cut_off="18:00")
    due_at = datetime(2026, 11, 20, 20, 0, tzinfo=UTC)

    assert last_closed_business_date(due_at, calendar=calendar, schedule_zone=None) == date(
        2026, 11, 20
    )


@pytest.mark.parametrize(("shift", "day"), [("", "2026-11-25"), ("-432000", "2026-11-20")])
def test_where_the_sandbox_has_another_date_a_run_is_due_there(
    shift: str, day: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The form of `make serve` without a date means the demo's night, whatever today is."""
    due_at = datetime(2026, 11, 26, 2, 30, tzinfo=UTC)
    due = SimpleNamespace(expected_start_time=due_at)
    context = SimpleNamespace(get=lambda: SimpleNamespace(flow_run=due, parameters={}))
    monkeypatch.setattr("flows.night_date.FlowRunContext", context)
    monkeypatch.setenv("RECON_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("RECON_GATEWAY_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("RECON_CLOCK_SHIFT", shift)

    assert str(business_date_of_run()) == day


def test_outside_a_run_nobody_guesses_a_date() -> None:
    """Without a scheduled run there is no date; today is never one."""
    with pytest.raises(ConfigurationError, match="name the business date"):
        business_date_of_run()


@pytest.mark.parametrize(("account_id", "day"), [("1", "2026-11-20"), ("2", "2026-11-19")])
def test_the_zone_is_that_of_the_schedule_that_the_account_declares(
    account_id: str, day: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the page of the settings says; an account without a schedule has the calendar's."""
    (tmp_path / "merchants.toml").write_text(
        '[accounts."100042/1"]\ninbox = "in"\nreports = "out"\n'
        'schedule = { cron = "30 2 * * *", zone = "Asia/Tokyo" }\n'
        '[accounts."100042/2"]\ninbox = "in"\nreports = "out"\n'
    )
    monkeypatch.setenv("RECON_CONFIG_DIR", str(tmp_path))
    due = SimpleNamespace(expected_start_time=datetime(2026, 11, 20, 16, 0, tzinfo=UTC))
    given = {"merchant_id": "100042", "account_id": account_id}
    run = SimpleNamespace(flow_run=due, parameters=given)
    monkeypatch.setattr("flows.night_date.FlowRunContext", SimpleNamespace(get=lambda: run))

    assert str(business_date_of_run()) == day
