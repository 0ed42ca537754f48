"""Each wrong protocol is found by the schedules: they and the checker are strong enough."""

import os
from collections.abc import Callable

import pytest
from mutants import MUTANTS
from protocol_world import World
from seeded_schedules import play

from recon.model.errors import Defect, GateClosedError

SEEDS_MAX = 400
QUICK = {
    "a doubt is released": 3,
    "the sweep releases": 5,
    "any reply is a success": 1,
    "bounds forget doubts": 28,
    "no history of claims": 5,
    "quarantine by the clock on the wall": 28,
    "another id is another wish": 13,
    "the first of two rows is taken": 1,
    "without what holds: words of another database": 35,
}
"""Mutant -> the schedule that found it when all were last played; the ordinary run begins there."""
FIRST_SEEDS = dict.fromkeys(MUTANTS, 0) if os.environ.get("CHAOS") else QUICK


@pytest.mark.parametrize(("name", "first"), FIRST_SEEDS.items(), ids=[*FIRST_SEEDS])
def test_a_wrong_protocol_is_found(world_of: Callable[[int], World], name: str, first: int) -> None:
    """Some schedule leads it to a violation, or to an error of its own."""
    seeds = (*range(first, SEEDS_MAX), *range(first))
    with pytest.MonkeyPatch.context() as patch:
        MUTANTS[name](patch)
        found = next((seed for seed in seeds if _is_found(world_of, seed)), None)

    assert found is not None, f"no schedule of {SEEDS_MAX} found it: {name}"


def _is_found(world_of: Callable[[int], World], seed: int) -> bool:
    try:
        return bool(play(world_of(seed), seed))
    except (Defect, GateClosedError):
        return True
