"""Nights killed by SIGKILL, over real HTTP and a real file: nothing twice, lost or made up."""

import os
import random
import time
from contextlib import closing

import psycopg
import pytest
from killed_processes import play
from night_process import KILL, STOP

from recon.steps.money.sender import CLAIM_TO_SEND_MAX

pytestmark = pytest.mark.process
SCHEDULES = int(os.environ.get("CHAOS_KILLS", "10"))
FIRST_SEED = int(os.environ.get("CHAOS_SEED", "0"))
AT_ONCE = 5
REPLAY = "CHAOS_SEED={seed} CHAOS_KILLS=1 .venv/bin/pytest -n 0 {file}"


@pytest.mark.parametrize("first", range(FIRST_SEED, FIRST_SEED + SCHEDULES, AT_ONCE))
def test_killed_nights_end_true(shop_of, tell, first):
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


CHAOS = os.environ.get("CHAOS") == "1"
HELD = 75
TOO_LONG = CLAIM_TO_SEND_MAX.total_seconds() + 1
STANDS = (
    ("after claim", 0),
    ("after claim", TOO_LONG),
    *((mark, 0) for mark in ("before claim", "after send", "after reply")),
)
"""Where a night stands still, and for how many seconds more than another start takes."""


ELSEWHERE = "owned by another machine"
ENDS = (KILL, "go on", ELSEWHERE)
DROP_LOCKS = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
OF_ANOTHER_MACHINE = "UPDATE run SET owner_process = 'another-boot pid:[1] 1 1'"


def _stopped(shop, *, at):
    """A night that stands still at a mark of its first batch."""
    shop.instruct(2)
    pid = shop.start(strike={"at": at, "nth": 1, "do": STOP}, money_only=True)
    shop.nursery.await_stopped(pid)
    return pid


def _meanwhile(shop, *, names):
    """Another start; it does nothing and names who holds the account."""
    told = shop.folder / "told-meanwhile.txt"
    code = shop.night(money_only=True, told=str(told))
    said = told.read_text()
    assert (code, f"process {names}" in said) == (HELD, True), said
    return said


@pytest.mark.xdist_group("killed processes")
@pytest.mark.parametrize(("at", "seconds"), STANDS if CHAOS else STANDS[:1])
def test_a_start_beside_a_stopped_night_does_nothing(shop_of, at, seconds):
    """The stopped owner keeps the account; woken too long after its claim it sends nothing."""
    shop = shop_of(random.Random(3))
    pid = _stopped(shop, at=at)
    _meanwhile(shop, names=pid)
    time.sleep(seconds)
    shop.nursery.go_on(pid)

    assert shop.nursery.wait(pid) == 0
    assert shop.effects() == [] or seconds == 0
    assert shop.problems() == []
    shop.quiet()
    assert shop.problems(ended=True) == []


@pytest.mark.postgresql
@pytest.mark.xdist_group("killed postgresql")
@pytest.mark.parametrize("end", ENDS if CHAOS else ENDS[:1])
def test_a_stopped_night_that_lost_its_lock_is_taken_over_only_when_it_is_gone(
    postgresql_shop_of, end
):
    """While its process lives here nobody sends beside it; what it claimed is never sent again.

    Whether a process of another machine lives nobody here can know: its batch goes to doubt.
    """
    shop = postgresql_shop_of(random.Random(5))
    pid = _stopped(shop, at="after claim")
    url = shop.database_url.replace("postgresql+psycopg:", "postgresql:")
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        connection.execute(DROP_LOCKS)
        if end == ELSEWHERE:
            connection.execute(OF_ANOTHER_MACHINE)
    if end == ELSEWHERE:
        assert shop.night(money_only=True, told=str(shop.folder / "other.txt")) == 0
    else:
        assert "still lives" in _meanwhile(shop, names=pid)

    if end == KILL:
        shop.nursery.kill(pid)
    else:
        shop.nursery.go_on(pid)
    shop.nursery.wait(pid)
    assert shop.problems() == []
    shop.quiet()
    assert shop.problems(ended=True) == []


STARTS = int(os.environ.get("CHAOS_STARTS", "20"))
STARTS_POSTGRESQL = max(3, STARTS // 10)
SECONDS_A_START_MAX = 80
"""On a busy machine; one that hangs waits 60 s for its lock by itself."""


STARTED_AT_ONCE = 10
"""Pairs of one shop, one after the other."""


@pytest.mark.xdist_group("killed processes")
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + STARTS, STARTED_AT_ONCE))
def test_of_two_nights_at_a_barrier_one_works_on_sqlite(shop_of, seed):
    """Two processes of one host: one moves the money, the other exits 75 and names the holder."""
    shop = shop_of(random.Random(seed))
    for _ in range(STARTED_AT_ONCE):
        _rush_once(shop)

    shop.quiet()
    assert shop.problems(ended=True) == []


@pytest.mark.postgresql
@pytest.mark.timeout(SECONDS_A_START_MAX * STARTS_POSTGRESQL)
@pytest.mark.xdist_group("killed postgresql")
def test_of_two_nights_at_a_barrier_one_works_on_postgresql(postgresql_shop_of):
    """The same with an advisory lock in place of a file lock."""
    shop = postgresql_shop_of(random.Random(FIRST_SEED))
    for _ in range(STARTS_POSTGRESQL):
        # A start waits a moment for the lock of a killed holder: the night must take longer.
        _rush_once(shop, strike={"at": "any", "nth": 1, "do": ["sleep", "4"]})

    shop.quiet()
    assert shop.problems(ended=True) == []


def _rush_once(shop, **how):
    shop.instruct(1)
    ended = shop.rush(2, **how)

    assert sorted(code for code, _ in ended.values()) == [0, HELD], list(ended.values())
    (winner,) = [pid for pid, (code, _) in ended.items() if code == 0]
    (said,) = [told for code, told in ended.values() if code == HELD]
    assert f"process {winner}" in said, said
    assert shop.problems() == []
