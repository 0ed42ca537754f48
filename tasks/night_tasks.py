"""The steps of a night as Prefect tasks, one thin wrapper each; the steps are in recon.steps.

Heavy imports of a step happen when it runs, not when its flow is imported.
"""

import logging
import os
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from prefect import Task, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.exceptions import MissingContextError
from prefect.logging import get_run_logger
from prefect.logging.loggers import PrefectLogAdapter

from recon.config.cluster import Workers
from recon.model.errors import Defect, ReconError, StoreLockedError
from recon.model.nights import STEPS, StepSummary
from recon.privacy.displayed_text import for_people

if TYPE_CHECKING:
    from recon.steps.runtime.environment import Environment

RETRIES_OF_READS = 2
RETRY_DELAYS_SECONDS = [2.0, 10.0]
"""Only a locked database is retried here: reads of the gateway have their own retries."""

NIGHT_LOG = "night"
"""Name of the child of Prefect's run logger for sentences to people."""

_WORKERS: ContextVar[Workers | None] = ContextVar("workers of the flow", default=None)


@contextmanager
def opened_environment() -> Iterator["Environment"]:
    """Open this process's environment (settings, store, clock, gateway); closed at the end."""
    from recon.steps.admin.doctor import RUN_OF_PREFECT, refuse_plain_key
    from recon.steps.runtime.environment import environment_of, system_clock

    with environment_of(os.environ, clock=system_clock, workers=_WORKERS.get()) as environment:
        if os.environ.get(RUN_OF_PREFECT):
            refuse_plain_key(environment.settings, variables=os.environ)
        yield environment


@contextmanager
def keeping_workers(workers: Workers) -> Iterator[None]:
    """Let every environment opened in the block use these workers."""
    token = _WORKERS.set(workers)
    try:
        yield
    finally:
        _WORKERS.reset(token)


@contextmanager
def sentences_only(doing: str) -> Iterator[None]:
    """Pass on only our own errors: any other exception becomes a Defect that names the place."""
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
    """Log a sentence in the run's log, which the UI and a terminal show."""
    try:
        run_log = get_run_logger()
    except MissingContextError:
        run_log = logging.getLogger("recon")
    if isinstance(run_log, PrefectLogAdapter | logging.Logger):
        run_log.getChild(NIGHT_LOG).info(for_people(sentence))


def worth_another_try(_task: Task[..., object], _run: TaskRun, state: State[object]) -> bool:
    """Return whether a failed read may be retried: only if the database was locked."""
    return isinstance(state.result(raise_on_failure=False), StoreLockedError)


def _place(error: BaseException) -> str:
    """Return file, line and function where it was raised; never the exception's text."""
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
NEVER_AGAIN = frozenset({"settle", "reconcile"})
"""Steps that Prefect never retries: only the journal decides what is still to be sent."""


def _task_of(name: str) -> Task[[str], StepSummary]:
    """Wrap the step of this name as a task that takes a run's id and returns the summary."""

    def step(run_id: str) -> StepSummary:
        from recon.steps.night.report import Workbooks
        from recon.steps.night.whole_night import walk
        from reports.reading.workbook_check import sheet_totals
        from reports.workbook import write_workbook

        done: list[StepSummary] = []
        with sentences_only(name), opened_environment() as environment:
            walk(
                [name],
                run_id,
                environment=environment,
                workbooks=Workbooks(write=write_workbook, totals=sheet_totals),
                progress=done.append,
            )
        echo(done[0].sentence)
        return done[0]

    step.__name__ = step.__qualname__ = name.replace(" ", "_")
    how = ONCE if name in NEVER_AGAIN else READ
    return task(name=name, task_run_name=name, **how)(step)


TASKS: Mapping[str, Task[[str], StepSummary]] = {name: _task_of(name) for name in STEPS}
"""The task of each step of a night."""
