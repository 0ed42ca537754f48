"""One forking process and one sandbox for all schedules of a test process."""

import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "model"))
sys.path.insert(0, str(Path(__file__).parent))
from nursery import Nursery
from server import Server
from shop import ENDINGS, SEEDED, Shop

from recon.sandbox import RunningSandbox, SandboxOptions, serving


@pytest.fixture
def tell(capfd: pytest.CaptureFixture[str], request: pytest.FixtureRequest) -> Callable[..., None]:
    """Says what a campaign came to, also when its tests pass; only where campaign `chaos` asks."""

    def say(**counts: object) -> None:
        if os.environ.get("CHAOS") == "1":
            with capfd.disabled():
                told = ", ".join(f"{name} {count}" for name, count in counts.items())
                sys.stdout.write(f"\n{request.node.name}: {told}\n")

    return say


@pytest.fixture(scope="session")
def gateway() -> Iterator[RunningSandbox]:
    """A sandbox, begun again for every shop."""
    with serving(SandboxOptions(orders=SEEDED)) as running:
        yield running


@pytest.fixture(scope="session")
def place(migrated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a migrated database to copy."""
    folder = tmp_path_factory.mktemp("shops")
    shutil.copyfile(migrated, folder / "template.sqlite")
    return folder


@pytest.fixture(scope="session")
def nursery(gateway: RunningSandbox, place: Path) -> Iterator[Nursery]:
    """The process that forks nights, after a first night of its own."""
    with Nursery.opened() as opened:
        first = _sqlite_shop(random.Random(0), gateway=gateway, place=place, nursery=opened)
        first.instruct(3)
        assert first.warm() in ENDINGS
        yield opened


@pytest.fixture(scope="session")
def shop_of(
    nursery: Nursery, gateway: RunningSandbox, place: Path
) -> Callable[[random.Random], Shop]:
    """A maker of shops with a SQLite journal; the one before is thrown away."""
    return partial(_sqlite_shop, gateway=gateway, place=place, nursery=nursery)


def _sqlite_shop(
    chance: random.Random, *, gateway: RunningSandbox, place: Path, nursery: Nursery
) -> Shop:
    folder = place / "shop"
    url = f"sqlite:///{folder / 'recon.sqlite'}"
    shop = Shop(folder, gateway.base_url, url, nursery, chance)
    shutil.copyfile(place / "template.sqlite", folder / "recon.sqlite")
    return shop


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL server of our own, which may be killed."""
    with Server.opened() as opened:
        yield opened


@pytest.fixture(scope="session")
def postgresql_shop_of(
    nursery: Nursery, gateway: RunningSandbox, place: Path, server: Server
) -> Callable[[random.Random], Shop]:
    """A maker of shops with a PostgreSQL journal; the one before is thrown away."""

    def make(chance: random.Random) -> Shop:
        return Shop(place / "shop", gateway.base_url, server.fresh(), nursery, chance)

    return make
