"""A night whose process stands still in the middle of a batch, and others that start meanwhile."""

import os
import random
import time
from collections.abc import Callable
from contextlib import closing

import psycopg
import pytest
from night_process import KILL, STOP
from shop import Shop

from recon.instructions.sender import CLAIM_TO_SEND_MAX

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

pytestmark = pytest.mark.process


def _stopped(shop: Shop, *, at: str) -> int:
    """A night that stands still at a mark of its first batch."""
    shop.instruct(2)
    pid = shop.start(strike={"at": at, "nth": 1, "do": STOP}, money_only=True)
    shop.nursery.await_stopped(pid)
    return pid


def _meanwhile(shop: Shop, *, names: int) -> str:
    """Another start; it does nothing and names who holds the account."""
    told = shop.folder / "told-meanwhile.txt"
    code = shop.night(money_only=True, told=str(told))
    said = told.read_text()
    assert (code, f"process {names}" in said) == (HELD, True), said
    return said


@pytest.mark.xdist_group("killed processes")
@pytest.mark.parametrize(("at", "seconds"), STANDS if CHAOS else STANDS[:1])
def test_a_start_beside_a_stopped_night_does_nothing(
    shop_of: Callable[[random.Random], Shop], at: str, seconds: float
) -> None:
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
    postgresql_shop_of: Callable[[random.Random], Shop], end: str
) -> None:
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
