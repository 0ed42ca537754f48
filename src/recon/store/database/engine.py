"""Opening the database with the settings that money needs, which are checked to be in effect.

SQLite: WAL, synchronous FULL, foreign keys, `BEGIN IMMEDIATE` for writers (the driver's default
loses updates without an error). PostgreSQL: refused while `fsync` or `synchronous_commit` is off,
because acknowledged commits could be lost. Both databases run the same statements, and on both
writers are serialised: SQLite allows one writer anyway; on PostgreSQL each takes an advisory lock
before its first read, so that it sees everything its predecessor committed.

SQLAlchemy caches compiled statements per engine and dialect instance. A server process opens many
stores one after another, so all SQLite engines here share one cache (see `OwnSqlite`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DatabaseError, OperationalError, SQLAlchemyError
from sqlalchemy.util import LRUCache

from recon.model.errors import ConfigurationError, StoreError, StoreLockedError
from recon.store.database import history
from recon.store.database.outside_heads import OutsideHeads

BUSY_TIMEOUT_MS = 10_000
"""How long a SQLite writer waits for another one before it fails."""
CONNECT_TIMEOUT_SECONDS = 10
TURN_TIMEOUT_SECONDS = 60
"""How long a PostgreSQL writer waits for the advisory lock before it fails."""
MAY_NOT = "42501"
"""PostgreSQL's SQLSTATE for insufficient privilege."""
SQLITE_PRAGMAS = {
    "journal_mode": "wal",
    "synchronous": 2,  # FULL: a commit is on the disk when it returns
    "foreign_keys": 1,
    "trusted_schema": 0,
    "busy_timeout": BUSY_TIMEOUT_MS,
}


class Turn(IntEnum):
    """What a PostgreSQL writer waits for; the value is the key of an advisory lock."""

    JOURNAL = 7_260_003
    ORDERS = 7_260_004
    """For whole order files: they take long and write no other tables, so movements of money need
    not wait for them. At their end they take both locks to record their events in the history."""


def join_turn(connection: Connection, turn: Turn) -> None:
    """Take another lock until the transaction ends; always ORDERS first, then JOURNAL."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({turn.value})")


class Store:
    """An open database; `writing()` and `reading()` yield connections."""

    def __init__(self, url: URL, *, outside: OutsideHeads | None = None) -> None:
        self.url = url
        self.outside = outside or OutsideHeads({})
        """Head files in which events that restrict money are noted too."""
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self.engine = _sqlite_engine(url) if self.is_sqlite else _postgresql_engine(url)
        self._reader = (
            self.engine
            if self.is_sqlite
            else self.engine.execution_options(isolation_level="REPEATABLE READ")
        )

    @property
    def path(self) -> Path | None:
        """The file of a SQLite database; None for PostgreSQL."""
        return Path(self.url.database) if self.is_sqlite and self.url.database else None

    @contextmanager
    def writing(self, *, turn: Turn = Turn.JOURNAL) -> Iterator[Connection]:
        """Yield a connection in a write transaction, committed at the end, rolled back on errors.

        Writers are serialised, commits durable; events that restrict money go to head files too.

        Raises:
            OutputError: It is committed, but could not be noted in a head file.
        """
        # PostgreSQL releases the lock with the transaction, however it ends.
        begin = (
            "BEGIN IMMEDIATE"
            if self.is_sqlite
            else f"SET LOCAL lock_timeout = '{TURN_TIMEOUT_SECONDS}s'; "
            f"SELECT pg_advisory_xact_lock({turn.value})"
        )
        with _translated(self.path), self.engine.begin() as connection:
            connection.exec_driver_sql(begin)
            history.begin(connection)
            yield connection
            confirm = self.outside.pending(connection)
        confirm()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection with one consistent snapshot."""
        with _translated(self.path), self._reader.begin() as connection:
            if self.is_sqlite:
                connection.exec_driver_sql("BEGIN")
            yield connection

    def close(self) -> None:
        """Close all pooled connections."""
        self.engine.dispose()


def parse_url(database_url: str) -> URL:
    """Return the URL of a supported database with the driver that we use.

    Raises:
        ConfigurationError: It is neither SQLite nor PostgreSQL, or names no SQLite file.
    """
    try:
        url = make_url(database_url)
    except (ArgumentError, ValueError) as error:  # a port that is no number is a ValueError
        msg = "RECON_DATABASE_URL is not a URL such as sqlite:////var/lib/recon/recon.sqlite"
        raise ConfigurationError(msg) from error
    backend = url.get_backend_name()
    if backend == "sqlite" and url.database and url.database != ":memory:":
        return url
    if backend == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    msg = (
        f"RECON_DATABASE_URL must begin with sqlite:/// and a file, or with postgresql://, "
        f"not with {backend}://"
    )
    raise ConfigurationError(msg)


def open_store(database_url: str, *, outside: OutsideHeads | None = None) -> Store:
    """Open and check a database whose tables exist already.

    Raises:
        ConfigurationError: The URL is not supported, or the SQLite file does not exist.
        StoreError: It cannot be reached, or its settings are unsafe for money.
    """
    store = Store(parse_url(database_url), outside=outside)
    try:
        check_settings(store)
    except BaseException:
        store.close()
        raise
    return store


