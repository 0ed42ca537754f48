"""Nights of the real code under faults and crashes: nothing twice, lost or made up."""

import os

import pytest
from seeded_schedules import play

SCHEDULES = int(os.environ.get("CHAOS_SCHEDULES", "100"))
FIRST_SEED = int(os.environ.get("CHAOS_SEED", "0"))
AT_ONCE = 20
"""Schedules of one test, so that a failure is found early and named."""
REPLAY = "CHAOS_SEED={seed} CHAOS_SCHEDULES=1 .venv/bin/pytest tests/model/test_seeded_schedules.py"


@pytest.mark.parametrize("first", range(FIRST_SEED, FIRST_SEED + SCHEDULES, AT_ONCE))
def test_a_schedule_of_faults_and_crashes_ends_true(world_of, first):
    """Whatever the gateway does and wherever the process ends, the journal is true in the end."""
    last = min(first + AT_ONCE, FIRST_SEED + SCHEDULES)
    for seed in range(first, last):
        found = play(world_of(seed), seed)

        assert not found, f"{found}; replay: {REPLAY.format(seed=seed)}"


def test_the_same_seed_gives_the_same_history(world_of):
    """A failing schedule can be played again, to the last hash."""
    told = set()
    for _ in range(2):
        world = world_of(7)
        play(world, 7)
        told.add(world.history_hash())

    assert len(told) == 1
