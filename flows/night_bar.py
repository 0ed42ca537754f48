"""The bar of a night on Prefect's pages: which step, and how many rows or parts of it are done.

A step only leaves word of how far it is; a thread of its own takes it to Prefect every few seconds,
so that nothing that moves money ever waits for Prefect to answer.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context

from recon.model.headway import Headway, heard_by
from recon.telling.paced_lines import PacedLines, since_start
from tasks.running import say

UPDATE_SECONDS = 3.0
"""Each update is a call of Prefect's API."""

Publish = Callable[[float, str], None]
"""Takes the percentage of the whole night, and a sentence."""


class NightBar:
    """How far a night is; lives for one walk over its steps."""

    def __init__(self, steps: Sequence[str], *, publish: Publish) -> None:
        self._steps = steps
        self._publish = publish
        self._done = 0
        self._newest: Headway | None = None
        self._turn = threading.Lock()
        self._lines = PacedLines(say, elapsed=since_start)
        self._lines.begin(steps[0])

    def hear(self, headway: Headway) -> None:
        """Leave word of how far the step at work is; never waits for Prefect."""
        self._newest = headway
        self._lines(headway)

    def step_done(self, sentence: str) -> None:
        """Show the end of a step."""
        with self._turn:
            self._newest = None
            self._done += 1
            self._publish(100.0 * self._done / len(self._steps), sentence)
        self._lines.begin(self._steps[min(self._done, len(self._steps) - 1)])

    def show(self) -> None:
        """Take the newest word to Prefect, if there is one."""
        with self._turn:
            headway, self._newest = self._newest, None
            if headway is None:
                return
            done = self._done + headway.done / headway.total
            sentence = f"{self._steps[self._done]}: {headway}"
            self._publish(100.0 * done / len(self._steps), sentence)


@contextmanager
def night_bar(steps: Sequence[str], *, publish: Publish) -> Iterator[Callable[[str], None]]:
    """Show how far a night is until the end of the block; call what it yields after each step."""
    bar, ended = NightBar(steps, publish=publish), threading.Event()

    def follow() -> None:
        while not ended.wait(UPDATE_SECONDS):
            bar.show()

    follower = threading.Thread(target=copy_context().run, args=(follow,), daemon=True)
    follower.start()
    try:
        with heard_by(bar.hear):
            yield bar.step_done
    finally:
        ended.set()
