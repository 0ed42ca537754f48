"""Every point at which a process may end, against everything the gateway may do."""

import os
from collections.abc import Callable
from datetime import timedelta

import pytest
from protocol_world import AUTHORISED, CAPTURED, World
from scripted_gateway import SCRIPTS, Script

from recon.model.words import InstructionKind

POINTS = 50
"""A night that sends one batch reaches about this many."""
EVERY = 1 if os.environ.get("CHAOS") else 49
"""The ordinary run takes one of so many cells, each time the same ones: every point and every
script of either kind is among them, for this shares no factor with the number of points."""
MOVES = {InstructionKind.CAPTURE: AUTHORISED, InstructionKind.REFUND: CAPTURED}
GRID = [
    (kind, script, point) for kind in MOVES for script in SCRIPTS for point in range(1, POINTS + 1)
]


@pytest.mark.parametrize(
    ("kind", "script", "point"),
    GRID[::EVERY],
    ids=lambda one: f"{one.effect}-{one.answer}" if isinstance(one, Script) else str(one),
)
def test_a_crash_at_this_point_ends_true(
    world_of: Callable[[int], World], kind: InstructionKind, script: Script, point: int
) -> None:
    """Two rows in a batch, this script, the process gone at this point, then nights go on."""
    world = world_of(point)
    for place in MOVES[kind][:2]:
        world.instruct(kind, place, amount=1_000)
    world.night(scripts=[script], crash_at=point)
    found = world.problems()
    world.pass_time(timedelta(minutes=1))
    world.quiet()

    assert found + world.problems(ended=True) == []
