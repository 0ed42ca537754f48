"""What an order file comes to beside all that stands, with its files of facts written.

Nothing of it counts before the database has their hashes: that is done in the turn of order files,
and only if no other file came meanwhile.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import pyarrow as pa
from sqlalchemy import Connection, select

from recon.archive.facts_files import FactsFile, write_facts
from recon.archive.facts_schemas import FOLDER, ORDER_FACTS, ORDER_GONE
from recon.archive.storage import MAKE_WRITABLE, Storage
from recon.matching.frames.sources import LoadCounts
from recon.model.words import SourceFile
from recon.proof.night_tables import table_of_schema
from recon.store.nights import facts_rows, order_facts
from recon.store.nights.facts_keys import files_having, write_keys
from recon.store.nights.facts_rows import Account, OfAccountRows, StoredFacts
from recon.store.nights.order_facts import StorageOf
from recon.store.nights.order_keys import Hashes, hashes_of
from recon.store.nights.order_merge import KeptRows, KnownRows, Merge, repeated
from recon.store.nights.runs import Run
from recon.store.schema import order_file

Parts = Callable[[], Iterable[tuple[pd.DataFrame, pd.DataFrame]]]
"""Orders and actions of an order file, some rows at a time; as often as it is asked."""
UNWRITTEN = (
    "the rows of an order file could not be kept, so nothing of it was stored and nothing was "
    f"sent: {MAKE_WRITABLE}"
)
_SCHEMA = ORDER_FACTS.columns
EVER = (datetime.min.replace(tzinfo=UTC), None)


@dataclass(frozen=True, slots=True)
class Planned:
    """What a file comes to."""

    source: SourceFile
    counts: LoadCounts
    facts: StoredFacts | None
    """None: every row of it stood already."""
    accounts: tuple[OfAccountRows, ...]
    last_file: int
    """The newest order file with facts that it was held against."""


def plan(
    connection: Connection,
    run: Run,
    *,
    source: SourceFile,
    parts: Parts,
    storages: StorageOf,
    until: int | None = None,
) -> Planned:
    """Hold a file's rows against all that stand, and write its files of facts.

    `until` is the last file that it is held against, where it is read again: then the rows
    themselves say which keys came before, for files of keys may be lost, too.

    Raises:
        ArchiveError: the archive cannot be written, or an earlier file cannot be read.
        OutputError: there is no room to lay the rows aside.
    """
    last = facts_rows.last_file(connection)
    arriving, places = _arriving(parts)
    if not arriving.size:
        return Planned(source, LoadCounts(0, 0, 0, 0), None, (), last)
    twice = repeated(arriving)
    if until is None:
        files, before = files_having(connection, places, hashes=arriving, storages=storages)
    else:
        files = facts_rows.of_account(connection, places, spans=[EVER], until=until)
        before = arriving
    known = _known(connection, files, hashes=before, until=until, storages=storages)
    if until is not None:
        before = np.unique(known.hashes)
    merge = Merge(
        earlier=_versions(connection, source.name),
        known=known,
        odd=np.union1d(before, twice),
        twice=twice,
    )
    del arriving
    facts = _write(merge, run, parts=parts, storages=storages)
    new = merge.accepted - merge.repeat - merge.superseding
    counts = LoadCounts(merge.accepted, new, merge.repeat, merge.superseding)
    return Planned(source, counts, facts, tuple(merge.rows.accounts.values()), last)


def is_stale(connection: Connection, planned: Planned) -> bool:
    """Whether another file came since, so that it is to be planned anew."""
    return facts_rows.last_file(connection) != planned.last_file


def _arriving(parts: Parts) -> tuple[Hashes, set[Account]]:
    """The hashes of all keys, sorted, and the accounts that they are of."""
    hashes: list[Hashes] = []
    places: set[Account] = set()
    for orders, _ in parts():
        table = table_of_schema(orders[[*_KEY.names]], schema=_KEY)
        hashes.append(hashes_of(table))
        pairs = table.select(["merchant_id", "account_id"]).group_by(["merchant_id", "account_id"])
        places.update(tuple(row.values()) for row in pairs.aggregate([]).to_pylist())
    whole = np.concatenate(hashes) if hashes else np.empty(0, np.int64)
    whole.sort()
    return whole, places


_KEY = pa.schema([_SCHEMA.field(name) for name in ("merchant_id", "account_id", "order_no")])


def _known(
    connection: Connection,
    files: Sequence[StoredFacts],
    *,
    hashes: Hashes,
    until: int | None,
    storages: StorageOf,
) -> KnownRows:
    tables = []
    for file, table, stands in order_facts.standing(
        connection, files, storages=storages, columns=_SCHEMA.names, until=until
    ):
        rows = np.flatnonzero(stands & np.isin(hashes_of(table), hashes))
        chosen = table.take(pa.array(rows))
        numbers = pa.array(np.full(rows.size, file.file_id))
        chosen = chosen.append_column("file_id", numbers)
        tables.append(chosen.append_column("row", pa.array(rows)))
    return KnownRows.of(tables)


def _versions(connection: Connection, name: str) -> frozenset[int]:
    rows = connection.execute(select(order_file.c.file_id).where(order_file.c.name == name))
    return frozenset(rows.scalars())


def _write(merge: Merge, run: Run, *, parts: Parts, storages: StorageOf) -> StoredFacts | None:
    storage = storages((run.merchant_id, run.account_id))
    folder = folder_of(run.business_date)
    whole = (table_of_schema(orders[[*_SCHEMA.names]], schema=_SCHEMA) for orders, _ in parts())
    tables = merge.kept(whole)
    first = next(tables, None)
    if first is None:
        return None
    every = itertools.chain([first], tables)
    rows = write_facts(storage, every, folder=folder, schema=ORDER_FACTS, doing=UNWRITTEN)
    return with_marks(rows, kept=merge.rows, gone=merge.gone, storage=storage)


def folder_of(business_date: date) -> str:
    """Where the facts of a night's order files lie, below the archive."""
    return f"{FOLDER}/orders/{business_date:%Y/%m}"


def with_marks(
    rows: FactsFile, *, kept: KeptRows, gone: Iterable[tuple[int, int]], storage: Storage
) -> StoredFacts:
    """Write what stands beside a file of rows: its keys, and whose place they took.

    Raises:
        ArchiveError: the archive cannot be written.
        OutputError: there is no room to lay the rows aside.
    """
    hashes = np.concatenate(kept.hashes)
    keys = write_keys(storage, hashes, folder=rows.folder, doing=UNWRITTEN)
    places = sorted(gone)
    written = [rows, keys]
    if places:
        columns = [pa.array(each, pa.int64()) for each in zip(*places, strict=True)]
        table = pa.table(columns, schema=ORDER_GONE.columns)
        written.append(
            write_facts(storage, [table], folder=rows.folder, schema=ORDER_GONE, doing=UNWRITTEN)
        )
    return StoredFacts(
        folder=rows.folder,
        rows_sha256=rows.sha256,
        keys_sha256=keys.sha256,
        gone_sha256=written[2].sha256 if places else "",
        size_bytes=sum(each.size_bytes for each in written),
        row_count=kept.count,
        gone_from=places[0][0] if places else 0,
        gone_to=places[-1][0] if places else 0,
    )
