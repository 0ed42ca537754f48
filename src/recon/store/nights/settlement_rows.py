"""Settlement files in the database: what the newest version of each of them says.

A file is kept as an order file is, under a name that no order file can have. A newer version of a
name takes the place of the older one whole. A line that another file told already, to the last
column, is a repeat: it is counted and not stored, so that a file sent twice settles nothing twice.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    func,
    or_,
    select,
    union,
    update,
)

from recon.config.fee_contract import FACTS
from recon.matching.frames.sources import SETTLEMENT_COLUMNS, LoadCounts
from recon.model.words import REVERSAL_SUFFIX, EntryType, Reject, SourceFile, SourceKind
from recon.settlement.settled_evidence import SettledLine
from recon.store.database.bulk_rows import among, arrow_rows, insert_rows, with_constant
from recon.store.nights import order_rows
from recon.store.nights.runs import Run
from recon.store.schema import order_file, reject, settlement_line

NAME_PREFIX = "settlement/"
"""Before the name of a settlement file: no file of an inbox has a slash in its name."""

CHARGED_BACK = (EntryType.CHARGEBACK.value, EntryType.CHARGEBACK.value + REVERSAL_SUFFIX)
"""Their gross amounts, signed, come to what the shopper's bank took back."""

_read = order_file.alias("read_file")
_KEPT = tuple(name for name in SETTLEMENT_COLUMNS if name not in {"source", "line"})
_TOLD = tuple(name for name in _KEPT if name not in FACTS)
"""What makes a line a repeat of another; one that tells the brand as well settles nothing more."""


def is_known(connection: Connection, run: Run, *, name: str, sha256: str) -> bool:
    """Whether the newest version of this name has this content.

    The same content under another name is stored again, all of it repeats: days on which nothing
    was settled have files that are equal, and each of them was waited for.
    """
    known_sha256 = connection.execute(
        select(order_file.c.sha256).where(
            order_file.c.file_id.in_(_newest(run, until=None)), order_file.c.name == name
        )
    ).scalar_one_or_none()
    return known_sha256 == sha256


def save_file(
    connection: Connection,
    run: Run,
    *,
    lines: pd.DataFrame,
    rejects: Sequence[Reject],
    source: SourceFile,
    at: datetime,
) -> LoadCounts:
    """Store one settlement file whole: SETTLEMENT_COLUMNS of its accepted lines."""
    new = ~_told_elsewhere(connection, run, lines=lines, name=source.name)
    file_id = order_rows.insert_file(connection, run, source=source, at=at)
    kept = lines.loc[new, [*_KEPT, "line"]].reset_index(drop=True)
    rows = arrow_rows(kept, names=(*_KEPT, "line"))
    insert_rows(connection, settlement_line, with_constant(rows, name="file_id", value=file_id))
    counts = LoadCounts(len(lines), len(kept), len(lines) - len(kept), 0)
    connection.execute(
        update(order_file)
        .where(order_file.c.file_id == file_id)
        .values(rows_new=counts.new, rows_repeat=counts.repeat)
    )
    order_rows.insert_rejects(connection, rejects, run_id=run.run_id, file_id=file_id)
    return counts


def _told_elsewhere(
    connection: Connection, run: Run, *, lines: pd.DataFrame, name: str
) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Which lines another file's newest version tells, equal ones as often as it does."""
    batches = sorted({*lines["batch_id"]})
    query = select(*(settlement_line.c[column] for column in _TOLD)).where(
        settlement_line.c.file_id.in_(_newest(run, until=None, but=name)),
        among(connection, settlement_line.c.batch_id, batches),
    )
    known = Counter(tuple(row) for row in connection.execute(query))
    repeats = []
    for cells in lines[[*_TOLD]].itertuples(index=False, name=None):
        repeats.append(known[cells] > 0)
        known[cells] -= 1
    return np.array(repeats, dtype=np.bool_)


def days_told(connection: Connection, run: Run, *, until: int | None = None) -> tuple[str, str]:
    """The first and the last day that any line of the account tells of; "" without lines."""
    days = (func.min(settlement_line.c.settled_on), func.max(settlement_line.c.settled_on))
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
            order_file.c.file_id.in_(_newest(run, until=until)),
            reject.c.column == whole_file,
        )
        .order_by(order_file.c.business_date, order_file.c.name)
    )
    return [(row.business_date, row.name) for row in rows]


