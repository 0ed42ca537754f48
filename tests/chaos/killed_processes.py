"""A schedule of nights that are really killed, drawn from a seed."""

import contextlib
import random
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from night_process import KILL
from shop import Shop

NIGHTS_MAX = 3
POINTS_MAX = 60
"""A night with three batches reaches about this many points up to its report."""
WAITS = tuple(timedelta(minutes=many) for many in (1, 6, 20, 24 * 60))
MARKS = ("before claim", "after claim", "after send", "after reply", "after record")
KILLED = -9
AGAIN = 0.4
"""How often what was asked is told once more before a night."""
MONEY = ("capture", "cancel", "refund")
FAULTS: tuple[dict[str, Any], ...] = (
    {"kind": "reset", "when": "before"},
    {"kind": "reset", "when": "after"},
    {"kind": "fin", "when": "after"},
    {"kind": "truncate", "when": "after"},
    {"kind": "garbage", "when": "after"},
    {"kind": "status", "when": "before", "status": 503},
    {"kind": "status", "when": "after", "status": 500},
    {"kind": "late", "seconds": 1_200},
    {"kind": "part", "rows": 1, "then": "reset"},
    {"kind": "drop_row"},
    {"kind": "duplicate_row"},
    {"kind": "contradicting_row"},
    {"kind": "wrong_signature"},
    {"kind": "delay", "seconds": 0.2},
)


@dataclass
class Tally:
    """What a schedule came to."""

    kills: int = 0
    starts: int = 0
    found: tuple[str, ...] = ()


def play(shop: Shop, chance: random.Random) -> Tally:
    """Some nights that end anywhere, then quiet ones; what the checker found on the way."""
    tally = Tally()
    for _ in range(chance.randint(1, NIGHTS_MAX)):
        shop.instruct(chance.randint(1, 6))
        if chance.random() < AGAIN:
            shop.notify_again()
        shop.fault(*_weather(chance))
        tally.starts += 1
        tally.kills += _struck(shop, chance) == KILLED
        tally.found += tuple(shop.problems())
        shop.wait(chance.choice(WAITS))
    tally.starts += shop.quiet()
    tally.found += tuple(shop.problems(ended=True))
    return tally


def _struck(shop: Shop, chance: random.Random) -> int:
    """One night: killed at a mark, at its n-th point, or from outside after some time."""
    how: dict[str, Any] = {"money_only": chance.random() < 0.9}
    means = chance.random()
    if means < 0.4:
        strike = {"at": chance.choice(MARKS), "nth": chance.randint(1, 3), "do": KILL}
        return shop.night(strike=strike, **how)
    if means < 0.7:
        return shop.night(
            strike={"at": "any", "nth": chance.randint(1, POINTS_MAX), "do": KILL}, **how
        )
    pid = shop.start(**how)
    time.sleep(chance.uniform(0.02, 0.5))
    with contextlib.suppress(ProcessLookupError):
        shop.nursery.kill(pid)
    return shop.nursery.wait(pid)


def _weather(chance: random.Random) -> list[dict[str, Any]]:
    if chance.random() < 0.5:
        return []
    return [
        {"operation": chance.choice(MONEY), "times": 1, **chance.choice(FAULTS)}
        for _ in range(chance.randint(1, 2))
    ]
