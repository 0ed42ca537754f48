"""Settlement files in the database; of each name the newest version counts.

A file is stored as an order file is, under a name that no order file can have; a newer version of a
name replaces the older one completely. A line that several files contain, equal in all columns,
counts as often as in the file that has it most often (`Settlements.counted`), which is computed
from all that arrived. The lines are stored in facts files only.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import ColumnElement, Connection, Select, select

from recon.config.fee_contract import PRICED
from recon.instructions.resolution import SettledLine
from recon.matching.frames.arrays import text_column
from recon.matching.frames.sources import (
    SETTLEMENT_COLUMNS,
    TEXT,
    VOLUME_COLUMNS,
    LoadCounts,
    frame_of,
)
from recon.matching.sides.settlement_side import PAY_OUT
from recon.model.nights import Account
from recon.model.terms import SourceKind
from recon.proof.sql_session import SqlSession
from recon.store.nights import facts_rows, order_rows
from recon.store.nights.facts_rows import (
    StorageOf,
    StoredFacts,
    answered,
    in_sql,
)
from recon.store.nights.runs import Run
from recon.store.schema import order_facts_account, order_file, reject
from recon.store.schema.columns import in_account

UNREAD = "the lines of settlement files could not be read, so the night goes no further"
OLDER = "older files"
"""Source of summary lines, each for several lines of a batch from before the window."""
PLAIN = pa.schema(
    [
        (name, pa.string() if kind == TEXT else pa.int64())
        for name, kind in SETTLEMENT_COLUMNS.items()
    ]
)
"""SETTLEMENT_COLUMNS as plain strings and integers."""
Values = Mapping[str, Collection[str] | pa.Array | pa.ChunkedArray]
"""Order numbers, transactions or references of our own; blank ones are ignored."""
NO_ROWS = pa.schema([("file_id", pa.int64()), ("row", pa.int64())]).empty_table()
"""Number of the file, and of the row in it."""
_ENCODED = ("merchant_id", "account_id", "entry_type", "currency", "source")
"""Columns with few distinct texts, which are dictionary-encoded."""
_VOLUMES = "$since, $priced, $tonight, $covered_to"
_AS_REPORTED = "ORDER BY file_id, row"
_STATEMENTS = Path(__file__).with_suffix(".sql")


class SettledTotals(NamedTuple):
    """Results over all lines of an account, of all nights."""

    repeats: pa.Table
    """Number of file and row of lines that do not count, since another file has them too."""
    charged_back: pa.Table
    """Transaction, currency and amount of chargebacks."""
    paid_out: pa.Table
    """Payout lines in PLAIN columns, with their files and rows."""


NOTHING = SettledTotals(
    NO_ROWS,
    pa.table({"transaction_id": [], "currency": [], "amount": []}),
    pa.schema([*PLAIN, *NO_ROWS.schema]).empty_table(),
)


@dataclass(frozen=True, slots=True)
class NamedPayments:
    """Payments whose lines are returned one by one, however old they are."""

    order_nos: pa.Array
    transactions: pa.Array
    by_payment: bool = False
    """Whether fees of other older lines are summed by payment instead of by batch."""

    @classmethod
    def of(
        cls, order_nos: Collection[str] = (), transactions: Collection[str] = ()
    ) -> "NamedPayments":
        """Build it from Python strings."""
        return cls(*(pa.array(sorted({*each}), pa.string()) for each in (order_nos, transactions)))


@dataclass(frozen=True, slots=True)
class Settlements:
    """The lines of the settlement files of a run's account, of each the newest version.

    Raises:
        ArchiveError: By every method that reads files: one cannot be read, or its hash differs
            from the stored one.
    """

    connection: Connection
    run: Run
    storages: StorageOf
    """Returns the archive of an account."""
    until: int | None = None
    """The last file that counts; None for all."""

    @property
    def _newest(self) -> Select[tuple[int]]:
        settlement = order_file.c.kind == SourceKind.SETTLEMENT
        return order_rows.newest_files(self.run, settlement, until=self.until)

    @property
    def _days(self) -> dict[int, tuple[str, str]]:
        """First and last settlement day of each file that has lines of the account."""
        of = order_facts_account.c
        mine = of.file_id.in_(self._newest), *in_account(order_facts_account, self.run)
        query = select(of.file_id, of.ordered_from, of.ordered_to).where(*mine)
        return {
            file_id: (first.date().isoformat(), last.date().isoformat())
            for file_id, first, last in self.connection.execute(query)
        }

    @property
    def _files(self) -> list[StoredFacts]:
        """The newest files that have lines, oldest first."""
        numbers = self.connection.execute(self._newest).scalars()
        return facts_rows.of_files(self.connection, [*numbers])

    def _asking(
        self, files: Sequence[StoredFacts], *, repeats: pa.Table = NO_ROWS
    ) -> AbstractContextManager[SqlSession]:
        account = self.run.account
        return _asking(files, account=account, storages=self.storages, repeats=repeats)

    def counted(self) -> SettledTotals:
        """Return repeated lines, chargebacks and payouts over all files; the result is cached."""
        files = self._files
        if not files:
            return NOTHING

        def ask() -> SettledTotals:
            with self._asking(files) as sql:
                sql.execute("INSERT INTO repeated FROM repeats()")
                repeats = sql.table(f"FROM repeated {_AS_REPORTED}").cast(NO_ROWS.schema)
                charged_back = sql.table("FROM charged_back()")
                paid_out = sql.table(f"FROM paid_out() {_AS_REPORTED}")
            return SettledTotals(repeats, charged_back, paid_out)

        return answered(("settlement", self.run.account, tuple(files)), ask=ask)

    def evidence(
        self, *, transactions: Collection[str], references: Collection[str]
    ) -> list[SettledLine]:
        """Return the lines of some transactions, or with some of our own references."""
        files = self._files
        texts = _texts({"transaction_id": transactions, "own_reference": references})
        if not files or not texts.num_rows:
            return []
        with self._asking(files, repeats=self.counted().repeats) as sql:
            _fill(sql, "searched", rows=texts)
            named = _plain(sql.table(f"FROM naming() {_AS_REPORTED}"))
        names = [*SettledLine.__dataclass_fields__]
        return [SettledLine(**row) for row in named.select(names).to_pylist()]

    def charged_back(self) -> dict[tuple[str, str], int]:
        """Return minor units charged back by transaction and currency."""
        rows = self.counted().charged_back.to_pylist()
        return {(row["transaction_id"], row["currency"]): row["amount"] for row in rows}

    def names(self, *, since: str) -> tuple[pa.ChunkedArray, set[str]]:
        """Return orders in lines settled since a day, and transactions of lines without one."""
        recent = [each for each, (_, to) in self._days.items() if to >= since]
        files = facts_rows.of_files(self.connection, recent)
        if not files:
            return pa.chunked_array([], pa.string()), set()
        with self._asking(files) as sql:
            names = sql.table("FROM names($since)", {"since": since})
        orders, transactions = (
            names[each].filter(pc.not_equal(names[each], ""))
            for each in ("order_no", "transaction_id")
        )
        return orders, {*transactions.to_pylist()}

    def volumes(self, *, since: str) -> pd.DataFrame:
        """Return VOLUME_COLUMNS of all lines settled since a day.

        Lines are late if a file of the business date has them for a day that earlier files
        already covered.
        """
        days = self._days
        files = [file for file in self._files if days.get(file.file_id, ("", ""))[1] >= since]
        if not files:
            return frame_of([], columns=VOLUME_COLUMNS)
        file, night = order_file.c, self.run.business_date
        query = select(file.file_id, file.business_date).where(file.file_id.in_(self._newest))
        nights = self.connection.execute(query).all()
        before = {row.file_id for row in nights if row.business_date < night}
        given = {
            "since": since,
            "priced": [*PRICED],
            "tonight": [row.file_id for row in nights if row.business_date == night],
            "covered_to": max((to for each, (_, to) in days.items() if each in before), default=""),
        }
        with self._asking(files, repeats=self.counted().repeats) as sql:
            volumes = sql.table(f"FROM volumes({_VOLUMES}) ORDER BY ALL", given)
        return frame_of(volumes.to_pylist(), columns=VOLUME_COLUMNS)

    def lines(self, *, since: str, payments: NamedPayments) -> "NightLines":
        """Return the lines that a night compares: those settled since a day, one by one.

        Older lines of the payments in `payments` are included too; all others as sums by batch.
        """
        days = self._days
        files = [file for file in self._files if file.file_id in days]
        repeats = self.counted().repeats
        recent = [file for file in files if days[file.file_id][1] >= since]
        before = [file for file in files if days[file.file_id][0] < since]
        older = PLAIN.empty_table()
        if before:
            with self._asking(before, repeats=repeats) as sql:
                older = _older(sql, since=since, payments=payments)
        # SQL reads at least one file; one without recent lines adds none.
        return NightLines(self.run, since, recent or files[:1], older, repeats, self.storages)

    def days_reported(self) -> tuple[str, str]:
        """Return the first and last settlement day of the account's lines; "" without lines."""
        days = self._days.values()
        first = min((first for first, _ in days), default="")
        return first, max((last for _, last in days), default="")

    def missing(self, *, whole_file: str) -> list[tuple[date, str]]:
        """Return business date and name of files that are still missing or refused, oldest first.

        `whole_file` is the reject column that marks a whole file.
        """
        file = order_file.c
        rows = self.connection.execute(
            select(file.business_date, file.name)
            .join(reject, reject.c.file_id == file.file_id)
            .where(file.file_id.in_(self._newest), reject.c.column == whole_file)
            .order_by(file.business_date, file.name)
        )
        return [(row.business_date, row.name) for row in rows]

    def unread_batches(self, *, siblings: Collection[str]) -> frozenset[tuple[str, str]]:
        """Return currency and batch of lines that still cannot be read; "" for unreadable cells.

        A line without a batch may belong to any batch of its file too. Lines of `siblings`, the
        merchant's other accounts, are left out.
        """
        columns = reject.c.file_id, reject.c.currency, reject.c.batch_id
        rows = self.connection.execute(select(*columns).where(*self._unread(siblings))).all()
        unnamed = {row.file_id for row in rows if not row.batch_id}
        batches = defaultdict(set)
        for file_id, batch_id in batches_of(
            facts_rows.of_files(self.connection, unnamed),
            account=self.run.account,
            storages=self.storages,
        ):
            batches[file_id].add(batch_id)
        return frozenset(
            (row.currency, batch_id)
            for row in rows
            for batch_id in {row.batch_id, *(() if row.batch_id else batches[row.file_id])}
        )

    def unread_lines(self, *, siblings: Collection[str]) -> list[tuple[str, int, str]]:
        """Return file, line and column of the rejects in `unread_batches`, oldest first."""
        columns = reject.c.source, reject.c.line, reject.c.column
        query = select(*columns).where(*self._unread(siblings)).order_by(reject.c.reject_id)
        return [(row.source, row.line, row.column) for row in self.connection.execute(query)]

    def _unread(self, siblings: Collection[str]) -> tuple[ColumnElement[bool], ...]:
        """Return conditions for rejected lines; a file refused as a whole has none."""
        newest = reject.c.file_id.in_(self._newest)
        return newest, reject.c.account_id.not_in(sorted(siblings)), reject.c.line > 0


