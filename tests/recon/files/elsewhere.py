"""Workers that stand for those of a cluster: what they are handed and give back goes as bytes."""

import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

IN_HAND_MAX = 3
"""Items that are asked for before the first result is given."""


class Elsewhere:
    """As the workers of a cluster, one after another, and what they were handed."""

    partitions = 1
    elsewhere = True

    def __init__(self) -> None:
        self.handed: list[Any] = []

    def each(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """See recon.config.cluster.Workers."""
        waiting: deque[bytes] = deque()
        for item in items:
            self.handed.append(item)
            waiting.append(pickle.dumps((work, item)))
            if len(waiting) > IN_HAND_MAX:
                yield _done(waiting.popleft())
        yield from map(_done, waiting)


def _done(handed: bytes) -> Any:
    work, item = pickle.loads(handed)  # noqa: S301 - written above
    return pickle.loads(pickle.dumps(work(item)))  # noqa: S301 - the same
