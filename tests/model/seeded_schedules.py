"""A schedule drawn from a seed: what is asked, what the gateway does, where the process ends."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

import played_people as people
from deliveries import AGAIN, FIRST
from played_attacker import ATTACKS, attacked
from protocol_world import BEGAN, CAPTURED, RUNNING, World
from scripted_gateway import BEYOND, BY_HAND, MISCOUNTED, ROWS, SCRIPTS, Script

from recon.model.nights import Mode
from recon.model.terms import InstructionKind
from recon.steps.approvals.verdicts import UNDECIDED

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
LAGS = (*(timedelta(0),) * 6, *(timedelta(minutes=9),) * 3, timedelta(hours=30))
"""The last is longer than anything is waited for."""
LIES = (people.LYING, people.AT_ODDS)


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
    beyond: float = 0.03
    miscounted: float = 0.1
    again: float = 0.4
    """That a wish is told once more before a night."""
    beside: float = 0.3
    """That somebody acts while a night runs."""
    lie: float = 0.1
    silent: float = 0.15
    """That the query fails behind the first request for money."""
    reboot: float = 0.15
    dry: float = 0.15
    rows: float = 0.5
    """That the query shows payments in two rows, equal ones or not, where it ever does."""


STORM = Weather()
LATE = Weather(LATE_SCRIPTS, YOUNG_WAITS, trouble=1.0, crash=0.1, clock=0.4, deaf=0.0)
"""Effects that come when somebody already looks, under a clock that somebody sets."""
LATE_SHARE = 0.3
DATED_SHARE = 0.7
"""Of gateways whose replies have a Date."""
NEW_MACHINES_SHARE = 0.15
STAYS_SILENT = 0.5
ROWS_SHARE = 0.3
"""Of worlds in which the query may show payments in two rows."""
ATTACK_EVERY = 7
"""Schedules; at the end of one of so many somebody with the night's login comes, in each way."""


def play(world: World, seed: int) -> list[str]:
    """Some bad nights, then quiet ones; every violation that the checker found on the way."""
    chance, rows = random.Random(seed), random.Random(f"query rows {seed}")
    clocks = random.Random(f"clocks {seed}")
    world.gateway.epoch = BEGAN if clocks.random() < DATED_SHARE else None
    world.is_new_every_night = clocks.random() < NEW_MACHINES_SHARE
    has_rows = rows.random() < ROWS_SHARE
    weather = LATE if chance.random() < LATE_SHARE else STORM
    world.fall_behind(chance.choice(LAGS))
    found: list[str] = []
    for _ in range(chance.randint(1, NIGHTS_MAX)):
        _instruct(world, chance)
        if chance.random() < weather.again:
            world.merchant.notify_again(chance.randrange(99), guise=chance.choice(AGAIN))
        is_in_rows = has_rows and rows.random() < weather.rows
        world.gateway.rows = rows.choice(ROWS) if is_in_rows else ""
        _bad_night(world, chance, clocks, weather=weather)
        found += world.problems()
        if chance.random() < weather.by_hand:
            world.gateway.by_hand(chance.choice(CAPTURED), amount=BY_HAND)
        _people(world, chance, weather=weather)
        world.pass_time(chance.choice(weather.waits))
    world.quiet()
    found += world.problems(ended=True)
    number, rest = divmod(seed, ATTACK_EVERY)
    if not rest:
        found += attacked(world, [*ATTACKS][number % len(ATTACKS)])
    return found


def _bad_night(
    world: World, chance: random.Random, clocks: random.Random, *, weather: Weather
) -> None:
    stays_silent = world.gateway.falls_silent and clocks.random() < STAYS_SILENT
    world.gateway.deaf = chance.random() < weather.deaf or stays_silent
    world.gateway.falls_silent = clocks.random() < weather.silent
    mode = Mode.DRY_RUN if clocks.random() < weather.dry else Mode.LIVE
    if clocks.random() < weather.reboot:
        world.reboot(running=clocks.choice(RUNNING))
    if chance.random() < weather.clock:
        world.wall_error = chance.choice(SET_BY)
    crash_at = chance.randint(1, POINTS_MAX) if chance.random() < weather.crash else 0
    scripts = [
        _script(chance, weather=weather) if chance.random() < weather.trouble else Script()
        for _ in range(REQUESTS_MAX)
    ]
    if chance.random() < weather.beside:
        world.act_beside(_act(world, chance), at=chance.randint(1, POINTS_MAX))
    world.night(scripts=scripts, crash_at=crash_at, mode=mode)


def _script(chance: random.Random, *, weather: Weather) -> Script:
    kind = chance.random()
    if kind < weather.beyond:
        return chance.choice(BEYOND)
    if kind < weather.beyond + weather.miscounted:
        return chance.choice(MISCOUNTED)
    return chance.choice(weather.scripts)


def _act(world: World, chance: random.Random) -> Callable[[], None]:
    """What somebody does beside a running night."""
    number = chance.randrange(99)
    acts = (
        lambda: people.withdraw_any(world, number=number),
        lambda: people.stop_sending(world),
        lambda: people.look(world),
    )
    return chance.choice(acts)


def _people(world: World, chance: random.Random, *, weather: Weather) -> None:
    """Between nights: sometimes they look at what waits, and sometimes they say what is not so."""
    people.allow_sending(world)
    if chance.random() < weather.again:
        people.look(world)
    if chance.random() < weather.lie:
        people.decide(world, states=tuple(UNDECIDED), lies=chance.choice(LIES))


def _instruct(world: World, chance: random.Random) -> None:
    for _ in range(chance.randint(0, INSTRUCTED_MAX)):
        kind = chance.choice(
            (InstructionKind.CAPTURE, InstructionKind.CANCEL, InstructionKind.REFUND)
        )
        guise = chance.choice(FIRST)
        if kind is InstructionKind.REFUND:
            place, amount = chance.choice(CAPTURED), chance.choice(PARTS)
            world.instruct(kind, place, amount=amount, guise=guise)
        elif world.fresh:
            world.instruct(kind, world.fresh.pop(), amount=1_000, guise=guise)
