"""Rows of the archived facts files (orders, settlement lines), attested by the history."""

import hashlib
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection, Select, and_, func, insert, or_, select

from recon.archive.facts_files import (
    FactsFile,
    facts_at,
    whole_facts,
    write_facts,
)
from recon.archive.rows_file import sorted_keys
from recon.archive.schemas import FACTS, ORDER_FACTS, SETTLED_FACTS, FileSchema
from recon.archive.storage import MAKE_WRITABLE, Storage
from recon.model.errors import ArchiveError, ConfigurationError, HistoryBrokenError
from recon.model.nights import Account
from recon.model.terms import SourceKind
from recon.proof.night_tables import table_of_schema
from recon.proof.sql_session import SqlError, SqlSession, reading
from recon.proof.totals_in_sql import FACTS_MB
from recon.store.database.bulk_rows import read
from recon.store.database.engine import Turn, join_turn
from recon.store.database.history import Event, append, links_of
from recon.store.database.record import data_of
from recon.store.nights.runs import Run, counting
from recon.store.schema import order_facts, order_facts_account, order_file
from recon.store.schema.columns import in_account, in_accounts

ENTITY = "facts"
SAVED = "kept"


@dataclass(frozen=True, slots=True)
class OfAccountRows:
    """The rows that a facts file has of one account."""

    merchant_id: str
    account_id: str
    row_count: int
    ordered_from: datetime
    """Earliest order; for settlement lines the first settlement day, at midnight in UTC."""
    ordered_to: datetime


@dataclass(frozen=True, slots=True)
class StoredFacts:
    """The facts file of one order file or settlement file."""

    folder: str
    rows_sha256: str
    size_bytes: int
    row_count: int
    sender: str = ""
    """Of orders: inbox and name, or all names that are one source. A newer file of a sender
    replaces what its older files contain of the same order."""
    file_id: int = 0
    """Set when its file is stored."""
    name: str = ""
    """Name of the file that arrived."""
    inbox: Account = ("", "")
    """The account whose inbox it came to, and whose archive holds its facts file."""
    kind: SourceKind = SourceKind.ORDERS
    source_sha256: str = ""
    """Hash of the file that arrived."""
    run_id: str = ""
    """The run that read it."""

    @property
    def rows(self) -> FactsFile:
        """Reference to its archived rows."""
        return FactsFile(self.folder, self.rows_sha256, 0)


_OWN_COLUMNS = ("folder", "rows_sha256", "size_bytes", "row_count", "sender")
_OF_ACCOUNT = tuple(OfAccountRows.__dataclass_fields__)
Span = tuple[datetime, datetime | None]
"""From an instant (inclusive) until another (exclusive); None: without an end."""
BEFORE_ALL = datetime.min.replace(tzinfo=UTC)
EVER: Sequence[Span] = ((BEFORE_ALL, None),)
_FACTS: Select[Any] = (
    select(
        order_facts,
        order_file.c.name,
        order_file.c.merchant_id,
        order_file.c.account_id,
        order_file.c.kind,
        order_file.c.sha256,
        order_file.c.run_id,
    )
    .join(order_file, order_file.c.file_id == order_facts.c.file_id)
    .order_by(order_facts.c.file_id)
)
_OF_ORDERS = order_file.c.kind == SourceKind.ORDERS
_INSTANT = pa.timestamp("us", "UTC")


class Written(NamedTuple):
    """A facts file on disk; it counts once the database has its hash."""

    facts: StoredFacts
    accounts: Sequence[OfAccountRows]

    def by(self, sender: str) -> "Written":
        """Return a copy with the sender set (see StoredFacts)."""
        return self._replace(facts=replace(self.facts, sender=sender))


_KINDS: Mapping[str, tuple[str, str, str]] = {
    ORDER_FACTS.name: ("orders", "ordered_at", "the rows of an order file"),
    SETTLED_FACTS.name: ("settlement", "settled_on", "the lines of a settlement file"),
}
"""Schema -> folder of the files, column with a row's instant or day, and a text for messages."""


