"""How fast reads may go: calls per second and calls in flight, both halved when asked to slow down.

A gateway's limits are not known. What 429 and 503 halve grows back by one step for every
GROWTH_CALLS calls that went well, never above what the configuration allows.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiolimiter import AsyncLimiter

GROWTH_CALLS = 20
CALLS_PER_SECOND_MIN = 0.1


class Pace:
    """The pace of one client's reads; lives as long as the client."""

    def __init__(self, *, calls_per_second: float, in_flight: int) -> None:
        self._rate_max = calls_per_second
        self._in_flight_max = in_flight
        self._rate = calls_per_second
        self._limiter = _limiter(calls_per_second)
        self._allowed = in_flight
        self._active = 0
        self._went_well = 0
        self._slowed = 0
        self._changed = asyncio.Condition()

    @property
    def calls_per_second(self) -> float:
        """The rate in force."""
        return self._rate

    @property
    def in_flight(self) -> int:
        """The calls in flight that are allowed now."""
        return self._allowed

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[int]:
        """Wait for a place in flight and for the rate; hold the place while inside.

        Yields:
            The number of slow-downs so far, which `slow_down` wants back.
        """
        async with self._changed:
            await self._changed.wait_for(lambda: self._active < self._allowed)
            self._active += 1
        try:
            async with self._limiter:
                pass
            yield self._slowed
        finally:
            async with self._changed:
                self._active -= 1
                self._changed.notify_all()

    def slow_down(self, turn: int) -> None:
        """Halve both bounds, once for all calls that were under way together.

        Args:
            turn: What the turn of the refused call yielded.
        """
        if turn != self._slowed:
            return
        self._slowed += 1
        self._set(
            rate=max(CALLS_PER_SECOND_MIN, self._rate / 2), allowed=max(1, self._allowed // 2)
        )

    def went_well(self) -> None:
        """Count a call that succeeded; after enough of them, take a step back up."""
        self._went_well += 1
        slower = self._rate < self._rate_max or self._allowed < self._in_flight_max
        if slower and self._went_well >= GROWTH_CALLS:
            self._set(
                rate=min(self._rate_max, self._rate + self._rate_max / 8),
                allowed=min(self._in_flight_max, self._allowed + 1),
            )

    def _set(self, *, rate: float, allowed: int) -> None:
        if rate != self._rate:
            self._limiter = _limiter(rate)
        self._rate, self._allowed, self._went_well = rate, allowed, 0


def _limiter(calls_per_second: float) -> AsyncLimiter:
    """No burst above one second's calls; below one call a second the period grows instead."""
    if calls_per_second >= 1:
        return AsyncLimiter(calls_per_second, 1)
    return AsyncLimiter(1, 1 / calls_per_second)