@dataclass(frozen=True, slots=True)
class NightLines:
    """The lines of an account that a night compares."""

    run: Run
    since: str
    files: Sequence[StoredFacts]
    """Files with lines of the account settled since then; where there is none, any one file."""
    older: pa.Table
    """SETTLEMENT_COLUMNS of lines settled before `since`, or their sums: few."""
    repeats: pa.Table
    """Lines of the files that do not count."""
    storages: StorageOf

    def table(
        self,
        columns: Sequence[str] = (*SETTLEMENT_COLUMNS,),
        *,
        entry_types: Collection[str] = (),
        with_text: Collection[str] = (),
    ) -> pa.Table:
        """Return columns of the lines, those settled before `since` first.

        Args:
            columns: Some of SETTLEMENT_COLUMNS.
            entry_types: Only lines of these types; empty for all.
            with_text: Only lines with a text in one of these columns; empty for all.

        Raises:
            ArchiveError: A file cannot be read, or its hash differs from the stored one.
        """
        has_text = " OR ".join(f"{name} <> ''" for name in with_text) or "true"
        with _asking(
            self.files, account=self.run.account, storages=self.storages, repeats=self.repeats
        ) as sql:
            sql.register("older_lines", self.older)
            return sql.table(
                "FROM (FROM older_lines UNION ALL BY NAME FROM counted() WHERE settled_on >= $since"
                f") SELECT {', '.join(columns)} WHERE ({has_text})"
                " AND (len($types) = 0 OR list_contains($types, entry_type))",
                {"since": self.since, "types": [*entry_types]},
                encoded=_ENCODED,
            )

    def frame(self) -> pd.DataFrame:
        """Return SETTLEMENT_COLUMNS of all of them."""
        return frame_of_lines(self.table())


