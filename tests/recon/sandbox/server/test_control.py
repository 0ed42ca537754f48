from pathlib import Path
from typing import Any

import httpx
import pytest

from recon.sandbox import SandboxOptions, serving
from recon.sandbox.book import LoggedRequest
from recon.sandbox.server import open_sandbox


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


def test_a_state_is_reset_to_its_own_seed(tmp_path: Path) -> None:
    """Whatever seed a later start is told, a reset gives back the population of the first one."""
    state = tmp_path / "s.sqlite"
    seen = []
    for seed in (42, 7):
        with serving(SandboxOptions(orders=30 + seed, seed=seed, state=state)) as sandbox:
            httpx.post(f"{sandbox.base_url}/_sandbox/reset", trust_env=False)
            seen.append(httpx.get(f"{sandbox.base_url}/_sandbox/effects", trust_env=False).content)
    assert seen[0] == seen[1]


def test_a_clock_that_runs_never_goes_back(tmp_path: Path) -> None:
    """Started again, it goes on from the last request at least."""
    options = SandboxOptions(orders=0, state=tmp_path / "s.sqlite", real_clock=True)
    sandbox = open_sandbox(options)
    later = sandbox.clock.now() + 500
    logged = LoggedRequest("RL1", later, "capture", "", "", "", "")
    sandbox.book.write_request(logged, rows=())
    sandbox.book.close()
    again = open_sandbox(options)
    assert again.clock.now() >= later
    again.book.close()
