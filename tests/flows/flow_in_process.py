"""The flow `nightly` run in this process, against the server of the tests.

Prefect is imported only after its variables are set, because it reads them at import; so nothing
here may import Prefect at the top.
"""

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from flows.serve import PrefectServer, prefect_variables
from recon.model.errors import Defect, NightHeldError
from recon.model.nights import NightRequest
from recon.model.terms import End

Progress = Callable[[str], None]
"""Takes one sentence after each step of the night."""

HAND_OVER_TIMEOUT_SECONDS = 5

NIGHT_LOGGERS = ("prefect.flow_runs.night", "prefect.task_runs.night")


def run_nightly(
    request: NightRequest, *, server: PrefectServer, progress: Progress | None = None
) -> End:
    """Run the flow and tell `progress` its sentences; its end.

    Raises:
        NightHeldError: another run holds the night.
        ReconError: what the night could not continue from.
    """
    with prefect_of(server), _sentences_to(progress):
        from flows.nightly import nightly

        server.wait()
        state = nightly(
            request.merchant_id,
            request.account_id,
            request.business_date,
            request.mode,
            opening=request.opening,
            skip_reason=request.skip,
            return_state=True,
        )
    return _end_of(state)


def _end_of(state: Any) -> End:
    """What the last state of the flow means for the caller."""
    if state.is_cancelled():
        raise NightHeldError(state.message)
    if state.name in set(End):
        return End(state.name)
    result = state.result(raise_on_failure=False)
    if isinstance(result, BaseException):
        raise result
    msg = (
        f"the night ended in the state {state.name} without an end of ours; it counts as NOT PROVEN"
    )
    raise Defect(msg)


@contextmanager
def prefect_of(server: PrefectServer) -> Iterator[None]:
    """Prefect's variables for this server while the block runs, the console kept quiet."""
    variables = {
        **prefect_variables(server.home, api_url=server.api_url),
        # People read our own sentences, errors included; Prefect's log goes to its server.
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    }
    before = dict(os.environ)
    _become({**without_prefect(before), **variables})
    try:
        from prefect.context import refresh_global_settings_context

        refresh_global_settings_context()  # for a process that imported Prefect earlier
        yield
        _hand_over_what_waits()
    finally:
        _become(before)


def without_prefect(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables without those of another Prefect: its server, database, key or profile."""
    return {name: value for name, value in environment.items() if not name.startswith("PREFECT_")}


def _become(environment: Mapping[str, str]) -> None:
    """Make the process's variables exactly these, touching only what differs."""
    for name in set(os.environ) - set(environment):
        del os.environ[name]
    for name, value in environment.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


def _hand_over_what_waits() -> None:
    """Send the log lines and events that wait in this process, before the server ends."""
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogHandler

    APILogHandler().flush()
    EventsWorker.drain_all(timeout=HAND_OVER_TIMEOUT_SECONDS)


class _Sentences(logging.Handler):
    """Hands the sentences of the night's log to a caller."""

    def __init__(self, progress: Progress) -> None:
        super().__init__(level=logging.INFO)
        self._progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        self._progress(record.getMessage())


@contextmanager
def _sentences_to(progress: Progress | None) -> Iterator[None]:
    if progress is None:
        yield
        return
    import flows.nightly  # noqa: F401 - Prefect configures logging at import, and drops handlers then

    handler = _Sentences(progress)
    loggers = [logging.getLogger(name) for name in NIGHT_LOGGERS]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
