"""A server that was deployed to before ends with exactly the schedules of the configuration."""

import copy
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prefect.client.orchestration import SyncPrefectClient

from flows import prefect_health
from flows.deployments import text_of
from flows.serve import PrefectServer, prefect_variables
from recon.config.retention import Retention
from recon.config.settings import load_file_settings
from recon.model.errors import ReconError

pytestmark = pytest.mark.flow

ROOT = Path(__file__).parents[2]
PROJECT = yaml.safe_load((ROOT / "prefect.yaml").read_text())
GONE = "100042-100042009"
"""A night of an account that has left."""
AGAIN = ("100042-100042001", "100042-100042002", "approve")
"""What is deployed again: the second night's account has lost its schedule since."""
NAMED = [part for name in AGAIN for part in ("--name", name)]
COMMAND_SECONDS_MAX = 300
"""A deploy imports each flow anew."""
ACCOUNT = '[accounts."100042/{}"]\ninbox = "/i"\nreports = "/r"\n'
WEEKLY = '[retention]\nschedule = { cron = "0 6 * * 6", zone = "Europe/London" }\n'
LONDON = 'schedule = { cron = "30 2 * * *", zone = "Europe/London" }\n'


def _old_project() -> dict[str, Any]:
    """As it was once: one run at a time, schedules under another name, one account more."""
    entries = [entry for entry in copy.deepcopy(PROJECT["deployments"]) if entry["name"] in AGAIN]
    project = {**PROJECT, "deployments": [*entries, {**copy.deepcopy(entries[0]), "name": GONE}]}
    for entry in project["deployments"]:
        entry["concurrency_limit"] = {"limit": 1, "collision_strategy": "CANCEL_NEW"}
    for schedule in entries[0]["schedules"]:
        schedule |= {"slug": "once-a-night", "timezone": "Europe/Paris"}
    return project


@pytest.fixture
def shell(
    server: PrefectServer, deployed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """Runs a command as an operator does; the server is as it was when the test ends."""
    (tmp_path / "merchants.toml").write_text(
        ACCOUNT.format("100042001") + LONDON + ACCOUNT.format("100042002")
    )
    (tmp_path / "retention.toml").write_text(WEEKLY)
    of_server = prefect_variables(server.home, api_url=server.api_url)
    for name, value in {
        **of_server,
        "RECON_CONFIG_DIR": str(tmp_path),
        "RECON_DATABASE_URL": "sqlite:////nowhere",
        "RECON_GATEWAY_BASE_URL": "http://127.0.0.1:9",
        "RECON_SIGN_KEY": "x",
    }.items():
        monkeypatch.setenv(name, value)

    def run(program: str, *arguments: str) -> str:
        ended = subprocess.run(
            [Path(sys.executable).with_name(program), *arguments],
            cwd=tmp_path,
            env=dict(os.environ),
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS_MAX,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    yield run
    for entry in deployed.read_deployments():
        if entry.name == GONE:
            deployed.delete_deployment(entry.id)
    run("prefect", "--no-prompt", "deploy", *NAMED, "--prefect-file", str(ROOT / "prefect.yaml"))
    prefect_health.take_away(deployed, project=PROJECT)


@pytest.mark.timeout(4 * COMMAND_SECONDS_MAX)
def test_a_server_deployed_to_before_ends_with_the_declared_schedules(
    shell: Any,
    server: PrefectServer,
    deployed: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One schedule a declared night and none else, and no place that a dead run could hold."""
    (tmp_path / "old.yaml").write_text(yaml.safe_dump(_old_project()))
    shell("prefect", "--no-prompt", "deploy", "--all", "--prefect-file", "old.yaml")
    before = {entry.name: entry for entry in deployed.read_deployments()}
    assert before[GONE].schedules
    assert before["approve"].global_concurrency_limit.limit == 1

    shell("python", "-m", "flows", "files")
    shell("prefect", "--no-prompt", "deploy", *NAMED)
    monkeypatch.setattr(
        prefect_health,
        "_client",
        lambda: SyncPrefectClient(server.api_url, auth_string=server.auth),
    )
    look = dict(prefect_health.health_checks())["Prefect's deployments"]
    with pytest.raises(ReconError, match=r"nobody declares .*once-a-night.*flows apply`$"):
        look()
    monkeypatch.setattr(prefect_health, "DEPLOYMENTS_READ", 3)
    gone = shell("python", "-m", "flows", "apply")

    assert sorted(line for line in gone.splitlines() if "taken away" in line) == [
        "taken away: 100042-100042001: once-a-night (30 2 * * * Europe/Paris)",
        "taken away: 100042-100042002: every-night (45 2 * * * Europe/London)",
        "taken away: 100042-100042009: every-night (30 2 * * * Europe/London)",
    ]
    standing = {entry.name: entry for entry in deployed.read_deployments()}
    clocks = {
        name: [(each.slug, each.active, each.schedule.timezone) for each in entry.schedules]
        for name, entry in standing.items()
        if entry.schedules
    }
    assert clocks == {
        "100042-100042001": [("every-night", True, "Europe/London")],
        "housekeeping": [("housekeeping", True, "Europe/London")],
    }
    limits = {name: entry.global_concurrency_limit for name, entry in standing.items()}
    assert {name for name, limit in limits.items() if limit} == {GONE}
    assert look() == "8 as the configuration has them"
    assert "taken away" not in shell("python", "-m", "flows", "apply")


def test_pages_of_prefect_say_the_zone_of_a_schedule(tmp_path: Path) -> None:
    """Prefect shows a schedule by its name alone: deployment and tags say clock and zone."""
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
