"""The same night started twice at one moment: one works, the other says who does."""

import os
import random
from collections.abc import Callable
from typing import Any

import pytest
from shop import Shop

STARTS = int(os.environ.get("CHAOS_STARTS", "20"))
STARTS_POSTGRESQL = max(3, STARTS // 10)
SECONDS_A_START_MAX = 80
"""On a busy machine; one that hangs waits 60 s for its lock by itself."""
FIRST_SEED = int(os.environ.get("CHAOS_SEED", "0"))
AT_ONCE = 10
"""Pairs of one shop, one after the other."""
HELD = 75

pytestmark = pytest.mark.process


@pytest.mark.xdist_group("killed processes")
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + STARTS, AT_ONCE))
def test_of_two_nights_at_a_barrier_one_works_on_sqlite(
    shop_of: Callable[[random.Random], Shop], seed: int
) -> None:
    """Two processes of one host: one moves the money, the other exits 75 and names the holder."""
    shop = shop_of(random.Random(seed))
    for _ in range(AT_ONCE):
        _rush_once(shop)

    shop.quiet()
    assert shop.problems(ended=True) == []


@pytest.mark.postgresql
@pytest.mark.timeout(SECONDS_A_START_MAX * STARTS_POSTGRESQL)
@pytest.mark.xdist_group("killed postgresql")
def test_of_two_nights_at_a_barrier_one_works_on_postgresql(
    postgresql_shop_of: Callable[[random.Random], Shop],
) -> None:
    """The same with an advisory lock in place of a file lock."""
    shop = postgresql_shop_of(random.Random(FIRST_SEED))
    for _ in range(STARTS_POSTGRESQL):
        # A start waits a moment for the lock of a killed holder: the night must take longer.
        _rush_once(shop, strike={"at": "any", "nth": 1, "do": ["sleep", "4"]})

    shop.quiet()
    assert shop.problems(ended=True) == []


def _rush_once(shop: Shop, **how: Any) -> None:
    shop.instruct(1)
    ended = shop.rush(2, **how)

    assert sorted(code for code, _ in ended.values()) == [0, HELD], list(ended.values())
    (winner,) = [pid for pid, (code, _) in ended.items() if code == 0]
    (said,) = [told for code, told in ended.values() if code == HELD]
    assert f"process {winner}" in said, said
    assert shop.problems() == []
