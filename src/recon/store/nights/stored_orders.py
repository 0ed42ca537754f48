"""The orders of an account as they stand, from the files of facts that may have them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection, select

from recon.archive.schemas import SCHEMAS
from recon.matching.frames.sources import ORDER_COLUMNS, LoadCounts
from recon.model.nights import Account
from recon.model.terms import SourceKind
from recon.proof.books_bridge import (
    BEFORE_WINDOW,
    KNOWN_BEFORE,
    OTHER_ACCOUNTS,
    REPEATS,
    REPLACED,
    UNDECLARED,
)
from recon.proof.night_tables import frame_of_table
from recon.store.nights import facts_rows
from recon.store.nights.facts_rows import (
    BEFORE_ALL,
    EVER,
    FEW_ROWS,
    Bools,
    Span,
    StorageOf,
    StoredFacts,
)
from recon.store.nights.order_rows import newest_files, of_night
from recon.store.nights.runs import Run
from recon.store.schema import order_file

_NAMED = Path(__file__).with_name("named_orders.sql")
_RULE = Path(__file__).with_suffix(".sql")
"""What is asked of all files, and then of those with orders of more than one row."""
_OF_ROW = pa.schema(
    [
        ("order_no", pa.string()),
        *((name, pa.int64()) for name in ("file_id", "row")),
        *((name, pa.bool_()) for name in ("stands", "repeats", "replaces")),
    ]
)


class Looked(NamedTuple):
    """What was looked up."""

    rows: pa.Table
    """Every row of the orders that have more than one, and what became of it (see the SQL)."""
    having: frozenset[int]
    """Files with a row of the orders that were looked for."""

    def gone(self, file: StoredFacts) -> Bools:
        """Which rows of a file do not stand."""
        gone = np.zeros(file.row_count, dtype=bool)
        of_file = pc.and_(
            pc.equal(self.rows["file_id"], file.file_id), pc.invert(self.rows["stands"])
        )
        gone[self.rows["row"].filter(of_file).to_numpy()] = True
        return gone


class _Question(NamedTuple):
    """Arrivals, and of which of them, or of which orders, the rows are looked at."""

    arrivals: tuple[StoredFacts, ...]
    of: frozenset[int]
    numbers: tuple[str, ...] | None


def _looked_up(asked: _Question, *, storages: StorageOf) -> Looked:
    with facts_rows.in_sql(asked.arrivals, storages=storages) as (sql, paths):
        places = dict(zip((file.file_id for file in asked.arrivals), paths, strict=True))
        if asked.numbers is None:
            of = [*{places[number]: None for number in sorted(asked.of)}]
            sql.execute(
                "CREATE TEMP TABLE asked AS SELECT DISTINCT order_no FROM read_parquet(?)", [of]
            )
        else:
            sql.register("asked", pa.table({"order_no": pa.array(asked.numbers, pa.string())}))
        sql.execute(_NAMED.read_text(encoding="utf-8"))
        having = sql.rows("SELECT DISTINCT file_id FROM named")
        rows = _OF_ROW.empty_table()
        if among := sql.rows("FROM among"):
            only = [*{places[number]: None for (number,) in among}]
            sql.execute("SET VARIABLE paths = $paths", {"paths": only})
            sql.execute(_RULE.read_text(encoding="utf-8"))
            rows = sql.table("FROM became").select(_OF_ROW.names).cast(_OF_ROW)
        return Looked(rows, frozenset(number for (number,) in having))


ORDERED_AT = "ordered_at"
NUMBERED = ("merchant_id", "account_id", "order_no", ORDERED_AT)
"""Columns that say which orders rows are of, and of when."""
_SCHEMA = SCHEMAS["orders"].columns


class InView(NamedTuple):
    """What a night compares of an account's orders."""

    since: datetime
    """The instant from which orders are in the window."""
    older: Sequence[str]
    """Numbers of the orders whose rows from before are compared, too."""


class OrderSteps(NamedTuple):
    """What became of the order rows of a night's files."""

    steps: Mapping[str, int]
    """Step -> how many rows it adds, in the order in which they are told."""
    taken: Mapping[str, LoadCounts]
    """Name of a file -> which of its rows were new, repeats, or took the place of another."""


