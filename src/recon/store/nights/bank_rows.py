"""Bank statements in the database, each file read only once for all accounts that it serves.

A file is read again when more of its entries may be in scope; then its newest reading counts.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pyarrow as pa
from sqlalchemy import ColumnElement, Connection, Select, func, insert, select

from recon.matching.frames.bank_sources import (
    BANK_ENTRY_COLUMNS,
    DETAILS,
    BankSource,
    BankStatement,
    RefusedBankFile,
)
from recon.matching.frames.sources import SETTLEMENT_COLUMNS
from recon.model.nights import Account
from recon.model.terms import SourceFile, SourceKind
from recon.store.database.bulk_rows import add_rows, frame_of_select, rows_of
from recon.store.nights import facts_rows, order_rows, settlement_rows
from recon.store.nights.facts_rows import BEFORE_ALL, StorageOf
from recon.store.nights.runs import Run
from recon.store.nights.settlement_rows import Settlements
from recon.store.schema import (
    bank_entry,
    bank_statement,
    order_facts_account,
    order_file,
    reject,
)
from recon.store.schema.columns import among, in_account, in_accounts

NAME_PREFIX = "bank/"
"""Prefix of stored file names; names of files in an inbox contain no slash."""

_FIELDS = tuple(field.name for field in fields(BankStatement))
_OF_BANKS = order_file.c.kind == SourceKind.BANK
_OF_ENTRY = tuple(name for name in BANK_ENTRY_COLUMNS if name != "statement")


def name_of(bank: str, label: str, /) -> str:
    """Return the name under which a file of a bank is stored."""
    return f"{NAME_PREFIX}{bank}/{label}"


def save_file(
    connection: Connection,
    run: Run,
    *,
    read: BankSource,
    source: SourceFile,
    bank: str,
    at: datetime,
) -> None:
    """Store a file's statements, and the entries that `read` contains."""
    known = last_settlement(connection)
    new = source.rows_accepted
    file_id = order_rows.insert_file(connection, run, source=source, new=new, at=at)
    rows = rows_of(read.entries)
    for number, statement in enumerate(read.statements):
        given = {**asdict(statement), "days_given": int(statement.days_given)}
        inserted = connection.execute(
            insert(bank_statement)
            .values(**given, file_id=file_id, bank=bank, known_file=known)
            .returning(bank_statement.c.statement_id)
        )
        own = inserted.scalar_one()
        mine = [row for row in rows if row["statement"] == number]
        cells = [{name: row[name] for name in _OF_ENTRY} | {"statement_id": own} for row in mine]
        add_rows(connection, bank_entry, cells)


def note_known(connection: Connection, run: Run, *, source: SourceFile, at: datetime) -> None:
    """Add a file that the night of another account read to this account's files."""
    repeat = source.rows_accepted
    order_rows.insert_file(connection, run, source=source, repeat=repeat, at=at)


def newest_of(connection: Connection, run: Run, *, name: str) -> SourceFile | None:
    """Return the newest file that the account stored under a name; None if there is none."""
    return _newest_source(connection, *in_account(order_file, run), order_file.c.name == name)


def read_before(connection: Connection, *, name: str, sha256: str) -> SourceFile | None:
    """Return the newest file with this name and hash of which any account stored statements."""
    return _newest_source(
        connection,
        _OF_BANKS,
        order_file.c.name == name,
        order_file.c.sha256 == sha256,
        order_file.c.file_id.in_(select(bank_statement.c.file_id)),
    )


def _newest_source(connection: Connection, *which: ColumnElement[bool]) -> SourceFile | None:
    query = select(order_file).where(*which).order_by(order_file.c.file_id.desc()).limit(1)
    row = connection.execute(query).mappings().first()
    return None if row is None else order_rows.source_file(row)


def last_settlement(connection: Connection) -> int:
    """Return the newest settlement or notification file, which may put bank entries in scope."""
    files = select(func.max(order_file.c.file_id)).where(order_file.c.kind == SourceKind.SETTLEMENT)
    notified = select(func.max(bank_statement.c.file_id)).where(bank_statement.c.form == DETAILS)
    return max(connection.execute(query).scalar() or 0 for query in (files, notified))


