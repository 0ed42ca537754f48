"""Many rows at once, and frames of them: without an object for each row, and without a float."""

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
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

from recon.matching.frames.sources import INSTANT, MINOR_UNITS_OR_BLANK, TEXT, frame_of
from recon.store.schema.columns import Instant

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


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """One mapping per row, blanks as None, instants as datetimes, integers as int."""
    columns = {name: _values(frame[name]) for name in frame.columns}
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def frame_of_select(
    connection: Connection, query: Select[Any], *, columns: Mapping[str, str]
) -> pd.DataFrame:
    """The rows of a query as a typed frame of exactly these columns."""
    asked = [*query.selected_columns]
    # As texts they become a column at once; an object of Python for each costs more than the rest.
    instants = {each.name for each in asked if isinstance(each.type, Instant)}
    cheap = (
        instant_text(connection, each).label(each.name) if each.name in instants else each
        for each in asked
    )
    records = connection.execute(query.with_only_columns(*cheap, maintain_column_froms=True)).all()
    if not records:
        return frame_of([], columns=columns)
    cells = dict(zip((each.name for each in asked), zip(*records, strict=True), strict=True))
    return pd.DataFrame(
        {
            name: _instants(cells[name])
            if name in instants
            else _cells(list(cells.get(name, ())), kind, rows=len(records))
            for name, kind in columns.items()
        }
    )


def _instants(texts: Sequence[str | None]) -> Any:
    """A column of INSTANT from texts as `instant_text` gives them, None where there is none."""
    moments = pa.array(texts, pa.string()).cast(pa.timestamp("us"))
    return pd.DatetimeIndex(moments.to_numpy(zero_copy_only=False), tz="UTC").array


def _cells(values: list[Any], kind: Any, *, rows: int) -> Any:
    filled = values or [None] * rows
    if kind == TEXT:
        filled = ["" if value is None else value for value in filled]
    elif kind == INSTANT:
        filled = [pd.NaT if value is None else value for value in filled]
    elif kind == MINOR_UNITS_OR_BLANK:
        filled = [pd.NA if value is None else value for value in filled]
    # An array costs a third of a series, of which a frame takes nothing more.
    return pd.array(filled, dtype=kind)


def _values(series: "pd.Series[Any]") -> list[Any]:
    if series.empty:
        return []
    if isinstance(series.dtype, pd.DatetimeTZDtype):
        return [None if pd.isna(v) else v.to_pydatetime() for v in series]
    return [
        None if blank else value
        for value, blank in zip(series.tolist(), series.isna().tolist(), strict=True)
    ]
