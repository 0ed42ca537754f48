"""Pacing of an account's queries: calls per second, calls in flight, and when no call may start.

Calls are spaced evenly: from the first call on, no second has more than the configuration allows.
429 and 503 halve the rate, which doubles again over time up to the configured one, and a
Retry-After holds back every call of the account. The clock and the sleep function are passed in.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from recon.gateway_client.interface import QueryLimits
from recon.gateway_client.transport import RawReply

DOUBLING_SECONDS = 2.0
"""After this long without a refusal the pace is doubled."""

SHARE_MIN = 1 / 16
"""Lowest share of the configured pace, reached if everything is refused."""

CALLS_PER_SECOND_MIN = 0.1
SLEEP_COARSE_SECONDS = 0.02
"""Shorter intervals cannot be slept exactly: a late call then shortens the next interval."""

TIME_IS_OVER = "the time for asking the gateway was over"

Seconds = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]


class HeldTooLongError(Exception):
    """The next call would have to wait longer than allowed; it was not made."""


class AccountPace:
    """The current pace of one account; outlives the clients that use it one after another.

    Args:
        limits: Maximum rate and number of calls in flight.
        ends_in_seconds: No call starts after this time; None: no end.
        seconds: A monotonic clock.
    """

    def __init__(
        self,
        limits: QueryLimits,
        *,
        ends_in_seconds: float | None = None,
        seconds: Seconds = time.monotonic,
    ) -> None:
        self.limits = limits
        self.retry_seconds = limits.retry_seconds
        self.seconds = seconds
        self.silent_since: float | None = None
        """Time of the first unanswered call since the last answer."""
        self.slowed = 0
        """How often the gateway has asked to slow down."""
        self._share = 1.0
        self._slowed_at = seconds()
        self._next_at = seconds()
        self._held_until = seconds()
        self._ends_at = None if ends_in_seconds is None else seconds() + ends_in_seconds

    @property
    def seconds_left(self) -> float:
        """Seconds during which calls may still start."""
        return math.inf if self._ends_at is None else self._ends_at - self.seconds()

    @property
    def closed_because(self) -> str:
        """Why no call can start within the time allowed for waiting; "" if one can."""
        if self.seconds_left <= 0:
            return TIME_IS_OVER
        held = self.held_seconds
        return _held(held) if held > min(self.retry_seconds, self.seconds_left) else ""

    @property
    def calls_per_second(self) -> float:
        """The current rate."""
        rate_max = self.limits.calls_per_second
        return max(min(CALLS_PER_SECOND_MIN, rate_max), rate_max * self._share_now())

    @property
    def in_flight(self) -> int:
        """The current maximum number of calls in flight."""
        return max(1, int(self.limits.in_flight * self._share_now()))

    @property
    def held_seconds(self) -> float:
        """How long the gateway still wants no calls at all."""
        return max(self._held_until - self.seconds(), 0.0)

    @property
    def has_been_silent_too_long(self) -> bool:
        """Whether the gateway has not answered for `retry_seconds`."""
        since = self.silent_since
        return since is not None and self.seconds() - since >= self.retry_seconds

    async def next_turn(self, *, before: float, sleep: Sleep) -> None:
        """Wait until a call may start, and count it.

        Raises:
            HeldTooLongError: a Retry-After reaches beyond `before` (by our clock), or there is no
                time left for calls.
        """
        # Checked again after each wait, as a new hold may have been set meanwhile.
        while True:
            held = self.held_seconds
            wait = max(held, self._next_at - self.seconds())
            if held > 0 and self.seconds() + held > before:
                raise HeldTooLongError(_held(held))
            if max(wait, 0.0) >= self.seconds_left:
                raise HeldTooLongError(TIME_IS_OVER)
            if wait <= 0:
                break
            await sleep(wait)
        now, interval = self.seconds(), 1 / self.calls_per_second
        late = 0.0 if interval >= SLEEP_COARSE_SECONDS else SLEEP_COARSE_SECONDS
        self._next_at = max(self._next_at, now - late) + interval

    def hold(self, seconds: float) -> None:
        """Let no call start for this many seconds."""
        self._held_until = max(self._held_until, self.seconds() + seconds)

    def slow_down(self, turn: int) -> None:
        """Halve both limits, but only once for all calls that were in flight together."""
        if turn != self.slowed:
            return
        self.slowed += 1
        self._share = max(SHARE_MIN, self._share_now() / 2)
        self._slowed_at = self.seconds()

    def heed(self, raw: RawReply, *, turn: int) -> None:
        """Slow down or hold, as the reply to a call that began at `turn` demands."""
        if raw.asks_to_slow_down:
            self.slow_down(turn)
        self.hold(raw.retry_after_seconds)

    def answered(self) -> None:
        """Note that the gateway answered, whatever the answer."""
        self.silent_since = None

    def missed(self) -> None:
        """Note that the gateway did not answer."""
        if self.silent_since is None:
            self.silent_since = self.seconds()

    def _share_now(self) -> float:
        grown = (self.seconds() - self._slowed_at) / DOUBLING_SECONDS
        return self._share if self._share == 1 else min(1.0, self._share * 2 ** min(grown, 64.0))


def _held(seconds: float) -> str:
    return f"the gateway asked for no call for another {seconds:.0f} s"


class Turns:
    """Admits the calls of one client, in one event loop, at the account's pace."""

    def __init__(self, pace: AccountPace, *, sleep: Sleep) -> None:
        self._pace = pace
        self._sleep = sleep
        self._active = 0
        self._gate = asyncio.Lock()
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def turn(self, *, before: float = math.inf) -> AsyncIterator[int]:
        """Wait for a slot and for the pace; yields the number of slow-downs so far.

        Raises:
            HeldTooLongError: as `AccountPace.next_turn`.
        """
        async with self._changed:
            await self._changed.wait_for(lambda: self._active < self._pace.in_flight)
            self._active += 1
        try:
            async with self._gate:
                await self._pace.next_turn(before=before, sleep=self._sleep)
            yield self._pace.slowed
        finally:
            async with self._changed:
                self._active -= 1
                self._changed.notify_all()
