"""Weeks and months of nights under faults: in the end the books equal the gateway's truth."""

import os
import random
from collections.abc import Callable
from contextlib import closing

import pytest
from many_nights import live
from shop import Shop
from truth import sums_of_effects, sums_of_journal

NIGHTS = int(os.environ.get("CHAOS_NIGHTS", "20"))
SEED = int(os.environ.get("CHAOS_SEED", "0"))

SECONDS_A_NIGHT_MAX = 30

pytestmark = [
    pytest.mark.timeout(NIGHTS * SECONDS_A_NIGHT_MAX),
    pytest.mark.process,
    pytest.mark.xdist_group("many nights"),
]


def test_books_equal_the_truth_after_many_nights_of_faults(
    shop_of: Callable[[random.Random], Shop], tell: Callable[..., None]
) -> None:
    """Faults in every tenth call: sums equal to the minor unit, nothing twice, nothing open."""
    chance = random.Random(SEED)
    shop = shop_of(chance)
    decided = live(shop, chance, nights=NIGHTS)
    shop.quiet()
    withdrawn = shop.withdraw_hopeless()

    effects = shop.effects()
    with closing(shop.journal()) as journal:
        assert sums_of_journal(journal) == sums_of_effects(effects)
    assert shop.problems(ended=True) == []
    assert len(effects) > NIGHTS
    tell(
        nights=NIGHTS,
        instructions=len(shop.wanted),
        effects=len(effects),
        by_people=decided,
        withdrawn=withdrawn,
    )
