"""The steps of a night as tasks of Prefect, one thin wrapper each; what they do is in recon.steps.

The weight of a step is loaded when it runs, not when its flow is looked at.
"""

import logging
import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from prefect import Task, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.exceptions import MissingContextError
from prefect.logging import get_run_logger
from prefect.logging.loggers import PrefectLogAdapter

from recon.config.cluster import Workers
from recon.model.errors import Defect, ReconError, StoreLockedError
from recon.model.nights import StepSummary
from recon.privacy.shown_text import for_people

if TYPE_CHECKING:
    from recon.steps.runtime.environment import Environment

RETRIES_OF_READS = 2
RETRY_DELAYS_SECONDS = [2.0, 10.0]
"""Only a locked database is worth another try: the gateway's reads have retries of their own."""

NIGHT_LOG = "night"
"""Child of Prefect's run loggers that carries the sentences for people."""

_KEPT: ContextVar[Workers | None] = ContextVar("workers of the flow", default=None)

Step = Callable[..., StepSummary]
"""`(run_id, *, environment, ...) -> StepSummary`."""


def run_step(step: Step, *, run_id: str, stage: str = "", **options: object) -> StepSummary:
    """Run one step of a night in an environment opened from the process's variables.

    `stage` is its name in the figures of the night; without it the step's own.

    Raises:
        ReconError: what the step could not continue from, one sentence without payload.
    """
    from recon.steps.runtime.night_end import measured

    with sentences_only(step.__name__), opened_environment() as environment:
        do = partial(step, run_id, environment=environment, **options)
        summary = measured(stage or step.__name__, do, run_id=run_id, environment=environment)
    echo(summary.sentence)
    return summary


@contextmanager
def opened_environment() -> Iterator["Environment"]:
    """The environment of this process: settings, store, clock and gateway, closed at the end."""
    from recon.steps.admin.doctor import RUN_OF_PREFECT, refuse_plain_key
    from recon.steps.runtime.environment import environment_of, system_clock

    with environment_of(os.environ, clock=system_clock, workers=_KEPT.get()) as environment:
        if os.environ.get(RUN_OF_PREFECT):
            refuse_plain_key(environment.settings, variables=os.environ)
        yield environment


@contextmanager
def keeping_workers(workers: Workers) -> Iterator[None]:
    """Let every environment that is opened in the block use these workers."""
    token = _KEPT.set(workers)
    try:
        yield
    finally:
        _KEPT.reset(token)


@contextmanager
def sentences_only(doing: str) -> Iterator[None]:
    """Let only sentences of ours out: foreign exceptions become a Defect that names the place."""
    try:
        yield
    except ReconError as error:
        raise error from None
    except Exception as error:  # noqa: BLE001 - every foreign text must stop here, Prefect stores it
        msg = (
            f"{doing} stopped at {_place(error)} with {type(error).__name__}; what was done until "
            "then is kept: start the night again, and report this if it stops again"
        )
        raise Defect(msg) from None


def echo(sentence: str) -> None:
    """Put a sentence into the run's log, which the UI and a terminal show."""
    try:
        run_log = get_run_logger()
    except MissingContextError:
        run_log = logging.getLogger("recon")
    if isinstance(run_log, PrefectLogAdapter | logging.Logger):
        run_log.getChild(NIGHT_LOG).info(for_people(sentence))


def worth_another_try(_task: Task[..., object], _run: TaskRun, state: State[object]) -> bool:
    """Whether a failed read may be tried again: only when somebody else held the database."""
    return isinstance(state.result(raise_on_failure=False), StoreLockedError)


def _place(error: BaseException) -> str:
    """File, line and function where it was raised; never the text of the exception."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "an unknown place"
    last = frames[-1]
    return f"{'/'.join(last.filename.split('/')[-3:])}:{last.lineno} ({last.name})"


ONCE: dict[str, Any] = {"retries": 0, "cache_policy": NO_CACHE, "persist_result": False}
READ: dict[str, Any] = ONCE | {
    "retries": RETRIES_OF_READS,
    "retry_delay_seconds": RETRY_DELAYS_SECONDS,
    "retry_condition_fn": worth_another_try,
}


@task(task_run_name="ingest", **READ)
def ingest(run_id: str) -> StepSummary:
    """Read the inbox of the run's account; safe to repeat, files are known by their content."""
    from recon.steps.files.ingest import ingest as step

    return run_step(step, run_id=run_id)


@task(task_run_name="query {phase}", **READ)
def query(run_id: str, phase: Literal["baseline", "after"]) -> StepSummary:
    """Ask the gateway about the run's orders; safe to repeat, only reads travel."""
    from recon.steps.night.query import query as step

    stage = "query" if phase == "baseline" else "query again"
    return run_step(step, run_id=run_id, stage=stage, phase=phase)


@task(task_run_name="settle", **ONCE)
def settle(run_id: str) -> StepSummary:
    """Send what is approved and not yet sent; the journal, not Prefect, decides what that is."""
    from recon.steps.night.whole_night import settle as step

    return run_step(step, run_id=run_id)


@task(task_run_name="reconcile", **ONCE)
def reconcile(run_id: str) -> StepSummary:
    """Compare the three sources of the run and store breaks, totals and verdict."""
    from recon.steps.compare.reconcile import reconcile as step

    return run_step(step, run_id=run_id)


@task(task_run_name="report", **READ)
def report(run_id: str) -> StepSummary:
    """Write the workbook of the run; figures `workbook` (path) and `verdict`."""
    from recon.steps.night.report import Workbooks
    from recon.steps.night.report import report as step
    from reports.reading.workbook_check import sheet_totals
    from reports.workbook import write_workbook

    workbooks = Workbooks(write=write_workbook, totals=sheet_totals)
    return run_step(step, run_id=run_id, workbooks=workbooks)
