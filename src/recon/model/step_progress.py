"""How far long work is, in rows or parts of all, for whoever listens: a terminal, a log, Prefect.

Work tells it from deep inside (a reader, the sender, a sheet), so the listener is that of the
context and no argument of every function between. No result depends on it: without a listener
nothing happens, and one that is heard by nobody costs a call.
"""

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, TypeVar

Some = TypeVar("Some", bound=Sized)


class StepProgress(NamedTuple):
    """So many of so many."""

    done: int
    total: int
    what: str
    """Plural and past, such as `orders asked`: it stands behind `3 of 7`."""

    def __str__(self) -> str:
        return f"{self.done:,} of {self.total:,} {self.what}"


Listener = Callable[[StepProgress], None]


def _nobody(_: StepProgress) -> None:
    """Nobody listens."""


_LISTENER: ContextVar[Listener] = ContextVar("who hears how far the work is", default=_nobody)


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Let this listener hear how far the work of the block is."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


class Way:
    """How far a piece of work is: told when it begins, and with each part that is done."""

    def __init__(self, what: str, *, of: int) -> None:
        self._what = what
        self._total = of
        self._done = 0
        self.came_to(0)

    def more(self, count: int = 1) -> None:
        """So many more are done."""
        self.came_to(self._done + count)

    def came_to(self, done: int) -> None:
        """So many are done; what is done twice counts once."""
        self._done = min(done, self._total)
        if self._total:
            _LISTENER.get()(StepProgress(self._done, self._total, self._what))


def on_the_way(parts: Iterable[Some], what: str, *, of: int) -> Iterator[Some]:
    """The parts as they come, each counted by its length once the next one is asked for."""
    way = Way(what, of=of)
    for part in parts:
        yield part
        way.more(len(part))
