"""Worlds in memory-backed folders, each from the same migrated database."""

import asyncio
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from protocol_world import FragileStore, World, settings_of

from recon.store.database.migrate import upgrade

MEMORY = Path("/dev/shm")  # noqa: S108 - a file system, not a file
"""Where there is one; commits are many here and disks are slow."""


@pytest.fixture(scope="session")
def world_of() -> Iterator[Callable[[int], World]]:
    """A maker of worlds; the one before is thrown away."""
    memory = MEMORY if MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as name, asyncio.Runner() as runner:
        folder = Path(name)
        template = folder / "template.sqlite"
        upgrade(f"sqlite:///{template}")
        with closing(sqlite3.connect(template)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        place = folder / "world"
        settings = settings_of(place)
        store = FragileStore(place / "recon.sqlite")

        def make(seed: int) -> World:
            return World.of(store, template=template, settings=settings, runner=runner, seed=seed)

        yield make
        store.forget()
