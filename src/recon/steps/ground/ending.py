"""When a run ends: by its own deadline, or told to, but not in the middle of a batch.

SIGTERM and SIGINT are held back while a batch may be under way, and given on afterwards to whoever
listened before: the command line, Prefect, or the system's own way.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from recon.steps.ground.environment import Environment
from recon.store.nights.runs import Run

TOLD_TO_END = (signal.SIGTERM, signal.SIGINT)


def seconds_left(run: Run, *, environment: Environment) -> float:
    """For how long a run may still ask the gateway and send; never more than a whole night.

    From here on a clock that nobody can set counts: the time that is given may be put back.
    """
    limit = environment.settings.gateway.night_deadline_seconds
    passed = (environment.clock() - run.started_at).total_seconds()
    return limit - max(passed, 0.0)


@contextmanager
def held_back() -> Iterator[Callable[[], str]]:
    """Note such a signal only; yields what tells its name, "" while none came.

    Outside the main thread nothing can be held back, and nothing is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: ""
        return
    came: list[int] = []
    before = {
        signal_: signal.signal(signal_, lambda number, _: came.append(number))
        for signal_ in TOLD_TO_END
    }
    try:
        yield lambda: signal.Signals(came[0]).name if came else ""
    finally:
        for signal_, listener in before.items():
            signal.signal(signal_, listener)
        if came:
            signal.raise_signal(came[0])


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Let SIGTERM end this process as Ctrl-C does, so that what is open is closed.

    Where somebody listens already (Prefect does), it stays theirs.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, _: object) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)
