"""The database killed, cut off and read-only around every commit of a night."""

import os
import random

import pytest
from shop import ENDINGS

SCHEDULES = int(os.environ.get("CHAOS_POSTGRESQL", "3"))
FIRST_SEED = int(os.environ.get("CHAOS_SEED", "0"))
REPLAY = "CHAOS_SEED={seed} CHAOS_POSTGRESQL=1 .venv/bin/pytest -n 0 tests/chaos/{name}.py"
POINTS = ("before claim", "after claim", "after send", "after reply", "after record")
COMMITS_MAX = 40
"""A night with three batches commits about this often up to its report."""

pytestmark = [
    pytest.mark.postgresql,
    pytest.mark.process,
    pytest.mark.xdist_group("killed postgresql"),
]


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + SCHEDULES))
def test_a_server_that_dies_in_a_night_loses_and_doubles_nothing(
    postgresql_shop_of, server, tell, seed
):
    """Killed before, in or after T1 and T2, or the lock cut off: later nights are whole."""
    chance = random.Random(seed)
    shop = postgresql_shop_of(chance)
    struck = []
    for _ in range(chance.randint(1, 2)):
        shop.instruct(chance.randint(2, 6))
        means = server.drop_locks if chance.random() < 0.3 else server.kill
        struck.append((shop.night(strike=_strike(chance, means), money_only=True), means[0]))
        server.back()
        assert "Stopped by an unexpected" not in shop.told.read_text(), (
            f"{shop.told.read_text()}; {_replay(seed)}"
        )
        assert not (found := shop.problems()), f"{found}; {_replay(seed)}"
    shop.quiet()

    assert not (found := shop.problems(ended=True)), f"{found}; {_replay(seed)}"
    tell(strikes=len(struck), endings=[code for code, _ in struck])


def test_a_read_only_database_is_refused_before_money_moves(postgresql_shop_of, server):
    """A standby or a failed-over database ends the night at its start, and says so."""
    shop = postgresql_shop_of(random.Random(0))
    shop.instruct(3)
    server.read_only(on=True)

    ended = shop.night(money_only=True)

    assert ended not in ENDINGS
    assert "read-only" in shop.told.read_text()
    assert shop.effects() == []
    server.read_only(on=False)
    shop.quiet()
    assert shop.problems(ended=True) == []


def _strike(chance, means):
    if chance.random() < 0.5:
        return {"at": chance.choice(POINTS), "nth": chance.randint(1, 3), "do": means}
    side = chance.choice(("before commit", "after commit"))
    return {"at": side, "nth": chance.randint(1, COMMITS_MAX), "do": means}


def _replay(seed):
    return f"replay: {REPLAY.format(seed=seed, name=__name__)}"
