"""How a night ends in Prefect: the verdict is the name of the run's last state.

RECONCILED, BREAKS OPEN and INCOMPLETE are Completed: the run did its work, people do theirs. NOT
PROVEN is Failed: money is held until two people release it, and failure alarms must ring. A night
that another run holds is Cancelled: nothing was done, and the sentence names the holder.
"""

from typing import Any

from prefect.client.schemas.objects import State
from prefect.states import Cancelled, Completed, Failed

from recon.errors import Defect, NightHeldError
from recon.model import StepSummary, Verdict


def state_of(verdict: Verdict, *, report: StepSummary) -> State[Any]:
    """The last state of a night that came to its end."""
    message = f"{verdict}. {report.sentence}"
    if verdict is Verdict.NOT_PROVEN:
        return Failed(name=verdict.value, message=message, data=verdict)
    return Completed(name=verdict.value, message=message, data=verdict)


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
