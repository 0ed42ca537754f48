"""Many rows at once: what a database takes without one statement, or one object, for each row.

SQLite gets one prepared statement and tuples, PostgreSQL its COPY. Instants travel as text to the
microsecond in UTC, which is how SQLite keeps them.
"""

import io
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv
from sqlalchemy import (
    ColumnElement,
    Connection,
    String,
    Table,
    any_,
    bindparam,
    func,
    insert,
    select,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.exc import DBAPIError

_UTC = pa.scalar("+00", pa.large_string())
_NOTHING = pa.scalar("", pa.large_string())
INSTANT_FORMAT = "YYYY-MM-DD HH24:MI:SS.US"
"""How PostgreSQL's to_char writes an instant as SQLite keeps it."""


def arrow_rows(frame: pd.DataFrame, *, names: Sequence[str]) -> pa.Table:
    """Some columns of a typed frame, instants as text, blanks as null."""
    return pa.table({name: _stored(pa.array(frame[name])) for name in names})


def with_constant(rows: pa.Table, *, name: str, value: str | int) -> pa.Table:
    """The rows with one more column, the same in each."""
    return rows.append_column(name, pa.array(np.full(rows.num_rows, value)))


def insert_rows(connection: Connection, table: Table, rows: pa.Table) -> None:
    """Add rows whose columns have the names of the table's."""
    if not rows.num_rows:
        return
    names = rows.column_names
    if connection.dialect.name == "sqlite":
        statement = str(insert(table).compile(dialect=connection.dialect, column_keys=names))
        lists = {name: listed(rows.column(name)) for name in names}
        # The statement has the order of the table.
        ordered = [lists[column.name] for column in table.columns if column.name in lists]
        connection.exec_driver_sql(statement, list(zip(*ordered, strict=True)))
        return
    _copy(connection, table, rows)


def listed(cells: pa.ChunkedArray) -> list[Any]:
    """Python's values of one column, blanks as None."""
    if cells.null_count == len(cells):
        return [None] * len(cells)
    if not cells.null_count:
        values: list[Any] = cells.to_numpy().tolist()
        return values
    blanks = np.flatnonzero(np.array(pc.is_null(cells))).tolist()
    values = (
        pc.fill_null(cells, "" if pa.types.is_large_string(cells.type) else 0).to_numpy().tolist()
    )
    for row in blanks:
        values[row] = None
    return values


def among(
    connection: Connection,
    column: ColumnElement[Any],
    values: Sequence[str] | Sequence[int],
) -> ColumnElement[bool]:
    """Whether a column has one of many values, given as one parameter."""
    wanted = list(values)
    if connection.dialect.name == "sqlite":
        each = func.json_each(json.dumps(wanted)).table_valued("value")
        return column.in_(select(each.c.value))
    return column == any_(bindparam(None, wanted, type_=ARRAY(column.type)))


def instant_text(connection: Connection, column: ColumnElement[Any]) -> ColumnElement[Any]:
    """An instant of the database as `arrow_rows` writes it."""
    if connection.dialect.name == "sqlite":
        return func.coalesce(column, None, type_=String)
    return func.to_char(func.timezone("UTC", column), INSTANT_FORMAT, type_=String)


def _stored(cells: Any) -> Any:
    if pa.types.is_timestamp(cells.type):
        return cells.cast(pa.timestamp("us")).cast(pa.large_string())
    return cells.cast(pa.large_string()) if pa.types.is_string(cells.type) else cells


def _copy(connection: Connection, table: Table, rows: pa.Table) -> None:
    instants = {column.name for column in table.columns if _is_instant(column)}
    for name in instants & set(rows.column_names):
        index = rows.column_names.index(name)
        texts = pc.binary_join_element_wise(rows.column(name), _UTC, _NOTHING)
        rows = rows.set_column(index, name, texts)
    written = io.BytesIO()
    arrow_csv.write_csv(rows, written, arrow_csv.WriteOptions(include_header=False))
    quote = connection.dialect.identifier_preparer.quote
    names = ", ".join(quote(name) for name in rows.column_names)
    statement = f"COPY {quote(table.name)} ({names}) FROM STDIN (FORMAT csv)"
    driver: Any = connection.connection.driver_connection
    failed: Any = connection.dialect.loaded_dbapi.Error
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            copy.write(written.getbuffer())
    except failed as error:  # as SQLAlchemy would have said it
        raise DBAPIError.instance(statement, None, error, failed) from error


def _is_instant(column: Any) -> bool:
    return type(column.type).__name__ == "Instant"
