"""The pinned set works: server, work pool, deployments, schedules and the form, for real.

Each pin of pyproject.toml breaks one of these when it is loosened: fastapi 0.155 and newer fails at
the server's import (no server), 0.151 to 0.154 answer 422 to the nulls of Prefect's own client (the
second deployment and `read_deployments` fail), SQLAlchemy 2.1 loses the schedules without a word
(no scheduled run ever appears).
"""

import time
import tomllib
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from flows.deployments import project_of, text_of
from recon.config.retention import Retention
from recon.config.settings import load_file_settings
from recon.model.errors import ConfigurationError
from tests.flows.flow_in_process import prefect_of

pytestmark = pytest.mark.flow

ROOT = Path(__file__).parents[2]
PROJECT = yaml.safe_load((ROOT / "prefect.yaml").read_text())
DEPLOYED = [entry["name"] for entry in PROJECT["deployments"]]
NIGHTS = [one["name"] for one in PROJECT["deployments"] if one["name"].startswith("100042-")]
PLANNED = [*NIGHTS, "housekeeping"]
WEEKLY = {"cron": "0 6 * * 6", "zone": "Europe/London"}
SCHEDULED_RUNS_TIMEOUT_SECONDS = 60
ACCOUNT = '[accounts."100042/{}"]\ninbox = "/i"\nreports = "/r"\n'
LONDON = 'schedule = { cron = "30 2 * * *", zone = "Europe/London" }\n'


@pytest.fixture
def config(tmp_path, monkeypatch):
    """The configuration that runs of the deployed schedules find."""
    declared = [f"{ACCOUNT.format(name.partition('-')[2])}{LONDON}" for name in NIGHTS]
    (tmp_path / "merchants.toml").write_text("".join(declared))
    keeps = f'[retention]\nschedule = {{ cron = "{WEEKLY["cron"]}", zone = "{WEEKLY["zone"]}" }}\n'
    (tmp_path / "retention.toml").write_text(keeps)
    monkeypatch.setenv("RECON_CONFIG_DIR", str(tmp_path))
    return tmp_path


def nights(deployed):
    """The deployments of nights, as the server has them."""
    return [entry for entry in deployed.read_deployments() if entry.name in NIGHTS]


def _accounts(tmp_path, **schedules):
    """Accounts of one merchant with cron lines, as merchants.toml would declare them."""
    tables = [
        f'[accounts."100042/{name[1:]}"]\ninbox = "/i"\nreports = "/r"\n'
        f'schedule = {{ cron = "{cron}", zone = "Europe/London" }}\n'
        for name, cron in schedules.items()
    ]
    (tmp_path / "merchants.toml").write_text("".join(tables))
    return load_file_settings({"RECON_CONFIG_DIR": str(tmp_path)}).accounts


def test_the_project_file_is_made_from_merchants(tmp_path):
    demo = {"a100042001": "30 2 * * *", "a100042002": "45 2 * * *"}
    accounts = _accounts(tmp_path, **demo)

    text = text_of(accounts, retention=Retention(schedule=WEEKLY))

    assert text == (ROOT / "prefect.yaml").read_text()


def test_the_default_set_is_what_people_need_every_day(tmp_path):
    accounts = _accounts(tmp_path, a1="30 2 * * *", a2="45 2 * * *")

    def names(*, parts):
        project = project_of(accounts, retention=Retention(), parts=parts)
        return [entry["name"] for entry in project["deployments"]]

    daily = ["housekeeping", "approve", "sign-off", "import-resolutions", "close"]
    daily += ["stop-sending", "allow-sending"]
    assert names(parts=False) == ["100042-1", "100042-2", *daily]
    every = ["ingest", "query", "settle", "payouts", "reconcile", "report", "resolve"]
    every.append("what-if")
    assert names(parts=True) == [*names(parts=False), *every]


@pytest.mark.parametrize(
    ("keeps", "planned"),
    [
        ({}, None),
        ({"schedule": WEEKLY}, {"delete": False, "name": "schedule"}),
        ({"schedule": WEEKLY, "schedule_deletes": True}, {"delete": True, "name": "schedule"}),
    ],
)
def test_housekeeping_deletes_by_itself_only_where_that_is_declared(keeps, planned):
    project = project_of({}, retention=Retention(**keeps))
    (entry,) = (one for one in project["deployments"] if one["name"] == "housekeeping")
    schedules = entry.get("schedules", ())

    assert "parameters" not in entry
    assert [one["parameters"] for one in schedules] == ([planned] if planned else [])
    assert all((one["cron"], one["timezone"]) == (*WEEKLY.values(),) for one in schedules)


