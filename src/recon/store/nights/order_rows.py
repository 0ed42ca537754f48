"""Order files in the database: every content that arrived, with its rows as a file of facts.

Nothing is decided here: which rows stand is looked up in all that arrived (`standing_rows`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

import pandas as pd
import pyarrow as pa
from sqlalchemy import ColumnElement, Connection, func, insert, or_, select

from recon.archive.facts_files import write_facts
from recon.archive.rows_file import sorted_keys
from recon.archive.schemas import FACTS, ORDER_FACTS
from recon.archive.storage import MAKE_WRITABLE, Storage
from recon.matching.frames.sources import LoadCounts
from recon.model.words import Reject, SourceFile, SourceKind
from recon.proof.night_tables import table_of_schema
from recon.store.database.frames import rows_of
from recon.store.nights import facts_rows, quarantine_rows
from recon.store.nights.bound_actions import Arriving
from recon.store.nights.facts_rows import Account, OfAccountRows, StoredFacts
from recon.store.nights.runs import OF_DAYS, Run, counting
from recon.store.schema import order_action, order_file, reject
from recon.store.schema.columns import REASON_CHARACTERS

NOTHING = LoadCounts(0, 0, 0, 0)
Parts = Callable[[], Iterable[tuple[pd.DataFrame, pd.DataFrame]]]
"""Orders and actions of an order file, some rows at a time; as often as it is asked."""
UNWRITTEN = (
    "the rows of an order file could not be kept, so nothing of it was stored and nothing was "
    f"sent: {MAKE_WRITABLE}"
)


@dataclass(frozen=True, slots=True)
class WrittenOrders:
    """An order file whose rows are written; it counts once the database has their hash."""

    source: SourceFile
    facts: StoredFacts | None
    """None: it has no row that could be read."""
    accounts: tuple[OfAccountRows, ...]


def written(
    run: Run, *, source: SourceFile, parts: Parts, sender: str, storage: Storage
) -> WrittenOrders:
    """Write the accepted rows of an order file, each part of it by key.

    `sender` says whose inbox it lay in: accounts that share one are one sender.

    Raises:
        ArchiveError: the archive cannot be written.
        OutputError: there is no room to lay the rows aside.
    """
    if not source.rows_accepted:
        return WrittenOrders(source, None, ())
    accounts: dict[Account, OfAccountRows] = {}

    def tables() -> Iterator[pa.Table]:
        schema = ORDER_FACTS.columns
        for orders, _ in parts():
            table = table_of_schema(orders[[*schema.names]], schema=schema)
            _count_in(accounts, table)
            yield table.take(sorted_keys(table, names=ORDER_FACTS.key))

    folder = f"{FACTS}/orders/{run.business_date:%Y/%m}"
    rows = write_facts(storage, tables(), folder=folder, schema=ORDER_FACTS, doing=UNWRITTEN)
    facts = StoredFacts(
        folder=folder,
        rows_sha256=rows.sha256,
        size_bytes=rows.size_bytes,
        row_count=sum(each.row_count for each in accounts.values()),
        sender=sender,
    )
    return WrittenOrders(source, facts, tuple(accounts.values()))


def _count_in(accounts: dict[Account, OfAccountRows], table: pa.Table) -> None:
    """Count the rows of each account, and from when to when they were ordered."""
    names = ORDER_FACTS.key[:2]
    columns = {name: table[name].cast(pa.string()) for name in names}
    rows = pa.table({**columns, "at": table["ordered_at"]})
    sums = rows.group_by([*names], use_threads=False).aggregate(
        [("at", "min"), ("at", "max"), ("at", "count")]
    )
    for row in sums.to_pylist():
        account = row[names[0]], row[names[1]]
        new = OfAccountRows(*account, row["at_count"], row["at_min"], row["at_max"])
        accounts[account] = new.with_more(accounts.get(account))


def known_file(connection: Connection, run: Run, *, name: str, sha256: str) -> SourceFile | None:
    """The file of this account with this content, if that is what stands now.

    Content that came back after a newer version of the same name is a new version again; under a
    new name it is known while another name, which was read itself, has it as its newest version.
    What a dry run read is known to dry runs only: it binds nothing.
    """
    newest = (
        select(func.max(order_file.c.file_id))
        .where(
            order_file.c.merchant_id == run.merchant_id,
            order_file.c.account_id == run.account_id,
            order_file.c.kind.not_in(OF_DAYS),
            *counting(run),
        )
        .group_by(order_file.c.name)
    )
    alike = or_(order_file.c.name == name, order_file.c.sha256 == sha256)
    query = select(order_file).where(order_file.c.file_id.in_(newest), alike)
    rows = connection.execute(query.order_by(order_file.c.file_id))
    files = [_source_file(row) for row in rows.mappings()]
    named = next((file for file in files if file.name == name), None)
    if named is not None:
        return named if named.sha256 == sha256 else None
    return next(iter(files), None)


def is_copy(file: SourceFile) -> bool:
    """Whether its content was known under another name when it arrived."""
    return 0 < file.rows_read == file.rows_skipped and not file.skipped_by


def save_copy(
    connection: Connection, run: Run, *, of: SourceFile, name: str, at: datetime
) -> SourceFile:
    """Note that known content arrived under another name: what it asks for counts once."""
    copy = replace(
        of,
        name=name,
        rows_accepted=0,
        rows_rejected=0,
        rows_skipped=of.rows_read,
        rows_unassigned=0,
        skipped_by="",
    )
    file_id = insert_file(connection, run, source=copy, at=at)
    facts_rows.save_again(connection, run, name=of.name, file_id=file_id, at=at)
    return copy


def save_file(
    connection: Connection,
    run: Run,
    *,
    orders: WrittenOrders,
    parts: Parts,
    rejects: Sequence[Reject],
    at: datetime,
) -> None:
    """Store one order file whole, whose rows are written."""
    source = orders.source
    accepted = source.rows_accepted
    counts = LoadCounts(accepted, accepted, 0, 0)
    file_id = insert_file(connection, run, source=source, at=at, counts=counts)
    asked = Arriving()
    _save_parts(connection, parts, file_id=file_id, asked=asked, at=at)
    insert_rejects(connection, rejects, run_id=run.run_id, file_id=file_id)
    if orders.facts is not None:
        facts_rows.save(connection, orders.facts, file_id=file_id, accounts=orders.accounts, at=at)
    asked.bind(connection, file_id=file_id, source=source, at=at)


def save_unread(
    connection: Connection,
    run: Run,
    *,
    rejects: Sequence[Reject],
    source: SourceFile,
    at: datetime,
) -> None:
    """Store a file of which no row was read: what stands for it, and nothing else."""
    file_id = insert_file(connection, run, source=source, at=at)
    insert_rejects(connection, rejects, run_id=run.run_id, file_id=file_id)


def save_instruction_file(
    connection: Connection,
    run: Run,
    *,
    actions: Sequence[Mapping[str, Any]],
    rejects: Sequence[Reject],
    source: SourceFile,
    at: datetime,
) -> None:
    """Store one instruction file whole; every accepted row is new, planning knows repeats."""
    counts = LoadCounts(source.rows_accepted, source.rows_accepted, 0, 0)
    file_id = insert_file(connection, run, source=source, at=at, counts=counts)
    rows = [{**action, "file_id": file_id} for action in actions]
    if rows:
        connection.execute(insert(order_action), rows)
    insert_rejects(connection, rejects, run_id=run.run_id, file_id=file_id)
    asked = Arriving()
    asked.take(rows)
    asked.bind(connection, file_id=file_id, source=source, at=at)


def files_of_night(
    connection: Connection, run: Run, *, until: int | None = None
) -> list[tuple[SourceFile, LoadCounts]]:
    """The files first read for this business date, newest version of each name."""
    query = select(order_file).where(*of_night(run, until=until))
    rows = connection.execute(query.order_by(order_file.c.name, order_file.c.version)).mappings()
    newest = {row["name"]: row for row in rows}
    return [
        (
            _source_file(row),
            LoadCounts(
                accepted=row["rows_accepted"],
                new=row["rows_new"],
                repeat=row["rows_repeat"],
                superseding=0,
            ),
        )
        for row in newest.values()
    ]


def versions_until(
    connection: Connection, run: Run, *, until: int, whole_file: str
) -> list[tuple[SourceFile, date, bool]]:
    """Every version of each order file up to a night, its night, and whether it was refused whole.

    `whole_file` is the column of the reject that stands for a file that could not be read.
    """
    refused = select(reject.c.file_id).where(reject.c.column == whole_file)
    rows = connection.execute(
        select(order_file, order_file.c.file_id.in_(refused).label("is_refused"))
        .where(
            order_file.c.merchant_id == run.merchant_id,
            order_file.c.account_id == run.account_id,
            order_file.c.kind == SourceKind.ORDERS.value,
            order_file.c.business_date <= run.business_date,
            order_file.c.file_id <= until,
            *counting(run),
        )
        .order_by(order_file.c.file_id)
    )
    return [
        (_source_file(row), row["business_date"], bool(row["is_refused"]))
        for row in rows.mappings()
    ]


def rejects_of_night(connection: Connection, run: Run, *, until: int | None = None) -> list[Reject]:
    """Rejected rows of the newest version of each file of this business date, and of the ledger."""
    newest = (
        select(func.max(order_file.c.file_id))
        .where(*of_night(run, until=until))
        .group_by(order_file.c.name)
    )
    rows = connection.execute(
        select(reject)
        .where(
            reject.c.file_id.in_(newest)
            | (reject.c.file_id.is_(None) & (reject.c.run_id == run.run_id))
        )
        .order_by(reject.c.reject_id)
    ).mappings()
    names = tuple(name for name in Reject.__dataclass_fields__ if name not in {"kind", "batch_id"})
    return [
        Reject(kind=SourceKind(row["kind"]), **{name: row[name] for name in names}) for row in rows
    ]


def insert_rejects(
    connection: Connection, rejects: Iterable[Reject], *, run_id: str, file_id: int | None
) -> None:
    """Keep rows that could not be read; texts are cut to what the columns hold."""
    rows = [
        {
            "file_id": file_id,
            "run_id": run_id,
            "kind": item.kind.value,
            "source": item.source,
            "line": item.line,
            "column": item.column[:100],
            "reason": item.reason[:REASON_CHARACTERS],
            "value": item.value[:REASON_CHARACTERS],
            "merchant_id": item.merchant_id[:64],
            "account_id": item.account_id[:64],
            "order_no": item.order_no[:64],
            "entry_type": item.entry_type,
            "currency": item.currency,
            "amount": item.amount,
            "batch_id": item.batch_id[:64],
        }
        for item in rejects
    ]
    if rows:
        connection.execute(insert(reject), rows)


def of_night(run: Run, *, until: int | None) -> tuple[ColumnElement[bool], ...]:
    """The files first read for this business date."""
    read = () if until is None else (order_file.c.file_id <= until,)
    return (
        order_file.c.merchant_id == run.merchant_id,
        order_file.c.account_id == run.account_id,
        order_file.c.business_date == run.business_date,
        *counting(run),
        *read,
    )


def _next_version(connection: Connection, run: Run, *, name: str) -> int:
    newest = connection.execute(
        select(func.max(order_file.c.version)).where(
            order_file.c.merchant_id == run.merchant_id,
            order_file.c.account_id == run.account_id,
            order_file.c.name == name,
        )
    ).scalar()
    return (newest or 0) + 1


def insert_file(
    connection: Connection,
    run: Run,
    *,
    source: SourceFile,
    at: datetime,
    counts: LoadCounts = NOTHING,
) -> int:
    """Note the next version of a file; its number."""
    version = _next_version(connection, run, name=source.name)
    inserted = connection.execute(
        insert(order_file)
        .values(
            merchant_id=run.merchant_id,
            account_id=run.account_id,
            business_date=run.business_date,
            run_id=run.run_id,
            kind=source.kind.value,
            name=source.name,
            version=version,
            sha256=source.sha256,
            size_bytes=source.size_bytes,
            rows_read=source.rows_read,
            rows_accepted=source.rows_accepted,
            rows_rejected=source.rows_rejected,
            rows_skipped=source.rows_skipped,
            rows_unassigned=source.rows_unassigned,
            skipped_by=source.skipped_by,
            rows_new=counts.new,
            rows_repeat=counts.repeat,
            read_at=at,
        )
        .returning(order_file.c.file_id)
    )
    return int(inserted.scalar_one())


def _save_parts(
    connection: Connection, parts: Parts, *, file_id: int, asked: Arriving, at: datetime
) -> None:
    """Store what the rows of a file ask for, and which rejected rows they deliver."""
    arrived = quarantine_rows.arriving(connection, file_id=file_id)
    for orders, actions in parts():
        _insert_actions(connection, rows_of(actions), file_id=file_id, asked=asked)
        arrived.look(orders)
    quarantine_rows.note_delivered(connection, arrived.delivered, file_id=file_id, at=at)


def _insert_actions(
    connection: Connection, rows: Sequence[Mapping[str, Any]], *, file_id: int, asked: Arriving
) -> None:
    """Store the actions of one part."""
    actions = [
        {**{name: row[name] for name in _ACTION_COLUMNS}, "file_id": file_id} for row in rows
    ]
    if actions:
        connection.execute(insert(order_action), actions)
        asked.take(actions)


_ACTION_COLUMNS = (
    "merchant_id",
    "account_id",
    "order_no",
    "transaction_id",
    "currency",
    "amount",
    "action",
    "action_amount",
    "action_reason",
    "request_id",
    "line",
    "status",
    "expected_captured_amount",
    "refund_amount",
)


def _source_file(row: Mapping[Any, Any]) -> SourceFile:
    names = tuple(name for name in SourceFile.__dataclass_fields__ if name != "kind")
    return SourceFile(kind=SourceKind(row["kind"]), **{name: row[name] for name in names})
