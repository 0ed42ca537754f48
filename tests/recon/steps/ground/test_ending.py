import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest
from sqlalchemy import text

from recon.steps.ground.environment import ending_in_order, held_back

NIGHT = "from recon.cli import main; raise SystemExit(main())"
ARRIVES_WITHIN_SECONDS = 40
ENDS_WITHIN_SECONDS = 40
"""Ten where nothing else runs; less than the gateway's silence wherever it runs."""
TOLD = [signal.SIGTERM, signal.SIGINT] if os.environ.get("CHAOS") else [signal.SIGTERM]
"""Both in campaign `chaos`; a night of its own process is slow."""


def test_a_signal_that_was_held_back_comes_afterwards() -> None:
    """Within the block it is only noted; at its end it does what it would have done."""
    seen = []

    def told_within() -> None:
        with ending_in_order(), held_back() as told:
            signal.raise_signal(signal.SIGTERM)
            seen.append(told())

    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        told_within()
    assert seen == ["SIGTERM"]


def test_listeners_are_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is changed for good, and a listener that was there keeps its signal."""
    before = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)]
    with ending_in_order(), held_back() as told:
        assert told() == ""
    assert [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)] == before

    monkeypatch.setattr(signal, "getsignal", lambda _: print)
    with ending_in_order():
        monkeypatch.undo()
        assert signal.getsignal(signal.SIGTERM) == before[0]


@pytest.mark.process
@pytest.mark.parametrize("told", TOLD)
def test_a_night_that_is_told_to_end_marks_its_batch(merchant: Any, told: signal.Signals) -> None:
    """A gateway that is silent for a minute: the batch is in doubt, the run stopped long before."""
    (merchant.folder / "config" / "gateway.toml").write_text(
        "calls_per_second = 1000\ndeadline_seconds = 60\n"
    )
    merchant.fault({"operation": "refund", "kind": "silence", "seconds": 60})
    paid = [one for one in merchant.payments("captured") if one.currency == "EUR"][:3]
    merchant.drop(
        "refunds.csv", *(merchant.order(one, status="refunded", action="refund") for one in paid)
    )
    arguments = ["nightly", "--merchant", "100042", "--account", "100042001"]
    with subprocess.Popen(
        [sys.executable, "-c", NIGHT, *arguments, "--business-date", "2026-11-20"],
        env={**os.environ, **merchant.variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as night:
        _wait_until(merchant, "SELECT count(*) FROM batch WHERE state = 'claimed'")
        time.sleep(1)
        night.send_signal(told)
        began = time.monotonic()
        _, words = night.communicate(timeout=60)
        took = time.monotonic() - began

    assert night.returncode == 130, words.decode()
    assert merchant.instruction_states() == {"in_doubt": 3}
    with merchant.environment() as environment, environment.store.reading() as connection:
        run = connection.execute(text("SELECT status, problem FROM run")).one()
    assert run[0] == "stopped"
    assert told.name in run[1]
    # The sender waits END_WITHIN; a busy machine needs a while for the rest.
    assert took < ENDS_WITHIN_SECONDS


def _wait_until(merchant: Any, query: str) -> None:
    ends = time.monotonic() + ARRIVES_WITHIN_SECONDS
    while time.monotonic() < ends:
        with merchant.environment() as environment, environment.store.reading() as connection:
            if connection.execute(text(query)).scalar():
                return
        time.sleep(0.05)
    pytest.fail(f"never: {query}")
