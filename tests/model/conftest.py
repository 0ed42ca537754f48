"""Worlds, each from the same migrated database."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from protocol_world import FragileStore, World, settings_of


@pytest.fixture(scope="session")
def world_of(
    migrated: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[int], World]]:
    """A maker of worlds; the one before is thrown away."""
    place = tmp_path_factory.mktemp("world")
    settings = settings_of(place)
    store = FragileStore(place / "recon.sqlite")
    with asyncio.Runner() as runner:

        def make(seed: int) -> World:
            return World.of(store, template=migrated, settings=settings, runner=runner, seed=seed)

        yield make
        store.forget()
