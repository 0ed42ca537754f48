"""Columns of one length: what the engine works on between its sources and its result.

Numbers are numpy arrays, texts arrays of `str`. A night of three orders looks at some hundred of
columns, and a frame asks a hundred times more than an array for each look.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from recon.archive.schemas import SCHEMAS
from recon.matching.frames.grouping import Bools, Rows

Column = npt.NDArray[Any]


def columns_of(file: str) -> dict[str, str]:
    """Name -> type of pandas of each column that a file of a night's folder has.

    Texts are `str`, whole numbers int64, or Int64 where they may be blank, instants
    datetime64[us, UTC].
    """
    return {field.name: _kind(field) for field in SCHEMAS[file].columns}


def _kind(field: pa.Field) -> str:
    if pa.types.is_timestamp(field.type):
        return "datetime64[us, UTC]"
    if pa.types.is_integer(field.type):
        return "Int64" if field.nullable else "int64"
    return "str"


def text_type() -> Any:
    """How pandas holds a column of texts here: both ways say the same, also put together."""
    return pd.StringDtype(na_value=np.nan)


@contextmanager
def texts_for(*, few: bool) -> Iterator[None]:
    """Within it pandas holds texts as Python does for few rows: Arrow takes longer to begin.

    It is a setting of the process: of two at once each sets its own, and where one undoes the
    other's, its columns take longer and say the same.
    """
    with pd.option_context("mode.string_storage", "python" if few else "pyarrow"):
        yield


class Arrays:
    """Columns of one length, by name."""

    def __init__(self, columns: Mapping[str, Column], *, size: int) -> None:
        self.columns = dict(columns)
        self.size = size

    def __getitem__(self, name: str) -> Column:
        """One column."""
        return self.columns[name]

    def __len__(self) -> int:
        """How many rows there are."""
        return self.size

    def take(self, rows: Any) -> "Arrays":
        """Some of the rows: by their numbers, by a mask or by a slice."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        return Arrays(columns, size=len(next(iter(columns.values()))))

    def assign(self, **columns: Any) -> "Arrays":
        """The same rows with other columns, or more of them; a single value stands in every row."""
        given = {
            name: column if isinstance(column, np.ndarray) else np.full(self.size, column)
            for name, column in columns.items()
        }
        return Arrays({**self.columns, **given}, size=self.size)

    def rows(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Row by row, what stands in these columns."""
        return zip(*(self.columns[name].tolist() for name in names), strict=True)


def texts(column: "pd.Series[str]") -> Column:
    """A column of text as an array of `str`."""
    return column.to_numpy(dtype=object)


def texts_at(rows: Rows, *, of: "pd.Series[str]") -> Column:
    """Some cells of a column of text as an array of `str`."""
    cells: Any = of.array.take(rows)
    return texts(cells)


def text_column(labels: Sequence[str] | Column | pa.Array | pa.ChunkedArray) -> "pd.Series[str]":
    """The other way round: a column of a frame from texts; those of Arrow are not copied."""
    return pd.Series(text_array(labels))


def text_array(labels: Sequence[str] | Column | pa.Array | pa.ChunkedArray) -> Any:
    """The same as a frame takes it in least time, which is a third of that of a column."""
    return pd.array(labels, dtype=text_type())


def filled(label: str, *, size: int) -> Column:
    """The same text in every row."""
    column = np.empty(size, dtype=object)
    column[:] = label
    return column


def records(frame: pd.DataFrame, *, rows: Any, names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Some cells of some rows of a frame, row by row."""
    named = [*names]
    columns = (frame[name].array.take(rows).tolist() for name in named)
    for cells in zip(*columns, strict=True):
        yield dict(zip(named, cells, strict=True))


def frame_of_cells(
    rows: Sequence[Mapping[str, Any]], *, names: Iterable[str], numbers: Collection[str]
) -> pd.DataFrame:
    """A frame of texts from a few rows; the columns named in `numbers` hold 64-bit integers."""
    columns = {}
    for name in names:
        cells = [row[name] for row in rows]
        columns[name] = np.array(cells, np.int64) if name in numbers else text_array(cells)
    return pd.DataFrame(columns, index=pd.RangeIndex(len(rows)))


def among(column: Column, labels: "frozenset[str] | set[str]") -> Bools:
    """The rows that hold one of the words."""
    return np.array(pd.Series(column, dtype=object).isin(labels), dtype=np.bool_)


def stacked(tables: "list[Arrays]", *, names: tuple[str, ...]) -> Arrays:
    """Some columns of several tables, one below the other."""
    columns = {name: np.concatenate([table[name] for table in tables]) for name in names}
    return Arrays(columns, size=sum(map(len, tables)))