def test_a_cron_line_that_prefect_does_not_take_is_refused_with_its_account(tmp_path):
    with pytest.raises(ConfigurationError, match=r'accounts."100042/1".*61 2'):
        text_of(_accounts(tmp_path, a1="61 2 * * *"), retention=Retention())
    with pytest.raises(ConfigurationError, match=r"retention.toml: schedule: .*61 2"):
        project_of({}, retention=Retention(schedule=WEEKLY | {"cron": "61 2 * * *"}))


def test_pages_of_prefect_say_the_zone_of_a_schedule(tmp_path):
    weekly = 'schedule = { cron = "15 1 * * 1-5", zone = "Asia/Tokyo" }\n'
    (tmp_path / "merchants.toml").write_text(
        ACCOUNT.format("1") + LONDON + ACCOUNT.format("2") + weekly + ACCOUNT.format("3")
    )
    accounts = load_file_settings({"RECON_CONFIG_DIR": str(tmp_path)}).accounts
    kept = Retention(schedule={"cron": "0 6 * * 6", "zone": "Europe/London"})
    entries = yaml.safe_load(text_of(accounts, retention=kept))["deployments"]
    said = {entry["name"]: (entry["description"], entry["tags"][-1]) for entry in entries}

    assert said["100042-1"][0].endswith("account 1; by itself at 02:30 Europe/London.")
    assert said["100042-1"][1] == "02:30 Europe/London"
    assert said["100042-2"][1] == "15 1 * * 1-5 Asia/Tokyo"
    assert said["100042-3"] == (
        "Settles and reconciles the last closed business date of account 3.",
        "account 3",
    )
    assert said["housekeeping"][0].endswith("by itself at 0 6 * * 6 Europe/London.")


def test_every_deployment_arrives_through_the_work_pool(deployed):
    found = {entry.name: entry for entry in deployed.read_deployments()}

    assert sorted(found) == sorted(DEPLOYED)
    assert len(found) > len(NIGHTS) >= 2
    for entry in found.values():
        assert entry.work_pool_name == "recon"
        assert entry.pull_steps in ([], None)
        assert entry.global_concurrency_limit is None


def test_a_night_has_its_schedule_and_starts_dry_by_hand(deployed):
    for entry in nights(deployed):
        assert entry.entrypoint == "flows.nightly:nightly"
        # A form starts as a dry run; only the schedule moves money by itself.
        assert "mode" not in entry.parameters
        assert [one.parameters for one in entry.schedules] == [{"mode": "live"}]
        assert [one.schedule.timezone for one in entry.schedules] == ["Europe/London"]


def test_scheduled_runs_appear_for_every_schedule(deployed):
    """The scheduler plans nights and housekeeping; with the wrong SQLAlchemy it never plans one."""
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterStateName

    wanted = {entry.id for entry in deployed.read_deployments() if entry.name in PLANNED}
    scheduled = FlowRunFilter(state={"name": FlowRunFilterStateName(any_=["Scheduled"])})
    give_up_at = time.monotonic() + SCHEDULED_RUNS_TIMEOUT_SECONDS
    planned: set[Any] = set()
    while planned != wanted and time.monotonic() < give_up_at:
        planned = {run.deployment_id for run in deployed.read_flow_runs(flow_run_filter=scheduled)}
        time.sleep(0.5)

    assert planned == wanted


def test_a_form_refuses_a_wrong_value_before_a_run_exists(deployed):
    from prefect.exceptions import PrefectHTTPStatusError

    deployment = nights(deployed)[0]
    for wrong in ({"mode": "for real"}, {"account_id": "1; drop"}, {"merchant_id": ""}):
        with pytest.raises(PrefectHTTPStatusError, match="409"):
            deployed.create_flow_run_from_deployment(deployment.id, parameters=wrong)


def test_the_form_explains_its_fields_and_offers_the_modes(deployed):
    schema = nights(deployed)[0].parameter_openapi_schema
    fields = schema["properties"]

    assert schema["required"] == ["merchant_id", "account_id"]
    assert all(len(fields[name]["description"]) > 20 for name in fields)
    assert fields["mode"]["default"] == "dry-run"
    assert schema["definitions"]["Mode"]["enum"] == ["dry-run", "live"]


