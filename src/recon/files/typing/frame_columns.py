"""Typed columns of a file as the columns of a frame: numbers, instants, Arrow's own text."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from recon.files.typing.amounts import AmountColumn
from recon.files.typing.instants import InstantColumn

Rows = npt.NDArray[np.bool_] | None
"""Which rows are taken; None for all."""


def series_of(value: Any, *, keep: Rows, nullable: bool) -> "pd.Series[Any]":
    """A column of the frame: the rows of `keep`, or all of them."""
    match value:
        case AmountColumn() if nullable:
            amounts, given = (kept(part, keep=keep) for part in (value.minor_units, value.given))
            return pd.Series(pd.arrays.IntegerArray(amounts, ~given))
        case AmountColumn():
            return pd.Series(kept(value.minor_units, keep=keep), dtype="int64")
        case InstantColumn():
            moments = pd.Series(kept(value.microseconds, keep=keep).view("datetime64[us]"))
            return moments.dt.tz_localize("UTC")
    return texts_of(value if keep is None else value.filter(pa.array(keep)))


def kept(values: Any, *, keep: Rows) -> Any:
    """The rows of `keep`, or all of them, which are not copied."""
    return values if keep is None else values[keep]


def texts_of(cells: pa.Array) -> "pd.Series[str]":
    """Arrow's own text as a column, not one object of Python for each row."""
    column: pd.Series[str] = cells.to_pandas(types_mapper=lambda _: pd.StringDtype(na_value=np.nan))
    return column
