import lzma
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.digest import digest_of
from recon.model.errors import ConfigurationError, StoreError
from recon.steps.care.carried_results import upgrade_and_carry
from recon.steps.ground import kept_results
from recon.steps.ground.environment import Environment, environment_of
from recon.store.database import history
from recon.store.database.migrate import newest_revision, upgrade
from recon.store.nights import results
from recon.store.people import resolution_rows
from tests.recon.steps.conftest import write_config

EARLIER = Path(__file__).parent / "earlier" / "nights-0026.sql.xz"
"""Three nights in a database of revision 0026, as that version wrote it, without their folders."""
DIGESTS = {
    "20261120-c75962db": "752733e28cf16143f0f52e63ec6a8432dbd8830f91466205632dff118ebc8e28",
    "20261121-5e096f4e": "cc1a930585c55293489b4d985e5d1aac87d69b0a8cdc86dca6bb76b85348d899",
    "20261122-ac71731c": "5e8aa965b50d56fe0ea06051d0ce35a911aaaaf1e5a51126888b3fda1d116b62",
}
"""Run -> the digest of its result, as that version came to it."""
ROWS = {
    "20261120-c75962db": (0, 1, 0, 0, 1, 2, 1),
    "20261121-5e096f4e": (1, 2, 1, 0, 3, 2, 2),
    "20261122-ac71731c": (2, 2, 0, 0, 3, 0, 3),
}
"""Matches, breaks, pending, unverified, effects, lines of journals, movements."""
ALREADY_SEALED = 4
"""Steps of each night that the history binds in that database."""
NOW = datetime(2026, 11, 23, tzinfo=UTC)


@pytest.fixture
def earlier(tmp_path: Path) -> dict[str, str]:
    """The variables of a merchant whose database an earlier version wrote."""
    path = tmp_path / "r.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(lzma.decompress(EARLIER.read_bytes()).decode())
    (tmp_path / "config").mkdir()
    write_config(tmp_path, ledger=tmp_path / "ledger.csv")
    return {
        "RECON_GATEWAY_BASE_URL": "http://127.0.0.1:9",
        "RECON_DATABASE_URL": f"sqlite:///{path}",
        "RECON_CONFIG_DIR": str(tmp_path / "config"),
    }


def _carry(variables: dict[str, str]) -> tuple[str, int]:
    url = variables["RECON_DATABASE_URL"]
    return upgrade_and_carry(url, variables=variables, clock=lambda: NOW)


@contextmanager
def _opened(variables: dict[str, str]) -> Iterator[Environment]:
    with environment_of(variables, clock=lambda: NOW, signs=False) as environment:
        yield environment


def _results(variables: dict[str, str]) -> dict[str, Reconciliation]:
    with _opened(variables) as environment, environment.store.reading() as connection:
        found = {
            run_id: kept_results.load(connection, run_id, environment=environment)
            for run_id in DIGESTS
        }
    return {run_id: result for run_id, result in found.items() if result is not None}


def _digest(result: Reconciliation) -> str:
    frames = (result.breaks, result.effects, result.matches, result.pending, result.unverified)
    return digest_of(frames)


def test_results_in_rows_become_folders_with_the_same_digest(earlier: dict[str, str]) -> None:
    """Every night of the version before says the same from its folder, row by row."""
    done = _carry(earlier)
    found = _results(earlier)
    again = _carry(earlier)

    assert done == (newest_revision(), len(DIGESTS))
    assert again == (newest_revision(), 0)
    assert {run_id: _digest(result) for run_id, result in found.items()} == DIGESTS
    assert {run_id: result.digest for run_id, result in found.items()} == DIGESTS
    frames = ("matches", "breaks", "pending", "unverified", "effects", "journals", "movements")
    for run_id, result in found.items():
        assert tuple(len(getattr(result, name)) for name in frames) == ROWS[run_id]


def test_what_the_database_keeps_of_them_is_what_it_had(earlier: dict[str, str]) -> None:
    """Rows and money at risk of each section, money of write-offs, and a history that closes."""
    path = Path(earlier["RECON_DATABASE_URL"].removeprefix("sqlite:///"))
    with closing(sqlite3.connect(path)) as before:
        at_risk = before.execute(
            "SELECT run_id, count(*), sum(exposure) FROM result_row WHERE section = 'break'"
            " GROUP BY run_id"
        ).fetchall()
    _carry(earlier)
    with _opened(earlier) as environment, environment.store.reading() as connection:
        kept = {run_id: results.load_summary(connection, run_id) for run_id in DIGESTS}
        agreed = resolution_rows.agreed_write_offs(connection, ("100042", "100042001"))
        broken = history.verify(connection)[1]

    counted = [(n, s.rows["break"], sum(s.exposure.values())) for n, s in kept.items() if s]
    assert counted == at_risk
    assert agreed == {"199aa27a0808af15": ("EUR", 38_287)}
    assert broken == ""


def test_rows_without_a_folder_are_never_given_up(earlier: dict[str, str]) -> None:
    """The tables alone are not upgraded: the sentence names the command, the rows are there."""
    url = earlier["RECON_DATABASE_URL"]
    with pytest.raises(StoreError, match="results of 3 nights"):
        upgrade(url)
    with pytest.raises(ConfigurationError):
        upgrade_and_carry(url, variables={}, clock=lambda: NOW)

    assert _carry(earlier) == (newest_revision(), len(DIGESTS))


@pytest.mark.process
@pytest.mark.parametrize(
    "point",
    [
        *("archived a part:1", "archived a part:14", "archived a manifest:2"),
        *("archived some answers:2", "archived the answers:2"),
        "archived the books:2",
    ],
)
def test_an_upgrade_that_was_killed_is_done_again(earlier: dict[str, str], point: str) -> None:
    """Between the first byte and the last manifest nothing of the rows is lost, nor kept twice."""
    command = "from recon.cli import main; raise SystemExit(main())"
    crashing = os.environ | earlier | {"RECON_CRASH_AT": point}
    killed = subprocess.run(
        [sys.executable, "-c", command, "db", "upgrade"],
        env=crashing,
        capture_output=True,
        text=True,
        check=False,
    )
    _carry(earlier)

    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert {run_id: _digest(result) for run_id, result in _results(earlier).items()} == DIGESTS
    with _opened(earlier) as environment, environment.store.reading() as connection:
        events = [each["event"] for each in history.of_entity(connection, next(iter(DIGESTS)))]
    assert events.count("sealed") == ALREADY_SEALED + len(("results", "answers-1", "books"))
