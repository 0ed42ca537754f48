import json
from pathlib import Path
from typing import Any

import pytest

from recon.model.errors import ReconError
from recon.model.nights import StepSummary
from recon.steps.ground import stages
from recon.steps.night import whole_night as night
from recon.telling.night_log import open_log

NAMES = [name for name, _ in night.ORDER]


def _metrics(merchant: Any) -> dict[str, Any]:
    (path,) = (merchant.folder / "reports" / "metrics").glob("*.json")
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def test_each_stage_of_a_night_leaves_its_figures_and_its_line(merchant: Any) -> None:
    """One file a run with time, rows and peak memory of each stage; one log line a stage."""
    log = merchant.folder / "recon.log"
    merchant.variables["RECON_LOG_FILE"] = str(log)
    merchant.drop("orders.csv", merchant.order(merchant.payments("captured")[0]))
    merchant.night()
    open_log({})

    found = _metrics(merchant)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [one["stage"] for one in found["stages"]] == NAMES
    assert all(one["seconds"] > 0 for one in found["stages"]), found
    assert all(one["peak_rss_bytes"] > 2**20 for one in found["stages"])
    assert any(one["rows"] for one in found["stages"])
    assert [line["stage"] for line in lines] == NAMES
    assert {line["run_id"] for line in lines} == {found["run_id"]}


def test_a_stage_that_fails_is_noted_by_its_kind_only(merchant: Any) -> None:
    """The kind of the error stands there; its text, which can hold anything, does not."""

    def fails() -> StepSummary:
        msg = "the text of it"
        raise ReconError(msg)

    with (
        merchant.environment() as environment,
        night.hold(merchant.request, environment=environment) as run_id,
        pytest.raises(ReconError),
    ):
        stages.measured("ingest", fails, run_id=run_id, environment=environment)

    (stage,) = _metrics(merchant)["stages"]
    assert (stage["failed"], stage["rows"]) == ("ReconError", {})
    assert "the text of it" not in json.dumps(_metrics(merchant))


def test_figures_that_cannot_be_written_stop_nothing(merchant: Any) -> None:
    """A night goes on where its metrics folder is a file."""
    folder: Path = merchant.folder / "reports" / "metrics"
    folder.write_text("in the way")
    summary = StepSummary("ingest", "done")
    with (
        merchant.environment() as environment,
        night.hold(merchant.request, environment=environment) as run_id,
    ):
        got = stages.measured("ingest", lambda: summary, run_id=run_id, environment=environment)

    assert got is summary
    assert folder.read_text() == "in the way"


def test_peak_memory_is_that_of_the_stage(merchant: Any) -> None:
    """A stage after a hungry one does not inherit its peak."""

    def hungry() -> StepSummary:
        return StepSummary("x", "x", {"bytes": len(bytearray(200 * 2**20))})

    with (
        merchant.environment() as environment,
        night.hold(merchant.request, environment=environment) as run_id,
    ):
        stages.measured("ingest", hungry, run_id=run_id, environment=environment)
        stages.measured(
            "query", lambda: StepSummary("x", "x"), run_id=run_id, environment=environment
        )

    first, second = (one["peak_rss_bytes"] for one in _metrics(merchant)["stages"])
    assert first - second > 150 * 2**20


def test_what_a_step_says_is_masked_once_for_every_sink(merchant: Any) -> None:
    """The command line, the log of nights, the figures and Prefect get the sentence from here."""
    quoted = StepSummary("ingest", "order 4929-7801-6452-3877 of caf\udce9.csv")
    with merchant.environment() as environment:
        done = stages.measured("ingest", lambda: quoted, run_id="none", environment=environment)
    assert done.sentence == "order 4929-78**-****-3877 of caf\\xe9.csv"
