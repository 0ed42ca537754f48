"""When a notification that is not acknowledged is sent again: whole seconds on the virtual clock.

After 1 second, then doubling with jitter; a series is over after 12 hours, and three series are
played, 36 hours in all. The jitter is drawn from a digest, so that a seed replays it.
"""

import hashlib
from typing import Protocol

HOUR_SECONDS = 3_600


class RetryTerms(Protocol):
    """The numbers of the schedule."""

    @property
    def retry_first_seconds(self) -> int:
        """Before the first repetition of a series."""

    @property
    def retry_series_hours(self) -> int:
        """How long one series lasts."""

    @property
    def retry_series(self) -> int:
        """How many series are played."""

    @property
    def retry_jitter_percent(self) -> int:
        """By how much of itself a wait is shorter or longer at most."""


def retry_seconds(terms: RetryTerms, *, seed: int, about: str) -> tuple[int, ...]:
    """When each repetition is due, seconds after the first attempt, rising."""
    series = terms.retry_series_hours * HOUR_SECONDS
    due: list[int] = []
    for number in range(terms.retry_series):
        due += [
            number * series + at
            for at in _one_series(terms, lasting=series, about=f"{seed}\x1f{about}\x1f{number}")
        ]
    return tuple(due)


def _one_series(terms: RetryTerms, *, lasting: int, about: str) -> list[int]:
    """Waits that double until the series is over; its last attempt is at its very end."""
    at, wait, due = 0, terms.retry_first_seconds, list[int]()
    while at < lasting:
        jitter = 1 + terms.retry_jitter_percent / 100 * _between(f"{about}\x1f{len(due)}")
        at = min(lasting, at + max(1, round(wait * jitter)))
        due.append(at)
        wait *= 2
    return due


def _between(about: str) -> float:
    """A number from -1 to 1 that is the same for the same text."""
    digest = hashlib.sha256(about.encode()).digest()
    return int.from_bytes(digest[:6]) / 2**47 - 1
