"""Aggregates per group number, exact in int64: the arithmetic under every side of a set.

Groups are numbered 0 .. size-1; a row of group -1 belongs to none. Instants are microseconds since
1970 in UTC, `NO_INSTANT` where none is given.
"""

import numpy as np
import numpy.typing as npt
import pandas as pd

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]

NO_INSTANT = int(np.iinfo(np.int64).min)
NO_ROW = -1


def total(values: Ints, *, groups: Rows, size: int) -> Ints:
    """Sum of the values of each group."""
    sums = np.zeros(size, dtype=np.int64)
    inside = groups >= 0
    np.add.at(sums, groups[inside], values[inside])
    return sums


def count(mask: Bools, *, groups: Rows, size: int) -> Ints:
    """How many rows of each group are marked."""
    return total(mask.astype(np.int64), groups=groups, size=size)


def present(mask: Bools, *, groups: Rows, size: int) -> Bools:
    """Whether any row of each group is marked."""
    found = np.zeros(size, dtype=np.bool_)
    found[groups[mask & (groups >= 0)]] = True
    return found


def latest(instants: Ints, *, groups: Rows, size: int) -> Ints:
    """The greatest value of each group; NO_INSTANT for a group without rows."""
    greatest = np.full(size, NO_INSTANT, dtype=np.int64)
    inside = groups >= 0
    np.maximum.at(greatest, groups[inside], instants[inside])
    return greatest


def first_row(order: pd.DataFrame, *, groups: Rows, size: int) -> Rows:
    """The row of each group that comes first by the columns of `order`; NO_ROW for none.

    Only groups of several rows are sorted: most have one.
    """
    chosen = np.full(size, NO_ROW, dtype=np.intp)
    rows = np.flatnonzero(groups >= 0)
    chosen[groups[rows]] = rows
    crowded = rows[np.bincount(groups[rows], minlength=size)[groups[rows]] > 1]
    if crowded.size:
        ranked = order.iloc[crowded].assign(_group=groups[crowded], _row=crowded)
        ranked = ranked.sort_values([*order.columns, "_row"], kind="stable")
        ranked = ranked.drop_duplicates("_group")
        chosen[ranked["_group"].to_numpy()] = ranked["_row"].to_numpy()
    return chosen


def instants_of(column: "pd.Series[pd.Timestamp]") -> Ints:
    """Microseconds of a column of instants."""
    return pd.DatetimeIndex(column).as_unit("us").asi8.astype(np.int64)


def amounts_of(column: "pd.Series[int]") -> Ints:
    """Minor units of a column that may be blank; blank is 0."""
    return np.asarray(column.fillna(0).to_numpy(dtype=np.int64), dtype=np.int64)


def amounts_or(column: "pd.Series[int]", *, otherwise: "pd.Series[int]") -> Ints:
    """Minor units of a column, where it is blank those of another one; a copy of its own."""
    amounts = amounts_of(otherwise).copy()
    given = column.notna().to_numpy()
    if given.any():
        amounts[given] = amounts_of(column)[given]
    return amounts


def taken(column: "pd.Series[str]", *, rows: Rows) -> "pd.Series[str]":
    """The text of the chosen rows, "" where the choice is NO_ROW."""
    text = column.reset_index(drop=True).reindex(rows).fillna("").reset_index(drop=True)
    return text.astype("str")
