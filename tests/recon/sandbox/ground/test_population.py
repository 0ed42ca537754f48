import hashlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from recon.model.money import exponent
from recon.sandbox import SandboxOptions, serving
from recon.sandbox.options import VirtualClock
from recon.sandbox.population import populate
from recon.sandbox.terms import load_terms

ACCOUNT = "100042001"
PINNED = "c46137a4f33fe1511b75c85acacf5f934b6321a58361f865b4ceb3d2f7d931cb"
"""SHA-256 of the effects of seed 42, 300 orders."""


@contextmanager
def client_of(options: SandboxOptions) -> Iterator[httpx.Client]:
    """A client of a sandbox of its own."""
    with (
        serving(options) as sandbox,
        httpx.Client(base_url=sandbox.base_url, trust_env=False) as http,
    ):
        yield http


def effects_of(options: SandboxOptions) -> bytes:
    """The truth of a sandbox that just started."""
    with serving(options) as sandbox:
        return httpx.get(f"{sandbox.base_url}/_sandbox/effects", trust_env=False).content


def test_population_bytes_are_pinned() -> None:
    """The population of seed 42 is the same on every machine and day."""
    digest = hashlib.sha256(effects_of(SandboxOptions(orders=300))).hexdigest()
    assert digest == PINNED


def test_mix_of_two_thousand_orders() -> None:
    """A quarter is authorised only, most captures are unrefunded, states and currencies vary."""
    payments, effects = populate(SandboxOptions(), terms=load_terms(), now=VirtualClock().now())
    default = [payment for payment in payments if payment.account_id == ACCOUNT]
    states = Counter(payment.state.value for payment in default)
    captured = [payment for payment in default if payment.captured]
    assert len(payments) == 2000
    assert len(default) >= 1800
    assert states["authorised"] >= len(default) // 4
    assert sum(payment.refunded == 0 for payment in captured) >= len(captured) / 2
    assert set(states) >= {"failed", "cancelled", "refunded", "partially_refunded", "chargeback"}
    assert {exponent(payment.currency) for payment in default} == {0, 2, 3}
    assert {effect.operation for effect in effects} >= {"authorise", "capture", "refund", "cancel"}


def test_state_file_keeps_population_clock_and_effects(tmp_path: Path) -> None:
    """A sandbox started again on its state goes on where it stopped, whatever seed it is told."""
    state = tmp_path / "sandbox.sqlite"
    plan = [{"operation": "capture", "kind": "fin", "nth": 2}]
    with client_of(SandboxOptions(orders=50, state=state)) as http:
        http.post("/_sandbox/clock", json={"seconds": 3600})
        http.post("/_sandbox/faults", json=plan)
        before = http.get("/_sandbox/effects").content
    with client_of(SandboxOptions(orders=99, seed=7, state=state)) as http:
        assert http.get("/_sandbox/effects").content == before
        assert http.get("/_sandbox/clock").json() == {"now": "2026-11-20T23:00:00Z"}
        (kept,) = http.get("/_sandbox/faults").json()["rules"]
        assert kept["rule"] == plan[0]