def written(
    day: date,
    parts: Iterable[pd.DataFrame],
    *,
    schema: FileSchema,
    storage: Storage,
) -> Written | None:
    """Write rows as one facts file and count them by account; returns None without rows.

    Args:
        day: The business date of the run that reads the file.
        parts: The rows, as frames; those of orders are sorted by key within each frame.
        schema: Of orders, or of settlement lines.
        storage: The archive.

    Raises:
        ArchiveError: The archive cannot be written.
        OutputError: There is no space for temporary files.
    """
    kind, when, what = _KINDS[schema.name]
    names = [*schema.columns.names]
    filled = (part[names] for part in parts if not part.empty)
    tables = (table_of_schema(part, schema=schema.columns).combine_chunks() for part in filled)
    begins = next(tables, None)
    if begins is None:
        return None
    accounts: dict[Account, OfAccountRows] = {}

    def counted() -> Iterator[pa.Table]:
        for table in chain([begins], tables):
            at = table[when]
            if not pa.types.is_timestamp(at.type):
                day = pc.strptime(at.cast(pa.string()), format="%Y-%m-%d", unit="us")
                at = day.cast(_INSTANT)
            names = ["merchant_id", "account_id"]
            rows = pa.table({**{name: table[name].cast(pa.string()) for name in names}, "at": at})
            sums = [("at", each) for each in ("count", "min", "max")]
            for row in rows.group_by(names, use_threads=False).aggregate(sums).to_pylist():
                account, first, last = (row[names[0]], row[names[1]]), row["at_min"], row["at_max"]
                known = accounts.get(account, OfAccountRows(*account, 0, first, last))
                accounts[account] = OfAccountRows(
                    *account,
                    known.row_count + row["at_count"],
                    min(known.ordered_from, first),
                    max(known.ordered_to, last),
                )
            is_orders = schema is ORDER_FACTS
            yield table.take(sorted_keys(table, names=schema.key)) if is_orders else table

    doing = (
        f"{what} could not be kept, so nothing of it was stored and nothing was sent: "
        f"{MAKE_WRITABLE}"
    )
    folder = f"{FACTS}/{kind}/{day:%Y/%m}"
    file = write_facts(storage, counted(), folder=folder, schema=schema, doing=doing)
    facts = StoredFacts(
        folder=folder,
        rows_sha256=file.sha256,
        size_bytes=file.size_bytes,
        row_count=sum(each.row_count for each in accounts.values()),
    )
    return Written(facts, [*accounts.values()])


def save(connection: Connection, written: Written, *, file_id: int, at: datetime) -> None:
    """Store the facts file of a stored file, and record it in the history."""
    values = {name: getattr(written.facts, name) for name in _OWN_COLUMNS}
    connection.execute(insert(order_facts).values(file_id=file_id, **values))
    rows = [{name: getattr(each, name) for name in _OF_ACCOUNT} for each in written.accounts]
    connection.execute(insert(order_facts_account), [{"file_id": file_id, **row} for row in rows])
    # Files have a lock of their own, so movements of money do not wait; this needs the other too.
    join_turn(connection, Turn.JOURNAL)
    attested = {**values, "accounts": _digest(rows)}
    append(connection, [Event(ENTITY, f"{ENTITY}-{file_id}", SAVED, attested)], at=at)


def save_again(
    connection: Connection, known: int, *, file_id: int, sender: str, at: datetime
) -> None:
    """Store that the rows of file `known` arrived again, as the rows of another file."""
    of_file = order_facts_account.c.file_id == known
    accounts = read(connection, OfAccountRows, order_facts_account, of_file)
    for facts in of_files(connection, [known]):
        save(connection, Written(facts, accounts).by(sender), file_id=file_id, at=at)


def newest_of_sender(
    connection: Connection, run: Run, *, sender: str
) -> tuple[str, datetime, date] | None:
    """Return the name, newest order time and business date of a sender's last file, or None."""
    query = (
        select(
            order_file.c.name,
            func.max(order_facts_account.c.ordered_to),
            order_file.c.business_date,
        )
        .join(order_facts, order_facts.c.file_id == order_file.c.file_id)
        .join(order_facts_account, order_facts_account.c.file_id == order_file.c.file_id)
        .where(order_facts.c.sender == sender, *counting(run))
        .group_by(order_file.c.file_id, order_file.c.name, order_file.c.business_date)
        .order_by(order_file.c.file_id.desc())
        .limit(1)
    )
    row = connection.execute(query).first()
    return None if row is None else (row[0], row[1], row[2])


