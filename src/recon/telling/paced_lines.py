"""How far long work is as lines of a log: seldom enough that a log of a night stays a diary."""

import time
from collections.abc import Callable
from datetime import timedelta

from recon.model.headway import Headway

LINE_EVERY = timedelta(seconds=30)
"""A stage that is done within it adds no line."""


def since_start() -> timedelta:
    """A clock that nobody can set, for how long something takes; handed in by the outermost."""
    return timedelta(seconds=time.monotonic())


class PacedLines:
    """Says how far the work is, a line each LINE_EVERY of a clock that is passed in.

    The first line of a stage comes when it has worked for so long: `begin` says when it began.
    """

    def __init__(self, say: Callable[[str], None], *, elapsed: Callable[[], timedelta]) -> None:
        self._say = say
        self._elapsed = elapsed
        self._stage = ""
        self._said_at = elapsed()

    def begin(self, stage: str) -> None:
        """Another stage begins; "" where they have no names."""
        self._stage = stage
        self._said_at = self._elapsed()

    def __call__(self, headway: Headway) -> None:
        """Hear it, and say it when it is time."""
        now = self._elapsed()
        if now - self._said_at < LINE_EVERY:
            return
        self._said_at = now
        self._say(f"{self._stage}: {headway}." if self._stage else f"{headway}.")