def reported_since(
    connection: Connection, *, bank: str, sha256: str, accounts: Collection[Account]
) -> bool:
    """Return whether later settlement or notification files may put entries of a file in scope."""
    mine = select(func.max(bank_statement.c.known_file), func.max(bank_statement.c.to_date)).where(
        bank_statement.c.bank == bank, bank_statement.c.sha256 == sha256
    )
    known, to_date = connection.execute(mine).one()
    if known is None:
        return False
    reported_until = datetime.fromisoformat(to_date).replace(tzinfo=UTC) if to_date else BEFORE_ALL
    of = order_facts_account.c
    batch = _settling(accounts).where(of.file_id > known, of.ordered_from <= reported_until)
    notified = select(bank_statement.c.statement_id).where(
        bank_statement.c.form == DETAILS,
        bank_statement.c.bank == bank,
        bank_statement.c.file_id > known,
        bank_statement.c.sha256 != sha256,
    )
    return any(
        connection.execute(query.limit(1)).first() is not None for query in (batch, notified)
    )


def batch_ids(
    connection: Connection, *, accounts: Collection[Account], storages: StorageOf
) -> set[str]:
    """Return the ids of all batches in the settlement files of these accounts.

    Raises:
        ArchiveError: A file cannot be read, or its hash differs from the stored one.
    """
    named = set[str]()
    for account in accounts:
        numbers = connection.execute(_settling([account])).scalars()
        files = facts_rows.of_files(connection, {*numbers})
        batches = settlement_rows.batches_of(files, account=account, storages=storages)
        named |= {batch_id for _, batch_id in batches}
    return named


def _settling(accounts: Collection[Account]) -> Select[tuple[int]]:
    """Select the settlement files, of any inbox, with lines of some accounts."""
    return (
        select(order_facts_account.c.file_id)
        .join(order_file, order_file.c.file_id == order_facts_account.c.file_id)
        .where(
            order_file.c.kind == SourceKind.SETTLEMENT,
            in_accounts(order_facts_account, accounts),
        )
    )


def payouts_of(
    connection: Connection,
    run: Run,
    *,
    accounts: Collection[Account],
    storages: StorageOf,
    until: int | None,
) -> pd.DataFrame:
    """Return SETTLEMENT_COLUMNS of these accounts' payout rows in the newest settlement files.

    Raises:
        ArchiveError: A file cannot be read, or its hash differs from the stored one.
    """
    every = [settlement_rows.NOTHING.paid_out]
    for merchant_id, account_id in accounts:
        of = replace(run, merchant_id=merchant_id, account_id=account_id)
        lines = Settlements(connection, of, storages, until).counted()
        every.append(lines.paid_out.select(every[0].column_names).cast(every[0].schema))
    table = pa.concat_tables(every).sort_by([("file_id", "ascending"), ("row", "ascending")])
    return settlement_rows.frame_of_lines(table.select([*SETTLEMENT_COLUMNS]))


def settled_to(
    connection: Connection, *, accounts: Collection[Account], until: int | None
) -> dict[Account, str]:
    """Return the business date of each account's newest settlement file that was read whole."""
    file = order_file
    query = (
        select(file.c.merchant_id, file.c.account_id, func.max(file.c.business_date).label("day"))
        .where(
            file.c.kind == SourceKind.SETTLEMENT,
            file.c.rows_accepted + file.c.rows_skipped >= file.c.rows_read,
            *(() if until is None else (file.c.file_id <= until,)),
        )
        .group_by(file.c.merchant_id, file.c.account_id)
    )
    days = {
        (row.merchant_id, row.account_id): row.day.isoformat() for row in connection.execute(query)
    }
    return {account: day for account, day in days.items() if account in {*accounts}}


