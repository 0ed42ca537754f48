"""Settlement files as the database knows them: what the newest version of each of them says.

A file is kept as an order file is, under a name that no order file can have. A newer version of a
name takes the place of the older one whole. A line that several files tell, to the last column,
counts as often as one of them does (`settled_lines.counted`): that is looked up in what arrived.
The lines lie in files of facts, and nowhere else.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

import pandas as pd
import pyarrow as pa
from sqlalchemy import ColumnElement, Connection, select

from recon.archive.facts_files import write_facts
from recon.archive.schemas import FACTS, SETTLED_FACTS
from recon.archive.storage import MAKE_WRITABLE, Storage
from recon.instructions.resolution import SettledLine
from recon.matching.frames.sources import LoadCounts
from recon.model.words import Reject, SourceFile
from recon.proof.night_tables import table_of_schema
from recon.store.nights import facts_rows, order_rows, settled_lines
from recon.store.nights.facts_rows import OfAccountRows, StoredFacts
from recon.store.nights.order_facts import StorageOf
from recon.store.nights.runs import Run
from recon.store.nights.settled_lines import newest
from recon.store.schema import order_file, reject

NAME_PREFIX = "settlement/"
"""Before the name of a settlement file: no file of an inbox has a slash in its name."""


UNWRITTEN = (
    "the lines of a settlement file could not be kept, so nothing of it was stored and nothing was "
    f"sent: {MAKE_WRITABLE}"
)


@dataclass(frozen=True, slots=True)
class SettledFacts:
    """Lines that were written, and what they have of each account."""

    facts: StoredFacts
    accounts: Sequence[OfAccountRows]


def written(
    lines: pd.DataFrame, *, run: Run, storage: Storage, doing: str = UNWRITTEN
) -> SettledFacts | None:
    """Write SETTLEMENT_COLUMNS of a file's lines; None: it has none.

    Raises:
        ArchiveError: the archive cannot be written.
        OutputError: there is no room to lay the lines aside.
    """
    if lines.empty:
        return None
    schema = SETTLED_FACTS.columns
    whole = table_of_schema(lines[[*schema.names]], schema=schema).combine_chunks()
    folder = f"{FACTS}/settlement/{run.business_date:%Y/%m}"
    rows = write_facts(storage, [whole], folder=folder, schema=SETTLED_FACTS, doing=doing)
    facts = StoredFacts(
        folder=folder,
        rows_sha256=rows.sha256,
        size_bytes=rows.size_bytes,
        row_count=whole.num_rows,
    )
    return SettledFacts(facts, [*_accounts(whole)])


def _accounts(lines: pa.Table) -> Iterator[OfAccountRows]:
    """What a file has of each account."""
    names = ("merchant_id", "account_id", "settled_on")
    days = pa.table({name: lines[name].cast(pa.string()) for name in names})
    sums = days.group_by(names[:2], use_threads=False).aggregate(
        [("settled_on", each) for each in ("count", "min", "max")]
    )
    for row in sums.to_pylist():
        first, last = (
            datetime.combine(date.fromisoformat(row[f"settled_on_{each}"]), time(), UTC)
            for each in ("min", "max")
        )
        account = row["merchant_id"], row["account_id"]
        yield OfAccountRows(*account, row["settled_on_count"], first, last)


def contents(connection: Connection, run: Run) -> dict[str, str]:
    """Name -> SHA-256 of the newest version of each settlement file of the account.

    The same content under another name is stored again: days on which nothing was settled have
    files that are equal, and each of them was waited for.
    """
    file = order_file.c
    rows = connection.execute(
        select(file.name, file.sha256).where(file.file_id.in_(newest(run, until=None)))
    )
    return {row.name: row.sha256 for row in rows}


def save_file(
    connection: Connection,
    run: Run,
    *,
    source: SourceFile,
    settled: SettledFacts | None,
    rejects: Sequence[Reject],
    at: datetime,
) -> None:
    """Store one settlement file whole, whose lines are written."""
    counts = LoadCounts(source.rows_accepted, source.rows_accepted, 0, 0)
    file_id = order_rows.insert_file(connection, run, source=source, at=at, counts=counts)
    order_rows.insert_rejects(connection, rejects, run_id=run.run_id, file_id=file_id)
    if settled is None:
        return
    facts_rows.save(connection, settled.facts, file_id=file_id, accounts=settled.accounts, at=at)


def taken(connection: Connection, repeats: pa.Table) -> dict[str, LoadCounts]:
    """Name of a file of the night -> how many of its lines another file told as well."""
    twice = Counter(repeats["file_id"].to_pylist())
    return {
        file.name: LoadCounts(
            file.row_count, file.row_count - twice[file.file_id], twice[file.file_id], 0
        )
        for file in facts_rows.of_files(connection, twice)
    }


def days_told(connection: Connection, run: Run, *, until: int | None = None) -> tuple[str, str]:
    """The first and the last day that any line of the account tells of; "" without lines."""
    days = settled_lines.days_of(connection, run, until=until).values()
    return min((first for first, _ in days), default=""), max(
        (last for _, last in days), default=""
    )


def missing(
    connection: Connection, run: Run, *, whole_file: str, until: int | None = None
) -> list[tuple[date, str]]:
    """Business date and name of what was expected, or refused, and never came right; oldest first.

    `whole_file` is the column of the reject that stands for a whole file, `until` the last file
    that counts.
    """
    rows = connection.execute(
        select(order_file.c.business_date, order_file.c.name)
        .join(reject, reject.c.file_id == order_file.c.file_id)
        .where(
            order_file.c.file_id.in_(newest(run, until=until)),
            reject.c.column == whole_file,
        )
        .order_by(order_file.c.business_date, order_file.c.name)
    )
    return [(row.business_date, row.name) for row in rows]


def unread_batches(
    connection: Connection,
    run: Run,
    *,
    siblings: Collection[str],
    storages: StorageOf,
    until: int | None = None,
) -> frozenset[tuple[str, str]]:
    """Currency and batch of lines of the account that still cannot be read; "" where a cell cannot.

    A line that names no batch may be of any that its file tells of, too. Lines of `siblings`, the
    merchant's other accounts, are their business; `until` is the last file that counts.

    Raises:
        ArchiveError: a file cannot be read, or is not the one whose hash the database has.
    """
    unread = _unread(run, siblings=siblings, until=until)
    rows = connection.execute(
        select(reject.c.file_id, reject.c.currency, reject.c.batch_id).where(*unread)
    ).all()
    unnamed = {row.file_id for row in rows if not row.batch_id}
    batches = defaultdict(set)
    for file_id, batch_id in settled_lines.batches_of(
        facts_rows.of_files(connection, unnamed),
        account=(run.merchant_id, run.account_id),
        storages=storages,
    ):
        batches[file_id].add(batch_id)
    return frozenset(
        (row.currency, batch_id)
        for row in rows
        for batch_id in {row.batch_id, *(() if row.batch_id else batches[row.file_id])}
    )


def unread_lines(
    connection: Connection, run: Run, *, siblings: Collection[str], until: int | None = None
) -> list[tuple[str, int, str]]:
    """File, line and column of what `unread_batches` goes by, the oldest file first."""
    rows = connection.execute(
        select(reject.c.source, reject.c.line, reject.c.column)
        .where(*_unread(run, siblings=siblings, until=until))
        .order_by(reject.c.reject_id)
    )
    return [(row.source, row.line, row.column) for row in rows]


def _unread(
    run: Run, *, siblings: Collection[str], until: int | None
) -> tuple[ColumnElement[bool], ...]:
    """Refused lines of the newest version of each file; a file refused as a whole has none."""
    return (
        reject.c.file_id.in_(newest(run, until=until)),
        reject.c.account_id.not_in(sorted(siblings)),
        reject.c.line > 0,
    )


_EVIDENCE = tuple(SettledLine.__dataclass_fields__)


def evidence_of(
    connection: Connection,
    run: Run,
    *,
    transactions: Collection[str],
    references: Collection[str],
    storages: StorageOf,
) -> list[SettledLine]:
    """What the account's files tell of some transactions, or under some of our own references.

    Raises:
        ArchiveError: a file cannot be read, or is not the one whose hash the database has.
    """
    wanted = {"transaction_id": transactions, "own_reference": references}
    named = settled_lines.lines_named(connection, run, wanted=wanted, storages=storages)
    return [SettledLine(**row) for row in named.select([*_EVIDENCE]).to_pylist()]


def charged_back(
    connection: Connection, run: Run, *, storages: StorageOf
) -> dict[tuple[str, str], int]:
    """Transaction and currency -> minor units that the account's files show as charged back.

    Raises:
        ArchiveError: a file cannot be read, or is not the one whose hash the database has.
    """
    rows = settled_lines.counted(connection, run, storages=storages).charged_back.to_pylist()
    return {(row["transaction_id"], row["currency"]): row["amount"] for row in rows}
