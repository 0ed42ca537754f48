import json
from pathlib import Path
from typing import Any

import pytest

from recon.model.errors import ReconError
from recon.model.nights import StepSummary
from recon.steps.ground import stages
from recon.steps.night import whole_night as night


def _metrics(merchant: Any) -> dict[str, Any]:
    (path,) = (merchant.folder / "reports" / "metrics").glob("*.json")
    document: dict[str, Any] = json.loads(path.read_text())
    return document


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


def test_what_a_step_says_is_masked_once_for_every_sink(merchant: Any) -> None:
    """The command line, the log of nights, the figures and Prefect get the sentence from here."""
    quoted = StepSummary("ingest", "order 4929-7801-6452-3877 of caf\udce9.csv")
    with merchant.environment() as environment:
        done = stages.measured("ingest", lambda: quoted, run_id="none", environment=environment)
    assert done.sentence == "order 4929-78**-****-3877 of caf\\xe9.csv"
