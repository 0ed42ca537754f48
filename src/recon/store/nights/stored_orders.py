"""The orders of an account as they stand, from the files of facts that may have them.

A row without a successor stands. `until` is the last order file that counts: rows are then as they
stood when it had been read.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection

from recon.archive.schemas import SCHEMAS
from recon.matching.frames.sources import ORDER_COLUMNS
from recon.proof.night_tables import frame_of_table
from recon.store.nights import facts_rows, order_facts
from recon.store.nights.facts_keys import Counting, files_having
from recon.store.nights.facts_rows import Account, StoredFacts
from recon.store.nights.order_facts import Bools, StorageOf
from recon.store.nights.order_keys import hashes_of
from recon.store.nights.order_merge import KEY_COLUMNS
from recon.store.nights.runs import Run

ORDERED_AT = "ordered_at"
NUMBERED = (*KEY_COLUMNS, ORDERED_AT)
"""Columns that say which orders rows are of, and of when."""
Span = tuple[datetime, datetime | None]
"""From an instant to another, both in it; None: without an end."""


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
    return _frame(current_rows(connection, run, since=since, storages=storages, until=until))


def current_rows(
    connection: Connection,
    run: Run,
    *,
    since: datetime,
    storages: StorageOf,
    until: int | None = None,
) -> pa.Table:
    """As `current_orders`, with the columns of the file `orders` of a night."""
    account = _account(run)
    files = facts_rows.of_account(connection, [account], spans=[(since, None)], until=until)
    whole = [*SCHEMAS["orders"].columns.names]
    tables = []
    for file, table, stands in order_facts.standing(
        connection, files, storages=storages, columns=_without_source(whole), until=until
    ):
        rows = stands & order_facts.is_of(table, [account]) & ordered(table, since=since)
        # Most files are whole in the window: a filter would copy them.
        some = table if rows.all() else table.filter(pa.array(rows))
        tables.append(_with_source(some, file=file))
        del table, some  # before the next one is read
    return _joined(tables)


def orders_of_keys(
    connection: Connection,
    *,
    merchant_id: str,
    accounts: Sequence[str],
    order_nos: Sequence[str],
    storages: StorageOf,
    until: int | None = None,
) -> pd.DataFrame:
    """ORDER_COLUMNS of some orders in some accounts, rows that stand; see `current_orders`."""
    return _frame(
        rows_of_keys(
            connection,
            merchant_id=merchant_id,
            accounts=accounts,
            order_nos=order_nos,
            storages=storages,
            until=until,
        )
    )


def rows_of_keys(
    connection: Connection,
    *,
    merchant_id: str,
    accounts: Sequence[str],
    order_nos: Sequence[str],
    storages: StorageOf,
    until: int | None = None,
) -> pa.Table:
    """As `orders_of_keys`, with the columns of the file `orders` of a night."""
    places = [(merchant_id, account_id) for account_id in accounts]
    names = [*SCHEMAS["orders"].columns.names]
    tables = []
    for file, table, stands in _of_keys(
        connection,
        places,
        order_nos,
        storages=storages,
        columns=_without_source(names),
        until=until,
    ):
        tables.append(_with_source(table.filter(pa.array(stands)), file=file))
    return _joined(tables)


def rows_by_file(
    connection: Connection, run: Run, *, order_nos: Sequence[str], storages: StorageOf
) -> Iterator[tuple[int, pa.Table]]:
    """Rows that stand of some orders of the account, with the number of their file."""
    for file, table, stands in _of_keys(
        connection,
        [_account(run)],
        order_nos,
        storages=storages,
        columns=_without_source([*SCHEMAS["orders"].columns.names]),
        until=None,
    ):
        yield file.file_id, table.filter(pa.array(stands))


def ordered_since(
    connection: Connection,
    run: Run,
    *,
    since: datetime,
    storages: StorageOf,
    until: int | None = None,
) -> Iterator[pa.ChunkedArray]:
    """Order numbers of the account's rows that stand, ordered since an instant, file by file.

    A number comes once for each such row.
    """
    files = facts_rows.of_account(connection, [_account(run)], spans=[(since, None)], until=until)
    for table, stands in _numbered(connection, run, files, storages=storages, until=until):
        yield _numbers(table, stands & ordered(table, since=since))


def came_after(
    connection: Connection,
    run: Run,
    *,
    last_file: int,
    span: tuple[datetime, datetime],
    storages: StorageOf,
) -> Iterator[pa.ChunkedArray]:
    """Order numbers of the account with rows of files behind one, ordered in [from, before).

    As `ordered_since` gives them.
    """
    since, before = span
    files = facts_rows.of_account(connection, [_account(run)], spans=[span], behind=last_file)
    for table, stands in _numbered(connection, run, files, storages=storages):
        rows = stands & ordered(table, since=since) & ~ordered(table, since=before)
        yield _numbers(table, rows)


def ordered_between(
    connection: Connection,
    run: Run,
    *,
    spans: Iterable[tuple[datetime, datetime]],
    storages: StorageOf,
) -> Iterator[pa.ChunkedArray]:
    """Order numbers of the account whose orders are of one of these spans (after, up to).

    As `ordered_since` gives them.
    """
    wanted = [*spans]
    files = facts_rows.of_account(connection, [_account(run)], spans=wanted)
    for table, stands in _numbered(connection, run, files, storages=storages):
        inside = np.zeros(table.num_rows, dtype=bool)
        for after, until in wanted:
            inside |= _ordered_after(table, after) & ~_ordered_after(table, until)
        yield _numbers(table, stands & inside)


def counted_of_keys(
    connection: Connection,
    run: Run,
    *,
    order_nos: Sequence[str],
    storages: StorageOf,
    until: int,
) -> dict[int, int]:
    """Order file -> how many rows of these orders of the account stand in it."""
    return {
        file.file_id: int(stands.sum())
        for file, _, stands in _of_keys(
            connection,
            [_account(run)],
            order_nos,
            storages=storages,
            columns=KEY_COLUMNS,
            until=until,
        )
    }


def _of_keys(
    connection: Connection,
    accounts: Collection[Account],
    order_nos: Sequence[str],
    *,
    storages: StorageOf,
    columns: Sequence[str],
    until: int | None,
) -> Iterator[tuple[StoredFacts, pa.Table, Bools]]:
    """Files with rows of these orders, and which of them stand and are of them."""
    if not len(order_nos):
        return
    wanted = _hashes(accounts, order_nos=order_nos)
    files, _ = files_having(
        connection, accounts, hashes=wanted, storages=storages, counting=Counting(until=until)
    )
    numbers = pa.array(order_nos, pa.string())
    for file, table, stands in order_facts.standing(
        connection, files, storages=storages, columns=columns, until=until
    ):
        named: Bools = pc.is_in(table["order_no"], value_set=numbers).to_numpy()
        yield file, table, stands & named & order_facts.is_of(table, accounts)


def _hashes(accounts: Collection[Account], *, order_nos: Sequence[str]) -> Any:
    numbers = pa.array(order_nos, pa.string())
    each = [
        hashes_of(
            pa.table(
                {
                    "merchant_id": pa.array([merchant_id] * len(numbers)),
                    "account_id": pa.array([account_id] * len(numbers)),
                    "order_no": numbers,
                }
            )
        )
        for merchant_id, account_id in accounts
    ]
    return np.unique(np.concatenate(each))


def _numbered(
    connection: Connection,
    run: Run,
    files: Sequence[StoredFacts],
    *,
    storages: StorageOf,
    until: int | None = None,
) -> Iterator[tuple[pa.Table, Bools]]:
    """Numbers and instants of files' rows, and which of them stand and are of the account."""
    for _, table, stands in order_facts.standing(
        connection, files, storages=storages, columns=NUMBERED, until=until
    ):
        yield table, stands & order_facts.is_of(table, [_account(run)])


