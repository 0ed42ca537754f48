"""The pinned set works: server, work pool, deployments, schedules and the form, for real.

Each pin of pyproject.toml breaks one of these when it is loosened: fastapi 0.155 and newer fails at
the server's import (no server), 0.151 to 0.154 answer 422 to the nulls of Prefect's own client (the
second deployment and `read_deployments` fail), SQLAlchemy 2.1 loses the schedules without a word
(no scheduled run ever appears).
"""

import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from flows import local
from flows.prefect_server import PrefectServer, prefect_variables

pytestmark = pytest.mark.flow

ROOT = Path(__file__).parents[2]
PROJECT = yaml.safe_load((ROOT / "prefect.yaml").read_text())
DEPLOYED = [entry["name"] for entry in PROJECT["deployments"]]
NIGHTS = [entry["name"] for entry in PROJECT["deployments"] if "schedules" in entry]
SCHEDULED_RUNS_TIMEOUT_SECONDS = 60


@pytest.fixture(scope="module")
def deployed(server: PrefectServer) -> Iterator[Any]:
    """The deployments of prefect.yaml on a real server, through a work pool, by Prefect's CLI."""
    from prefect.client.orchestration import SyncPrefectClient

    for command in (
        ["work-pool", "create", "recon", "--type", "process"],
        ["--no-prompt", "deploy", "--all"],
    ):
        ended = subprocess.run(
            [sys.executable, "-m", "prefect", *command],
            cwd=ROOT,
            env={**os.environ, **prefect_variables(server.home, api_url=server.api_url)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
    with SyncPrefectClient(server.api_url) as client:
        yield client


def nights(deployed: Any) -> list[Any]:
    """The scheduled deployments, as the server has them."""
    return [entry for entry in deployed.read_deployments() if entry.name in NIGHTS]


def test_every_deployment_arrives_through_the_work_pool(deployed: Any) -> None:
    """Nights and people's forms, each with its pool, limit and no pull."""
    found = {entry.name: entry for entry in deployed.read_deployments()}

    assert sorted(found) == sorted(DEPLOYED)
    assert len(found) > len(NIGHTS) >= 2
    for entry in found.values():
        assert entry.work_pool_name == "recon"
        assert entry.pull_steps in ([], None)
        assert entry.global_concurrency_limit.limit == 1


def test_a_night_has_its_schedule_and_starts_dry_by_hand(deployed: Any) -> None:
    """Each account's night has its time zone; a second one at once is refused."""
    for entry in nights(deployed):
        assert entry.entrypoint == "flows.nightly:nightly"
        # A form starts as a dry run; only the schedule moves money by itself.
        assert "mode" not in entry.parameters
        assert [one.parameters for one in entry.schedules] == [{"mode": "live"}]
        assert entry.concurrency_options.collision_strategy.value == "CANCEL_NEW"
        assert [one.schedule.timezone for one in entry.schedules] == ["Europe/London"]


def test_scheduled_runs_appear_for_both_deployments(deployed: Any) -> None:
    """The scheduler plans the next nights; with the wrong SQLAlchemy it never plans one."""
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterStateName

    wanted = {entry.id for entry in nights(deployed)}
    scheduled = FlowRunFilter(state={"name": FlowRunFilterStateName(any_=["Scheduled"])})
    give_up_at = time.monotonic() + SCHEDULED_RUNS_TIMEOUT_SECONDS
    planned: set[Any] = set()
    while planned != wanted and time.monotonic() < give_up_at:
        planned = {run.deployment_id for run in deployed.read_flow_runs(flow_run_filter=scheduled)}
        time.sleep(0.5)

    assert planned == wanted


def test_a_form_refuses_a_wrong_value_before_a_run_exists(deployed: Any) -> None:
    """The server checks the form's types: a mode or id that is none never becomes a run."""
    from prefect.exceptions import PrefectHTTPStatusError

    deployment = nights(deployed)[0]
    for wrong in ({"mode": "for real"}, {"account_id": "1; drop"}, {"merchant_id": ""}):
        with pytest.raises(PrefectHTTPStatusError, match="409"):
            deployed.create_flow_run_from_deployment(deployment.id, parameters=wrong)


def test_the_form_explains_its_fields_and_offers_the_modes(deployed: Any) -> None:
    """The form's help is the flow's docstring; the mode is a choice of two, dry-run first."""
    schema = nights(deployed)[0].parameter_openapi_schema
    fields = schema["properties"]

    assert schema["required"] == ["merchant_id", "account_id"]
    assert all(len(fields[name]["description"]) > 20 for name in fields)
    assert fields["mode"]["default"] == "dry-run"
    assert schema["definitions"]["Mode"]["enum"] == ["dry-run", "live"]


def test_a_scheduled_run_takes_its_business_date_from_its_schedule(
    server: PrefectServer, deployed: Any, night: Any
) -> None:
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
    with local._prefect_of(server):
        run_flow(nightly, flow_run=run, parameters={**run.parameters})

    request = night.requests[0]
    assert (request.business_date, request.mode.value) == ("2026-07-01", "live")
    assert deployed.read_flow_run(run.id).name.endswith(f"{request.account_id} 2026-07-01 live")


@pytest.mark.parametrize("entrypoint", sorted({e["entrypoint"] for e in PROJECT["deployments"]}))
def test_every_entrypoint_loads_as_the_flow_itself(entrypoint: str) -> None:
    """No placeholder stands in for a flow whose module cannot be imported."""
    from prefect.flows import load_flow_from_entrypoint

    loaded = load_flow_from_entrypoint(entrypoint, use_placeholder_flow=False)

    module, name = entrypoint.split(":")
    assert loaded.name == name.replace("_", "-")
    assert loaded.fn.__module__ == module


@pytest.mark.parametrize("package", ["prefect", "fastapi", "sqlalchemy", "httpx"])
def test_the_installed_version_is_inside_its_pin(package: str) -> None:
    """What runs here is what pyproject.toml allows, upper bound included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = {Requirement(line).name: Requirement(line) for line in project["dependencies"]}

    assert "<" in str(pins[package].specifier)
    assert pins[package].specifier.contains(version(package))


def test_the_project_file_names_the_version_it_was_written_for() -> None:
    """prefect.yaml says which Prefect it was tested with."""
    assert PROJECT["prefect-version"] == version("prefect")
