"""Order rows that an earlier version kept in a table, for the upgrade that writes them to files."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import ColumnClause, ColumnElement, Connection, column, inspect, select, table

from recon.matching.frames.sources import INSTANT, ORDER_COLUMNS
from recon.store.database.frames import frame_of_select
from recon.store.schema.columns import Instant, IsoDate

LAST_WITH_ORDERS = "0037"
"""The newest revision of a database that has such rows."""
STORED = "stored"
"""Under this name the migration is told which order files have files of facts: their numbers."""
ROWS_AT_ONCE = 50_000
_ROWS = table("order_row")
_FILE: ColumnClause[int] = column("file_id")
_ROW: ColumnClause[int] = column("row_id")
_STORED = tuple(name for name in ORDER_COLUMNS if name != "source")


@dataclass(frozen=True, slots=True)
class CarriedFile:
    """Whose order file it is, and of which night."""

    file_id: int
    merchant_id: str
    account_id: str
    business_date: date


def files_with_rows(connection: Connection) -> list[str]:
    """Numbers of order files with rows in the table, oldest first."""
    if not inspect(connection).has_table(_ROWS.name):
        return []
    numbers = connection.execute(select(_FILE).select_from(_ROWS).distinct().order_by(_FILE))
    return [str(number) for number in numbers.scalars()]


def file_of(connection: Connection, file_id: int) -> CarriedFile:
    """One order file."""
    names: list[ColumnElement[Any]] = [
        *(column(name) for name in ("merchant_id", "account_id")),
        column("business_date", IsoDate),
    ]
    query = select(*names).select_from(table("order_file")).where(_FILE.in_([file_id]))
    return CarriedFile(file_id, *connection.execute(query).one())


def rows_of_file(connection: Connection, file_id: int) -> Iterator[pd.DataFrame]:
    """What of ORDER_COLUMNS the table has of a file, in the order in which rows were stored."""
    numbers = _numbers(connection, file_id)
    kinds: dict[str, Any] = {name: ORDER_COLUMNS[name] for name in _STORED}
    names = [
        column(name, Instant) if kind == INSTANT else column(name) for name, kind in kinds.items()
    ]
    for start in range(0, len(numbers), ROWS_AT_ONCE):
        some = numbers[start : start + ROWS_AT_ONCE]
        query = (
            select(*names)
            .select_from(_ROWS)
            .where(_FILE.in_([file_id]), int(some[0]) <= _ROW, int(some[-1]) >= _ROW)
            .order_by(_ROW)
        )
        yield frame_of_select(connection, query, columns=kinds)


def gone_by(connection: Connection, file_id: int) -> list[tuple[int, int]]:
    """File and place (from 0) of each row that rows of a file took the place of."""
    query = select(_FILE, _ROW).select_from(_ROWS).where(column("superseded_in") == file_id)
    by_file: dict[int, list[int]] = {}
    for number, row_id in connection.execute(query.order_by(_FILE, _ROW)):
        by_file.setdefault(number, []).append(row_id)
    return [
        (number, int(row))
        for number, row_ids in by_file.items()
        for row in np.searchsorted(_numbers(connection, number), row_ids)
    ]


def _numbers(connection: Connection, file_id: int) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """The numbers of a file's rows, in their order."""
    query = select(_ROW).select_from(_ROWS).where(_FILE.in_([file_id])).order_by(_ROW)
    return np.array(connection.execute(query).scalars().all(), dtype=np.int64)
