"""The sandbox's SQLite database: one connection, one writer, one transaction per request.

Everything a request changes is committed before its reply leaves, or not at all.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, fields
from importlib.resources import files
from operator import attrgetter
from pathlib import Path
from typing import Any

from recon.model.errors import ConfigurationError
from recon.model.words import GatewayState
from recon.sandbox.ground.book_records import Effect, LoggedRequest, Payment, RowReply

APPLICATION_ID = 0x52534258
"""Marks an SQLite file as a sandbox's state."""

BUSY_MILLISECONDS = 5_000
KEYS_PER_SELECT = 500
PAYMENT_COLUMNS = ", ".join(field.name for field in fields(Payment))
EFFECT_COLUMNS = ", ".join(field.name for field in fields(Effect))
_PAYMENT_CELLS = attrgetter(*(field.name for field in fields(Payment)))
_EFFECT_CELLS = attrgetter(*(field.name for field in fields(Effect)))
_TABLES = (
    *("paid_out", "contract", "subscription", "payment_detail", "token"),
    *("late_request", "draw", "request_row", "request", "effect", "payment", "note"),
    *("notification_attempt", "notification", "handed_out"),
)


class Book:
    """The open database of one sandbox."""

    def __init__(self, state: Path | None) -> None:
        """Open or create the state; None keeps it in memory.

        Raises:
            ConfigurationError: the file is not a sandbox's state or cannot be opened.
        """
        self.name = str(state) if state else "memory"
        self.after_commit: Callable[[], None] = _nothing
        """Called when a transaction was committed; the courier of notifications wakes by it."""
        try:
            self._connection = _open(state)
        except sqlite3.Error as error:
            msg = f"{self.name} cannot be used as a sandbox's state ({error}); name another file"
            raise ConfigurationError(msg) from error

    def close(self) -> None:
        """Let the database go."""
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, with the write lock held from the start."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.rollback()
            raise
        self._connection.commit()
        self.after_commit()

    def clear(self) -> None:
        """Forget everything; the one way in which effects may leave the ledger."""
        self.write_note("resetting", value="yes")
        for table in _TABLES:
            self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names

    def note(self, name: str) -> str:
        """A small fact about the state, "" when it was never written."""
        row = self._connection.execute("SELECT value FROM note WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else ""

    def write_note(self, name: str, *, value: str) -> None:
        """Remember a small fact."""
        self._connection.execute("INSERT OR REPLACE INTO note VALUES (?, ?)", (name, value))

    def next_number(self, name: str) -> int:
        """The next of a row of numbers, from 1."""
        number = int(self.note(name) or 0) + 1
        self.write_note(name, value=str(number))
        return number

    def select(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Rows of a query written in this package."""
        return self._connection.execute(statement, parameters).fetchall()

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> None:
        """A change written in this package."""
        self._connection.execute(statement, parameters)

    def payment(self, transaction_id: str) -> Payment | None:
        """One payment by its transaction."""
        payments = self.payments("transaction_id", keys=(transaction_id,))
        return payments[0] if payments else None

    def payments(self, column: str, *, keys: Sequence[str]) -> list[Payment]:
        """Payments whose `transaction_id` or `order_no` is one of the keys, oldest first."""
        rows: list[Any] = []
        for start in range(0, len(keys), KEYS_PER_SELECT):
            some = keys[start : start + KEYS_PER_SELECT]
            marks = ", ".join("?" * len(some))
            statement = f"SELECT {PAYMENT_COLUMNS} FROM payment WHERE {column} IN ({marks})"  # noqa: S608
            rows += self.select(f"{statement} ORDER BY created_at, transaction_id", some)
        return [_payment(row) for row in rows]

    def every_payment(self) -> Iterator[Payment]:
        """All payments, oldest first."""
        statement = f"SELECT {PAYMENT_COLUMNS} FROM payment ORDER BY created_at, transaction_id"  # noqa: S608
        yield from map(_payment, self._connection.execute(statement))

    def write_payments(self, payments: Iterable[Payment]) -> None:
        """Add payments, or replace those already there."""
        marks = ", ".join("?" * len(fields(Payment)))
        self._connection.executemany(
            f"INSERT OR REPLACE INTO payment ({PAYMENT_COLUMNS}) VALUES ({marks})",  # noqa: S608
            map(_PAYMENT_CELLS, payments),
        )

    def append_effects(self, effects: Iterable[Effect]) -> None:
        """Add to the truth."""
        marks = ", ".join("?" * len(fields(Effect)))
        self._connection.executemany(
            f"INSERT INTO effect ({EFFECT_COLUMNS}) VALUES ({marks})",  # noqa: S608
            map(_EFFECT_CELLS, effects),
        )

    def effects(self, *, after: int, limit: int) -> list[tuple[int, Effect]]:
        """Effects in commit order behind a position, each with its own position."""
        statement = f"SELECT position, {EFFECT_COLUMNS} FROM effect WHERE position > ?"  # noqa: S608
        rows = self.select(f"{statement} ORDER BY position LIMIT ?", (after, limit))
        return [(row[0], Effect(*row[1:])) for row in rows]

    def write_request(self, logged: LoggedRequest, *, rows: Iterable[RowReply]) -> None:
        """Log a request and what its rows were told."""
        self.execute(
            "INSERT OR REPLACE INTO request VALUES (?, ?, ?, ?, ?, ?, ?)",
            astuple(logged),
        )
        self._connection.executemany(
            "INSERT OR REPLACE INTO request_row VALUES (?, ?, ?, ?, ?, ?)",
            [
                (logged.request_log_id, position, *astuple(row))
                for position, row in enumerate(rows, start=1)
            ],
        )


def _nothing() -> None:
    """What follows a commit unless somebody wants to know."""


def _open(state: Path | None) -> sqlite3.Connection:
    connection = sqlite3.connect(
        state or ":memory:", isolation_level=None, check_same_thread=False, cached_statements=256
    )
    connection.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
    connection.execute("PRAGMA synchronous = NORMAL")  # survives a killed process
    known = connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    if not known and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        connection.close()
        msg = "it is another program's database"
        raise sqlite3.DatabaseError(msg)
    connection.execute("PRAGMA journal_mode = WAL")
    schema = files("recon.sandbox").joinpath("schema.sql").read_text()
    marked = f"PRAGMA application_id = {APPLICATION_ID};"
    connection.executescript(f"BEGIN IMMEDIATE; {schema} {marked} COMMIT;")
    return connection


def _payment(row: Sequence[Any]) -> Payment:
    payment = Payment(*row)
    object.__setattr__(payment, "state", GatewayState(payment.state))
    return payment
