"""The flow follows the order of recon's night, and nothing of its own."""

import inspect
from contextlib import contextmanager, nullcontext
from datetime import UTC, date, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from flows.artifacts import Artifacts
from flows.night_date import business_date_of_run, last_closed_business_date
from flows.nightly import night_workers, nightly, walk
from recon.model.business_date import BusinessCalendar
from recon.model.errors import ConfigurationError
from recon.model.nights import FINISH, NIGHT, PLANS, Mode, NightRequest, StepSummary
from tasks.night_tasks import TASKS, opened_environment


def test_a_form_that_is_just_submitted_moves_no_money():
    given = inspect.signature(nightly.fn).parameters

    assert given["mode"].default is Mode.DRY_RUN
    assert given["business_date"].default is None


@pytest.mark.parametrize("name", TASKS)
def test_a_task_takes_the_id_of_a_run_only(name):
    """Prefect stores parameters: no frame, no path, no secret ever travels."""
    assert [*inspect.signature(TASKS[name].fn).parameters] == ["run_id"]


def test_a_limit_that_refuses_runs_goes_without_retries():
    """Retries of a flow together with a concurrency limit end runs as Crashed."""
    assert nightly.retries == 0
    assert nightly.persist_result is False


CLUSTER = (
    'address = "tls://127.0.0.1:1"\n'
    'ca_file = "ca.pem"\ncertificate_file = "dask.pem"\nkey_file = "dask-key.pem"\n'
)
"""Nobody connects before the first part."""


@pytest.fixture
def config(tmp_path, monkeypatch):
    """A folder of configuration, and an environment whose workers are all that is looked at."""
    given: list[Any] = []

    @contextmanager
    def opened(_, *, clock, workers):
        assert clock
        given.append(workers)
        yield workers

    monkeypatch.setattr("recon.steps.runtime.environment.environment_of", opened)
    monkeypatch.setenv("RECON_CONFIG_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("plan", [NIGHT, PLANS["settle"], FINISH])
def test_a_part_of_a_night_has_one_cluster_as_the_night_has(config, monkeypatch, plan):
    (config / "cluster.toml").write_text(CLUSTER)
    given = []

    def step(run_id):
        with opened_environment() as workers:
            given.append(workers)
        return StepSummary("step", run_id)

    monkeypatch.setattr("flows.nightly.TASKS", dict.fromkeys(plan.steps, step))
    monkeypatch.setattr(Artifacts, "progress", lambda *_, **__: nullcontext(lambda _: None))
    held = "recon.steps.night.whole_night.hold"
    monkeypatch.setattr(held, lambda *_, **__: nullcontext("run-1"))
    monkeypatch.setattr("recon.steps.night.monitor.index_after", lambda *_, **__: None)
    request = NightRequest("1", "2", date(2026, 11, 20), Mode.DRY_RUN)

    _, summaries = walk(request, plan=plan, artifacts=Artifacts(request))

    assert [summary.sentence for summary in summaries] == ["run-1"] * len(plan.steps)
    assert len(given) == len(plan.steps)
    assert given[0] is not None
    assert {id(workers) for workers in given} == {id(given[0])}
    with opened_environment() as workers:
        assert workers is None


def test_without_an_address_each_environment_does_as_configured(config):
    assert not [*config.iterdir()]
    with night_workers(), opened_environment() as workers:
        assert workers is None


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
def test_a_night_is_for_the_last_date_closed_in_the_zone_of_its_schedule(due_at, zone, expected):
    calendar = BusinessCalendar.of(timezone="UTC")

    assert last_closed_business_date(due_at, calendar=calendar, schedule_zone=zone) == expected


def test_an_early_cut_off_closes_the_same_day():
    calendar = BusinessCalendar.of(cut_off="18:00")
    due_at = datetime(2026, 11, 20, 20, 0, tzinfo=UTC)

    assert last_closed_business_date(due_at, calendar=calendar, schedule_zone=None) == date(
        2026, 11, 20
    )


@pytest.mark.parametrize(("shift", "day"), [("", "2026-11-25"), ("-432000", "2026-11-20")])
def test_where_the_sandbox_has_another_date_a_run_is_due_there(shift, day, tmp_path, monkeypatch):
    due_at = datetime(2026, 11, 26, 2, 30, tzinfo=UTC)
    due = SimpleNamespace(expected_start_time=due_at)
    context = SimpleNamespace(get=lambda: SimpleNamespace(flow_run=due, parameters={}))
    monkeypatch.setattr("flows.night_date.FlowRunContext", context)
    monkeypatch.setenv("RECON_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("RECON_GATEWAY_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("RECON_CLOCK_SHIFT", shift)

    assert str(business_date_of_run()) == day


def test_outside_a_run_nobody_guesses_a_date():
    with pytest.raises(ConfigurationError, match="name the business date"):
        business_date_of_run()


@pytest.mark.parametrize(("account_id", "day"), [("1", "2026-11-20"), ("2", "2026-11-19")])
def test_the_zone_is_that_of_the_schedule_that_the_account_declares(
    account_id, day, tmp_path, monkeypatch
):
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