def _numbers(table: pa.Table, rows: Bools) -> pa.ChunkedArray:
    return table["order_no"].filter(pa.array(rows))


def ordered(table: pa.Table, *, since: datetime) -> Bools:
    """Which rows are ordered since an instant."""
    return _compared(pc.greater_equal, table, since)


def _ordered_after(table: pa.Table, instant: datetime) -> Bools:
    return _compared(pc.greater, table, instant)


def _compared(how: Any, table: pa.Table, instant: datetime) -> Bools:
    column = table[ORDERED_AT]
    rows: Bools = pc.fill_null(how(column, pa.scalar(instant, column.type)), False).to_numpy()
    return rows


def _account(run: Run) -> Account:
    return run.merchant_id, run.account_id


def _without_source(names: Sequence[str]) -> list[str]:
    return [name for name in names if name != "source"]


def _with_source(table: pa.Table, *, file: StoredFacts) -> pa.Table:
    """The rows as `orders` of a night has them: each names the file that it came from."""
    schema = SCHEMAS["orders"].columns
    kind = schema.field("source").type
    codes = pa.array(np.zeros(table.num_rows, np.int32))
    source = pa.DictionaryArray.from_arrays(codes, pa.array([file.name], kind.value_type))
    columns = [source if name == "source" else table[name] for name in schema.names]
    return pa.table(columns, schema=schema)


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    empty = SCHEMAS["orders"].columns.empty_table()
    return pa.concat_tables([*tables] or [empty]).unify_dictionaries()


def _frame(table: pa.Table) -> pd.DataFrame:
    return frame_of_table(table)[[*ORDER_COLUMNS]]
