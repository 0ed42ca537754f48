"""Every commit of a night may lose its connection, before or after it took effect."""

import os
from datetime import timedelta

import pytest
from protocol_world import AUTHORISED, CAPTURED
from scripted_gateway import GOOD, Script

from recon.model.terms import InstructionKind

POINTS = 50
AWAY = (0, 1, 99)
"""Transactions that find nobody there: back at once, back within the pauses, gone for the night."""
SCRIPTS = (GOOD, Script("half"), Script("now", "reset"), Script("none", "not_sent"))
MOVES = {InstructionKind.CAPTURE: AUTHORISED, InstructionKind.REFUND: CAPTURED}
EVERY = 1 if os.environ.get("CHAOS") else 60
GRID = [
    (kind, script, away, point)
    for kind in MOVES
    for script in SCRIPTS
    for away in AWAY
    for point in range(1, POINTS + 1)
]


@pytest.mark.parametrize(
    ("kind", "script", "away", "point"),
    GRID[::EVERY],
    ids=lambda one: f"{one.effect}-{one.answer}" if isinstance(one, Script) else str(one),
)
def test_a_commit_that_was_lost_ends_true(world_of, kind, script, away, point):
    """Nothing is sent twice or forgotten, and what the gateway answered is known in the end."""
    world = world_of(point)
    for place in MOVES[kind][:2]:
        world.instruct(kind, place, amount=1_000)
    world.night(scripts=[script], lose_at=point, away=away)
    found = world.problems()
    world.pass_time(timedelta(minutes=1))
    world.quiet()

    assert found + world.problems(ended=True) == []


@pytest.mark.parametrize("away", AWAY)
@pytest.mark.parametrize("kind", MOVES)
def test_no_answer_is_lost_with_a_commit(world_of, kind, away):
    """Whichever commit loses its connection: a signed reply decides its rows, no person has to."""
    ended = []
    for point in _commits_of_a_night(world_of(0), kind):
        world = world_of(point)
        world.instruct(kind, MOVES[kind][0], amount=1_000)
        world.night(lose_at=point, away=away)
        world.night()
        ended.append(set(world.states().values()))

    assert ended == [{"confirmed"}] * len(ended)


def _commits_of_a_night(world, kind):
    """The points before and after each commit, between the claim and the outcome."""
    world.instruct(kind, MOVES[kind][0], amount=1_000)
    world.night()
    first = world.points.index("before claim")
    last = world.points.index("after record")
    return [n for n in range(first + 1, last + 2) if "commit" in world.points[n - 1]]
