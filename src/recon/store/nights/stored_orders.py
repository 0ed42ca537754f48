"""Current orders of an account, determined from all facts files that may contain them."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection, select

from recon.archive.schemas import SCHEMAS
from recon.matching.frames.sources import ORDER_COLUMNS, LoadCounts
from recon.model.nights import Account
from recon.model.terms import SourceKind
from recon.proof.ledger_bridge import (
    BEFORE_WINDOW,
    KNOWN_BEFORE,
    OTHER_ACCOUNTS,
    REPEATS,
    REPLACED,
    UNDECLARED,
)
from recon.proof.night_tables import frame_of_table
from recon.store.nights import facts_rows
from recon.store.nights.facts_rows import EVER, FEW_ROWS, Span, StorageOf, StoredFacts
from recon.store.nights.order_rows import newest_files, of_night
from recon.store.nights.runs import Run
from recon.store.schema import order_file

_RULE = Path(__file__).with_suffix(".sql")
_BECAME = ("is_current", "repeats", "replaces")
_ROW = pa.schema(
    [
        *SCHEMAS["orders"].columns,
        ("file_id", pa.int64()),
        *((name, pa.bool_()) for name in _BECAME),
    ]
)
"""A row of an order file, the number of the file, and the row's classification by the SQL."""
_OWNER = ("merchant_id", "account_id")
_ENCODED = tuple(each.name for each in _ROW if pa.types.is_dictionary(each.type))
_ALWAYS = (*_OWNER, "order_no", "ordered_at", "file_id", *_BECAME)
"""Columns that every query needs."""


class OrderSteps(NamedTuple):
    """How the order rows of a night's files were counted."""

    steps: Mapping[str, int]
    """Step -> signed number of rows, in the order of display."""
    taken: Mapping[str, LoadCounts]
    """Name of a file -> how many of its rows were new, repeats, or replaced another row."""


