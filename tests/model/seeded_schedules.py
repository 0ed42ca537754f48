"""A schedule drawn from a seed: what is asked, what the gateway does, where the process ends."""

import random
from datetime import timedelta

from protocol_world import CAPTURED, World
from scripted_gateway import SCRIPTS, Script

from recon.model import InstructionKind

NIGHTS_MAX = 4
INSTRUCTED_MAX = 4
POINTS_MAX = 70
"""A night with three batches reaches about this many points."""
WAITS = (timedelta(minutes=1), timedelta(minutes=6), timedelta(minutes=20), timedelta(hours=24))
SET_BY = (timedelta(days=-1), timedelta(minutes=-10), timedelta(hours=1), timedelta(days=1))
PARTS = (250, 400, 1_000)
TROUBLE, CRASH, CLOCK, DEAF, BY_HAND = 0.7, 0.6, 0.1, 0.1, 0.1
"""How likely each is, per request or per night."""


def play(world: World, seed: int) -> list[str]:
    """Some bad nights, then quiet ones; every violation that the checker found on the way."""
    chance = random.Random(seed)
    world.gateway.lag = chance.choice((timedelta(0), timedelta(0), timedelta(minutes=9)))
    found: list[str] = []
    for _ in range(chance.randint(1, NIGHTS_MAX)):
        _instruct(world, chance)
        world.gateway.deaf = chance.random() < DEAF
        if chance.random() < CLOCK:
            world.wall_error = chance.choice(SET_BY)
        crash_at = chance.randint(1, POINTS_MAX) if chance.random() < CRASH else 0
        world.night(scripts=[_script(chance) for _ in range(6)], crash_at=crash_at)
        found += world.problems()
        if chance.random() < BY_HAND:
            world.gateway.by_hand(chance.choice(CAPTURED), amount=100)
        world.pass_time(chance.choice(WAITS))
    world.wall_error = max(world.wall_error, timedelta(0))
    world.quiet()
    return found + world.problems(ended=True)


def _instruct(world: World, chance: random.Random) -> None:
    for _ in range(chance.randint(0, INSTRUCTED_MAX)):
        kind = chance.choice(
            (InstructionKind.CAPTURE, InstructionKind.CANCEL, InstructionKind.REFUND)
        )
        if kind is InstructionKind.REFUND:
            world.instruct(kind, chance.choice(CAPTURED), amount=chance.choice(PARTS))
        elif world.fresh:
            world.instruct(kind, world.fresh.pop(), amount=1_000)


def _script(chance: random.Random) -> Script:
    return chance.choice(SCRIPTS) if chance.random() < TROUBLE else Script()
