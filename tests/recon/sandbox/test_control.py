from typing import Any

import httpx
import pytest

from recon.sandbox import SandboxOptions, serving


def test_health_says_ok_and_what_stands_here(gateway: Any) -> None:
    """The one thing a script waits for, with the facts of the start."""
    health = gateway.http.get("/_sandbox/health").json()
    assert health["status"] == "ok"
    assert (health["seed"], health["orders"]) == (42, 200)
    assert health["now"] == "2026-11-20T22:00:00Z"


def test_the_clock_moves_only_when_told(gateway: Any) -> None:
    """It stands between calls and moves forward by whole seconds."""
    clock = gateway.http.get("/_sandbox/clock").json
    assert clock() == {"now": "2026-11-20T22:00:00Z"}
    gateway.pass_days(3)
    assert gateway.http.get("/_sandbox/clock").json() == {"now": "2026-11-23T22:00:00Z"}


@pytest.mark.parametrize("body", ["", "{}", '{"seconds": -1}', '{"seconds": 1e99}', "[1]", "x"])
def test_the_clock_refuses_what_is_no_count_of_seconds(gateway: Any, body: str) -> None:
    """Backwards, fractions and more than ten years are refused, the clock stays."""
    assert gateway.http.post("/_sandbox/clock", content=body).status_code == 400
    assert gateway.http.get("/_sandbox/clock").json() == {"now": "2026-11-20T22:00:00Z"}


def test_real_clock_runs_by_itself() -> None:
    """With --real-clock the virtual instant is not where it started for ever."""
    with serving(SandboxOptions(orders=0, real_clock=True)) as sandbox:
        url = f"{sandbox.base_url}/_sandbox/clock"
        seen = {httpx.get(url, trust_env=False).json()["now"]}
        for _ in range(500):
            seen.add(httpx.get(url, trust_env=False).json()["now"])
            if len(seen) > 1:
                break
    assert len(seen) > 1


def test_reset_begins_again_from_the_seed(gateway: Any) -> None:
    """Effects, clock, plan and payments are those of the start."""
    start = gateway.http.get("/_sandbox/effects").content
    gateway.row("capture", gateway.authorised()[0])
    gateway.authorise()
    gateway.pass_days(1)
    gateway.faults({"kind": "fin"})
    assert gateway.http.post("/_sandbox/reset").json()["status"] == "ok"
    assert gateway.http.get("/_sandbox/effects").content == start
    assert gateway.http.get("/_sandbox/clock").json() == {"now": "2026-11-20T22:00:00Z"}
    assert gateway.authorise().status_code == 200


def test_payments_lists_also_those_without_an_effect(gateway: Any) -> None:
    """Pending and declined payments have no effect and are still there."""
    lines = gateway.http.get("/_sandbox/payments").text
    assert '"state": "pending"' in lines
    assert '"state": "failed"' in lines
