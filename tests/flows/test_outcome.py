"""How a night ends in Prefect."""

import pytest

from flows.outcome import state_of, state_of_held, verdict_of
from recon.errors import Defect, NightHeldError
from recon.model import StepSummary, Verdict

REPORT = StepSummary("report", "The workbook has 3 breaks.", {"verdict": "BREAKS OPEN"})


@pytest.mark.parametrize(
    ("verdict", "kind"),
    [
        (Verdict.RECONCILED, "COMPLETED"),
        (Verdict.BREAKS_OPEN, "COMPLETED"),
        (Verdict.INCOMPLETE, "COMPLETED"),
        (Verdict.NOT_PROVEN, "FAILED"),
    ],
)
def test_the_verdict_names_the_last_state(verdict: Verdict, kind: str) -> None:
    """Only NOT PROVEN is a failure: money is held until people release it."""
    state = state_of(verdict, report=REPORT)

    assert (state.type.value, state.name) == (kind, verdict.value)
    assert state.message == f"{verdict.value}. The workbook has 3 breaks."


def test_a_held_night_is_cancelled_with_the_holder_named() -> None:
    """Nothing failed and nothing was done; the sentence says who is at work."""
    state = state_of_held(NightHeldError("run-7 holds it"))

    assert (state.type.value, state.message) == ("CANCELLED", "run-7 holds it")


@pytest.mark.parametrize("figures", [{}, {"verdict": ""}, {"verdict": "FINE"}])
def test_a_report_without_a_verdict_is_a_defect(figures: dict[str, str]) -> None:
    """A missing verdict never counts as a good one."""
    with pytest.raises(Defect, match="NOT PROVEN"):
        verdict_of(StepSummary("report", "Done.", figures))