def every(connection: Connection) -> list[StoredFacts]:
    """Return the facts of all files, oldest first."""
    return _read(connection, _FACTS)


def of_account(
    connection: Connection,
    run: Run,
    *,
    accounts: Collection[Account],
    spans: Sequence[Span] = EVER,
    until: int | None = None,
    behind: int = 0,
) -> list[StoredFacts]:
    """Return files with orders of the accounts that may fall within a span, oldest first.

    Args:
        connection: Of the database.
        run: The run for which they must count (see `runs.counting`).
        accounts: Merchant and account ids.
        spans: Of order times.
        until: The last order file that counts; None for all.
        behind: Only order files with a larger number.
    """
    if not spans:
        return []
    table = order_facts_account.c
    overlapping = (
        and_(table.ordered_to >= since, *([] if before is None else [table.ordered_from < before]))
        for since, before in spans
    )
    mine = in_accounts(order_facts_account, sorted(accounts)), or_(*overlapping)
    having = select(table.file_id).where(*mine)
    query = _FACTS.where(
        *(_OF_ORDERS, order_facts.c.file_id.in_(having), order_facts.c.file_id > behind),
        *counting(run),
    )
    if until is not None:
        query = query.where(order_facts.c.file_id <= until)
    return _read(connection, query)


def of_files(connection: Connection, file_ids: Collection[int]) -> list[StoredFacts]:
    """Return the facts of some files, oldest first."""
    return _read(connection, _FACTS.where(order_facts.c.file_id.in_([*file_ids])))


def of_night(connection: Connection, run: Run) -> list[StoredFacts]:
    """Return the facts of all versions of the night's files, each content once."""
    # A file already known under another name has no accepted rows; its facts are there.
    own = order_file.c.business_date == run.business_date, order_file.c.rows_accepted > 0
    return _read(connection, _FACTS.where(*in_account(order_file, run), *own))


def accounts_of(connection: Connection, file_ids: Collection[int]) -> set[Account]:
    """Return the accounts in the rows of some order files."""
    table = order_facts_account.c
    rows = connection.execute(
        select(table.merchant_id, table.account_id).where(table.file_id.in_([*file_ids])).distinct()
    )
    return {(row.merchant_id, row.account_id) for row in rows}


def changed(connection: Connection) -> Iterator[str]:
    """Yield a problem for each file whose facts differ from what the history attests."""
    attested: dict[str, list[Mapping[str, Any]]] = {}
    for link in links_of(connection, entity=ENTITY):
        attested.setdefault(link.entity_id, []).append(data_of(link.text))
    accounts: dict[int, list[Mapping[Any, Any]]] = {}
    for row in connection.execute(select(order_facts_account)).mappings():
        accounts.setdefault(row["file_id"], []).append(row)
    for row in connection.execute(select(order_facts).order_by("file_id")).mappings():
        now = {name: row[name] for name in _OWN_COLUMNS}
        now["accounts"] = _digest(accounts.pop(row["file_id"], ()))
        if attested.pop(f"{ENTITY}-{row['file_id']}", None) != [now]:
            yield _not_attested(row["file_id"])
    yield from map(_not_attested, sorted(accounts))
    for entity_id in attested:
        number = entity_id.removeprefix(f"{ENTITY}-")
        yield f"the history knows rows of file {number}, its table does not: they were taken"


def _not_attested(file_id: int) -> str:
    return (
        f"the rows of file {file_id} are not those that the history bound: they were "
        "changed past the journal"
    )


def refuse_changed(connection: Connection) -> None:
    """Refuse to compare facts that the history does not attest.

    Raises:
        HistoryBrokenError: It names the first file concerned.
    """
    if problem := next(changed(connection), ""):
        msg = f"the history does not hold: {problem}, so the night is not compared"
        raise HistoryBrokenError(msg)


