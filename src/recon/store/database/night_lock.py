"""Locks for one run per account and one approvals service, released when their process ends.

SQLite: a file lock next to the database. PostgreSQL: a session advisory lock on a dedicated
connection. Neither stops a paused process that continues later; therefore a takeover never leads to
a resend (rows in flight become in doubt, see `settlement`).
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from filelock import FileLock, Timeout
from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from recon.model.errors import NightHeldError, StoreError
from recon.privacy.own_files import OWNER
from recon.store.database.engine import Store
from recon.store.schema.columns import Owner, account_of

PROC = Path("/proc")
START_FIELD = 19
"""Index of the start time (ticks since boot) in /proc/<pid>/stat, counted after the name."""
ENDED = "ZX"
"""States in that file of a process that has ended."""
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Process:
    """A process, identified uniquely across reboots and namespaces."""

    boot_id: str
    namespace: str
    pid: int
    started_ticks: int

    @classmethod
    def this(cls, *, proc: Path = PROC) -> Self:
        """Return the current process, with what the system does not report marked as unknown."""
        pid, boot_id, namespace, started_ticks = os.getpid(), "", "", -1
        with suppress(OSError):
            boot_id = (proc / "sys" / "kernel" / "random" / "boot_id").read_text().strip()
        with suppress(OSError):
            namespace = str((proc / "self" / "ns" / "pid").readlink())
        with suppress(OSError):
            started_ticks = _status_of(pid, proc=proc)[1]
        return cls(boot_id or UNKNOWN, namespace or UNKNOWN, pid, started_ticks)

    @classmethod
    def parsed(cls, text: str) -> Self | None:
        """Parse the text of `str()`; None if it is not one."""
        try:
            boot_id, namespace, pid, ticks = text.split(" ")
            return cls(boot_id, namespace, int(pid), int(ticks))
        except ValueError:
            return None

    def __str__(self) -> str:
        return f"{self.boot_id} {self.namespace} {self.pid} {self.started_ticks}"

    def is_alive_here(self, *, proc: Path = PROC) -> bool:
        """Return whether this process is alive on this machine, even if it is suspended.

        False for the current process, and for one of another or an unknown machine or namespace.
        True if its state cannot be read: a wrong "ended" would let two processes send.
        """
        here = type(self).this(proc=proc)
        machine = {self.boot_id, self.namespace}
        if self == here or UNKNOWN in machine or machine != {here.boot_id, here.namespace}:
            return False
        try:
            state, started_ticks = _status_of(self.pid, proc=proc)
        except (FileNotFoundError, ProcessLookupError):
            return False
        except OSError:
            return True
        # A zombie (ended, but not waited for yet) counts as ended.
        return started_ticks == self.started_ticks and state not in ENDED


def _status_of(pid: int, *, proc: Path) -> tuple[str, int]:
    """Return a process's state and its start in ticks since boot, from a single read."""
    fields = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return fields[0], int(fields[START_FIELD])


LOCK_SPACE = 7_260_002
"""First half of the key of a PostgreSQL advisory lock; the second half identifies the account."""

DESK_SPACE = 7_260_003
"""As LOCK_SPACE, for the one approvals service of a database."""

CLOSING_SPACE = 7_260_004
"""As LOCK_SPACE, for the process that writes the folder of a closed month."""

_FILES = {LOCK_SPACE: "", DESK_SPACE: "desk", CLOSING_SPACE: "close-"}
"""Prefix of the lock files next to a SQLite database."""

HOLDER_LOST_MS = 2_000
"""How long PostgreSQL may take to release the lock of a killed process."""


@contextmanager
def account_lock(store: Store, owner: Owner, *, space: int = LOCK_SPACE) -> Iterator[None]:
    """Hold the lock of an account; that of CLOSING_SPACE lets its nights run on.

    Raises:
        NightHeldError: Another process holds it.
    """
    with _lock(store, space, of=owner):
        yield


@contextmanager
def desk_lock(store: Store) -> Iterator[Callable[[], bool]]:
    """Hold the lock of the database's approvals service; yields a check that it is still held.

    Raises:
        NightHeldError: Another process holds it.
    """
    with _lock(store, DESK_SPACE) as connection:
        yield lambda: connection is None or _is_open(connection)


@contextmanager
def _lock(store: Store, space: int, *, of: Owner | None = None) -> Iterator[Connection | None]:
    """Hold a lock; yields the connection that holds it on PostgreSQL, None on SQLite."""
    digest = b"" if of is None else _digest_of(of)
    if store.is_sqlite:
        name = f"{_FILES[space]}{digest.hex()[:16]}"
        with _file_lock(store, name=name):
            yield None
    else:
        with _advisory_lock(store, space=space, key=_number_of(digest)) as connection:
            yield connection


def lock_is_held(connection: Connection, owner: Owner) -> bool:
    """Return whether some process still holds the account's lock; a file lock cannot be lost.

    The server releases an advisory lock with its connection, which the holder notices only by
    asking. The run row tells who holds it: a process that takes over closes the old run first.
    """
    if connection.dialect.name != "postgresql":
        return True
    number = _number_of(_digest_of(owner))
    # pg_locks shows both halves of the key as unsigned numbers.
    locks = connection.execute(
        text(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted "
            "AND classid::bigint = :space AND objid::bigint = :key AND objsubid = 2 "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        ),
        {"space": LOCK_SPACE, "key": number % 2**32},
    )
    return bool(locks.scalar_one())


def _digest_of(owner: Owner) -> bytes:
    return hashlib.sha256("\x1f".join(account_of(owner)).encode()).digest()


def _number_of(digest: bytes) -> int:
    return int.from_bytes(digest[:4], signed=True)


@contextmanager
def _file_lock(store: Store, *, name: str) -> Iterator[None]:
    lock = FileLock(f"{store.path}.{name}.lock", mode=OWNER, thread_local=False)
    try:
        lock.acquire(blocking=False)
    except Timeout as error:
        raise NightHeldError from error
    except OSError as error:
        msg = f"the database's lock file cannot be written ({error.strerror}): make it writable"
        raise StoreError(msg) from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _advisory_lock(store: Store, *, space: int, key: int) -> Iterator[Connection]:
    # A dedicated connection: a transaction pooler in between would give the session to others.
    connection = store.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    try:
        # The server needs a moment to notice that the connection of a killed process is gone.
        connection.execute(text(f"SET lock_timeout = '{HOLDER_LOST_MS}ms'"))
        connection.execute(
            text("SELECT pg_advisory_lock(:space, :key)"), {"space": space, "key": key}
        )
    except OperationalError as error:
        _unlock(connection)
        raise NightHeldError from error
    try:
        yield connection
    finally:
        _unlock(connection)


def _is_open(connection: Connection) -> bool:
    """Return whether the session that took a lock is open; with it the server drops the lock."""
    try:
        connection.execute(text("SELECT 1"))
    except SQLAlchemyError:
        return False
    return True


def _unlock(connection: Connection) -> None:
    """Close the connection for good; the server drops its locks with it."""
    connection.detach()
    connection.close()
