import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import (
    Column,
    MetaData,
    String,
    Table,
    func,
    insert,
    select,
    text,
)

from recon.model.errors import ConfigurationError, NightHeldError, StoreError, StoreLockedError
from recon.model.nights import Mode, NightRequest
from recon.store.database import engine
from recon.store.database.engine import COMPILED, Store, check_settings, open_store, parse_url
from recon.store.database.migrate import check_revision, newest_revision, upgrade
from recon.store.database.night_lock import Process, account_lock, lock_is_held
from recon.store.nights import runs
from recon.store.schema import run
from recon.store.schema import run as run_table
from recon.store.schema.columns import among


def test_settings_of_money_took_effect(sqlite_url):
    store = open_store(sqlite_url)
    with store.writing() as writer, store.reading() as reader:
        found = {
            (name, connection.execute(text(f"PRAGMA {name}")).scalar())
            for connection in (writer, reader)
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    store.close()

    assert found == {("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1)}


def test_a_setting_that_did_not_take_is_refused(sqlite_url, monkeypatch):
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
def test_postgresql_that_forgets_commits_is_refused(postgresql_url, setting, words):
    """And a standby, at the start and not in mid-night."""
    store = Store(parse_url(f"{postgresql_url}&options=-c%20{setting}"))

    with pytest.raises(StoreError, match=words):
        check_settings(store)
    store.close()


@pytest.mark.process
def test_a_locked_database_is_one_sentence(sqlite_url, monkeypatch):
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
        holder.stdout.readline()
        store = open_store(sqlite_url)
        with pytest.raises(StoreLockedError, match="locked by another process"), store.writing():
            pytest.fail("the lock was not there")
        store.close()
        holder.kill()


def test_a_file_that_can_only_be_read_is_named(sqlite_url):
    """Which file, what was kept, and what to do."""
    store = open_store(sqlite_url)
    with (
        pytest.raises(StoreError, match=r"database /.*\.sqlite can only be read .* start again"),
        store.writing() as connection,
    ):
        _write_what_may_not_be(connection)
    store.close()


def _write_what_may_not_be(connection):
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
def test_other_databases_are_refused(url, words):
    with pytest.raises(ConfigurationError, match=words):
        parse_url(url)


def damaged(path):
    path.write_bytes(b"SQLite format 3\0" + b"x" * 5_000)


def of_somebody_else(path):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE theirs (n INTEGER)")


def without_its_folder(path):
    path.parent.rmdir()


@pytest.mark.parametrize(
    ("make", "use", "error", "words"),
    [
        (damaged, open_store, StoreError, "damaged"),
        (of_somebody_else, upgrade, StoreError, "theirs"),
        (str, open_store, ConfigurationError, "recon db upgrade"),
        (without_its_folder, upgrade, ConfigurationError, "its-folder"),
    ],
    ids=["damaged", "of somebody else", "not there", "without its folder"],
)
def test_what_is_no_database_of_ours_is_one_sentence_and_left_as_it_is(
    tmp_path, make, use, error, words
):
    path = tmp_path / "its-folder" / "r.sqlite"
    path.parent.mkdir()
    make(path)
    before = path.exists()

    with pytest.raises(error, match=words):
        use(f"sqlite:///{path}")
    assert path.exists() is before


NOW = datetime(2026, 11, 21, 2, tzinfo=UTC)
NIGHT = NightRequest("100042", "100042001", date(2026, 11, 20), Mode.LIVE)


def _rows(url):
    query = select(func.count()).select_from(run_table).where(run_table.c.run_id != "nobody")
    store = Store(parse_url(url))
    with store.writing() as writer, store.reading() as reader:
        counts = {connection.execute(query).scalar_one() for connection in (writer, reader)}
    store.close()
    (count,) = counts
    return int(count)


def test_a_statement_is_compiled_once_for_all_databases(migrated, tmp_path):
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


ENTRIES = Table("entry_of_a_test", MetaData(), Column("entry_id", String(64), primary_key=True))


@pytest.mark.parametrize("wanted", [["E-1", 'E-"2'], ["E-3"], []])
def test_many_values_are_one_parameter(store, wanted):
    with store.writing() as connection:
        ENTRIES.create(connection)
        connection.execute(insert(ENTRIES), [{"entry_id": each} for each in ("E-1", 'E-"2')])
    with store.reading() as connection:
        query = select(ENTRIES.c.entry_id)
        found = connection.execute(query.where(among(connection, ENTRIES.c.entry_id, wanted)))

        assert sorted(found.scalars()) == sorted({"E-1", 'E-"2'} & set(wanted))


def test_migrations_make_exactly_the_tables_of_the_schema(store):
    with store.reading() as connection:
        difference = compare_metadata(MigrationContext.configure(connection), run.metadata)

        written = MigrationContext.configure(connection).get_current_revision()

    assert difference == []
    assert written == newest_revision()


def test_upgrade_twice_changes_nothing(tmp_path):
    url = f"sqlite:///{tmp_path / 'r.sqlite'}"

    assert [upgrade(url), upgrade(url)] == [newest_revision()] * 2


def test_a_database_without_tables_is_refused_with_the_command(tmp_path):
    (tmp_path / "r.sqlite").touch()
    store = open_store(f"sqlite:///{tmp_path / 'r.sqlite'}")

    with pytest.raises(StoreError, match="recon db upgrade"):
        check_revision(store)
    store.close()


@pytest.fixture
def sqlite_path(migrated, tmp_path):
    return Path(shutil.copy(migrated, tmp_path / "recon.sqlite"))


def _at_version(path, revision):
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("UPDATE alembic_version SET version_num = ?", (revision,))


@pytest.mark.parametrize(
    ("revision", "sentence"),
    [
        ("unknown", "is at version unknown, this program knows 0001"),
        ("0099", "is newer than this program: it is at version 0099, and this program knows"),
    ],
)
def test_a_database_of_a_version_that_is_not_known_is_left_as_it_is(
    sqlite_path, revision, sentence
):
    _at_version(sqlite_path, revision)

    with pytest.raises(StoreError, match=sentence):
        upgrade(f"sqlite:///{sqlite_path}")
    with closing(sqlite3.connect(sqlite_path)) as now:
        assert now.execute("SELECT version_num FROM alembic_version").fetchall() == [(revision,)]


def test_a_night_calls_a_newer_database_newer(sqlite_path):
    """After a program was put back, nobody is told to upgrade what is ahead already."""
    _at_version(sqlite_path, "0099")
    with (
        closing(open_store(f"sqlite:///{sqlite_path}")) as store,
        pytest.raises(StoreError, match="is newer than this program") as refused,
    ):
        check_revision(store)
    assert "db upgrade" not in str(refused.value)


def test_a_new_database_is_its_owners_alone(tmp_path):
    """Orders and amounts rest in it: nobody else on the machine reads them, whatever the umask."""
    path = tmp_path / "recon.sqlite"
    upgrade(f"sqlite:///{path}")

    assert path.stat().st_mode & 0o777 == 0o600


HOLDING = """
import sys
from recon.store.database.engine import Store, parse_url
from recon.store.database.night_lock import account_lock
store = Store(parse_url(sys.argv[1]))
with account_lock(store, ("m", "a")):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def _holding(store):
    url = store.url.render_as_string(hide_password=False)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout.readline() == b"held\n"
        yield holder
        holder.kill()


@pytest.mark.process
def test_a_second_process_does_not_get_the_account(store):
    with _holding(store):
        with pytest.raises(NightHeldError), account_lock(store, ("m", "a")):
            pytest.fail("two held the account")
        with account_lock(store, ("m", "b")):
            pass


@pytest.mark.process
def test_a_killed_holder_frees_the_account_at_once(store):
    with _holding(store) as holder:
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()

    with account_lock(store, ("m", "a")):
        held = True
    assert held


def test_the_lock_is_free_after_an_error(store, tmp_path):
    with pytest.raises(ZeroDivisionError), account_lock(store, ("m", "a")):
        raise ZeroDivisionError
    with account_lock(store, ("m", "a")):
        assert tmp_path.exists()


@pytest.mark.parametrize("account_id", ["a", "b", "c", "d"])
def test_a_lock_that_the_server_dropped_no_longer_stands(store, account_id):
    place = ("m", account_id)
    with account_lock(store, place):
        with store.reading() as connection:
            held = lock_is_held(connection, place)
        if not store.is_sqlite:
            _end_lock_holders(store)
        with store.reading() as connection:
            still = lock_is_held(connection, place)

    assert (held, still) == (True, store.is_sqlite)


def _end_lock_holders(store: Store) -> None:
    # With a time-out the call waits until the backend is gone; without, it only sends a signal.
    ended = (
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory' "
        "AND pid <> pg_backend_pid()"
    )
    with store.writing() as connection:
        connection.execute(text(ended))


@pytest.fixture
def child():
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def owner_of(process):
    ticks = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]
    return replace(Process.this(), pid=process.pid, started_ticks=int(ticks))


def test_an_owner_lives_until_it_is_gone(child):
    """Also while it is stopped; not any more once it was killed, waited for or not."""
    owner = owner_of(child)
    alive = owner.is_alive_here()
    os.kill(child.pid, signal.SIGSTOP)
    stopped = owner.is_alive_here()
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    killed = owner.is_alive_here()
    child.wait()

    assert (alive, stopped, killed, owner.is_alive_here()) == (True, True, False, False)


def test_a_process_id_that_is_used_again_is_another_owner(child):
    owner = owner_of(child)
    others = (
        replace(owner, started_ticks=owner.started_ticks - 1),
        replace(owner, boot_id="another"),
        replace(owner, namespace="pid:[1]"),
        replace(owner, boot_id="unknown"),
    )

    assert [one.is_alive_here() for one in others] == [False] * 4


def test_the_process_that_asks_is_not_another_owner():
    """A night may follow another one in the same process."""
    assert not Process.this().is_alive_here()


def test_an_owner_is_read_as_it_was_written():
    owner = Process.this()

    assert Process.parsed(str(owner)) == owner
    assert Process.parsed("") is None
    assert Process.parsed("process 12 on host, started") is None


def test_a_process_of_which_nothing_can_be_read_is_not_called_gone(child, tmp_path):
    """Too many open files keep /proc from being read as well: who cannot be seen may live."""
    (tmp_path / "sys/kernel/random").mkdir(parents=True)
    (tmp_path / "sys/kernel/random/boot_id").write_text(owner_of(child).boot_id)
    (tmp_path / "self/ns").mkdir(parents=True)
    (tmp_path / "self/ns/pid").symlink_to(Path("/proc/self/ns/pid").readlink())
    (tmp_path / f"{child.pid}/stat").mkdir(parents=True)

    assert owner_of(child).is_alive_here(proc=tmp_path)
