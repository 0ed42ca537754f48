"""A night that stopped when everything was asked and sent, brought to its end from what is stored.

The run goes on as itself: it compares what it had read and asked, and reports it. Nothing is asked
and nothing is sent. Where anything else happened to the account since, its answers are too old:
then the whole night is started again.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from recon.model.errors import UsageError
from recon.model.nights import NightRequest, StepSummary
from recon.steps.ground.closed_dates import refuse_closed
from recon.steps.ground.environment import Environment
from recon.steps.night.notices import telling
from recon.steps.night.report import Workbooks
from recon.steps.night.whole_night import (
    closed_at_end,
    refuse_full_disk,
    refuse_unwritable,
    take_lock,
    walk,
)
from recon.store import Connection
from recon.store.money import sending_rows
from recon.store.nights import runs
from recon.store.nights.runs import Run

STEPS = ("reconcile", "report")
ASKED = frozenset({"query again", "reconcile", "report"})
"""Last finished steps after which only comparing and reporting are left."""


def finish(
    request: NightRequest,
    *,
    environment: Environment,
    workbooks: Workbooks,
    progress: Callable[[StepSummary], None],
    complain: Callable[[str], None] = lambda _: None,
) -> str:
    """Bring the night to its end; the run's id. Tells `progress` after each step.

    `complain` hears of people who could not be told how it ended.

    Raises:
        NightHeldError: another run holds the account.
        UsageError: there is no such stopped night, or it cannot be finished from what is stored.
    """
    with (
        telling(environment, say=complain) as night,
        hold_stopped(request, environment=environment) as night.run_id,
    ):
        walk(STEPS, night.run_id, environment=environment, workbooks=workbooks, progress=progress)
    return night.run_id


@contextmanager
def hold_stopped(request: NightRequest, *, environment: Environment) -> Iterator[str]:
    """Hold the account for the night's own stopped run; yields its id, and closes it at the end.

    Raises:
        NightHeldError: another run holds the account.
        UsageError: there is no such stopped night, or it cannot be finished from what is stored.
    """
    account = environment.settings.account(request.merchant_id, account_id=request.account_id)
    refuse_unwritable(account.reports)
    refuse_full_disk(environment.store.path)
    with ExitStack() as stack:
        take_lock(stack, request, environment=environment)
        with environment.store.writing() as connection:
            run = _stopped(connection, request)
            refuse_closed(
                connection,
                (request.merchant_id, request.account_id),
                business_date=request.business_date,
                kept="the stopped run stays as it is",
                environment=environment,
            )
            runs.resume(connection, run.run_id, now=environment.clock())
        with closed_at_end(run.run_id, ended="finished", environment=environment):
            yield run.run_id


def is_stopped(request: NightRequest, *, environment: Environment) -> bool:
    """Whether the night's newest live run ended before its report was kept."""
    with environment.store.reading() as connection:
        run = runs.of_night(connection, request)
    return run is not None and run.status != "finished"


def _stopped(connection: Connection, request: NightRequest) -> Run:
    run = runs.of_night(connection, request)
    if run is None or run.status == "finished":
        is_now = f"is finished (run {run.run_id})" if run else "never ran live"
        msg = f"the night of {request.business_date} {is_now}: there is nothing to bring to its end"
        raise UsageError(msg)
    if problem := _problem(connection, run):
        msg = (
            f"run {run.run_id} cannot be brought to its end from what is stored: {problem}; "
            "nothing was changed: start the whole night again, what was sent is not sent twice"
        )
        raise UsageError(msg)
    return run


def _problem(connection: Connection, run: Run) -> str:
    """Why comparing what the run had read would not be the truth of its night; "" when it is."""
    if run.step not in ASKED:
        return f"it stopped after {run.step or 'its start'}, before the gateway was asked again"
    if other := runs.later(connection, run):
        return f"run {other} of this account came after it"
    if other := sending_rows.sent_outside(connection, run):
        return f"batch {other} was sent since, outside of it"
    return ""
