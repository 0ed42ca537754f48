"""Settlement files as the database knows them: what the newest version of each of them says.

A file is kept as an order file is, under a name that no order file can have. A newer version of a
name takes the place of the older one whole. A line that several files tell, to the last column,
counts as often as one of them does (`settled_lines.repeats_of`): that is looked up in what arrived.
The lines lie in files of facts; the database has what they come to, and a few of them.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import ColumnElement, Connection, func, select, true, union

from recon.archive.facts_files import write_facts
from recon.archive.schemas import FACTS, SETTLED_FACTS
from recon.archive.storage import MAKE_WRITABLE, Storage
from recon.instructions.resolution import SettledLine
from recon.matching.frames.sources import LoadCounts
from recon.model.words import Reject, SourceFile
from recon.proof.night_tables import table_of_schema
from recon.store.nights import facts_rows, order_rows, settled_lines, settled_sums
from recon.store.nights.facts_rows import Account, OfAccountRows, StoredFacts
from recon.store.nights.order_facts import StorageOf
from recon.store.nights.runs import Run
from recon.store.nights.settled_lines import Repeats
from recon.store.nights.settled_sums import (
    CHARGED_BACK,
    STORED,
    Sum,
    newest,
    of_account,
)
from recon.store.schema import order_file, reject, settled_sum

NAME_PREFIX = "settlement/"
"""Before the name of a settlement file: no file of an inbox has a slash in its name."""


UNWRITTEN = (
    "the lines of a settlement file could not be kept, so nothing of it was stored and nothing was "
    f"sent: {MAKE_WRITABLE}"
)


@dataclass(frozen=True, slots=True)
class SettledFacts:
    """Lines that were written, and what the database says of them."""

    facts: StoredFacts
    sums: Sequence[Sum]
    rows: pa.Table
    """The lines that the database has, too."""


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
    whole = table_of_schema(lines[[*STORED]], schema=SETTLED_FACTS.columns).combine_chunks()
    folder = f"{FACTS}/settlement/{run.business_date:%Y/%m}"
    rows = write_facts(storage, [whole], folder=folder, schema=SETTLED_FACTS, doing=doing)
    facts = StoredFacts(
        folder=folder,
        rows_sha256=rows.sha256,
        size_bytes=rows.size_bytes,
        row_count=whole.num_rows,
    )
    return SettledFacts(facts, settled_sums.sums_of(whole), settled_sums.rows_of_lines(whole))


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
    settled_sums.save_rows(connection, settled.rows, file_id=file_id)
    settled_sums.save_sums(connection, settled.sums, file_id=file_id)
    facts_rows.save(
        connection,
        settled.facts,
        file_id=file_id,
        accounts=_accounts(settled.sums),
        at=at,
        beside=settled_sums.digests_of(settled.sums, settled.rows.to_pylist()),
    )


def _accounts(sums: Sequence[Sum]) -> list[OfAccountRows]:
    """What a file has of each account."""
    accounts: dict[Account, OfAccountRows] = {}
    for row in sums:
        account = str(row["merchant_id"]), str(row["account_id"])
        day = datetime.combine(date.fromisoformat(str(row["settled_on"])), time(), UTC)
        lines = OfAccountRows(*account, int(row["line_count"]), day, day)
        accounts[account] = lines.with_more(accounts.get(account))
    return [*accounts.values()]


def taken(connection: Connection, repeats: Repeats) -> dict[str, LoadCounts]:
    """Name of a file of the night -> how many of its lines another file told as well."""
    repeating = facts_rows.of_files(connection, {*repeats.rows["file_id"].to_pylist()})
    counts = {}
    for file in repeating:
        twice = int(repeats.of(file).sum())
        counts[file.name] = LoadCounts(file.row_count, file.row_count - twice, twice, 0)
    return counts


def days_told(connection: Connection, run: Run, *, until: int | None = None) -> tuple[str, str]:
    """The first and the last day that any line of the account tells of; "" without lines."""
    days = (func.min(settled_sum.c.settled_on), func.max(settled_sum.c.settled_on))
    first, last = connection.execute(select(*days).where(*of_account(run, until=until))).one()
    return first or "", last or ""


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
    connection: Connection, run: Run, *, siblings: Collection[str], until: int | None = None
) -> frozenset[tuple[str, str]]:
    """Currency and batch of lines of the account that still cannot be read; "" where a cell cannot.

    A line that names no batch may be of any that its file tells of, too. Lines of `siblings`, the
    merchant's other accounts, are their business; `until` is the last file that counts.
    """
    unread = _unread(run, siblings=siblings, until=until)
    own = select(reject.c.currency, reject.c.batch_id).where(*unread)
    of_files = (
        select(reject.c.currency, settled_sum.c.batch_id)
        .join(settled_sum, settled_sum.c.file_id == reject.c.file_id)
        .where(*unread, reject.c.batch_id == "", *of_account(run, until=until))
    )
    rows = connection.execute(union(own, of_files))
    return frozenset((currency, batch) for currency, batch in rows)


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


def order_nos_told(
    connection: Connection, run: Run, *, since: str, storages: StorageOf
) -> Iterator[pa.ChunkedArray]:
    """Order numbers of the lines settled since a day, some at a time; one for each such line.

    Raises:
        ArchiveError: a file cannot be read, or is not the one whose hash the database has.
    """
    for table in settled_lines.settled_since(
        connection, run, since=since, columns=["order_no"], storages=storages
    ):
        yield table["order_no"].filter(pc.not_equal(table["order_no"], ""))


def unnamed_transactions(
    connection: Connection, run: Run, *, since: str, storages: StorageOf
) -> set[str]:
    """Transactions of the lines settled since a day that name no order; see `order_nos_told`."""
    names = ["order_no", "transaction_id"]
    unnamed = set[str]()
    for table in settled_lines.settled_since(
        connection, run, since=since, columns=names, storages=storages
    ):
        rows = pc.equal(table["order_no"], "")
        unnamed.update(table["transaction_id"].filter(rows).to_pylist())
    return unnamed - {""}


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
    wanted = {
        "transaction_id": pa.array(sorted({*transactions}), pa.string()),
        "own_reference": pa.array(sorted({*references}), pa.string()),
    }
    files = settled_sums.files_of(connection, run, until=None, where=true())
    repeats = settled_lines.repeats_of(connection, run, storages=storages)
    named = settled_lines.lines_named(
        connection, run, wanted=wanted, files=files, repeats=repeats, storages=storages
    )
    return [SettledLine(**row) for row in named.select([*_EVIDENCE]).to_pylist()]


def charged_back(connection: Connection, run: Run) -> dict[tuple[str, str], int]:
    """Transaction and currency -> minor units that the account's files show as charged back."""
    line = settled_sums.lines_once(newest(run, until=None)).c
    rows = connection.execute(
        select(line.transaction_id, line.currency, func.sum(line.gross).label("gross"))
        .where(
            line.merchant_id == run.merchant_id,
            line.account_id == run.account_id,
            line.entry_type.in_(CHARGED_BACK),
        )
        .group_by(line.transaction_id, line.currency)
    )
    return {(row.transaction_id, row.currency): -int(row.gross) for row in rows}
