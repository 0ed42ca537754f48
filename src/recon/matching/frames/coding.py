"""Numbers for the texts of columns: each distinct text is processed once."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.matching.frames.arrays import Column
from recon.matching.frames.grouping import Bools, Rows


class Keyed(NamedTuple):
    """The number of each row's combination of cells, and the distinct combinations by number."""

    rows: Rows
    keys: list[tuple[Any, ...]]


def numbered(frame: pd.DataFrame, *, by: Sequence[str]) -> Rows:
    """Number the distinct combinations of some columns, in order of first appearance."""
    numbers = frame.groupby([*by], sort=False, dropna=False).ngroup()
    return np.asarray(numbers, dtype=np.intp)


def keyed(frame: pd.DataFrame, *, by: Sequence[str]) -> Keyed:
    """Number as `numbered`, and return the combinations as well."""
    rows = numbered(frame, by=by)
    named = frame.loc[is_first(rows), [*by]]
    return Keyed(rows, [*named.itertuples(index=False, name=None)])


def is_first(numbers: Rows) -> Bools:
    """Mark the first row of each number."""
    return ~pd.Series(numbers).duplicated().to_numpy()


def by_label(
    column: "pd.Series[str]", *, of: Callable[[str], int | bool]
) -> "np.ndarray[Any, np.dtype[Any]]":
    """Return `of(label)` for each row; `of` is called once per distinct label."""
    codes, labels = pd.factorize(column.fillna(""))
    return np.array([of(label) for label in labels] or [0])[codes]


def label_of(column: "pd.Series[str]") -> Column:
    """Return a column of few distinct labels as an array of `str`; equal rows share one object."""
    codes, labels = pd.factorize(column.fillna(""))
    return np.array([*labels, ""], dtype=object)[codes]


def equals(column: "pd.Series[str]", *labels: str) -> Bools:
    """Mark the rows that hold one of the labels."""
    return np.array(column.isin(labels), dtype=np.bool_)


def is_among(column: "pd.Series[str]", values: Iterable[str]) -> "pd.Series[bool]":
    """Return whether each text is one of `values`, with the column's own index.

    `Series.isin` takes the wanted texts one by one through Python, which for a million orders costs
    more than comparing them.
    """
    names = values.array if isinstance(values, pd.Series) else [*values]
    known: pa.Array = pa.array(names, pa.large_string())
    marks: pa.Array = pc.is_in(pa.array(column, pa.large_string()), value_set=known)
    return pd.Series(np.asarray(marks, dtype=bool), index=column.index)
