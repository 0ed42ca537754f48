"""The workers of a flow's night: one cluster for all its steps."""

from contextlib import contextmanager, nullcontext
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from flows.artifacts import Artifacts
from flows.nightly import night_workers, walk
from recon.model.nights import FINISH, NIGHT, PLANS, Mode, NightPlan, NightRequest, StepSummary
from tasks.night_tasks import opened_environment

CLUSTER = (
    'address = "tls://127.0.0.1:1"\n'
    'ca_file = "ca.pem"\ncertificate_file = "dask.pem"\nkey_file = "dask-key.pem"\n'
)
"""Nobody connects before the first part."""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of configuration, and an environment whose workers are all that is looked at."""
    given: list[Any] = []

    @contextmanager
    def opened(_: Any, *, clock: Any, workers: Any) -> Any:
        assert clock
        given.append(workers)
        yield workers

    monkeypatch.setattr("recon.steps.runtime.environment.environment_of", opened)
    monkeypatch.setenv("RECON_CONFIG_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("plan", [NIGHT, PLANS["settle"], FINISH])
def test_a_part_of_a_night_has_one_cluster_as_the_night_has(
    config: Path, monkeypatch: pytest.MonkeyPatch, plan: NightPlan
) -> None:
    """Whichever steps a flow walks, all are given the same workers, and none is left behind."""
    (config / "cluster.toml").write_text(CLUSTER)
    given = []

    def step(run_id: str) -> StepSummary:
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


def test_without_an_address_each_environment_does_as_configured(config: Path) -> None:
    """Nothing is shared, and no cluster is begun."""
    assert not [*config.iterdir()]
    with night_workers(), opened_environment() as workers:
        assert workers is None
