"""One SHA-256 over frames, the same for the same inputs; and the ids of sets."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.matching.frames.arrays import Column, texts
from recon.matching.frames.coding import pieces
from recon.matching.frames.grouping import Bools, amounts_of, given, instants_of

Labels = npt.NDArray[np.uint64]


def are_distinct(column: "pd.Series[str]") -> bool:
    """Whether no two texts of a column are equal, and none is blank of the type null."""
    return bool(column.is_unique and not column.hasnans)


def are_repeated(column: "pd.Series[str]") -> Bools:
    """The rows whose text is that of another row as well, blanks left out."""
    if are_distinct(column):
        return np.zeros(len(column), dtype=np.bool_)
    return np.asarray(column.duplicated(keep=False) & column.fillna("").ne(""), dtype=np.bool_)


def numbers_of(column: "pd.Series[str]") -> Labels:
    """The number of each text of a column that has no blanks of the type null."""
    return pd.util.hash_array(texts(column), categorize=False)


def shared_numbers(parts: Sequence[Labels]) -> Labels:
    """The numbers that several texts of all parts have, sorted."""
    ordered = np.sort(np.concatenate([np.zeros(0, dtype=np.uint64), *parts]))
    return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])


def are_among(numbers: Labels, several: Labels, /) -> Bools:
    """Which of some numbers are among a few, which are sorted."""
    if not len(several):
        return np.zeros(len(numbers), dtype=np.bool_)
    # Few against many: looking each up costs less than np.isin, which sorts them all.
    spots = np.minimum(np.searchsorted(several, numbers), len(several) - 1)
    among: Bools = several[spots] == numbers
    return among


_BETWEEN = "\x1f"
ID_DIGITS = 16
"""Hexadecimal digits of a break_id and a match_id."""


def digest_of(frames: Iterable[pd.DataFrame]) -> str:
    """SHA-256 over the columns of every frame in their order, blanks told from zeros."""
    sum_of_all = hashlib.sha256()
    for frame in frames:
        columns = list(frame.columns)
        sum_of_all.update(f"{columns}{len(frame)}".encode())
        for name in columns:
            column = frame[name]
            sum_of_all.update(np.logical_not(given(column)).tobytes())
            for part in _parts(column):
                sum_of_all.update(part)
    return sum_of_all.hexdigest()


def _parts(column: "pd.Series[Any]") -> Iterator[Any]:
    """The bytes of a column, in parts."""
    if isinstance(column.dtype, pd.StringDtype):
        yield from _texts(column)
    elif isinstance(column.dtype, pd.DatetimeTZDtype):
        yield instants_of(column).tobytes()
    else:
        yield amounts_of(column).tobytes()


def _texts(column: "pd.Series[str]") -> Iterator[Any]:
    """All texts of a column with a mark between them, joined by Arrow: none is one of Python."""
    between = pa.scalar(_BETWEEN, pa.large_string())
    for number, labels in enumerate(pieces(column)):
        if number:
            yield _BETWEEN.encode()
        ends = pa.array([0, len(labels)], pa.int64())
        joined: Any = pc.binary_join(pa.LargeListArray.from_arrays(ends, labels), between)
        yield joined[0].as_buffer()


def id_of(*names: str) -> str:
    """The id of what some names and a number together name: a break_id or match_id."""
    return hashlib.sha256(_BETWEEN.join(names).encode()).hexdigest()[:ID_DIGITS]


def first_ids(*columns: Column) -> Column:
    """The id of each row by its columns, were it the first of that name."""
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return np.array([id_of(*names, "1") for names in rows], dtype=object)
