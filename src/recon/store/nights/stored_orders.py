"""The orders of an account as they stand, from the files of facts that may have them.

`until` is the last order file that counts: rows are then as they stood when it had been read.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection

from recon.archive.schemas import SCHEMAS
from recon.matching.frames.sources import ORDER_COLUMNS
from recon.proof.night_tables import frame_of_table
from recon.store.nights import facts_rows, order_facts
from recon.store.nights.facts_rows import BEFORE_ALL, EVER, Account, Span, StoredFacts
from recon.store.nights.order_facts import Bools, StorageOf
from recon.store.nights.runs import Run
from recon.store.nights.standing_rows import looked_up, standing

ORDERED_AT = "ordered_at"
NUMBERED = ("merchant_id", "account_id", "order_no", ORDERED_AT)
"""Columns that say which orders rows are of, and of when."""
_SCHEMA = SCHEMAS["orders"].columns


def current_orders(
    connection: Connection,
    run: Run,
    *,
    since: datetime,
    storages: StorageOf,
    until: int | None = None,
) -> pd.DataFrame:
    """ORDER_COLUMNS of the account's rows that stand, ordered since an instant.

    Raises:
        ArchiveError: a file cannot be read, or is not the one whose hash the database has.
    """
    rows = _rows(connection, run, which=_Which(until, spans=[(since, None)]), storages=storages)
    return _frame(rows)


def orders_in_view(
    connection: Connection,
    run: Run,
    *,
    since: datetime,
    asked: pa.Array,
    storages: StorageOf,
    until: int | None = None,
) -> pa.Table:
    """Every row that stands of orders asked for, and of those with a row ordered since an instant.

    With the columns of the file `orders` of a night; see `current_orders`.
    """
    recent, before = [(since, None)], [(BEFORE_ALL, since)]
    read = partial(_rows, connection, run, storages=storages)
    table = _joined(read(which=_Which(until, spans=recent)))
    older = asked.filter(pc.invert(pc.is_in(asked, value_set=table["order_no"])))
    # An order is in view with all its rows: it may have another one from before.
    account = [_account(run)]
    files = facts_rows.of_account(connection, run, accounts=account, spans=recent, until=until)
    _, looked = looked_up(
        connection, run, accounts=account, files=files, storages=storages, until=until
    )
    several = pc.unique(looked.rows["order_no"])
    several = several.filter(pc.is_in(several, value_set=table["order_no"]))
    numbers = [*older.to_pylist(), *several.to_pylist()]
    return pa.concat_tables(
        [table, _joined(read(which=_Which(until, spans=before, numbers=numbers)))]
    ).unify_dictionaries()


def counted_in_view(
    connection: Connection,
    run: Run,
    *,
    since: datetime,
    older: Sequence[str],
    storages: StorageOf,
    until: int,
) -> Counter[int]:
    """File -> how many of its rows are in view: those since an instant, and older ones of orders.

    See `orders_in_view`.
    """
    read = partial(_rows, connection, run, columns=NUMBERED, storages=storages)
    counted = Counter[int]()
    recent = _Which(until, spans=[(since, None)])
    before = _Which(until, spans=[(BEFORE_ALL, since)], numbers=older)
    for file, table in chain(read(which=recent), read(which=before)):
        counted[file.file_id] += table.num_rows
    return counted


def orders_of_keys(
    connection: Connection,
    run: Run,
    *,
    accounts: Sequence[str],
    order_nos: Sequence[str],
    storages: StorageOf,
    until: int | None = None,
) -> pd.DataFrame:
    """ORDER_COLUMNS of some orders in some accounts, rows that stand; see `current_orders`."""
    places = [(run.merchant_id, account_id) for account_id in accounts]
    which = _Which(until, places, numbers=order_nos)
    return _frame(_rows(connection, run, which=which, storages=storages))


def rows_by_file(
    connection: Connection, run: Run, *, order_nos: Sequence[str], storages: StorageOf
) -> Iterator[tuple[int, pa.Table]]:
    """Rows that stand of some orders of the account, with the number of their file."""
    for file, table in _rows(connection, run, which=_Which(numbers=order_nos), storages=storages):
        yield file.file_id, table


def numbers_ordered(
    connection: Connection,
    run: Run,
    *,
    spans: Sequence[Span],
    storages: StorageOf,
    until: int | None = None,
    behind: int = 0,
) -> Iterator[pa.ChunkedArray]:
    """Order numbers of the account's rows that stand, ordered in some spans, file by file.

    A number comes once for each such row. With `behind`, only of later files than this.
    """
    which = _Which(until, spans=spans, behind=behind)
    for _, table in _rows(connection, run, which=which, columns=NUMBERED, storages=storages):
        yield table["order_no"]


class _Which(NamedTuple):
    """Which rows are asked for; those of the run's own account, ever, of all orders if not said."""

    until: int | None = None
    accounts: Sequence[Account] = ()
    spans: Sequence[Span] = EVER
    numbers: Sequence[str] | None = None
    behind: int = 0


def _rows(
    connection: Connection,
    run: Run,
    *,
    which: _Which,
    storages: StorageOf,
    columns: Sequence[str] = (),
) -> Iterator[tuple[StoredFacts, pa.Table]]:
    """Rows that stand, file by file; with the columns of the file `orders` if none are said."""
    places, spans, numbers = which.accounts or [_account(run)], which.spans, which.numbers
    until = which.until
    files = facts_rows.of_account(
        connection, run, accounts=places, spans=spans, until=until, behind=which.behind
    )
    looked = looked_up(
        connection,
        run,
        accounts=places,
        files=files,
        numbers=numbers,
        storages=storages,
        until=until,
    )
    stored = [name for name in columns or _SCHEMA.names if name != "source"]
    for file, table, stands in standing(looked, columns=stored, storages=storages):
        rows = stands & order_facts.is_of(table, places)
        rows &= np.any([ordered(table, span) for span in spans], axis=0)
        if numbers is not None:
            wanted = pa.array(numbers, pa.string())
            rows &= pc.is_in(table["order_no"], value_set=wanted).to_numpy()
        # Most files are whole in the window: a filter would copy them.
        some = table if rows.all() else table.filter(pa.array(rows))
        yield file, some if columns else _with_source(some, file=file)
        del table, some  # before the next one is read


def ordered(table: pa.Table, span: Span) -> Bools:
    """Which rows are ordered in a span."""
    column, (since, before) = table[ORDERED_AT], span
    inside = pc.greater_equal(column, pa.scalar(since, column.type))
    if before is not None:
        inside = pc.and_(inside, pc.less(column, pa.scalar(before, column.type)))
    rows: Bools = pc.fill_null(inside, False).to_numpy()
    return rows


def _account(run: Run) -> Account:
    return run.merchant_id, run.account_id


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
