"""How fast an account may be read: calls per second, calls in flight, and when nobody may call.

Calls are spaced: no second sees more of them than the configuration allows, from the first call on.
What 429 and 503 halve doubles again with the time that passes, never above the configuration, and
a Retry-After holds every call of the account. The clock and the way to wait are passed in.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from recon.gateway_client.interface import QueryLimits
from recon.gateway_client.transport import RawReply

DOUBLING_SECONDS = 2.0
"""So long without a refusal, and the pace is twice what it was."""

SHARE_MIN = 1 / 16
"""Of the configured pace; what is left of it when everything is refused."""

CALLS_PER_SECOND_MIN = 0.1
SLEEP_COARSE_SECONDS = 0.02
"""Shorter intervals than this a machine cannot sleep exactly: lateness is then made up for."""

TIME_IS_OVER = "the time for asking the gateway was over"

Seconds = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]


class HeldTooLongError(Exception):
    """The next call would have to wait longer than anybody does; it was not made."""


class AccountPace:
    """What is known of one account's pace; outlives the clients that share it, one after another.

    Args:
        limits: What is never exceeded.
        ends_in_seconds: After so long no call starts any more; None: no such end.
        seconds: A clock that only goes forward.
    """

    def __init__(
        self,
        limits: QueryLimits,
        *,
        ends_in_seconds: float | None = None,
        seconds: Seconds = time.monotonic,
    ) -> None:
        self.limits = limits
        self.patience_seconds = limits.patience_seconds
        self.seconds = seconds
        self.silent_since: float | None = None
        """When the gateway first failed to answer since its last answer."""
        self.slowed = 0
        """How often it was asked to slow down."""
        self._share = 1.0
        self._slowed_at = seconds()
        self._next_at = seconds()
        self._held_until = seconds()
        self._ends_at = None if ends_in_seconds is None else seconds() + ends_in_seconds

    @property
    def seconds_left(self) -> float:
        """For which calls may still start."""
        return math.inf if self._ends_at is None else self._ends_at - self.seconds()

    @property
    def closed_because(self) -> str:
        """Why no call is made for longer than anybody waits; "" while one may be."""
        if self.seconds_left <= 0:
            return TIME_IS_OVER
        held = self.held_seconds
        return _held(held) if held > min(self.patience_seconds, self.seconds_left) else ""

    @property
    def calls_per_second(self) -> float:
        """The rate in force now."""
        rate_max = self.limits.calls_per_second
        return max(min(CALLS_PER_SECOND_MIN, rate_max), rate_max * self._share_now())

    @property
    def in_flight(self) -> int:
        """The calls in flight that are allowed now."""
        return max(1, int(self.limits.in_flight * self._share_now()))

    @property
    def held_seconds(self) -> float:
        """How long the gateway still wants no call at all."""
        return max(self._held_until - self.seconds(), 0.0)

    @property
    def has_been_silent_too_long(self) -> bool:
        """Whether the gateway has not answered for as long as anybody is patient."""
        since = self.silent_since
        return since is not None and self.seconds() - since >= self.patience_seconds

    def wait_seconds(self) -> float:
        """How long the next call has to wait; 0 when it may start."""
        return max(self.held_seconds, self._next_at - self.seconds())

    def started(self) -> None:
        """Count a call that starts now."""
        now, interval = self.seconds(), 1 / self.calls_per_second
        late = 0.0 if interval >= SLEEP_COARSE_SECONDS else SLEEP_COARSE_SECONDS
        self._next_at = max(self._next_at, now - late) + interval

    def hold(self, seconds: float) -> None:
        """Let no call start for so long."""
        self._held_until = max(self._held_until, self.seconds() + seconds)

    def slow_down(self, turn: int) -> None:
        """Halve both bounds, once for all calls that were under way together."""
        if turn != self.slowed:
            return
        self.slowed += 1
        self._share = max(SHARE_MIN, self._share_now() / 2)
        self._slowed_at = self.seconds()

    def heed(self, raw: RawReply, *, turn: int) -> None:
        """Let the account be called slower, or not at all for a while, as a reply asks for.

        Args:
            raw: The reply.
            turn: `slowed` as it was when the call began.
        """
        if raw.asks_to_slow_down:
            self.slow_down(turn)
        self.hold(raw.retry_after_seconds)

    def answered(self) -> None:
        """The gateway answered, whatever it said."""
        self.silent_since = None

    def missed(self) -> None:
        """The gateway gave no answer."""
        if self.silent_since is None:
            self.silent_since = self.seconds()

    def _share_now(self) -> float:
        grown = (self.seconds() - self._slowed_at) / DOUBLING_SECONDS
        return self._share if self._share == 1 else min(1.0, self._share * 2 ** min(grown, 64.0))


async def next_turn(pace: AccountPace, *, before: float, sleep: Sleep) -> None:
    """Wait until the pace lets a call start, and count it.

    Args:
        pace: Of the account.
        before: A reading of its clock: no Retry-After is waited for beyond it.
        sleep: How to wait.

    Raises:
        HeldTooLongError: the wait would be longer; no call may be made.
    """
    # Asked again after each wait: a hold may have come meanwhile.
    while (seconds := pace.wait_seconds()) > 0 or pace.seconds_left <= 0:
        held = pace.held_seconds
        if held > 0 and pace.seconds() + held > before:
            raise HeldTooLongError(_held(held))
        if seconds >= pace.seconds_left:
            raise HeldTooLongError(TIME_IS_OVER)
        await sleep(seconds)
    pace.started()


def _held(seconds: float) -> str:
    return f"the gateway asked for no call for another {seconds:.0f} s"


class Turns:
    """The turns of one client's calls, in one event loop."""

    def __init__(self, pace: AccountPace, *, sleep: Sleep) -> None:
        self._pace = pace
        self._sleep = sleep
        self._active = 0
        self._gate = asyncio.Lock()
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def turn(self, *, before: float = math.inf) -> AsyncIterator[int]:
        """Wait for a place in flight and for the pace; hold the place while inside.

        Yields:
            The number of slow-downs so far, which `slow_down` wants back.

        Raises:
            HeldTooLongError: as `next_turn`.
        """
        async with self._changed:
            await self._changed.wait_for(lambda: self._active < self._pace.in_flight)
            self._active += 1
        try:
            async with self._gate:
                await next_turn(self._pace, before=before, sleep=self._sleep)
            yield self._pace.slowed
        finally:
            async with self._changed:
                self._active -= 1
                self._changed.notify_all()
