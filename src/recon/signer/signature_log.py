"""Record of everything signed: limits count across restarts, and a signed row is signed again."""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from recon.model.errors import ConfigurationError
from recon.privacy.own_files import for_owner

DAY = timedelta(hours=24)
BUSY_SECONDS = 5.0
_TABLE = """
CREATE TABLE IF NOT EXISTS signed (
    account TEXT NOT NULL,
    kind TEXT NOT NULL,
    instruction_id TEXT NOT NULL,
    row_sha256 TEXT NOT NULL,
    counts_as TEXT NOT NULL,
    minor_units INTEGER NOT NULL,
    by_rule INTEGER NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (account, kind, instruction_id, row_sha256)
) STRICT
"""
_PAYMENTS = """
CREATE TABLE IF NOT EXISTS payment (
    account TEXT NOT NULL,
    kind TEXT NOT NULL,
    instruction_id TEXT NOT NULL,
    transaction_id TEXT NOT NULL,
    PRIMARY KEY (account, kind, instruction_id)
) STRICT
"""
_BY_DAY = "CREATE INDEX IF NOT EXISTS signed_by_rule ON signed (account, kind, counts_as, at)"
_KNOWN = """
SELECT 1 FROM signed WHERE account = ? AND kind = ? AND instruction_id = ? AND row_sha256 = ?
"""
_USED = """
SELECT count(*), coalesce(sum(minor_units), 0) FROM signed
WHERE account = ? AND kind IN (SELECT value FROM json_each(?)) AND counts_as = ?
  AND by_rule = 1 AND at > ?
"""
_PAYMENT = """
SELECT transaction_id FROM payment WHERE account = ? AND kind = ? AND instruction_id = ?
"""
_NAME = "INSERT OR IGNORE INTO payment VALUES (?, ?, ?, ?)"
_KEEP = "INSERT OR IGNORE INTO signed VALUES (?, ?, ?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedRow:
    """One signed row."""

    account: str
    kind: str
    instruction_id: str
    row_sha256: str
    """Hash of the row as sent on the wire."""
    counts_as: str
    """The currency, or "any"."""
    minor_units: int
    by_rule: bool
    transaction_id: str = ""
    """The payment that it moves; "" if the kind has none."""


class SignatureLog:
    """A SQLite file of the signer; one process writes it."""

    def __init__(self, path: Path) -> None:
        """Open or create the file, accessible to its owner only.

        Raises:
            ConfigurationError: It cannot be written.
        """
        try:
            os.close(for_owner(str(path), os.O_RDWR | os.O_CREAT))
            self._connection = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute(_TABLE)
            self._connection.execute(_BY_DAY)
            self._connection.execute(_PAYMENTS)
        except (OSError, sqlite3.Error) as error:
            msg = f"the signer's log {path} cannot be written ({error})"
            raise ConfigurationError(msg) from error

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Run the block in one write transaction, rolled back on errors."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def knows(self, row: SignedRow) -> bool:
        """Return whether exactly this row was signed before."""
        named = (row.account, row.kind, row.instruction_id, row.row_sha256)
        return self._connection.execute(_KNOWN, named).fetchone() is not None

    def names_another(self, row: SignedRow) -> bool:
        """Return whether this instruction was signed before for another payment.

        If people named only the order, the worker chooses the payment; it may do so only once.
        """
        named = (row.account, row.kind, row.instruction_id)
        other = self._connection.execute(_PAYMENT, named).fetchone()
        return other is not None and other[0] != row.transaction_id

    def used(
        self, account: str, *, kinds: Iterable[str], counts_as: str, at: datetime
    ) -> tuple[int, int]:
        """Return count and minor units signed of these kinds by rule in the 24 hours before."""
        values = (account, json.dumps(list(kinds)), counts_as, _instant(at - DAY))
        count, sum_ = self._connection.execute(_USED, values).fetchone()
        return int(count), int(sum_)

    def keep(self, rows: Iterable[SignedRow], *, at: datetime) -> None:
        """Store rows that are being signed."""
        rows = list(rows)
        values = [
            (
                *(row.account, row.kind, row.instruction_id, row.row_sha256),
                *(row.counts_as, row.minor_units, int(row.by_rule), _instant(at)),
            )
            for row in rows
        ]
        self._connection.executemany(_KEEP, values)
        payments = [(r.account, r.kind, r.instruction_id, r.transaction_id) for r in rows]
        self._connection.executemany(_NAME, payments)


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds")