def repeats_of(files: Sequence[StoredFacts], *, storages: StorageOf) -> pa.Table:
    """Return file and row of lines, of any account, that another one of these files has too.

    Raises:
        ArchiveError: A file cannot be read, or its hash differs from the stored one.
    """
    if not files:
        return NO_ROWS
    with _asking(files, account=("", ""), storages=storages) as sql:
        return sql.table(f"FROM repeats() {_AS_REPORTED}").cast(NO_ROWS.schema)


@contextmanager
def _asking(
    files: Sequence[StoredFacts],
    *,
    account: Account,
    storages: StorageOf,
    repeats: pa.Table = NO_ROWS,
) -> Iterator[SqlSession]:
    """Open a DuckDB session with the statements of the .sql file, over an account's lines."""
    with in_sql(files, storages=storages) as (sql, _):
        for name, value in zip(("merchant", "account"), account, strict=True):
            sql.execute(f"SET VARIABLE {name} = $value", {"value": value})
        sql.execute(_STATEMENTS.read_text(encoding="utf-8"))
        _fill(sql, "repeated", rows=repeats)
        yield sql


def _fill(sql: SqlSession, name: str, *, rows: pa.Table) -> None:
    if rows.num_rows:
        sql.register(f"given_{name}", rows)
        sql.execute(f"INSERT INTO {name} FROM given_{name}")


