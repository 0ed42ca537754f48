"""What holds for every test: no settings of the shell, no silent skip, calm property tests."""

import gc
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

from recon.model import uptime
from recon.store.database.migrate import upgrade

REQUIRE_ALL_VARIABLE = "RECON_REQUIRE_ALL"
"""Set to 1 where every program that a test may want is installed: then a skip is a failure."""

CHECKOUT = Path(__file__).parents[1]
MEMORY = Path("/dev/shm")  # noqa: S108 - a file system, not a file
"""Where there is one; a run commits and syncs tens of thousands of times, and disks are slow."""
MEMORY_BYTES_MIN = 4 << 30
"""A container may give it no more than a few megabytes."""


def _work_in_memory() -> None:
    """By the environment, so that processes that tests start do the same."""
    if "TMPDIR" in os.environ or not MEMORY.is_dir():
        return
    if shutil.disk_usage(MEMORY).free >= MEMORY_BYTES_MIN:
        # Each checkout its own, and its user's: another's runs may sweep what killed ones left.
        own = MEMORY / f"recon-{os.geteuid()}-{crc32(bytes(CHECKOUT)):08x}"  # sockets: short
        own.mkdir(exist_ok=True)
        own.chmod(0o711)  # a database server runs as another user than root, who comes through
        os.environ["TMPDIR"] = str(own)
        tempfile.tempdir = None


_work_in_memory()

BYTECODE = CHECKOUT / ".venv" / "bytecode"
"""Where `make` keeps compiled modules, too."""


def _compile_once() -> None:
    """For processes that tests start, also where a shell forbids it: each took seconds for it."""
    if BYTECODE.parent.is_dir():
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ.setdefault("PYTHONPYCACHEPREFIX", str(BYTECODE))
        sys.dont_write_bytecode = False
        sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"]


_compile_once()

YOUNG_OBJECTS = (50_000, 20, 50)
"""Allocations between two collections of each generation: thousands of tests keep a million
objects alive, and to walk them as often as Python does by itself took an eighth of a run."""
gc.set_threshold(*YOUNG_OBJECTS)
uptime.LOOKED_FROM_BYTES = 8 << 30
"""A process of thousands of tests is large by itself, however small the month that one of them
states: to look through all of it three times for each month took an eighth of their time."""

for _name in [name for name in os.environ if name.startswith("RECON_")]:
    if _name != REQUIRE_ALL_VARIABLE:
        # A developer's shell may point at a real database and a real gateway.
        del os.environ[_name]

# Machines that run tests are shared and slow at times: a deadline would measure the neighbours.
# Derandomised, so that a run that was green stays green on the same code.
settings.register_profile(
    "recon", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("recon")


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with all tables and no row; migrating each test's own takes longer."""
    path = tmp_path_factory.mktemp("migrated") / "recon.sqlite"
    upgrade(f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


@pytest.fixture
def sqlite_url(migrated: Path, tmp_path: Path) -> str:
    """An empty, migrated database of this test."""
    return f"sqlite:///{shutil.copy(migrated, tmp_path / 'recon.sqlite')}"


@pytest.fixture
def installation(tmp_path: Path, sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an empty `config`, an empty database, and the environment that names them.

    Nobody answers at its gateway's address.
    """
    (tmp_path / "config").mkdir()
    for name, value in {
        "RECON_DATABASE_URL": sqlite_url,
        "RECON_CONFIG_DIR": str(tmp_path / "config"),
        "RECON_GATEWAY_BASE_URL": "http://127.0.0.1:9",
        "RECON_SIGN_KEY": "sandbox",
    }.items():
        monkeypatch.setenv(name, value)
    return tmp_path


def _skip_counts_as_failure() -> bool:
    return os.environ.get(REQUIRE_ALL_VARIABLE) == "1"


def _turn_into_failure(report: pytest.TestReport | pytest.CollectReport) -> None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = f"{REQUIRE_ALL_VARIABLE}=1 and this was skipped: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A skipped test fails where everything is required; an expected failure does not."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and _skip_counts_as_failure():
        _turn_into_failure(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A module that skips itself while it is collected fails in the same way."""
    report = yield
    if report.skipped and _skip_counts_as_failure():
        _turn_into_failure(report)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share what their module made stay on one worker: else each worker made its own."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None and _shares_a_fixture(item):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


def _shares_a_fixture(item: pytest.Item) -> bool:
    """Whether a fixture that it takes is made once for its module."""
    if not isinstance(item, pytest.Function):
        return False
    known = item._fixtureinfo.name2fixturedefs
    return any(each[-1].scope == "module" for each in known.values() if each)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Groups of tests that share a server stay on one worker, or the run ends before it begins.

    What was collected lives as long as the run: no garbage is looked for in it again.
    """
    gc.freeze()
    if not session.config.getoption("loadgroup", default=False):
        return
    strays = [
        item.nodeid
        for item in session.items
        for mark in item.iter_markers("xdist_group")
        if not item.nodeid.endswith(f"@{mark.args[0]}")
    ]
    if strays:
        told = f"{len(strays)} tests are not in their group, {strays[0]} first"
        raise pytest.UsageError(f"{told}: this pytest ignores what pytest-xdist names them")