@pytest.mark.usefixtures("config")
def test_a_scheduled_run_takes_its_business_date_from_its_schedule(server, deployed, night):
    """02:30 in London is still the evening before in UTC: the zone and the due time decide."""
    from prefect.flow_engine import run_flow
    from prefect.states import Scheduled

    from flows.nightly import nightly

    deployment = nights(deployed)[0]
    due_at = datetime(2026, 7, 1, 23, 30, tzinfo=UTC)  # 00:30 on 2 July in London
    run = deployed.create_flow_run_from_deployment(
        deployment.id,
        state=Scheduled(scheduled_time=due_at),
        parameters=deployment.schedules[0].parameters,
    )
    with prefect_of(server):
        run_flow(nightly, flow_run=run, parameters={**run.parameters})

    request = night.requests[0]
    assert (str(request.business_date), request.mode.value) == ("2026-07-01", "live")
    assert deployed.read_flow_run(run.id).name.endswith(
        f"{request.account_id} 2026-07-01 live · RECONCILED"
    )


def test_a_schedule_that_forgot_its_mode_starts_no_dry_run_in_silence(
    server, deployed, night, config
):
    """Paused and resumed past Prefect's pages it says nothing more; its run fails and tells why.

    So does that of a schedule which a deploy left although nobody declares it any more.
    """
    from flows.nightly import nightly

    deployment = nights(deployed)[0]
    with (
        _forgetting(deployed, deployment),
        prefect_of(server),
        pytest.raises(ConfigurationError, match="no longer says mode: Prefect forgets"),
    ):
        _started(nightly, deployed, deployment)
    assert night.requests == []
    with prefect_of(server):
        _started(nightly, deployed, deployment)

    assert [request.mode.value for request in night.requests] == ["live"]
    (config / "merchants.toml").write_text("".join(map(ACCOUNT.format, ("100042001", "100042002"))))
    with (
        prefect_of(server),
        pytest.raises(ConfigurationError, match="declares no such schedule; nothing was done"),
    ):
        _started(nightly, deployed, deployment)


@pytest.mark.usefixtures("config")
def test_housekeeping_that_forgot_whether_to_delete_says_so(server, deployed):
    from flows.housekeeping import housekeeping

    (deployment,) = (one for one in deployed.read_deployments() if one.name == "housekeeping")
    with (
        _forgetting(deployed, deployment),
        prefect_of(server),
        pytest.raises(ConfigurationError, match="no longer says delete and name"),
    ):
        _started(housekeeping, deployed, deployment)


@contextmanager
def _forgetting(deployed, deployment):
    """Its schedule was paused and resumed by the API; as it was at the end."""
    (schedule,) = deployment.schedules
    change = partial(deployed.update_deployment_schedule, deployment.id, schedule.id)
    for active in (False, True):
        change(active=active)
    try:
        yield
    finally:
        change(active=True, parameters=schedule.parameters)


def _started(flow, deployed, deployment):
    """A run that the scheduler planned, and that is due now."""
    from prefect.flow_engine import run_flow
    from prefect.states import Scheduled

    run = _planned(deployed, deployment.id)
    long_ago = Scheduled(scheduled_time=datetime(2026, 7, 1, 23, 30, tzinfo=UTC))
    deployed.set_flow_run_state(run.id, long_ago, force=True)
    run_flow(flow, flow_run=run, parameters={**run.parameters})


def _planned(deployed, deployment_id):
    """A run of a deployment that waits for its time."""
    from prefect.client.schemas.filters import FlowRunFilter

    of_night = FlowRunFilter(
        state={"name": {"any_": ["Scheduled"]}}, deployment_id={"any_": [deployment_id]}
    )
    give_up_at = time.monotonic() + SCHEDULED_RUNS_TIMEOUT_SECONDS
    while time.monotonic() < give_up_at:
        if found := deployed.read_flow_runs(flow_run_filter=of_night):
            return found[0]
        time.sleep(0.2)
    return None


@pytest.mark.parametrize("entrypoint", sorted({e["entrypoint"] for e in PROJECT["deployments"]}))
def test_every_entrypoint_loads_as_the_flow_itself(entrypoint):
    from prefect.flows import load_flow_from_entrypoint

    loaded = load_flow_from_entrypoint(entrypoint, use_placeholder_flow=False)

    module, name = entrypoint.split(":")
    assert loaded.name == name.replace("_", "-")
    assert loaded.fn.__module__ == module


@pytest.mark.parametrize("package", ["prefect", "fastapi", "sqlalchemy", "httpx"])
def test_the_installed_version_is_inside_its_pin(package):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = {Requirement(line).name: Requirement(line) for line in project["dependencies"]}

    assert "<" in str(pins[package].specifier)
    assert pins[package].specifier.contains(version(package))


def test_the_project_file_names_the_version_it_was_written_for():
    assert PROJECT["prefect-version"] == version("prefect")
