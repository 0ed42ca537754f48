"""One Prefect server for all tests of flows, and a night whose steps are played."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from flows import nightly  # bound before its steps are played
from flows.deployments import pool_text
from flows.serve import PrefectServer, prefect_variables
from recon.model.errors import ReconError
from recon.model.nights import NightPlan, NightRequest, StepSummary
from recon.model.terms import ControlTotal
from tests.flows.prefect_api import prefect_server

ON_REQUEST = {
    "PREFECT_ON": "test_prefect_on_postgresql.py",
    "PROCESS_WALK": "test_process_secrets.py",
}
collect_ignore = [name for variable, name in ON_REQUEST.items() if not os.environ.get(variable)]
"""They need servers of their own: the campaigns `prefect-postgresql` and `process-walk` only."""

ROOT = Path(__file__).parents[2]
RUN_ID = "run-1"


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in a hook of the same name
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of flows share one worker, and so one server."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.xdist_group("prefect"))


@pytest.fixture
def people(installation: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation with one declared person, whose codes come from `CODE_ANNA`."""
    (installation / "config" / "approvers.toml").write_text(
        '[approvers.anna]\nname = "Anna Berg"\ncode_secret_env = "CODE_ANNA"\n'
    )
    monkeypatch.setenv("CODE_ANNA", "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP")
    return installation


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrefectServer]:
    """A server of our own with its state in its own folder, its scheduler quick.

    It ends with the last flow: idle it takes a twentieth of a core.
    """
    home = tmp_path_factory.mktemp("prefect")
    quick = {"PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "2"}
    with prefect_server(home, variables=quick) as running:
        running.wait()
        yield running


@pytest.fixture(scope="package")
def deployed(server: PrefectServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The deployments of prefect.yaml on a real server, through a work pool, by Prefect's CLI."""
    from prefect.client.orchestration import SyncPrefectClient

    template = tmp_path_factory.mktemp("pool") / "pool.json"
    template.write_text(pool_text())
    for command in (
        [
            *("work-pool", "create", "recon", "--type", "process"),
            *("--base-job-template", str(template)),
        ],
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
    with SyncPrefectClient(server.api_url, auth_string=server.auth) as client:
        yield client


@dataclass
class PlayedNight:
    """A night that does what a test says: which step fails, which verdict comes out."""

    workbook: Path
    verdict: str = "RECONCILED"
    failing: dict[str, BaseException] = field(default_factory=dict)
    held: ReconError | None = None
    breaks: list[dict[str, str]] = field(default_factory=list)
    totals: tuple[ControlTotal, ...] = ()
    done: list[str] = field(default_factory=list)
    requests: list[NightRequest] = field(default_factory=list)
    plans: list[NightPlan] = field(default_factory=list)
    stopped: bool = False
    indexed: list[NightRequest] = field(default_factory=list)
    unreported: str = ""
    waiting: int = 0

    @contextmanager
    def environment_of(
        self, _variables: object, *, clock: Callable[[], object], workers: object
    ) -> Iterator[object]:
        """Stands for recon.steps.runtime.environment.environment_of."""
        assert clock
        assert workers is None
        yield self

    @contextmanager
    def hold(
        self,
        request: NightRequest,
        *,
        environment: object,
        plan: NightPlan,
        echo_error: Callable[[str], None],
    ) -> Iterator[str]:
        """Stands for recon.steps.night.whole_night.hold; people hear of a night that was held."""
        self.plans.append(plan)
        assert environment is self
        self.requests.append(request)
        if self.held:
            raise self.held
        try:
            yield RUN_ID
        finally:
            if plan.part is None and self.unreported:
                echo_error(self.unreported)

    def walk(
        self,
        names: list[str],
        run_id: str,
        *,
        environment: object,
        workbooks: object,
        progress: Callable[[StepSummary], None],
    ) -> None:
        """Stands for recon.steps.night.whole_night.walk: each step is noted, or fails."""
        assert (run_id, environment) == (RUN_ID, self)
        assert workbooks == {"write": "writer", "totals": "reader"}
        for name in names:
            self.done.append(name)
            if name in self.failing:
                raise self.failing[name]
            figures = {"verdict": self.verdict, "end": self.verdict, "workbook": str(self.workbook)}
            told = figures if name == "report" else {}
            progress(StepSummary(name, f"{name} did its work.", told))

    def breaks_of(self, run_id: str, *, environment: object) -> tuple[list[dict[str, str]], int]:
        """Stands for flows.artifacts.breaks_of: what the store has of the run."""
        assert (run_id, environment) == (RUN_ID, self)
        return self.breaks, len(self.breaks)

    def index_after(
        self, request: NightRequest, *, environment: object, write: object, echo: object
    ) -> None:
        """Stands for recon.steps.night.monitor.index_after."""
        assert (environment, write, callable(echo)) == (self, "index writer", True)
        self.indexed.append(request)


def _show(played: PlayedNight, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put in the place of what a flow reads of a night at its end what the test says."""
    stand_ins: dict[str, Callable[..., object]] = {
        "breaks_of": played.breaks_of,
        "status_lines": lambda _run_id, **_: ["## Money", ""],
        "totals_of": lambda _run_id, **_: played.totals,
        "waiting_for_people": lambda _: played.waiting,
    }
    for name, stand_in in stand_ins.items():
        monkeypatch.setattr(nightly, name, stand_in)


@pytest.fixture
def night(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> PlayedNight:
    """The steps of recon replaced by played ones, so that a test sees the flow alone."""
    clock = partial(datetime, 2026, 11, 21, 2, 30, tzinfo=UTC)
    played = PlayedNight(workbook=tmp_path / "reconciliation.xlsx")

    def put(module: str, **names: object) -> None:
        stand_in = ModuleType(module)
        # Whoever is imported for the first time within a play finds what is not played, too.
        vars(stand_in).update(vars(import_module(module)) | names)
        monkeypatch.setitem(sys.modules, module, stand_in)

    put("recon.steps.runtime.environment", environment_of=played.environment_of, system_clock=clock)
    put(
        "recon.steps.night.whole_night",
        hold=played.hold,
        walk=played.walk,
        next_night=lambda *_, **__: date(2026, 11, 22),
        moved_since=lambda *_, **__: (),
        is_stopped=lambda *_, **__: played.stopped,
    )
    put("recon.steps.night.monitor", index_after=played.index_after)
    put("recon.steps.night.report", Workbooks=dict)
    put("reports.workbook_io", drawings=None)
    put("reports.reading.index_workbook", write_index="index writer")
    put("reports.workbook", write_workbook="writer")
    put("reports.reading.workbook_check", sheet_totals="reader")
    _show(played, monkeypatch)
    return played