@dataclass(frozen=True, slots=True)
class StoredOrders:
    """The orders of a run's account as they stand.

    Raises:
        ArchiveError: whatever looks into files: one cannot be read, or is not the one whose hash
            the database has.
    """

    connection: Connection
    run: Run
    """For whom files count."""
    storages: StorageOf
    """Where files of facts lie."""
    until: int | None = None
    """The last order file that counts; None: all do."""

    def since(self, instant: datetime) -> pd.DataFrame:
        """ORDER_COLUMNS of the account's rows that stand, ordered since an instant."""
        return _frame(self._rows(spans=[(instant, None)]))

    def in_view(self, *, since: datetime, asked: pa.Array) -> pa.Table:
        """Every row that stands of orders asked for, and of those with a row since an instant.

        With the columns of the file `orders` of a night.
        """
        recent, before = [(since, None)], [(BEFORE_ALL, since)]
        table = _joined(self._rows(spans=recent))
        older = asked.filter(pc.invert(pc.is_in(asked, value_set=table["order_no"])))
        # An order is in view with all its rows: it may have another one from before.
        account = [self.run.account]
        _, looked = self._looked(account, files=self._files(account, spans=recent))
        several = pc.unique(looked.rows["order_no"])
        several = several.filter(pc.is_in(several, value_set=table["order_no"]))
        numbers = [*older.to_pylist(), *several.to_pylist()]
        return pa.concat_tables(
            [table, _joined(self._rows(spans=before, numbers=numbers))]
        ).unify_dictionaries()

    def of_keys(self, accounts: Sequence[str], *, order_nos: Sequence[str]) -> pd.DataFrame:
        """ORDER_COLUMNS of some orders in some of the merchant's accounts, rows that stand."""
        places = [(self.run.merchant_id, account_id) for account_id in accounts]
        return _frame(self._rows(accounts=places, numbers=order_nos))

    def by_file(self, order_nos: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        """Rows that stand of some orders of the account, with the number of their file."""
        for file, table in self._rows(numbers=order_nos):
            yield file.file_id, table

    def numbers(self, *, spans: Sequence[Span], behind: int = 0) -> Iterator[pa.ChunkedArray]:
        """Order numbers of the account's rows that stand, ordered in some spans, file by file.

        A number comes once for each such row. With `behind`, only of later files than this.
        """
        for _, table in self._rows(spans=spans, behind=behind, columns=NUMBERED):
            yield table["order_no"]

    def steps(self, view: InView, *, declared: Collection[Account]) -> OrderSteps:
        """Count what became of the rows of the newest versions of the night's files.

        `declared` are accounts that have a night of their own.
        """
        tonight = facts_rows.of_files(self.connection, self._newest_files())
        own = self.run.account
        numbers = {file.file_id for file in tonight}
        named = {own, *facts_rows.accounts_of(self.connection, numbers)}
        looked = self._looked(sorted(named), files=tonight)
        others = {account for account in named if account != own}
        steps = dict.fromkeys(
            (REPEATS, REPLACED, OTHER_ACCOUNTS, UNDECLARED, BEFORE_WINDOW, KNOWN_BEFORE), 0
        )
        taken: dict[str, LoadCounts] = {}
        found = looked[1].rows
        for file, table, is_current in self._current(looked, columns=NUMBERED):
            of_file = found.filter(pc.equal(found["file_id"], file.file_id))
            repeats, replaces = (
                pc.sum(of_file[name]).as_py() or 0 for name in ("repeats", "replaces")
            )
            new = table.num_rows - repeats - replaces
            taken[file.name] = LoadCounts(table.num_rows, new, repeats, replaces)
            steps[REPEATS] -= repeats
            steps[REPLACED] -= int((~is_current).sum()) - repeats
            for account in others:
                step = OTHER_ACCOUNTS if account in declared else UNDECLARED
                steps[step] -= int((is_current & facts_rows.is_of(table, [account])).sum())
            steps[BEFORE_WINDOW] -= int((is_current & facts_rows.is_of(table, [own])).sum())
        recent = self._rows(spans=[(view.since, None)], columns=NUMBERED)
        before = [(BEFORE_ALL, view.since)]
        older = self._rows(spans=before, numbers=view.older, columns=NUMBERED)
        for file, table in chain(recent, older):
            in_view = BEFORE_WINDOW if file.file_id in numbers else KNOWN_BEFORE
            steps[in_view] += table.num_rows
        return OrderSteps(steps, taken)

    def undeclared_accounts(self, declared: Collection[Account]) -> list[str]:
        """Accounts that rows of tonight's files name and nobody declared."""
        named = facts_rows.accounts_of(self.connection, self._newest_files())
        return sorted("/".join(account) for account in named - {*declared, self.run.account})

    def _newest_files(self) -> list[int]:
        """The newest version of each order file of the night, each content once."""
        orders = order_file.c.kind == SourceKind.ORDERS
        newest = newest_files(self.run, *of_night(self.run, until=self.until), orders)
        counted = select(order_file.c.file_id).where(
            order_file.c.file_id.in_(newest), order_file.c.rows_accepted > 0
        )
        return list(self.connection.execute(counted).scalars())

    def _files(
        self, accounts: Sequence[Account], *, spans: Sequence[Span] = EVER, behind: int = 0
    ) -> list[StoredFacts]:
        until = self.until
        return facts_rows.of_account(
            self.connection, self.run, accounts=accounts, spans=spans, until=until, behind=behind
        )

    def _looked(
        self,
        accounts: Sequence[Account],
        *,
        files: Sequence[StoredFacts],
        numbers: Sequence[str] | None = None,
    ) -> tuple[list[StoredFacts], Looked]:
        """The files with rows that are looked at, oldest first, and what became of these rows.

        Of the orders of some files, or of some numbers; of rows of some accounts.
        """
        arrivals = self._files(accounts)
        if not files or (numbers is not None and not len(numbers)):
            return [], Looked(_OF_ROW.empty_table(), frozenset())
        of = frozenset(file.file_id for file in files)
        texts = None if numbers is None else tuple(sorted({*numbers}))
        if sum(file.row_count for file in arrivals) <= FEW_ROWS:
            # Of so few all are looked up at once, and the next question finds them answered.
            of, texts = frozenset(file.file_id for file in arrivals), None
        asked = _Question(tuple(arrivals), of, texts)
        ask = partial(_looked_up, asked, storages=self.storages)
        looked = facts_rows.answered(asked, ask=ask)
        return [file for file in files if file.file_id in looked.having], looked

    def _current(
        self, looked: tuple[Sequence[StoredFacts], Looked], *, columns: Sequence[str]
    ) -> Iterator[tuple[StoredFacts, pa.Table, Bools]]:
        """Columns of each file that was looked at, and which of its rows stand."""
        files, found = looked
        for file in files:
            table = facts_rows.rows_of(file, storages=self.storages, columns=columns)
            yield file, table, ~found.gone(file)

    def _rows(
        self,
        *,
        accounts: Sequence[Account] = (),
        spans: Sequence[Span] = EVER,
        numbers: Sequence[str] | None = None,
        behind: int = 0,
        columns: Sequence[str] = (),
    ) -> Iterator[tuple[StoredFacts, pa.Table]]:
        """Rows that stand, file by file; with the columns of the file `orders` if none are said.

        Those of the run's own account, ever, of all orders if not said.
        """
        places = accounts or [self.run.account]
        files = self._files(places, spans=spans, behind=behind)
        looked = self._looked(places, files=files, numbers=numbers)
        stored = [name for name in columns or _SCHEMA.names if name != "source"]
        for file, table, is_current in self._current(looked, columns=stored):
            rows = is_current & facts_rows.is_of(table, places)
            rows &= np.any([_ordered(table, span) for span in spans], axis=0)
            if numbers is not None:
                wanted = pa.array(numbers, pa.string())
                rows &= pc.is_in(table["order_no"], value_set=wanted).to_numpy()
            # Most files are whole in the window: a filter would copy them.
            some = table if rows.all() else table.filter(pa.array(rows))
            yield file, some if columns else _with_source(some, file=file)
            del table, some  # before the next one is read


def _ordered(table: pa.Table, span: Span) -> Bools:
    """Which rows are ordered in a span."""
    column, (since, before) = table[ORDERED_AT], span
    inside = pc.greater_equal(column, pa.scalar(since, column.type))
    if before is not None:
        inside = pc.and_(inside, pc.less(column, pa.scalar(before, column.type)))
    rows: Bools = pc.fill_null(inside, False).to_numpy()
    return rows


def _with_source(table: pa.Table, *, file: StoredFacts) -> pa.Table:
    """The rows as `orders` of a night has them: each names the file that it came from."""
    kind = _SCHEMA.field("source").type
    codes = pa.array(np.zeros(table.num_rows, np.int32))
    source = pa.DictionaryArray.from_arrays(codes, pa.array([file.name], kind.value_type))
    columns = [source if name == "source" else table[name] for name in _SCHEMA.names]
    return pa.table(columns, schema=_SCHEMA)


def _joined(rows: Iterable[tuple[StoredFacts, pa.Table]]) -> pa.Table:
    tables = [table for _, table in rows]
    return pa.concat_tables(tables or [_SCHEMA.empty_table()]).unify_dictionaries()


def _frame(rows: Iterable[tuple[StoredFacts, pa.Table]]) -> pd.DataFrame:
    return frame_of_table(_joined(rows))[[*ORDER_COLUMNS]]


Hashes = npt.NDArray[np.int64]


def hashes_of(rows: pa.Table) -> Hashes:
    """One number for each row's merchant_id, account_id and order_no, wherever the row lies."""
    keys = rows.select(["merchant_id", "account_id", "order_no"]).to_pandas()
    numbers: Hashes = pd.util.hash_pandas_object(keys, index=False).to_numpy().view(np.int64)
    return numbers