def batches_of(
    files: Sequence[StoredFacts], *, account: Account, storages: StorageOf
) -> list[tuple[int, str]]:
    """Return file and batch of an account's lines in some files.

    Raises:
        ArchiveError: A file cannot be read, or its hash differs from the stored one.
    """
    if not files:
        return []
    with _asking(files, account=account, storages=storages) as sql:
        return [(file_id, batch_id) for file_id, batch_id in sql.rows("FROM batches()")]


def _texts(values: Values) -> pa.Table:
    """Return a table of key and text for the lines to search, without blanks."""
    tables = []
    for key, given in values.items():
        is_array = isinstance(given, pa.Array | pa.ChunkedArray)
        texts = pc.cast(given if is_array else pa.array(sorted({*given}), pa.string()), pa.string())
        texts = texts.filter(pc.not_equal(texts, ""))
        tables.append(pa.table({"key": pa.repeat(key, len(texts)), "text": texts}))
    return pa.concat_tables(tables)


def _plain(table: pa.Table) -> pa.Table:
    return table.select(PLAIN.names).cast(PLAIN)


def _older(sql: SqlSession, *, since: str, payments: NamedPayments) -> pa.Table:
    """Return lines settled before a day: sums, then those of the payments in `payments`."""
    values = {"order_no": payments.order_nos, "transaction_id": payments.transactions}
    named = pa.schema([*PLAIN, *NO_ROWS.schema]).empty_table()
    texts = _texts(values)
    if texts.num_rows:
        _fill(sql, "searched", rows=texts)
        # Older payouts are not needed: their ledger entries are outside the window too.
        one_by_one = "WHERE settled_on < $since AND entry_type <> $paid"
        named = sql.table(
            f"FROM naming() {one_by_one} {_AS_REPORTED}", {"since": since, "paid": PAY_OUT}
        )
        _fill(sql, "named", rows=named.select(NO_ROWS.schema.names))
    sums = sql.table(f"FROM older($since, {payments.by_payment}) ORDER BY ALL", {"since": since})
    blank = {"source": pa.scalar(OLDER), "line": pa.scalar(0, pa.int64())}
    cells = [
        sums[each.name]
        if each.name in sums.column_names
        else pa.repeat(blank.get(each.name, pa.scalar("")), sums.num_rows)
        for each in PLAIN
    ]
    summed = pa.table(cells, names=PLAIN.names).cast(PLAIN)
    return pa.concat_tables([summed, _plain(named)]).combine_chunks()


def frame_of_lines(table: pa.Table) -> pd.DataFrame:
    """Return lines as a typed frame."""
    columns = {
        name: text_column(table[name].cast(pa.large_string()))
        if SETTLEMENT_COLUMNS[name] == TEXT
        else table[name].to_numpy()
        for name in table.column_names
    }
    return pd.DataFrame(columns, index=pd.RangeIndex(len(table)))


NAME_PREFIX = "settlement/"
"""Prefix of the names of settlement files; names of files in an inbox contain no slash."""


def repeat_counts(connection: Connection, repeats: pa.Table) -> dict[str, LoadCounts]:
    """Return counts of the files of which some lines are repeats of another file, by name."""
    twice = Counter(repeats["file_id"].to_pylist())
    return {
        file.name: LoadCounts(
            file.row_count, file.row_count - twice[file.file_id], twice[file.file_id], 0
        )
        for file in facts_rows.of_files(connection, twice)
    }
