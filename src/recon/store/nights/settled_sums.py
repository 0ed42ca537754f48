"""What the lines of settlement files come to, and the few lines that are rows of the database.

No night reads files of years for what the gateway owes by then: sums say it. Both are bound in the
history beside the file of facts that has the lines.
"""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import ColumnElement, Connection, Select, Subquery, Table, and_, insert, select
from sqlalchemy import func as sql

from recon.config.fee_contract import FACTS
from recon.matching.frames.sources import SETTLEMENT_COLUMNS
from recon.model.words import REVERSAL_SUFFIX, EntryType, SourceKind
from recon.store.database.bulk_rows import insert_rows, with_constant
from recon.store.nights.runs import Run
from recon.store.schema import order_file, settled_sum, settlement_line

STORED = tuple(name for name in SETTLEMENT_COLUMNS if name != "source")
"""What a file of facts says of a line."""
TOLD = tuple(name for name in STORED if name not in {*FACTS, "line"})
"""What makes a line a repeat of another; one that tells the brand as well settles nothing more."""
CHARGED_BACK = (EntryType.CHARGEBACK.value, EntryType.CHARGEBACK.value + REVERSAL_SUFFIX)
"""Their gross amounts, signed, come to what the shopper's bank took back."""
ROWS = (*CHARGED_BACK, EntryType.PAYOUT.value)
"""Entry types that the database has line by line: few, and asked for over all nights."""
Sum = Mapping[str, str | int]
"""A row of settled_sum, without its file."""
Digests = dict[str, str]
"""Of what the database says of a file: name -> SHA-256."""

_READ = order_file.alias("read_file")
BY = ("merchant_id", "account_id", "batch_id", "settled_on", "entry_type", *FACTS, "currency")
AMOUNTS = ("gross", "fee", "net", "base")
_OF_SUM = ("position", *BY, "is_own", "line_count", *AMOUNTS)


def sums_of(lines: pa.Table) -> list[Sum]:
    """What lines (STORED) come to by account, batch, day, entry type, tariff and currency."""
    columns = {name: lines[name].cast(pa.string()) for name in BY}
    columns["is_own"] = pc.not_equal(lines["own_reference"], "").cast(pa.int64())
    amounts = {name: lines[name] for name in AMOUNTS[:-1]}
    table = pa.table({**columns, **amounts, "base": pc.abs(lines["gross"])})
    sums = table.group_by([*columns], use_threads=False).aggregate(
        [*((name, "sum") for name in AMOUNTS), ("gross", "count")]
    )
    names = {**{f"{name}_sum": name for name in AMOUNTS}, "gross_count": "line_count"}
    named = sums.rename_columns([names.get(name, name) for name in sums.column_names])
    ordered = named.sort_by([(name, "ascending") for name in columns])
    return [{"position": at, **row} for at, row in enumerate(ordered.to_pylist())]


def rows_of_lines(lines: pa.Table) -> pa.Table:
    """Those of lines (STORED) that the database has one by one."""
    return lines.filter(pc.is_in(lines["entry_type"].cast(pa.string()), value_set=pa.array(ROWS)))


def save_sums(connection: Connection, sums: Sequence[Sum], *, file_id: int) -> None:
    """Keep what a file's lines come to."""
    connection.execute(insert(settled_sum), [{"file_id": file_id, **row} for row in sums])


def save_rows(connection: Connection, lines: pa.Table, *, file_id: int) -> None:
    """Keep those of a file's lines that are rows."""
    if lines.num_rows:
        plain = {
            name: lines[name]
            if pa.types.is_integer(lines[name].type)
            else lines[name].cast(pa.large_string())
            for name in STORED
        }
        rows = with_constant(pa.table(plain), name="file_id", value=file_id)
        insert_rows(connection, settlement_line, rows)


def digests_of(sums: Iterable[Mapping[Any, Any]], lines: Iterable[Mapping[Any, Any]]) -> Digests:
    """What the history binds of a file beside its facts."""
    return _digests(
        [_words([row[name] for name in _OF_SUM]) for row in sums],
        [_words([row[name] for name in STORED]) for row in lines],
    )


