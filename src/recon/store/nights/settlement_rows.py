"""Settlement files as the database knows them: what the newest version of each of them says.

A file is kept as an order file is, under a name that no order file can have. A newer version of a
name takes the place of the older one whole. A line that another file told already, to the last
column, is a repeat: it is counted and not stored, so that a file sent twice settles nothing twice.
The lines lie in files of facts; the database has what they come to, and a few of them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import ColumnElement, Connection, func, select, true, union

from recon.instructions.resolution import SettledLine
from recon.matching.frames.sources import LoadCounts
from recon.model.words import Reject, SourceKind
from recon.store.nights import order_rows, settled_lines, settled_sums, settlement_plan
from recon.store.nights.order_facts import StorageOf
from recon.store.nights.runs import Run
from recon.store.nights.settled_sums import CHARGED_BACK, newest, of_account
from recon.store.nights.settlement_plan import PlannedLines, is_told_still
from recon.store.schema import order_file, reject, settled_sum, settlement_line

NAME_PREFIX = "settlement/"
"""Before the name of a settlement file: no file of an inbox has a slash in its name."""


@dataclass(frozen=True, slots=True)
class KnownFiles:
    """Settlement files of an account that were read."""

    contents: Mapping[str, str]
    """Name -> SHA-256 of its newest version.

    The same content under another name is stored again, all of it repeats: days on which nothing
    was settled have files that are equal, and each of them was waited for."""
    doubtful: frozenset[str]
    """Names of those some of whose lines another file told when they were read, and a newer version
    of that one tells some lines no more: only reading them says whether they do."""

    @classmethod
    def of(cls, connection: Connection, run: Run, *, storages: StorageOf) -> "KnownFiles":
        """As they stand now.

        Raises:
            ArchiveError: a file cannot be read, or is not the one whose hash the database has.
        """
        file = order_file.c
        rows = connection.execute(
            select(file.name, file.file_id, file.sha256, file.rows_repeat)
            .where(
                file.merchant_id == run.merchant_id,
                file.account_id == run.account_id,
                file.kind == SourceKind.SETTLEMENT.value,
            )
            .order_by(file.file_id)
        )
        versions: dict[str, list[_Version]] = defaultdict(list)
        for name, *version in rows:
            versions[name].append(_Version(*version))
        resting = {name: every[-1] for name, every in versions.items() if every[-1].repeats}
        replaced = {
            name: {
                before.file_id
                for other, every in versions.items()
                if other != name and (before := _replaced(every, since=newest.file_id))
            }
            for name, newest in resting.items()
        }
        gone = {
            file_id
            for file_id in set[int]().union(*replaced.values())
            if not is_told_still(connection, run, file_id=file_id, storages=storages)
        }
        doubtful = frozenset(name for name, before in replaced.items() if before & gone)
        return cls({name: every[-1].sha256 for name, every in versions.items()}, doubtful)

    def has(self, *, name: str, sha256: str) -> bool:
        """Whether a file of this content need not be read again."""
        return self.contents.get(name) == sha256 and name not in self.doubtful


class _Version(NamedTuple):
    """Of a settlement file."""

    file_id: int
    sha256: str
    repeats: int
    """Lines that were left out, for another file told them."""


def _replaced(versions: Sequence[_Version], *, since: int) -> _Version | None:
    """The version before a number, where the newest one has other content."""
    before = [version for version in versions if version.file_id < since]
    return before[-1] if before and before[-1].sha256 != versions[-1].sha256 else None


def save_file(
    connection: Connection,
    run: Run,
    *,
    planned: PlannedLines,
    rejects: Sequence[Reject],
    at: datetime,
) -> LoadCounts:
    """Store one settlement file whole, as it was planned (see `settlement_plan`)."""
    counts = planned.counts
    file_id = order_rows.insert_file(connection, run, source=planned.source, at=at, counts=counts)
    order_rows.insert_rejects(connection, rejects, run_id=run.run_id, file_id=file_id)
    if planned.settled is not None:
        settled_sums.save_rows(connection, planned.settled.rows, file_id=file_id)
        settlement_plan.bind(connection, planned.settled, file_id=file_id, at=at)
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


def batches_of(
    connection: Connection, run: Run, *, since: str, until: int | None
) -> frozenset[str]:
    """Batches that files of the business date tell of, all of whose lines were settled since."""
    line = settled_sum
    tonight = (
        select(line.c.batch_id)
        .join(order_file, order_file.c.file_id == line.c.file_id)
        .where(*of_account(run, until=until), order_file.c.business_date == run.business_date)
    )
    whole = (
        select(line.c.batch_id)
        .where(*of_account(run, until=until), line.c.batch_id.in_(tonight))
        .group_by(line.c.batch_id)
        .having(func.min(line.c.settled_on) >= since)
    )
    return frozenset(connection.execute(whole).scalars())


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
    named = settled_lines.lines_named(
        connection, run, wanted=wanted, files=files, storages=storages
    )
    return [SettledLine(**row) for row in named.select([*_EVIDENCE]).to_pylist()]


def charged_back(connection: Connection, run: Run) -> dict[tuple[str, str], int]:
    """Transaction and currency -> minor units that the account's files show as charged back."""
    line = settlement_line
    rows = connection.execute(
        select(line.c.transaction_id, line.c.currency, func.sum(line.c.gross).label("gross"))
        .where(*_rows_of(run), line.c.entry_type.in_(CHARGED_BACK))
        .group_by(line.c.transaction_id, line.c.currency)
    )
    return {(row.transaction_id, row.currency): -int(row.gross) for row in rows}


def _rows_of(run: Run) -> tuple[ColumnElement[bool], ...]:
    """Lines of the account in the newest version of each of its files."""
    line = settlement_line
    return (
        line.c.file_id.in_(newest(run, until=None)),
        line.c.merchant_id == run.merchant_id,
        line.c.account_id == run.account_id,
    )
