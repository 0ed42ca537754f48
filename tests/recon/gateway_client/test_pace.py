import asyncio

from recon.gateway_client.pace import GROWTH_CALLS, Pace


def test_slowing_down_halves_both_bounds_and_never_stops() -> None:
    """Down to one call in flight, and back up step by step."""
    pace = Pace(calls_per_second=8, in_flight=4)
    seen = []
    for turn in range(3):
        pace.slow_down(turn)
        seen.append((pace.calls_per_second, pace.in_flight))

    for _ in range(GROWTH_CALLS * 20):
        pace.went_well()

    assert seen == [(4, 2), (2, 1), (1, 1)]
    assert (pace.calls_per_second, pace.in_flight) == (8, 4)


def test_no_more_calls_are_in_flight_than_allowed() -> None:
    """Halving takes effect on the next turn."""

    async def run() -> int:
        pace = Pace(calls_per_second=10_000, in_flight=4)
        pace.slow_down(0)
        active = peak = 0

        async def call() -> None:
            nonlocal active, peak
            async with pace.turn():
                active += 1
                peak = max(peak, active)
                await asyncio.sleep(0.001)
                active -= 1

        await asyncio.gather(*(call() for _ in range(20)))
        return peak

    assert asyncio.run(run()) == 2


def test_calls_that_are_refused_together_slow_down_once() -> None:
    """One crowded moment halves the pace, not once for each call in it."""

    async def run() -> tuple[float, int]:
        pace = Pace(calls_per_second=10_000, in_flight=4)
        together = asyncio.Barrier(4)

        async def call() -> None:
            async with pace.turn() as turn:
                await together.wait()
                pace.slow_down(turn)

        await asyncio.gather(*(call() for _ in range(4)))
        return pace.calls_per_second, pace.in_flight

    assert asyncio.run(run()) == (5_000, 2)
