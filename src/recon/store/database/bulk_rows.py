"""Conversion between database rows and dataclasses, mappings and frames, without any float."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import pandas as pd
from sqlalchemy import ColumnElement, Connection, Select, Table, delete, insert, select

from recon.matching.frames.sources import frame_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Saved = TypeVar("Saved", bound="DataclassInstance")


def replace_rows(
    connection: Connection, table: Table, run_id: str, rows: Iterable[Mapping[str, Any]]
) -> None:
    """Replace a run's rows of a table, which an earlier attempt may have written."""
    connection.execute(delete(table).where(table.c.run_id == run_id))
    add_rows(connection, table, [{"run_id": run_id, **row} for row in rows])


def read(
    connection: Connection,
    kind: type[Saved],
    table: Table,
    *which: ColumnElement[bool],
    order: Iterable[ColumnElement[Any]] = (),
) -> list[Saved]:
    """Return rows of a table as instances of a dataclass whose fields are columns."""
    columns = (table.c[each.name] for each in fields(kind))
    rows = connection.execute(select(*columns).where(*which).order_by(*order))
    return [kind(*row) for row in rows]


def add_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows that all have the same columns; an empty sequence is allowed."""
    if rows:
        connection.execute(insert(table), rows)


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return one mapping per row: blanks as None, instants as datetime, integers as int."""
    columns = {name: _values(frame[name]) for name in frame.columns}
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def frame_of_select(
    connection: Connection, query: Select[Any], *, columns: Mapping[str, str]
) -> pd.DataFrame:
    """Return the rows of a query as a typed frame of exactly these columns."""
    rows = connection.execute(query).mappings()
    return frame_of((dict(row) for row in rows), columns=columns)


def _values(series: "pd.Series[Any]") -> list[Any]:
    if series.empty:
        return []
    if isinstance(series.dtype, pd.DatetimeTZDtype):
        return [None if pd.isna(v) else v.to_pydatetime() for v in series]
    return [
        None if blank else value
        for value, blank in zip(series.tolist(), series.isna().tolist(), strict=True)
    ]
