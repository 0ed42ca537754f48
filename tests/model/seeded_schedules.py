"""A schedule drawn from a seed: what is asked, what the gateway does, where the process ends."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from protocol_world import CAPTURED, World
from scripted_gateway import SCRIPTS, Script

from recon.model import InstructionKind

NIGHTS_MAX = 5
INSTRUCTED_MAX = 4
REQUESTS_MAX = 6
POINTS_MAX = 70
"""A night with three batches reaches about this many points."""
WAITS = (*(timedelta(minutes=many) for many in (1, 1, 6, 6, 20)), timedelta(hours=24))
"""Before the next start; short ones meet doubts that are young."""
SET_BY = (
    timedelta(0),
    timedelta(days=-1),
    timedelta(minutes=-10),
    timedelta(hours=1),
    timedelta(days=1),
)
PARTS = (250, 400, 1_000)
LATE_SCRIPTS = tuple(script for script in SCRIPTS if script.effect == "late")
YOUNG_WAITS = tuple(timedelta(minutes=many) for many in (1, 6, 6))


@dataclass(frozen=True)
class Weather:
    """How likely each trouble is, per request or per night."""

    scripts: Sequence[Script] = SCRIPTS
    waits: Sequence[timedelta] = WAITS
    trouble: float = 0.7
    crash: float = 0.5
    clock: float = 0.15
    deaf: float = 0.1
    by_hand: float = 0.1


STORM = Weather()
LATE = Weather(LATE_SCRIPTS, YOUNG_WAITS, trouble=1.0, crash=0.1, clock=0.4, deaf=0.0)
"""Effects that come when somebody already looks, under a clock that somebody sets."""
LATE_SHARE = 0.3


def play(world: World, seed: int) -> list[str]:
    """Some bad nights, then quiet ones; every violation that the checker found on the way."""
    chance = random.Random(seed)
    weather = LATE if chance.random() < LATE_SHARE else STORM
    world.gateway.lag = chance.choice((timedelta(0), timedelta(0), timedelta(minutes=9)))
    found: list[str] = []
    for _ in range(chance.randint(1, NIGHTS_MAX)):
        _instruct(world, chance)
        _bad_night(world, chance, weather=weather)
        found += world.problems()
        if chance.random() < weather.by_hand:
            world.gateway.by_hand(chance.choice(CAPTURED), amount=100)
        world.pass_time(chance.choice(weather.waits))
    # Until the end somebody puts the clock right, or it would hide every later answer for a day.
    world.wall_error = max(world.wall_error, timedelta(0))
    world.quiet()
    return found + world.problems(ended=True)


def _bad_night(world: World, chance: random.Random, *, weather: Weather) -> None:
    world.gateway.deaf = chance.random() < weather.deaf
    if chance.random() < weather.clock:
        world.wall_error = chance.choice(SET_BY)
    crash_at = chance.randint(1, POINTS_MAX) if chance.random() < weather.crash else 0
    scripts = [
        chance.choice(weather.scripts) if chance.random() < weather.trouble else Script()
        for _ in range(REQUESTS_MAX)
    ]
    world.night(scripts=scripts, crash_at=crash_at)


def _instruct(world: World, chance: random.Random) -> None:
    for _ in range(chance.randint(0, INSTRUCTED_MAX)):
        kind = chance.choice(
            (InstructionKind.CAPTURE, InstructionKind.CANCEL, InstructionKind.REFUND)
        )
        if kind is InstructionKind.REFUND:
            world.instruct(kind, chance.choice(CAPTURED), amount=chance.choice(PARTS))
        elif world.fresh:
            world.instruct(kind, world.fresh.pop(), amount=1_000)
