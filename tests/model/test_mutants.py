"""Each wrong protocol is found by the schedules: they and the checker are strong enough."""

import os
from collections.abc import Callable

import pytest
from mutants import MUTANTS
from protocol_world import World
from seeded_schedules import play

from recon.model.errors import Defect, GateClosedError

SEEDS_MAX = 400
QUICK = (
    "a doubt is released",
    "the sweep releases",
    "any reply is a success",
    "bounds forget doubts",
    "no history of claims",
    "quarantine by the clock on the wall",
    "another id is another wish",
)
NAMES = tuple(MUTANTS) if os.environ.get("CHAOS") else QUICK


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_protocol_is_found(world_of: Callable[[int], World], name: str) -> None:
    """Some schedule leads it to a violation, or to an error of its own."""
    with pytest.MonkeyPatch.context() as patch:
        MUTANTS[name](patch)
        found = next((seed for seed in range(SEEDS_MAX) if _is_found(world_of, seed)), None)

    assert found is not None, f"no schedule of {SEEDS_MAX} found it: {name}"


def _is_found(world_of: Callable[[int], World], seed: int) -> bool:
    try:
        return bool(play(world_of(seed), seed))
    except (Defect, GateClosedError):
        return True
