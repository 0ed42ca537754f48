import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from recon.model.errors import ConfigurationError, StoreError, StoreLockedError
from recon.store.database import engine
from recon.store.database.engine import Store, check_settings, open_store, parse_url
from recon.store.database.migrate import upgrade


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
    """A SQLite database is in WAL with full synchronisation, on writers and readers."""
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
    """A database that does not take a setting is not used for money."""
    store = Store(parse_url(sqlite_url))
    monkeypatch.setattr(engine, "SQLITE_PRAGMAS", {"journal_mode": "never"})

    with pytest.raises(StoreError, match="did not take journal_mode"):
        check_settings(store)
    store.close()


@pytest.mark.postgresql
def test_postgresql_that_forgets_commits_is_refused(postgresql_url: str) -> None:
    """PostgreSQL with synchronous_commit off is refused in words."""
    store = Store(parse_url(postgresql_url + "&options=-c%20synchronous_commit%3Doff"))

    with pytest.raises(StoreError, match="synchronous_commit off"):
        check_settings(store)
    store.close()


@pytest.mark.postgresql
def test_postgresql_that_is_read_only_is_refused(postgresql_url: str) -> None:
    """A standby or read-only PostgreSQL is refused at the start, not in mid-night."""
    store = Store(parse_url(postgresql_url + "&options=-c%20default_transaction_read_only%3Don"))

    with pytest.raises(StoreError, match="read-only"):
        check_settings(store)
    store.close()


@pytest.mark.process
def test_a_locked_database_is_one_sentence(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that meets another process's lock says so, and that nothing was written."""
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
    """Only a SQLite file or PostgreSQL is accepted."""
    with pytest.raises(ConfigurationError, match=words):
        parse_url(url)


def test_a_damaged_database_is_one_sentence(tmp_path: Path) -> None:
    """A file that is no database says that it is damaged and what to do."""
    (tmp_path / "r.sqlite").write_bytes(b"SQLite format 3\0" + b"x" * 5_000)

    with pytest.raises(StoreError, match="damaged"):
        open_store(f"sqlite:///{tmp_path / 'r.sqlite'}")


def test_a_database_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    """A database with other tables gets none of ours."""
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE theirs (n INTEGER)")

    with pytest.raises(StoreError, match="theirs"):
        upgrade(f"sqlite:///{path}")


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    """Opening makes no database; only the upgrade does."""
    with pytest.raises(ConfigurationError, match="recon db upgrade"):
        open_store(f"sqlite:///{tmp_path / 'r.sqlite'}")
    assert not (tmp_path / "r.sqlite").exists()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """A database in a folder that does not exist is refused with the folder's name."""
    with pytest.raises(ConfigurationError, match="missing"):
        upgrade(f"sqlite:///{tmp_path / 'missing' / 'r.sqlite'}")
