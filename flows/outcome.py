"""How a night ends in Prefect: the verdict is the name of the run's last state.

RECONCILED, BREAKS OPEN and INCOMPLETE are Completed: the run did its work, people do theirs. NOT
PROVEN is Failed: money is held until two people release it, and failure alarms must ring. A night
that another run holds is Cancelled: nothing was done, and the sentence names the holder.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from prefect.client.schemas.objects import State
from prefect.states import Cancelled, Completed, Failed

from recon.errors import Defect, NightHeldError
from recon.model import Part, StepSummary, Verdict

SENDING_STOPPED = "SENDING STOPPED"
NAMES_OF_PARTS = (
    *("FILES TAKEN IN", "FILES WITH REJECTS", "ASKED", "SOME NOT ANSWERED"),
    *("PLANNED, NOTHING SENT", "SENT", "SENT, SOME WAIT"),
)
THE_SAME_RESULT, ANOTHER_RESULT, WRITTEN_AGAIN = NAMES_AGAIN = (
    *("THE SAME RESULT", "ANOTHER RESULT", "WRITTEN AGAIN"),
)
NOT_A_NIGHT = "The night itself is not run by this."


MEANS = {
    Verdict.RECONCILED: "nothing is open; sign the workbook",
    Verdict.BREAKS_OPEN: "the run did its work, and breaks wait for people in the workbook",
    Verdict.INCOMPLETE: "a source or a group of answers is missing; get it and run the night again",
    Verdict.NOT_PROVEN: "a control total does not tie; refunds and payouts are held",
}
"""What a verdict asks of people: the colour of a state does not say it."""


def state_of(verdict: Verdict, *, report: StepSummary) -> State[Any]:
    """The last state of a night that came to its end."""
    message = f"{verdict}: {MEANS[verdict]}. {report.sentence}"
    if verdict is Verdict.NOT_PROVEN:
        return Failed(name=verdict.value, message=message, data=verdict)
    return Completed(name=verdict.value, message=message, data=verdict)


def state_of_part(part: Part, *, summaries: Sequence[StepSummary], live: bool) -> State[Any]:
    """The last state of a part: what it did, and that the night itself is not run by it."""
    figures = {summary.step: summary.figures for summary in summaries}
    message = " ".join([*(one.sentence for one in summaries), NOT_A_NIGHT])
    stopped = figures.get("settle", {}).get("stopped")
    if stopped and live:
        return Failed(name=SENDING_STOPPED, message=message)
    return Completed(name=_name_of_part(part, figures=figures, live=live), message=message)


def _name_of_part(part: Part, *, figures: Mapping[str, Mapping[str, int | str]], live: bool) -> str:
    taken, rejects, asked, unanswered, planned, sent, some_wait = NAMES_OF_PARTS
    if part is Part.INGEST:
        return rejects if figures["ingest"].get("rejected") else taken
    if part is Part.QUERY:
        return unanswered if figures["query"].get("failed") else asked
    if not live:
        return planned
    return some_wait if figures["settle"].get("waiting") else sent


def state_of_held(error: NightHeldError) -> State[Any]:
    """The last state of a run whose night another run holds."""
    return Cancelled(name="Held by another run", message=str(error))


def verdict_of(report: StepSummary) -> Verdict:
    """The verdict that the report step found.

    Raises:
        Defect: the step named none.
    """
    try:
        return Verdict(str(report.figures.get("verdict")))
    except ValueError:
        msg = "the report step gave no verdict; the night counts as NOT PROVEN"
        raise Defect(msg) from None
