"""How a night ends in Prefect."""

import pytest

from flows.outcome import MEANS, state_of, state_of_held, state_of_part, verdict_of
from recon.errors import Defect, NightHeldError
from recon.model import Part, StepSummary, Verdict

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
    assert state.message == f"{verdict.value}: {MEANS[verdict]}. The workbook has 3 breaks."


def test_a_held_night_is_cancelled_with_the_holder_named() -> None:
    """Nothing failed and nothing was done; the sentence says who is at work."""
    state = state_of_held(NightHeldError("run-7 holds it"))

    assert (state.type.value, state.message) == ("CANCELLED", "run-7 holds it")


@pytest.mark.parametrize("figures", [{}, {"verdict": ""}, {"verdict": "FINE"}])
def test_a_report_without_a_verdict_is_a_defect(figures: dict[str, str]) -> None:
    """A missing verdict never counts as a good one."""
    with pytest.raises(Defect, match="NOT PROVEN"):
        verdict_of(StepSummary("report", "Done.", figures))


@pytest.mark.parametrize(
    ("part", "live", "figures", "kind", "name"),
    [
        (Part.INGEST, False, {"rejected": 0}, "COMPLETED", "FILES TAKEN IN"),
        (Part.INGEST, False, {"rejected": 2}, "COMPLETED", "FILES WITH REJECTS"),
        (Part.QUERY, False, {"failed": 0}, "COMPLETED", "ASKED"),
        (Part.QUERY, False, {"failed": 1}, "COMPLETED", "SOME NOT ANSWERED"),
        (Part.SETTLE, False, {"stopped": "the gate"}, "COMPLETED", "PLANNED, NOTHING SENT"),
        (Part.SETTLE, True, {"stopped": ""}, "COMPLETED", "SENT"),
        (Part.PAYOUTS, True, {"waiting": 3}, "COMPLETED", "SENT, SOME WAIT"),
        (Part.PAYOUTS, True, {"stopped": "the gate"}, "FAILED", "SENDING STOPPED"),
    ],
)
def test_a_part_says_what_it_did_and_that_it_is_no_night(
    part: Part, *, live: bool, figures: dict[str, int | str], kind: str, name: str
) -> None:
    """Money that the gate kept back is a failure of what was asked for; no part is a verdict."""
    step = "settle" if part in {Part.SETTLE, Part.PAYOUTS} else part.value
    state = state_of_part(part, summaries=[StepSummary(step, "Did it.", figures)], live=live)

    assert (state.type.value, state.name) == (kind, name)
    assert state.message == "Did it. The night itself is not run by this."
    assert name not in set(Verdict)
