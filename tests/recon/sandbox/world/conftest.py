"""The payments of a seeded sandbox, without starting one."""

from functools import cache

import pytest

from recon.sandbox.ground.options import CLOCK_START, SandboxOptions
from recon.sandbox.ground.population import populate
from recon.sandbox.ground.sandbox_terms import load_terms
from recon.sandbox.world.records import TruePayment, payments_of

ORDERS = 2_000

Payments = tuple[TruePayment, ...]


@cache
def seeded_payments(orders: int, seed: int) -> Payments:
    """What truly happened right after a start, payment by payment."""
    options = SandboxOptions(orders=orders, seed=seed)
    _, effects = populate(options, terms=load_terms(), now=int(CLOCK_START.timestamp()))
    return payments_of(effects, now=CLOCK_START)


@pytest.fixture(scope="session")
def payments() -> Payments:
    """The truth of the demo's sandbox."""
    return seeded_payments(ORDERS, 42)


@pytest.fixture
def few_payments() -> Payments:
    """The truth of a very small sandbox."""
    return seeded_payments(20, 42)