def check_settings(store: Store) -> None:
    """Refuse a database whose acknowledged commits can be lost, or that is read-only."""
    if store.path is not None and not store.path.parent.is_dir():
        whole = "" if store.path.is_absolute() else "; a whole path has four slashes: sqlite:////…"
        msg = f"the folder of the database {store.path} does not exist{whole}"
        raise ConfigurationError(msg)
    if store.path is not None and not store.path.is_file():
        msg = f"the database {store.path} does not exist: `recon db upgrade` makes it"
        raise ConfigurationError(msg)
    with store.reading() as connection:
        if not store.is_sqlite:
            _check_postgresql(connection)
            return
        for pragma, expected in SQLITE_PRAGMAS.items():
            value = connection.execute(text(f"PRAGMA {pragma}")).scalar()
            if value != expected:
                msg = (
                    f"SQLite did not take {pragma} = {expected} (it says {value}); money is not "
                    "safe: put the database on a local disk"
                )
                raise StoreError(msg)


def _check_postgresql(connection: Connection) -> None:
    for setting in ("fsync", "synchronous_commit"):
        if connection.execute(text(f"SHOW {setting}")).scalar() == "off":
            msg = f"PostgreSQL has {setting} off: acknowledged commits can be lost; turn it on"
            raise StoreError(msg)
    if connection.execute(text("SHOW transaction_read_only")).scalar() == "on":
        msg = (
            "PostgreSQL is read-only (a standby, or default_transaction_read_only is on): nothing "
            "was sent; name the primary in RECON_DATABASE_URL, or turn the setting off, and start "
            "again"
        )
        raise StoreError(msg)


def _sqlite_engine(url: URL) -> Engine:
    engine = create_engine(
        url.set(drivername=DRIVER),
        connect_args={"timeout": BUSY_TIMEOUT_MS / 1000},
        execution_options={"compiled_cache": COMPILED},
        # `writing` and `reading` end every transaction themselves, so no reset is needed.
        pool_reset_on_return=None,
    )

    @event.listens_for(engine, "connect")
    def _set_pragmas(dbapi_connection: Any, _record: object) -> None:
        # The driver runs SELECTs outside any transaction by default; we issue BEGIN ourselves.
        dbapi_connection.isolation_level = None
        for pragma, value in SQLITE_PRAGMAS.items():
            dbapi_connection.execute(f"PRAGMA {pragma} = {value}")

    return engine


def _postgresql_engine(url: URL) -> Engine:
    return create_engine(
        url,
        isolation_level="READ COMMITTED",
        pool_pre_ping=True,
        connect_args={"connect_timeout": CONNECT_TIMEOUT_SECONDS},
    )


@contextmanager
def _translated(path: Path | None) -> Iterator[None]:
    """Translate driver errors to StoreError with advice; `path` is a SQLite database's file."""
    try:
        yield
    except OperationalError as error:
        cause = str(error.orig).strip().splitlines()[0] if error.orig else str(error)
        if "locked" in cause or "busy" in cause or "lock timeout" in cause:
            waited = TURN_TIMEOUT_SECONDS if "timeout" in cause else BUSY_TIMEOUT_MS // 1000
            msg = (
                f"the database is locked by another process (waited {waited} s); "
                "nothing of this step was written: end the other process and start again"
            )
            raise StoreLockedError(msg) from error
        if path is not None and "readonly" in cause:
            msg = (
                f"the database {path} can only be read ({cause}); nothing of this step was "
                "written: let this login write the file and its folder, and start again"
            )
            raise StoreError(msg) from error
        msg = f"the database cannot be used: {cause}"
        raise StoreError(msg) from error
    except DatabaseError as error:
        cause = str(error.orig).strip().splitlines()[0] if error.orig else type(error).__name__
        if "malformed" in cause or "not a database" in cause:
            msg = (
                f"the database file is damaged ({cause}); nothing was sent and nothing was "
                "written: keep the file, restore the newest backup and start the night again"
            )
            raise StoreError(msg) from error
        if getattr(error.orig, "sqlstate", "") == MAY_NOT:
            msg = (
                f"the login of RECON_DATABASE_URL has not the rights: {cause}; nothing of this "
                "step was written. The owner of the database runs what `recon db upgrade --grants` "
                "prints"
            )
            raise StoreError(msg) from error
        msg = f"the database refused a statement: {type(error).__name__}"
        raise StoreError(msg) from error
    except SQLAlchemyError as error:
        msg = f"the database refused a statement: {type(error).__name__}"
        raise StoreError(msg) from error


DRIVER = "sqlite+recon"
"""The name of the dialect in a URL."""
STATEMENTS_MAX = 2_000
"""Maximum number of cached compiled statements; a night uses some hundred."""
COMPILED: LRUCache[Any, Any] = LRUCache(STATEMENTS_MAX)
"""Shared value of `create_engine`'s execution option `compiled_cache`."""


class OwnSqlite(SQLiteDialect_pysqlite):
    """The driver's dialect with all instances equal, so that they share compiled statements."""

    supports_statement_cache = True

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


registry.register(DRIVER.replace("+", "."), __name__, OwnSqlite.__name__)