@dataclass(frozen=True, slots=True)
class StoredOrders:
    """The orders of a run's account; SQL decides which of their rows are current.

    Raises:
        ArchiveError: By every method that reads files: one cannot be read, or its hash differs
            from the stored one.
    """

    connection: Connection
    run: Run
    """The run for which files must count (see `runs.counting`)."""
    storages: StorageOf
    """Returns the archive of an account."""
    until: int | None = None
    """The last order file that counts; None for all."""

    def since(self, instant: datetime) -> pd.DataFrame:
        """Return ORDER_COLUMNS of the account's current rows ordered since an instant."""
        return frame_of_orders(self._current(spans=[(instant, None)]))

    def in_view(
        self, *, since: datetime, queried: pa.Array, columns: Sequence[str] = ()
    ) -> pa.Table:
        """Return current rows of the orders in `queried` and of orders with a row since an instant.

        An order is included with all its rows, however old they are.

        Args:
            since: Start of the window.
            queried: Order numbers.
            columns: Some columns of the night's file `orders`; empty for all, with `file_id`.
        """
        window = [(since, None)]
        own = self._current(numbers=queried, orders_of=window, columns=columns)
        is_queried = pc.is_in(own["order_no"], value_set=_texts(queried))
        others = own.filter(pc.invert(is_queried))
        recent = others["order_no"].filter(_ordered(others, window))
        others = others.filter(pc.is_in(others["order_no"], value_set=recent.combine_chunks()))
        return pa.concat_tables([_filtered(own, is_queried), others])

    def of_keys(self, accounts: Sequence[str], *, order_nos: Sequence[str]) -> pd.DataFrame:
        """Return ORDER_COLUMNS of current rows of some orders in the merchant's `accounts`."""
        return frame_of_orders(self._current(accounts=accounts, numbers=order_nos))

    def named(self, order_nos: Sequence[str]) -> pa.Table:
        """Return the account's current rows of some orders with `file_id`, oldest file first."""
        by = [(name, "ascending") for name in ("file_id", "line")]
        return self._current(numbers=order_nos).sort_by(by)

    def numbers(self, *, spans: Sequence[Span], behind: int = 0) -> Iterator[pa.ChunkedArray]:
        """Yield order numbers of the account's current rows in some spans, one for each row.

        `behind` includes only files with a larger number.
        """
        if spans:
            yield self._current(spans=spans, behind=behind, columns=_ALWAYS)["order_no"]

    def steps(
        self, older: Mapping[int, int], *, since: datetime, declared: Collection[Account]
    ) -> OrderSteps:
        """Count what became of the rows of the newest versions of the night's files.

        Rows of the window are counted anew, so that one that `in_view` lost leaves a difference.

        Args:
            older: number of a file -> how many of its rows from before the window are in view.
            since: start of the window.
            declared: accounts that have a night of their own.
        """
        tonight = facts_rows.of_files(self.connection, self._newest_files())
        names = {file.file_id: file.name for file in tonight}
        own = self.run.account
        accounts = {own, *facts_rows.accounts_of(self.connection, names)}
        rows = self._rows(sorted(accounts), of=tonight, columns=_ALWAYS)
        counts = [each for each in counts_by_file(rows) if each["file_id"] in names]
        became = steps_of(counts, names=names)
        steps = dict.fromkeys(
            (REPEATS, REPLACED, OTHER_ACCOUNTS, UNDECLARED, BEFORE_WINDOW, KNOWN_BEFORE), 0
        )
        steps |= became.steps
        for row in counts:
            account = tuple(row[each] for each in _OWNER)
            other = OTHER_ACCOUNTS if account in declared else UNDECLARED
            steps[BEFORE_WINDOW if account == own else other] -= row["is_current_sum"]
        recent = self._current(spans=[(since, None)], columns=_ALWAYS)
        for file_id, count in (Counter(older) + rows_by_file(recent)).items():
            steps[BEFORE_WINDOW if file_id in names else KNOWN_BEFORE] += count
        return OrderSteps(steps, became.taken)

    def undeclared_accounts(self, declared: Collection[Account]) -> list[str]:
        """Return accounts in the rows of tonight's files that are not declared."""
        named = facts_rows.accounts_of(self.connection, self._newest_files())
        return sorted("/".join(account) for account in named - {*declared, self.run.account})

    def _newest_files(self) -> list[int]:
        """Return the newest version of each order file of the night, each content once."""
        orders = order_file.c.kind == SourceKind.ORDERS
        newest = newest_files(self.run, *of_night(self.run, until=self.until), orders)
        counted = select(order_file.c.file_id).where(
            order_file.c.file_id.in_(newest), order_file.c.rows_accepted > 0
        )
        return list(self.connection.execute(counted).scalars())

    def _current(
        self,
        *,
        accounts: Sequence[str] = (),
        spans: Sequence[Span] = (),
        numbers: Sequence[str] | pa.Array = (),
        orders_of: Sequence[Span] = (),
        behind: int = 0,
        columns: Sequence[str] = (),
    ) -> pa.Table:
        """Return current rows ordered in some spans, or else of some orders.

        Args:
            accounts: Accounts of the merchant; empty for the run's own.
            spans: Of order times.
            numbers: Without spans: of these orders.
            orders_of: Without spans: also all orders of files with rows in these spans.
            behind: Only rows of files with a larger number.
            columns: Some of _ROW; empty for all.
        """
        owners = [(self.run.merchant_id, name) for name in accounts or [self.run.account_id]]
        files = self._files(owners, spans=[*spans, *orders_of], behind=behind)
        rows = self._rows(owners, of=files, numbers=numbers, columns=columns)
        is_current = pc.and_(rows["is_current"], pc.greater(rows["file_id"], behind))
        is_current = pc.and_(is_current, _ordered(rows, spans or EVER))
        for name, names in zip(_OWNER, zip(*owners, strict=True), strict=True):
            named = pc.is_in(rows[name].cast(pa.string()), value_set=pa.array([*names]))
            is_current = pc.and_(is_current, named)
        if not spans and not orders_of:
            named = pc.is_in(rows["order_no"], value_set=_texts(numbers))
            is_current = pc.and_(is_current, named)
        return _filtered(rows, is_current)

    def _files(
        self, accounts: Sequence[Account], *, spans: Sequence[Span] = EVER, behind: int = 0
    ) -> list[StoredFacts]:
        return facts_rows.of_account(
            self.connection,
            self.run,
            accounts=accounts,
            spans=spans,
            until=self.until,
            behind=behind,
        )

    def _rows(
        self,
        accounts: Sequence[Account],
        *,
        of: Sequence[StoredFacts],
        numbers: Sequence[str] | pa.Array = (),
        columns: Sequence[str] = (),
    ) -> pa.Table:
        """Return all rows, of any account, of the orders in some files and of some numbers."""
        files = self._files(accounts)
        if not (of or len(numbers)):
            return _ROW.empty_table()
        if sum(file.row_count for file in files) <= FEW_ROWS:
            # Few rows are read all at once and cached for later queries of the night.
            ask = partial(rows_of_files, files, of=files, storages=self.storages)
            return facts_rows.answered(("orders", *files), ask=ask)
        return rows_of_files(files, of=of, numbers=numbers, columns=columns, storages=self.storages)


