import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from recon.steps.care.verify import Reading, verify

UNREAD = Reading(lambda _: (), lambda _: "", lambda *_: (), lambda *_: ())
"""The workbooks of these nights are no workbooks."""

NIGHT = "from recon.cli import main; raise SystemExit(main())"
ENDINGS = {0, 3, 4, 5}
KILLS_MAX = 5
END_SECONDS = 600
"""A night ends within; on a busy machine, or at a low priority, it takes a minute."""
NIGHTS = int(os.environ.get("KILLED_NIGHTS", "1"))
"""Random kills; the ordinary run plays those of tests/chaos, which start quicker."""
POINTS = ("after send:3", "before claim:1", "after claim:2", "after reply:3", "after record:2")
"""All of them are also in the grid of tests/model, which an ordinary run plays."""


def _start(merchant: Any, **variables: str) -> "subprocess.Popen[bytes]":
    arguments = ["nightly", "--merchant", "100042", "--account", "100042001"]
    return subprocess.Popen(
        [sys.executable, "-c", NIGHT, *arguments, "--business-date", "2026-11-20"],
        env={**os.environ, **merchant.variables, **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def _finish(merchant: Any) -> None:
    """Start the night again; it must come to its end."""
    with _start(merchant) as night:
        _, told = night.communicate(timeout=END_SECONDS)
    assert night.returncode in ENDINGS, told.decode()


def _instruct(merchant: Any) -> set[str]:
    """Captures, refunds and cancels in one file; the orders they are about."""
    authorised = merchant.payments("authorised")
    captured = [p for p in merchant.payments("captured") if p.currency == "EUR"]
    # A part refund is the one kind that the gateway would accept twice.
    kinds = [
        *((payment, "paid", "capture", "") for payment in authorised[:5]),
        *((payment, "cancelled", "cancel", "") for payment in authorised[-2:]),
        *((payment, "refunded", "refund", "") for payment in captured[:4]),
        *((payment, "paid", "refund", "0.50") for payment in captured[4:8]),
    ]
    merchant.drop(
        "orders.csv",
        *(
            merchant.order(payment, status=status, action=action, action_amount=amount)
            for payment, status, action, amount in kinds
        ),
    )
    return {payment.order_no for payment, _, _, _ in kinds}


def _assert_whole(merchant: Any, *, wanted: set[str]) -> None:
    """Nothing twice, nothing lost: every instruction took effect once or is on the list."""
    moved = [row["order_no"] for row in merchant.effects()]
    states = merchant.instruction_states()
    open_ones = states.get("in_doubt", 0) + states.get("approved", 0)

    assert len(moved) == len(set(moved))
    assert merchant.invariants()["double_effects"] == 0
    assert set(moved) <= wanted
    assert sum(states.values()) == len(wanted)
    assert len(wanted) - len(moved) <= open_ones
    assert "in_flight" not in states
    with merchant.environment() as environment:
        assert verify(environment, reading=UNREAD).problems == ()


@pytest.mark.campaign
@pytest.mark.process
@pytest.mark.parametrize("point", POINTS)
def test_a_night_killed_at_each_point_of_a_batch_ends_whole(merchant: Any, point: str) -> None:
    """SIGKILL at any point of the protocol, then a new start: nothing is doubled or lost."""
    wanted = _instruct(merchant)
    with _start(merchant, RECON_CRASH_AT=point) as night:
        night.communicate(timeout=END_SECONDS)
    assert night.returncode == -signal.SIGKILL
    _finish(merchant)

    _assert_whole(merchant, wanted=wanted)


@pytest.mark.process
def test_an_effect_that_comes_late_is_not_doubled(merchant: Any) -> None:
    """A refund killed after its send may still happen hours later: the next start must not resend.

    The baseline cannot protect here, for the gateway shows nothing yet; only the journal does.
    """
    wanted = _instruct(merchant)
    merchant.fault({"operation": "refund", "kind": "late", "seconds": 3600, "times": 1})
    with _start(merchant, RECON_CRASH_AT="after send:3") as night:
        night.communicate(timeout=END_SECONDS)
    assert night.returncode == -signal.SIGKILL
    _finish(merchant)
    merchant.wait(hours=2)

    assert len(merchant.effects()) == len(wanted)
    _assert_whole(merchant, wanted=wanted)


@pytest.mark.campaign
@pytest.mark.process
@pytest.mark.parametrize("seed", range(NIGHTS))
def test_a_night_killed_at_a_random_moment_ends_whole(merchant: Any, seed: int) -> None:
    """However often the process is killed, the next start goes on and doubles nothing."""
    wanted = _instruct(merchant)
    chance = random.Random(seed)
    for _ in range(chance.randint(1, KILLS_MAX)):
        with _start(merchant) as night:
            time.sleep(chance.uniform(0.1, 3))
            night.kill()
            night.communicate()
    _finish(merchant)

    _assert_whole(merchant, wanted=wanted)
    assert (Path(merchant.folder) / "reports").exists()