def unread_batches(
    connection: Connection, run: Run, *, siblings: Collection[str], until: int | None = None
) -> frozenset[str]:
    """Batches of the account of which a file still has a line that could not be read.

    A line that names no batch may be of any that its file tells of. Lines of `siblings`, the
    merchant's other accounts, are their business; `until` is the last file that counts.
    """
    unread = _unread(run, siblings=siblings, until=until)
    named = select(reject.c.batch_id).where(*unread, reject.c.batch_id != "")
    unnamed = select(reject.c.file_id).where(*unread, reject.c.batch_id == "")
    of_files = select(settlement_line.c.batch_id).where(
        *of_account(run, until=until), settlement_line.c.file_id.in_(unnamed)
    )
    return frozenset(connection.execute(union(named, of_files)).scalars())


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
        reject.c.file_id.in_(_newest(run, until=until)),
        reject.c.account_id.not_in(sorted(siblings)),
        reject.c.line > 0,
    )


def batches_of(
    connection: Connection, run: Run, *, since: str, until: int | None
) -> frozenset[str]:
    """Batches that files of the business date tell of, all of whose lines were settled since."""
    line = settlement_line
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


def order_nos_told(connection: Connection, run: Run, *, since: str) -> set[str]:
    """Order numbers of the lines settled since a day."""
    named = select(settlement_line.c.order_no).where(*_settled_since(run, since=since)).distinct()
    return {*connection.execute(named).scalars()} - {""}


def unnamed_transactions(connection: Connection, run: Run, *, since: str) -> set[str]:
    """Transactions of the lines settled since a day that name no order."""
    unnamed = select(settlement_line.c.transaction_id).where(
        *_settled_since(run, since=since),
        settlement_line.c.order_no == "",
        settlement_line.c.transaction_id != "",
    )
    return set(connection.execute(unnamed.distinct()).scalars())


def _settled_since(run: Run, *, since: str) -> tuple[ColumnElement[bool], ...]:
    return (*of_account(run, until=None), settlement_line.c.settled_on >= since)


def evidence_of(
    connection: Connection, run: Run, *, transaction_id: str, references: Iterable[str]
) -> list[SettledLine]:
    """What the account's files tell of one transaction, or under one of our own references."""
    names = SettledLine.__dataclass_fields__.keys() - {"source"}
    same: list[ColumnElement[bool]] = [
        settlement_line.c.own_reference.in_(sorted({*references} - {""}))
    ]
    if transaction_id:
        same.append(settlement_line.c.transaction_id == transaction_id)
    rows = connection.execute(
        select(
            *(settlement_line.c[name] for name in sorted(names)), order_file.c.name.label("source")
        )
        .join(order_file, order_file.c.file_id == settlement_line.c.file_id)
        .where(*of_account(run, until=None), or_(*same))
        .order_by(settlement_line.c.line_id)
    )
    return [SettledLine(**row) for row in rows.mappings()]


def charged_back(connection: Connection, run: Run) -> dict[tuple[str, str], int]:
    """Transaction and currency -> minor units that the account's files show as charged back."""
    line = settlement_line
    rows = connection.execute(
        select(line.c.transaction_id, line.c.currency, func.sum(line.c.gross).label("gross"))
        .where(*of_account(run, until=None), line.c.entry_type.in_(CHARGED_BACK))
        .group_by(line.c.transaction_id, line.c.currency)
    )
    return {(row.transaction_id, row.currency): -int(row.gross) for row in rows}


def of_account(run: Run, *, until: int | None) -> tuple[ColumnElement[bool], ...]:
    """Lines of the account in the newest version of each of its files."""
    return (
        settlement_line.c.file_id.in_(_newest(run, until=until)),
        settlement_line.c.merchant_id == run.merchant_id,
        settlement_line.c.account_id == run.account_id,
    )


def _newest(run: Run, *, until: int | None, but: str = "") -> Select[Any]:
    """The newest version of each settlement file of the account, but for one name."""
    read = () if until is None else (_read.c.file_id <= until,)
    return (
        select(func.max(_read.c.file_id))
        .where(
            _read.c.merchant_id == run.merchant_id,
            _read.c.account_id == run.account_id,
            _read.c.kind == SourceKind.SETTLEMENT.value,
            _read.c.name != but,
            *read,
        )
        .group_by(_read.c.name)
    )