def _digest(accounts: Iterable[Mapping[Any, Any]]) -> str:
    """Return a hash of a file's rows by account."""
    rows = sorted("\x1f".join(str(row[name]) for name in _OF_ACCOUNT) for row in accounts)
    return hashlib.sha256("\x1e".join(rows).encode()).hexdigest()


def _read(connection: Connection, query: Select[Any]) -> list[StoredFacts]:
    return [
        StoredFacts(
            **{name: row[name] for name in _OWN_COLUMNS},
            file_id=row["file_id"],
            name=row["name"],
            inbox=(row["merchant_id"], row["account_id"]),
            kind=SourceKind(row["kind"]),
            source_sha256=row["sha256"],
            run_id=row["run_id"],
        )
        for row in connection.execute(query).mappings()
    ]


StorageOf = Callable[[Account], Storage]
"""Returns the archive of an account's files."""
Bools = npt.NDArray[np.bool_]
UNREAD = "the rows of files could not be read, so the night goes no further"
WHAT_IS_STORED = "what was done before is kept: start the night again"
FEW_ROWS = 50_000
"""Below this total number of rows all files are read at once, without a narrower query."""
LOST = "rows of an order file are not as they were kept"


ANSWERS_STORED = 6
"""Cache size; a night asks the same questions several times."""
_ANSWERED: dict[Hashable, Any] = {}
"""The newest answers; they hold no reference to an archive."""
Answer = TypeVar("Answer")


def answered(question: Hashable, *, ask: Callable[[], Answer]) -> Answer:
    """Return a cached answer about facts; files never change and are identified by their hashes."""
    if question not in _ANSWERED:
        found = ask()
        if len(_ANSWERED) >= ANSWERS_STORED:
            _ANSWERED.pop(next(iter(_ANSWERED)))
        _ANSWERED[question] = found
    known: Answer = _ANSWERED[question]
    return known


@contextmanager
def in_sql(
    files: Sequence[StoredFacts], *, storages: StorageOf
) -> Iterator[tuple[SqlSession, list[str]]]:
    """Open a DuckDB session that can read these files only; yields it with the files' paths.

    Table `arrivals` has number, path, name and sender of each; variable `paths` has all paths.

    Raises:
        ArchiveError: A file cannot be read, its hash differs from the stored one, or a limit of
            memory or time was reached.
    """
    locations = ((storages(file.inbox), file.rows) for file in files)
    with facts_at(locations, doing=UNREAD) as found:
        folders = dict.fromkeys(path.resolve().parent for path in found)
        paths = [str(path.resolve()) for path in found]
        columns = {
            "file_id": [file.file_id for file in files],
            "path": paths,
            "name": [file.name for file in files],
            "sender": [file.sender for file in files],
        }
        try:
            with reading(*folders, memory_mb=FACTS_MB) as sql:
                sql.register("arrivals", pa.table(columns))
                sql.execute("SET VARIABLE paths = $paths", {"paths": [*dict.fromkeys(paths)]})
                yield sql, paths
        except SqlError as error:
            msg = f"{UNREAD}: {error.reason}; {WHAT_IS_STORED}"
            raise ArchiveError(msg) from error


def stored_rows(files: Sequence[StoredFacts], *, storages: StorageOf) -> dict[int, int]:
    """Return the number of rows that each file really contains.

    Raises:
        ArchiveError: As `in_sql`.
    """
    if not files:
        return {}
    with in_sql(files, storages=storages) as (sql, _):
        counts = sql.rows(
            "SELECT file_id, count(*) FROM read_parquet(getvariable('paths'), filename = true)"
            " JOIN arrivals ON path = filename GROUP BY file_id"
        )
    return dict(counts)


def facts_problems(files: Sequence[StoredFacts], *, storages: StorageOf) -> Iterator[str]:
    """Yield a message for each of these files that is not as it was written."""
    for inbox, rows in dict.fromkeys((file.inbox, file.rows) for file in files):
        yield from problems_of(rows, inbox=inbox, storages=storages)


def problems_of(file: FactsFile, *, inbox: Account, storages: StorageOf) -> Iterator[str]:
    """Yield a message if a facts file of an inbox is not as it was written."""
    try:
        whole_facts(storages(inbox), file, doing=LOST)
    except (ArchiveError, ConfigurationError) as error:
        yield str(error)
