"""How a night ends in Prefect."""

import pytest

from flows.outcome import MEANS, as_text, end_of, state_of, state_of_part
from recon.model.errors import Defect, NightHeldError, UsageError
from recon.model.nights import Part, StepSummary
from recon.model.terms import ALARMS, End

REPORT = StepSummary("report", "The workbook has 3 breaks.", {"verdict": "BREAKS OPEN"})


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        (End.RECONCILED, "COMPLETED"),
        (End.BREAKS_OPEN, "COMPLETED"),
        (End.INCOMPLETE, "FAILED"),
        (End.NOT_PROVEN, "FAILED"),
        (End.SENDING_STOPPED, "FAILED"),
        (End.MONEY_IN_DOUBT, "FAILED"),
    ],
)
def test_the_end_names_the_last_state(end, kind):
    state = state_of(end, report=REPORT)

    assert (state.type.value, state.name) == (kind, end.value)
    assert (kind == "COMPLETED") == (end.exit_code in {0, 3})
    assert state.message == f"{end.value}: {MEANS[end]}. The workbook has 3 breaks."


def test_a_held_night_is_cancelled_with_the_holder_named():
    @as_text("nightly", of_night=True)
    def night():
        raise NightHeldError("run-7 holds it")

    state = night()
    assert (state.type.value, state.name) == ("CANCELLED", "Held by another run")
    assert state.message == "run-7 holds it"


@pytest.mark.parametrize("figures", [{}, {"end": ""}, {"end": "FINE"}])
def test_a_report_without_an_end_is_a_defect(figures):
    with pytest.raises(Defect, match="NOT PROVEN"):
        end_of(StepSummary("report", "Done.", figures))


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
        (Part.SETTLE, True, {"stopped": "x", "in_doubt": 2}, "FAILED", "MONEY IN DOUBT"),
    ],
)
def test_a_part_says_what_it_did_and_that_it_is_no_night(part, *, live, figures, kind, name):
    step = "settle" if part in {Part.SETTLE, Part.PAYOUTS} else part.value
    state = state_of_part(part, summaries=[StepSummary(step, "Did it.", figures)], live=live)

    assert (state.type.value, state.name) == (kind, name)
    assert state.message == "Did it. The night itself is not run by this."
    assert name not in {end for end in End if end not in ALARMS}


@pytest.mark.parametrize(
    ("error", "name"), [(UsageError("not yet"), "Refused"), (Defect("stopped at"), "Failed")]
)
def test_what_cannot_go_on_ends_with_its_sentence(error, name):
    @as_text("form")
    def form():
        raise error

    last = form()
    assert (last.type.value, last.name, last.message) == ("FAILED", name, str(error))
