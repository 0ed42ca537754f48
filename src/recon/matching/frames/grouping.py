"""Aggregates per group number, exact in int64, on which the sides of a set are built.

Groups are numbered 0 .. size-1; a row of group -1 belongs to none. Instants are microseconds since
1970 in UTC, `NO_INSTANT` where none is given.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]

NO_INSTANT = int(np.iinfo(np.int64).min)
NO_ROW = -1
NO_GROUP = -1
BASIS = 10_000
"""Basis points of a whole."""


def total(values: Ints, *, groups: Rows, size: int) -> Ints:
    """Return the sum of the values of each group."""
    sums = np.zeros(size, dtype=np.int64)
    inside = groups >= 0
    np.add.at(sums, groups[inside], values[inside])
    return sums


def greatest(values: Ints, *, groups: Rows, size: int) -> Ints:
    """Return the largest value of each group, 0 where none is above 0."""
    found = np.zeros(size, dtype=np.int64)
    inside = groups >= 0
    np.maximum.at(found, groups[inside], values[inside])
    return found


def count(mask: Bools, *, groups: Rows, size: int) -> Ints:
    """Return the number of rows of each group for which the mask is true."""
    return total(mask.astype(np.int64), groups=groups, size=size)


def present(mask: Bools, *, groups: Rows, size: int) -> Bools:
    """Return whether the mask is true for any row of each group."""
    is_present = np.zeros(size, dtype=np.bool_)
    is_present[groups[mask & (groups >= 0)]] = True
    return is_present


def latest(instants: Ints, *, groups: Rows, size: int) -> Ints:
    """Return the greatest value of each group; NO_INSTANT for a group without rows."""
    inside = groups >= 0
    if not inside.any():
        # A broadcast view: a run has a dozen such columns for kinds of instruction that it does not
        # have.
        return np.broadcast_to(np.int64(NO_INSTANT), (size,))
    greatest = np.full(size, NO_INSTANT, dtype=np.int64)
    np.maximum.at(greatest, groups[inside], instants[inside])
    return greatest


def first_row(order: Sequence[npt.NDArray[Any]], *, groups: Rows, size: int) -> Rows:
    """Return the row of each group that sorts first by the columns of `order`; NO_ROW for none.

    Only groups of several rows are sorted: most have one.
    """
    chosen = np.full(size, NO_ROW, dtype=np.intp)
    rows = np.flatnonzero(groups >= 0)
    chosen[groups[rows]] = rows
    crowded = rows[np.bincount(groups[rows], minlength=size)[groups[rows]] > 1]
    if crowded.size:
        columns = (column[crowded].tolist() for column in (groups, *order))
        for group, *_, row in sorted(zip(*columns, crowded.tolist(), strict=True), reverse=True):
            chosen[group] = row
    return chosen


def instants_of(column: "pd.Series[pd.Timestamp]") -> Ints:
    """Return a column of instants as microseconds since 1970 in UTC."""
    array: Any = column.array
    if not isinstance(array, pd.arrays.DatetimeArray):
        array = pd.DatetimeIndex(column).array
    instants: Ints = array.as_unit("us").asi8.copy()
    return instants


def microseconds(instant: datetime) -> int:
    """Return an instant as microseconds since 1970."""
    return int(pd.Timestamp(instant).as_unit("us").value // 1000)


def given(column: "pd.Series[int]") -> Bools:
    """Mark the rows of a column that are not blank."""
    return ~np.asarray(column.array.isna(), dtype=np.bool_)


def amounts_of(column: "pd.Series[int]") -> Ints:
    """Return a column of minor units as int64, with 0 for blanks."""
    if isinstance(column.dtype, pd.Int64Dtype):
        return np.asarray(column.to_numpy(dtype=np.int64, na_value=0), dtype=np.int64)
    return np.asarray(column.fillna(0).to_numpy(dtype=np.int64), dtype=np.int64)


def amounts_or(column: "pd.Series[int]", *, otherwise: "pd.Series[int]") -> Ints:
    """Return minor units of a column, blanks taken from another column; always a copy."""
    amounts = amounts_of(otherwise).copy()
    column_given = given(column)
    if column_given.any():
        amounts[column_given] = amounts_of(column)[column_given]
    return amounts


def cells_of(column: npt.NDArray[Any], *, rows: Rows) -> npt.NDArray[Any]:
    """Return the text of the chosen rows, "" where the choice is NO_ROW."""
    blank = np.array([""], dtype=object)
    return np.concatenate([column, blank])[rows]
