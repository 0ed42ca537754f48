import math
import random
from collections.abc import Callable

import pytest

from recon.gateway_client.query.lanes import WINDOW_SECONDS, Lane
from recon.gateway_client.query.pace import AccountPace

SECOND = 1_000_000_000
BEGAN = 1_795_000_000 * SECOND


def started(
    lane_of: Callable[[Callable[[], int]], Lane],
    *,
    after: float = 0.0,
    seconds: float,
    late: Callable[[], float] = lambda: 0.0,
    share: float = 1.0,
) -> list[int]:
    """When the calls of one process start that has work for so long; `late`: how late it wakes."""
    now = began = BEGAN + int(after * SECOND)
    lane = lane_of(lambda: now)
    calls = []
    while now < began + seconds * SECOND:
        wait = lane.wait_seconds(0.0, share=share)
        if wait > 0:
            now += math.ceil((wait + late()) * SECOND)
            continue
        lane.started()
        calls.append(now)
        now += SECOND // 10_000
    return calls


def most_in_a_second(calls: list[int]) -> int:
    """Of all seconds that begin with a call."""
    return max(sum(at <= one < at + SECOND for one in calls) for at in calls)


@pytest.mark.parametrize("rate", [0.5, 1, 5, 7, 20, 60])
@pytest.mark.parametrize("sharers", [1, 2, 3, 8])
@pytest.mark.parametrize("seed", range(3))
def test_no_second_sees_more_calls_of_all_lanes_than_the_rate(
    rate: float, sharers: int, seed: int
) -> None:
    """Not even the first one, whenever each process begins and however late it wakes."""
    chance = random.Random(seed)
    calls: list[int] = []
    for number in range(sharers):
        calls += started(
            lambda clock, number=number: Lane(number, sharers, rate, clock),
            after=chance.choice((0.0, chance.random(), 3 * chance.random())),
            seconds=8 * max(1, sharers / rate),
            late=lambda: chance.choice((0.0, 0.01, 0.04, 0.3)),
        )

    assert most_in_a_second(calls) <= max(1, rate)


@pytest.mark.parametrize(("rate", "sharers"), [(5, 2), (5, 4), (40, 3), (200, 4), (10_000, 2)])
def test_all_lanes_together_come_near_the_rate(rate: float, sharers: int) -> None:
    """What the slots give away is a twentieth."""
    seconds = 400 / rate * max(1, rate * WINDOW_SECONDS)
    calls: list[int] = []
    for number in range(sharers):
        calls += started(
            lambda clock, number=number: Lane(number, sharers, rate, clock),
            seconds=seconds,
        )

    assert 0.93 * rate <= len(calls) / seconds <= 1.02 * rate


@pytest.mark.parametrize(("rate", "share"), [(5, 0.5), (5, 1 / 16), (200, 0.5), (200, 1 / 16)])
def test_a_lane_that_was_asked_to_slow_down_does(rate: float, share: float) -> None:
    """It leaves its slots out, or calls less often in each."""
    calls = started(
        lambda clock: Lane(1, 2, rate, clock),
        seconds=2_000 / rate,
        share=share,
    )

    assert len(calls) == pytest.approx(1_000 * share, rel=0.25)


def test_a_hold_ends_in_a_slot_of_the_lane() -> None:
    """What the gateway asks to wait is waited for, and then the lane's next slot."""
    now = 0
    lane = Lane(1, 2, 5, lambda: now)
    pace = AccountPace(calls_per_second=5, in_flight=4, seconds=lambda: now / SECOND, lane=lane)
    pace.hold(2.0)
    wait = pace.wait_seconds()
    now = math.ceil(wait * SECOND)

    assert wait >= 2.0
    assert now // lane.slot_nanoseconds % 2 == 1
    assert pace.wait_seconds() == 0
    pace.started()
    assert pace.wait_seconds() * SECOND == pytest.approx(2 * lane.slot_nanoseconds, rel=0.01)


def test_who_takes_a_lane_over_calls_in_none_of_its_slots_again() -> None:
    """The one before may have called in the slot of this moment; the next own slot is free."""
    lane = Lane.taken_over(0, of=1, calls_per_second=0.0001)

    assert lane.wait_seconds(0, share=1) > 1
