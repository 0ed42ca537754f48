"""Nights killed by SIGKILL, over real HTTP and a real file: nothing twice, lost or made up."""

import os
import random
from collections.abc import Callable

import pytest
from killed_processes import play
from shop import Shop

SCHEDULES = int(os.environ.get("CHAOS_KILLS", "10"))
FIRST_SEED = int(os.environ.get("CHAOS_SEED", "0"))
AT_ONCE = 5
REPLAY = "CHAOS_SEED={seed} CHAOS_KILLS=1 .venv/bin/pytest -n 0 {file}"

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("killed processes")]


@pytest.mark.parametrize("first", range(FIRST_SEED, FIRST_SEED + SCHEDULES, AT_ONCE))
def test_killed_nights_end_true(
    shop_of: Callable[[random.Random], Shop], tell: Callable[..., None], first: int
) -> None:
    """Wherever a process is killed, later nights double nothing and forget nothing."""
    kills = starts = 0
    for seed in range(first, min(first + AT_ONCE, FIRST_SEED + SCHEDULES)):
        chance = random.Random(seed)
        tally = play(shop_of(chance), chance)
        kills, starts = kills + tally.kills, starts + tally.starts

        assert not tally.found, (
            f"{tally.found}; replay: {REPLAY.format(seed=seed, file='tests/chaos/' + __name__)}"
        )
    tell(kills=kills, starts=starts)
