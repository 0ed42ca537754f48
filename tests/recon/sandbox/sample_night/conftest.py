"""The truth of a seeded sandbox, without starting one."""

import json
from functools import cache

import pytest

from recon.sandbox.ground.options import CLOCK_START, SandboxOptions
from recon.sandbox.ground.population import populate
from recon.sandbox.ground.sandbox_terms import load_terms
from recon.sandbox.ground.truth import effect_line

ORDERS = 2_000

Effects = tuple[dict[str, str], ...]


@cache
def seeded_effects(orders: int, seed: int) -> Effects:
    """Lines of `GET /_sandbox/effects` right after a start."""
    options = SandboxOptions(orders=orders, seed=seed)
    _, effects = populate(options, terms=load_terms(), now=int(CLOCK_START.timestamp()))
    return tuple(json.loads(effect_line(effect)) for effect in effects)


@pytest.fixture(scope="session")
def effects() -> Effects:
    """The truth of the demo's sandbox."""
    return seeded_effects(ORDERS, 42)


@pytest.fixture
def few_effects() -> Effects:
    """The truth of a very small sandbox."""
    return seeded_effects(20, 42)
