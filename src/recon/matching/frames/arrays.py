"""`Arrays`, a light table of equally long columns used between the engine's sources and its result.

Numbers are numpy arrays, texts are arrays of `str`. A run of three orders reads some hundred
columns, and reading one from a frame takes a hundred times longer than from an array.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.schemas import SCHEMAS
from recon.matching.frames.grouping import Bools, Rows

Column = npt.NDArray[Any]


def columns_of(file: str) -> dict[str, str]:
    """Return name -> pandas type for each column of a file in a run's folder.

    Texts are `str`, whole numbers int64, or Int64 where they may be blank, instants datetime64[us,
    UTC].
    """
    return {field.name: _kind(field) for field in SCHEMAS[file].columns}


def _kind(field: pa.Field) -> str:
    if pa.types.is_timestamp(field.type):
        return "datetime64[us, UTC]"
    if pa.types.is_integer(field.type):
        return "Int64" if field.nullable else "int64"
    return "str"


def text_type() -> Any:
    """Return the pandas type of text columns; Python and Arrow storage can be mixed."""
    return pd.StringDtype(na_value=np.nan)


@contextmanager
def texts_for(*, few: bool) -> Iterator[None]:
    """Use Python storage for texts of few rows within this context: Arrow takes longer to start.

    This is a setting of the process. Where two contexts run at once, each sets its own and one may
    undo the other's; its columns are then slower to make but have the same values.
    """
    with pd.option_context("mode.string_storage", "python" if few else "pyarrow"):
        yield


class Arrays:
    """Columns of one length, by name."""

    def __init__(self, columns: Mapping[str, Column], *, size: int) -> None:
        self.columns = dict(columns)
        self.size = size

    def __getitem__(self, name: str) -> Column:
        """Return one column."""
        return self.columns[name]

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.size

    def take(self, rows: Any) -> "Arrays":
        """Return some of the rows, chosen by numbers, a mask or a slice."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        return Arrays(columns, size=len(next(iter(columns.values()))))

    def assign(self, **columns: Any) -> "Arrays":
        """Return the rows with columns added or replaced; a single value fills its column."""
        given = {
            name: column if isinstance(column, np.ndarray) else np.full(self.size, column)
            for name, column in columns.items()
        }
        return Arrays({**self.columns, **given}, size=self.size)

    def frame(self, *names: str) -> pd.DataFrame:
        """Return the named columns as a frame, texts as they are."""
        return pd.DataFrame({name: pd.Series(self[name], dtype=self[name].dtype) for name in names})

    def rows(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Iterate over the rows as tuples of the named columns."""
        return zip(*(self.columns[name].tolist() for name in names), strict=True)


def texts(column: "pd.Series[str]") -> Column:
    """Return a text column as an array of `str`."""
    return column.to_numpy(dtype=object)


def text_column(labels: Sequence[str] | Column | pa.Array | pa.ChunkedArray) -> "pd.Series[str]":
    """Make a frame column from texts, the inverse of `texts`; Arrow data is not copied."""
    return pd.Series(text_array(labels))


def text_array(labels: Sequence[str] | Column | pa.Array | pa.ChunkedArray) -> Any:
    """Make a text array that a frame accepts, in a third of the time of a column."""
    return pd.array(labels, dtype=text_type())


def filled(label: str, *, size: int) -> Column:
    """Return an array that holds the same text in every row."""
    column = np.empty(size, dtype=object)
    column[:] = label
    return column


def records(frame: pd.DataFrame, *, rows: Any, names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Iterate over the given rows of a frame as dicts of the named columns."""
    named = [*names]
    columns = (frame[name].array.take(rows).tolist() for name in named)
    for cells in zip(*columns, strict=True):
        yield dict(zip(named, cells, strict=True))


def among(column: Column, labels: "frozenset[str] | set[str]") -> Bools:
    """Mark the rows that hold one of the labels."""
    return np.array(pd.Series(column, dtype=object).isin(labels), dtype=np.bool_)


def stacked(tables: "list[Arrays]", *, names: tuple[str, ...]) -> Arrays:
    """Concatenate the named columns of several tables."""
    columns = {name: np.concatenate([table[name] for table in tables]) for name in names}
    return Arrays(columns, size=sum(map(len, tables)))


def order_of(columns: "pd.DataFrame | Mapping[str, Any]", *, by: Sequence[str]) -> Rows:
    """Return the row numbers in sorted order, at a fifth of the cost of `DataFrame.sort_values`."""
    table = pa.table({name: pa.array(columns[name]) for name in by})
    if not table.num_rows:
        return np.arange(0)
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in by])
    return np.asarray(order).astype(np.intp)


def in_order(frame: pd.DataFrame, *, by: Sequence[str]) -> pd.DataFrame:
    """Return the frame sorted by these columns, with a new index."""
    return frame.iloc[order_of(frame, by=by)].reset_index(drop=True)


def columns_in_order(columns: "dict[str, pd.Series[Any]]", *, by: Sequence[str]) -> pd.DataFrame:
    """Build a sorted frame from columns; each is released once it is sorted, which saves memory."""
    order = order_of(columns, by=by)
    ordered = {name: columns.pop(name).take(order).reset_index(drop=True) for name in [*columns]}
    return pd.DataFrame(ordered, copy=False)