def source_of(
    connection: Connection,
    run: Run,
    *,
    banks: Collection[str],
    until: int | None,
) -> BankSource | None:
    """Return what these banks reported up to file `until`; None if they reported nothing."""
    files = _files(banks, until=until)
    every = connection.execute(
        select(bank_statement)
        .where(bank_statement.c.file_id.in_(files), bank_statement.c.bank.in_([*banks]))
        .order_by(bank_statement.c.statement_id)
    ).mappings()
    statements = [*_not_superseded([*every], arrived=_arrivals(connection, until=until))]
    rejected = [*_refused(connection, run, banks=banks, until=until)]
    if not statements and not rejected:
        return None
    numbers = {row["statement_id"]: number for number, row in enumerate(statements)}
    entries = frame_of_select(
        connection,
        select(bank_entry.c.statement_id.label("statement"), *(bank_entry.c[n] for n in _OF_ENTRY))
        .where(among(connection, bank_entry.c.statement_id, [*numbers]))
        .order_by(bank_entry.c.entry_id),
        columns=BANK_ENTRY_COLUMNS,
    )
    entries["statement"] = entries["statement"].map(numbers).astype("int64")
    return BankSource(entries, tuple(map(_statement, statements)), tuple(rejected))


def not_right(connection: Connection, run: Run) -> set[str]:
    """Return names of the account's bank files whose newest version is missing or was refused."""
    newest = order_rows.newest_files(run, _OF_BANKS)
    rows = connection.execute(
        select(order_file.c.name).where(
            order_file.c.file_id.in_(newest), order_file.c.rows_rejected > 0
        )
    )
    return {*rows.scalars()}


def _refused(
    connection: Connection, run: Run, *, banks: Collection[str], until: int | None
) -> Iterable[RefusedBankFile]:
    newest = order_rows.newest_files(run, _OF_BANKS, until=until)
    rows = connection.execute(
        select(order_file.c.name, reject.c.reason)
        .join(reject, reject.c.file_id == order_file.c.file_id)
        .where(order_file.c.file_id.in_(newest))
        .order_by(order_file.c.name)
    )
    names = tuple(name_of(bank, "") for bank in banks)
    return [RefusedBankFile(row.name, row.reason) for row in rows if row.name.startswith(names)]


def _files(banks: Collection[str], *, until: int | None) -> Select[Any]:
    """Select the newest reading of each content."""
    read = () if until is None else (bank_statement.c.file_id <= until,)
    return (
        select(func.max(bank_statement.c.file_id))
        .where(bank_statement.c.bank.in_([*banks]), *read)
        .group_by(bank_statement.c.bank, bank_statement.c.sha256)
    )


def _arrivals(connection: Connection, *, until: int | None) -> dict[tuple[str, str], int]:
    """Return the last arrival of each name and content, in any account's night."""
    file = order_file
    query = (
        select(file.c.name, file.c.sha256, func.max(file.c.file_id).label("last"))
        .where(
            _OF_BANKS,
            *(() if until is None else (file.c.file_id <= until,)),
        )
        .group_by(file.c.name, file.c.sha256)
    )
    return {(row.name, row.sha256): row.last for row in connection.execute(query)}


def _not_superseded(
    rows: Sequence[Mapping[Any, Any]], *, arrived: Mapping[tuple[str, str], int]
) -> Iterator[Mapping[Any, Any]]:
    """Yield the statements whose days no newer content of the same file covers.

    A bank may correct a file under its own name, or give every day's file the same name; so only
    statements of days that the newer content covers are replaced.
    """
    versions = [
        arrived.get((name_of(row["bank"], row["source"]), row["sha256"]), row["file_id"])
        for row in rows
    ]
    by_file: dict[tuple[str, str, str], list[tuple[int, Mapping[Any, Any]]]] = {}
    for version, row in zip(versions, rows, strict=True):
        by_file.setdefault((row["bank"], row["source"], row["iban"]), []).append((version, row))
    for version, row in zip(versions, rows, strict=True):
        file = by_file[row["bank"], row["source"], row["iban"]]
        if not any(newer > version and _supersedes(own, of=row) for newer, own in file):
            yield row


def _supersedes(newer: Mapping[Any, Any], *, of: Mapping[Any, Any]) -> bool:
    """Return whether a statement covers days of another, and is not merely its continuation."""
    goes_on = of["closing"] == newer["opening"] and of["to_date"] <= newer["from_date"]
    overlaps = newer["from_date"] <= of["to_date"] and of["from_date"] <= newer["to_date"]
    return bool(overlaps and not goes_on)


def _statement(row: Mapping[Any, Any]) -> BankStatement:
    cells = {name: row[name] for name in _FIELDS}
    return BankStatement(**{**cells, "days_given": bool(cells["days_given"])})