def rows_by_file(rows: pa.Table) -> Counter[int]:
    """Number of a file -> how many of some rows it brought."""
    counts = rows["file_id"].value_counts().to_pylist()
    return Counter({count["values"]: count["counts"] for count in counts})


def counts_by_file(rows: pa.Table) -> list[dict[str, Any]]:
    """Return, by file and account, how many rows there are, and how many became what."""
    owners = {name: rows[name].cast(pa.string()) for name in _OWNER}
    plain = pa.table({**owners, **{name: rows[name] for name in ("file_id", *_BECAME)}})
    groups = plain.group_by(["file_id", *_OWNER])
    sums = groups.aggregate([([], "count_all"), *((name, "sum") for name in _BECAME)])
    counts: list[dict[str, Any]] = sums.to_pylist()
    return counts


def steps_of(counts: Iterable[Mapping[str, Any]], *, names: Mapping[int, str]) -> OrderSteps:
    """Return what the rows of some files became; `names` are those of the files, by number."""
    steps = {REPEATS: 0, REPLACED: 0}
    taken = {name: LoadCounts(0, 0, 0, 0) for name in names.values()}
    for row in counts:
        name, count, repeats = names[row["file_id"]], row["count_all"], row["repeats_sum"]
        before, replaces = taken[name], row["replaces_sum"]
        taken[name] = LoadCounts(
            before.accepted + count,
            before.new + count - repeats - replaces,
            before.repeat + repeats,
            before.superseding + replaces,
        )
        steps[REPEATS] -= repeats
        steps[REPLACED] -= count - row["is_current_sum"] - repeats
    return OrderSteps(steps, taken)


def rows_of_files(
    files: Sequence[StoredFacts],
    *,
    of: Sequence[StoredFacts],
    numbers: Sequence[str] | pa.Array = (),
    columns: Sequence[str] = (),
    storages: StorageOf,
) -> pa.Table:
    """Read rows as for `StoredOrders._rows`; `files` are all that may have rows of the orders."""
    if not files:
        return _ROW.empty_table()
    names = [name for name in _ROW.names if name in {*_ALWAYS, *(columns or _ROW.names)}]
    with facts_rows.in_sql(files, storages=storages) as (sql, paths):
        sql.register("given", pa.table({"order_no": _texts(numbers)}))
        sql.execute("CREATE TEMP TABLE asked AS FROM given")
        path_of = dict(zip((file.file_id for file in files), paths, strict=True))
        if among := [*{path_of[file.file_id]: None for file in of}]:
            insert = "INSERT INTO asked SELECT DISTINCT order_no FROM read_parquet($paths)"
            sql.execute(insert, {"paths": among})
        sql.execute(_RULE.read_text(encoding="utf-8"))
        rows = sql.table(f"FROM order_rows SELECT {', '.join(names)}", encoded=_ENCODED)
    return rows.cast(pa.schema([_ROW.field(name) for name in names]))


def _filtered(rows: pa.Table, mask: pa.ChunkedArray) -> pa.Table:
    """Return the rows of a mask; not copied if these are all, as on most nights."""
    return rows if pc.all(mask).as_py() else rows.filter(mask)


def _texts(numbers: Sequence[str] | pa.Array) -> pa.Array:
    return pa.array(numbers, pa.string())


def _ordered(table: pa.Table, spans: Sequence[Span]) -> pa.Array:
    """Return a mask of the rows ordered in one of some spans."""
    column = table["ordered_at"]
    inside = pa.array(np.zeros(len(table), bool))
    for since, before in spans:
        within = pc.greater_equal(column, pa.scalar(since, column.type))
        if before is not None:
            within = pc.and_(within, pc.less(column, pa.scalar(before, column.type)))
        inside = pc.or_(inside, pc.fill_null(within, False))
    return inside


def frame_of_orders(rows: pa.Table) -> pd.DataFrame:
    """Return ORDER_COLUMNS of some rows."""
    return frame_of_table(rows.select([*ORDER_COLUMNS]))
