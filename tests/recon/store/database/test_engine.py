import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, select, text

from recon.model.errors import ConfigurationError, StoreError, StoreLockedError
from recon.model.nights import Mode, NightRequest
from recon.store.database import engine
from recon.store.database.engine import COMPILED, Store, check_settings, open_store, parse_url
from recon.store.database.migrate import upgrade
from recon.store.nights import runs
from recon.store.schema import run as run_table


def test_a_lost_update_is_impossible(store: Store) -> None:
    """Read-modify-write in `writing()` loses no update, however many threads do it at once."""
    with store.writing() as connection:
        connection.execute(text("CREATE TABLE counter (n INTEGER)"))
        connection.execute(text("INSERT INTO counter VALUES (0)"))
    lost: list[str] = []

    def add() -> None:
        for _ in range(25):
            try:
                with store.writing() as connection:
                    n = connection.execute(text("SELECT n FROM counter")).scalar_one()
                    connection.execute(text("UPDATE counter SET n = :n"), {"n": n + 1})
            except StoreError:
                # PostgreSQL refuses one of two; a refusal is not a loss.
                lost.append("refused")

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with store.reading() as connection:
        n = connection.execute(text("SELECT n FROM counter")).scalar_one()
    with store.writing() as connection:
        connection.execute(text("DROP TABLE counter"))

    assert n + len(lost) == 100
    assert not store.is_sqlite or not lost


def test_settings_of_money_took_effect(sqlite_url: str) -> None:
    store = open_store(sqlite_url)
    with store.writing() as writer, store.reading() as reader:
        found = {
            (name, connection.execute(text(f"PRAGMA {name}")).scalar())
            for connection in (writer, reader)
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    store.close()

    assert found == {("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1)}


def test_a_setting_that_did_not_take_is_refused(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(parse_url(sqlite_url))
    monkeypatch.setattr(engine, "SQLITE_PRAGMAS", {"journal_mode": "never"})

    with pytest.raises(StoreError, match="did not take journal_mode"):
        check_settings(store)
    store.close()


@pytest.mark.postgresql
@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("synchronous_commit%3Doff", "synchronous_commit off"),
        ("default_transaction_read_only%3Don", "read-only"),
    ],
)
def test_postgresql_that_forgets_commits_is_refused(
    postgresql_url: str, setting: str, words: str
) -> None:
    """And a standby, at the start and not in mid-night."""
    store = Store(parse_url(f"{postgresql_url}&options=-c%20{setting}"))

    with pytest.raises(StoreError, match=words):
        check_settings(store)
    store.close()


@pytest.mark.process
def test_a_locked_database_is_one_sentence(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    holding = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('BEGIN IMMEDIATE'); print('held', flush=True); sys.stdin.read()"
    )
    monkeypatch.setattr(engine, "BUSY_TIMEOUT_MS", 200)
    monkeypatch.setitem(engine.SQLITE_PRAGMAS, "busy_timeout", 200)
    with subprocess.Popen(
        [sys.executable, "-c", holding, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        store = open_store(sqlite_url)
        with pytest.raises(StoreLockedError, match="locked by another process"), store.writing():
            pytest.fail("the lock was not there")
        store.close()
        holder.kill()


def test_a_file_that_can_only_be_read_is_named(sqlite_url: str) -> None:
    """Which file, what was kept, and what to do."""
    store = open_store(sqlite_url)
    with (
        pytest.raises(StoreError, match=r"database /.*\.sqlite can only be read .* start again"),
        store.writing() as connection,
    ):
        _write_what_may_not_be(connection)
    store.close()


def _write_what_may_not_be(connection: Connection) -> None:
    connection.exec_driver_sql("PRAGMA query_only = 1")
    connection.exec_driver_sql("CREATE TABLE more (name TEXT)")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("not a url", "not a URL"),
        ("postgresql://h:abc/db", "not a URL"),
        ("sqlite://", "must begin with sqlite:/// and a file"),
        ("mysql://h/d", "must begin with sqlite:/// and a file"),
        ("postgres://h/d", "or with postgresql://, not with postgres://"),
    ],
)
def test_other_databases_are_refused(url: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        parse_url(url)


def test_a_damaged_database_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "r.sqlite").write_bytes(b"SQLite format 3\0" + b"x" * 5_000)

    with pytest.raises(StoreError, match="damaged"):
        open_store(f"sqlite:///{tmp_path / 'r.sqlite'}")


def test_a_database_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE theirs (n INTEGER)")

    with pytest.raises(StoreError, match="theirs"):
        upgrade(f"sqlite:///{path}")


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="recon db upgrade"):
        open_store(f"sqlite:///{tmp_path / 'r.sqlite'}")
    assert not (tmp_path / "r.sqlite").exists()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="missing"):
        upgrade(f"sqlite:///{tmp_path / 'missing' / 'r.sqlite'}")


NOW = datetime(2026, 11, 21, 2, tzinfo=UTC)
NIGHT = NightRequest("100042", "100042001", date(2026, 11, 20), Mode.LIVE)


def _rows(url: str) -> int:
    query = select(func.count()).select_from(run_table).where(run_table.c.run_id != "nobody")
    store = Store(parse_url(url))
    with store.writing() as writer, store.reading() as reader:
        counts = {connection.execute(query).scalar_one() for connection in (writer, reader)}
    store.close()
    (count,) = counts
    return int(count)


def test_a_statement_is_compiled_once_for_all_databases(migrated: Path, tmp_path: Path) -> None:
    """Another engine and another database take what the first compiled, and answer for itself."""
    empty, other = (
        f"sqlite:///{shutil.copy(migrated, tmp_path / name)}" for name in ("empty", "other")
    )
    store = Store(parse_url(other))
    with store.writing() as connection:
        runs.start(connection, NIGHT, run_id="night-1", as_of=NOW, now=NOW)
    store.close()
    first = _rows(empty)
    compiled = len(COMPILED)
    second = _rows(other)

    assert (first, second) == (0, 1)
    assert len(COMPILED) == compiled > 0
