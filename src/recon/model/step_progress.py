"""Progress of long work, in rows or parts, for a listener: a terminal, a log, Prefect.

Progress is reported from deep inside (a reader, the sender, a sheet), so the listener is taken from
the context and is no argument of every function in between. No result depends on it: without a
listener nothing happens, and a report costs one call.
"""

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, TypeVar

Some = TypeVar("Some", bound=Sized)


class StepProgress(NamedTuple):
    """Progress as done of total."""

    done: int
    total: int
    what: str
    """Plural noun and past participle, such as `orders asked`, to follow `3 of 7`."""

    def __str__(self) -> str:
        return f"{self.done:,} of {self.total:,} {self.what}"


Listener = Callable[[StepProgress], None]


def _nobody(_: StepProgress) -> None:
    """The default listener ignores progress."""


_LISTENER: ContextVar[Listener] = ContextVar("who is notified how far the work is", default=_nobody)


@contextmanager
def reported_to(listener: Listener) -> Iterator[None]:
    """Report the progress of the block to this listener."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


class WorkProgress:
    """Progress of one piece of work: reported at its start and whenever a part is done."""

    def __init__(self, what: str, *, of: int) -> None:
        self._what = what
        self._total = of
        self._done = 0
        self.advance_to(0)

    def advance(self, count: int = 1) -> None:
        """Report that this many more are done."""
        self.advance_to(self._done + count)

    def advance_to(self, done: int) -> None:
        """Report the number done, at most the total."""
        self._done = min(done, self._total)
        if self._total:
            _LISTENER.get()(StepProgress(self._done, self._total, self._what))


def with_progress(parts: Iterable[Some], what: str, *, of: int) -> Iterator[Some]:
    """Iterate over parts, counting each by its length once the next one is requested."""
    progress = WorkProgress(what, of=of)
    for part in parts:
        yield part
        progress.advance(len(part))
