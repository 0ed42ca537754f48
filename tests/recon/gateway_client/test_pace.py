import asyncio
import heapq

from recon.gateway_client.pace import SHARE_MIN, AccountPace, QueryLimits, Turns


class PlayedTime:
    """A clock that goes on only while everybody sleeps, to whoever wakes first."""

    def __init__(self):
        self.now = 1_000.0
        self._asleep: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def seconds(self):
        """The time."""
        return self.now

    async def sleep(self, seconds):
        """Wait in this time."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._asleep, (self.now + seconds, self._count, woken))
        await woken

    async def play(self, *tasks):
        """Let the tasks run to their end."""
        running = asyncio.gather(*tasks)
        while not running.done():
            for _ in range(50):
                await asyncio.sleep(0)
            if self._asleep and not running.done():
                self.now, _, woken = heapq.heappop(self._asleep)
                woken.set_result(None)
        await running


def pace_with(time, *, rate=5, in_flight=4):
    """A pace in a played time."""
    return AccountPace(
        QueryLimits(calls_per_second=rate, in_flight=in_flight), seconds=time.seconds
    )


def started(time, pace, *, calls, workers, asked=lambda _pace, _call, _turn: None):
    """When each call started, from the first one on; `asked` says what the gateway does."""
    begun: list[float] = []

    async def worker(turns):
        while len(begun) < calls:
            async with turns.turn() as turn:
                if len(begun) < calls:
                    begun.append(time.now)
                    asked(pace, len(begun), turn)
                    await time.sleep(0.01)

    async def run():
        turns = Turns(pace, sleep=time.sleep)
        await time.play(*(worker(turns) for _ in range(workers)))

    asyncio.run(run())
    return [at - 1_000.0 for at in begun]


def test_slowing_down_halves_both_bounds_and_never_stops():
    """Down to one call in flight and a sixteenth of the rate."""
    time = PlayedTime()
    pace = pace_with(time, rate=8)
    seen = []
    for turn in range(6):
        pace.slow_down(turn)
        seen.append((pace.calls_per_second, pace.in_flight))

    assert seen == [(4, 2), (2, 1), (1, 1), (0.5, 1), (0.5, 1), (0.5, 1)]


def test_three_bad_seconds_cost_seconds():
    time = PlayedTime()

    def refuse(pace, _call, turn):
        if time.now < 1_003.0:
            pace.slow_down(turn)

    begun = started(time, pace_with(time), calls=200, workers=4, asked=refuse)

    assert 40 <= begun[-1] <= 50
    assert 1 / SHARE_MIN == 16