def digests_beside(
    connection: Connection, *, of: Collection[int] | None = None
) -> dict[int, Digests]:
    """File -> what `digests_of` says of the rows that the database has of it; `of` some, or all."""
    sums = _rows_by_file(connection, settled_sum, names=_OF_SUM, of=of)
    lines = _rows_by_file(connection, settlement_line, names=STORED, of=of)
    return {
        file_id: _digests(sums.get(file_id, []), lines.get(file_id, []))
        for file_id in sorted(sums.keys() | lines.keys())
    }


def _rows_by_file(
    connection: Connection, table: Table, *, names: Sequence[str], of: Collection[int] | None
) -> dict[int, list[str]]:
    """The words of each file's rows; a night reads those of all its years."""
    query = select(table.c.file_id, *(table.c[name] for name in names))
    if of is not None:
        query = query.where(table.c.file_id.in_([*of]))
    by_file: dict[int, list[str]] = defaultdict(list)
    for file_id, *cells in connection.execute(query):
        by_file[file_id].append(_words(cells))
    return by_file


def _words(cells: Iterable[object]) -> str:
    return "\x1f".join(map(str, cells))


def _digests(sums: list[str], lines: list[str]) -> Digests:
    texts = (("sums", sums), ("lines", lines))
    return {
        name: hashlib.sha256("\x1e".join(sorted(rows)).encode()).hexdigest() for name, rows in texts
    }


def newest(run: Run, *, until: int | None) -> Select[Any]:
    """The newest version of each settlement file of the account."""
    read = () if until is None else (_READ.c.file_id <= until,)
    return (
        select(sql.max(_READ.c.file_id))
        .where(
            _READ.c.merchant_id == run.merchant_id,
            _READ.c.account_id == run.account_id,
            _READ.c.kind == SourceKind.SETTLEMENT.value,
            *read,
        )
        .group_by(_READ.c.name)
    )


def of_account(run: Run, *, until: int | None) -> tuple[ColumnElement[bool], ...]:
    """Sums of the account in the newest version of each of its files."""
    return (
        settled_sum.c.file_id.in_(newest(run, until=until)),
        settled_sum.c.merchant_id == run.merchant_id,
        settled_sum.c.account_id == run.account_id,
    )


def files_of(
    connection: Connection, run: Run, *, until: int | None, where: ColumnElement[bool]
) -> set[int]:
    """The newest files with lines of the account, some of which are such."""
    query = select(settled_sum.c.file_id).where(*of_account(run, until=until), where).distinct()
    return {*connection.execute(query).scalars()}


def told_by_several(
    connection: Connection, run: Run, *, until: int | None
) -> tuple[set[int], set[str]]:
    """Files and batches with lines of which another file tells some that may be the same."""
    of = [settled_sum.c[name] for name in BY if name in TOLD]
    file_id = settled_sum.c.file_id
    # Of a year of files hardly a batch is in two: only these are looked at group by group.
    in_several = (
        select(settled_sum.c.batch_id)
        .where(file_id.in_(newest(run, until=until)))
        .group_by(settled_sum.c.batch_id)
        .having(sql.min(file_id) < sql.max(file_id))
    )
    several = (
        select(*of)
        .where(file_id.in_(newest(run, until=until)), settled_sum.c.batch_id.in_(in_several))
        .group_by(*of)
        .having(sql.min(file_id) < sql.max(file_id))
        .subquery()
    )
    query = (
        select(settled_sum.c.file_id, settled_sum.c.batch_id)
        .join(several, and_(*(column == several.c[column.name] for column in of)))
        .where(settled_sum.c.file_id.in_(newest(run, until=until)))
        .distinct()
    )
    rows = connection.execute(query).all()
    return {row.file_id for row in rows}, {row.batch_id for row in rows}


def lines_once(files: Select[Any]) -> Subquery:
    """Rows of settlement_line of some files, each as often as the file has it that does most often.

    The files are those of one account each; a row stands for the account of its own file.
    """
    line = settlement_line.c
    columns = [line[name] for name in TOLD]
    nth = sql.row_number().over(partition_by=[*columns, line.file_id], order_by=line.line_id)
    every = select(settlement_line, nth.label("nth")).where(line.file_id.in_(files)).subquery()
    same = [every.c[name] for name in (*TOLD, "nth")]
    before = sql.row_number().over(partition_by=same, order_by=every.c.file_id)
    ranked = select(every, before.label("before")).subquery()
    return select(ranked).where(ranked.c.before == 1).subquery()
