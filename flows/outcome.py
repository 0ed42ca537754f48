"""How a night ends in Prefect: the end is the name of the run's final state.

RECONCILED and BREAKS OPEN are Completed: the run did its work, people do theirs. MONEY IN DOUBT,
SENDING STOPPED, NOT PROVEN and INCOMPLETE are Failed: somebody must act before the morning, and
failure alarms must ring. A night that another run holds is Cancelled: nothing was done, and the
message names the holder.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec

from prefect import Flow, flow
from prefect.client.schemas.objects import State
from prefect.states import Cancelled, Completed, Failed

from recon.model.errors import Defect, NightHeldError, ReconError, UsageError
from recon.model.nights import Part, StepSummary
from recon.model.terms import End
from tasks.night_tasks import echo, sentences_only

PLANNED = "PLANNED, NOTHING SENT"
_SETTLED = ("settle", "waiting", "SENT, SOME WAIT", "SENT")
_PARTS = {
    Part.INGEST: ("ingest", "rejected", "FILES WITH REJECTS", "FILES TAKEN IN"),
    Part.QUERY: ("query", "failed", "SOME NOT ANSWERED", "ASKED"),
    Part.SETTLE: _SETTLED,
    Part.PAYOUTS: _SETTLED,
}
"""Part -> its step, a figure of it, the name of its end where that is not 0, and where it is."""
NAMES_OF_PARTS = {PLANNED, *(name for _, _, *names in _PARTS.values() for name in names)}
THE_SAME_RESULT, ANOTHER_RESULT, WRITTEN_AGAIN = NAMES_AGAIN = (
    *("THE SAME RESULT", "ANOTHER RESULT", "WRITTEN AGAIN"),
)
NOT_A_NIGHT = "The night itself is not run by this."
MEANS = {
    End.MONEY_IN_DOUBT: "nobody can say yet whether it moved; a person looks now",
    End.SENDING_STOPPED: "what was to be sent was not; a person finds the cause now",
    End.RECONCILED: "no break is open; sign the workbook",
    End.BREAKS_OPEN: "the run did its work, and breaks wait for people in the workbook",
    End.INCOMPLETE: "a source or a group of answers is missing; get it and run the night again",
    End.NOT_PROVEN: "a control total does not tie; refunds and payouts are held",
}
"""What each end requires of people: the colour of a state does not show it."""
DONE = frozenset({End.RECONCILED, End.BREAKS_OPEN})
"""Ends of a run that did its work; all others are Failed, and failure alarms ring."""
P = ParamSpec("P")
Form = Callable[P, State[Any]]


def as_flow(
    name: str, *, named: str | Callable[[], str], of_night: bool = False
) -> Callable[[Form[P]], Flow[P, State[Any]]]:
    """Make a flow: Prefect retries none and stores no result, and all end as in `as_text`.

    Args:
        name: Name of the flow.
        named: Name of its runs.
        of_night: As in `as_text`.
    """
    made = flow(name=name, flow_run_name=named, retries=0, persist_result=False)
    return lambda run: made(as_text(name, of_night=of_night)(run))


def as_text(doing: str, *, of_night: bool = False) -> Callable[[Form[P]], Form[P]]:
    """Let a flow that cannot continue end with its message, in state and log, without a traceback.

    Args:
        doing: Name of the flow, for the message of what nobody expected.
        of_night: Whether it is a night or a part of one: failure alarms ring where it is refused,
            and it is Cancelled where another run holds the night.
    """

    def decorated(run: Form[P]) -> Form[P]:
        @wraps(run)
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> State[Any]:
            try:
                with sentences_only(doing):
                    return run(*args, **kwargs)
            except ReconError as error:
                if of_night and isinstance(error, NightHeldError):
                    return Cancelled(name="Held by another run", message=str(error))
                echo(str(error))
                # Alarms ring for the name that Prefect gives by default.
                name = "Refused" if isinstance(error, UsageError) and not of_night else "Failed"
                return Failed(name=name, message=str(error), data=error)

        return wrapped

    return decorated


def state_of(end: End, *, report: StepSummary) -> State[Any]:
    """Return the final state of a night that finished."""
    message = f"{end}: {MEANS[end]}. {report.sentence}"
    state = Completed if end in DONE else Failed
    return state(name=end.value, message=message, data=end)


def state_of_part(part: Part, *, summaries: Sequence[StepSummary], live: bool) -> State[Any]:
    """Return the final state of a part: what it did, and that it is not the night itself."""
    figures = {summary.step: summary.figures for summary in summaries}
    message = " ".join([*(summary.sentence for summary in summaries), NOT_A_NIGHT])
    step, figure, some, none = _PARTS[part]
    name = some if figures[step].get(figure) else none
    if step == "settle":
        for stopped, end in (("in_doubt", End.MONEY_IN_DOUBT), ("stopped", End.SENDING_STOPPED)):
            if live and figures[step].get(stopped):
                return Failed(name=end.value, message=message)
        name = name if live else PLANNED
    return Completed(name=name, message=message)


def end_of(report: StepSummary) -> End:
    """Return the end that the report step found.

    Raises:
        Defect: the step named none.
    """
    try:
        return End(str(report.figures.get("end")))
    except ValueError:
        msg = "the report step gave no end; the night counts as NOT PROVEN"
        raise Defect(msg) from None
