"""The virtual clock: stands at its start, moves when told, or also with real time."""

from collections.abc import Callable
from datetime import UTC, datetime

from recon.sandbox.ground.options import CLOCK_START

MOVE_SECONDS_MAX = 10 * 366 * 86_400
"""The clock is never moved further than ten years in all."""

DAY_SECONDS = 86_400


def real_seconds() -> float:
    """Real time, seconds since 1970."""
    return datetime.now(UTC).timestamp()


class VirtualClock:
    """Whole seconds since 1970 as the sandbox counts them."""

    def __init__(self, *, moved: int = 0, real: Callable[[], float] | None = None) -> None:
        """A clock `moved` seconds past its start; with `real` it also runs."""
        self.moved = moved
        self._real = real
        self._real_start = real() if real else 0.0

    def now(self) -> int:
        """The virtual instant."""
        ran = int(self._real() - self._real_start) if self._real else 0
        return int(CLOCK_START.timestamp()) + self.moved + ran


def iso(instant: int) -> str:
    """An instant as `2026-11-20T22:00:00Z`."""
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def iso_without_colon(instant: int) -> str:
    """An instant as the record of a payout writes it: `2026-11-20T22:00:00+0000`."""
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:%M:%S%z")


def fourteen_digits(instant: int) -> str:
    """An instant as the gateway writes it: `20261120220000`, UTC."""
    return datetime.fromtimestamp(instant, UTC).strftime("%Y%m%d%H%M%S")
