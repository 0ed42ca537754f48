"""SHA-256 digests of frames, text hashes to find repeats, and the ids of sets."""

import hashlib
from collections.abc import Iterable, Iterator
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
    """Return whether all texts of a column differ and none is null."""
    return bool(column.is_unique and not column.hasnans)


def are_repeated(column: "pd.Series[str]") -> Bools:
    """Mark the rows whose text occurs in another row as well; blanks are never marked."""
    if are_distinct(column):
        return np.zeros(len(column), dtype=np.bool_)
    return np.asarray(column.duplicated(keep=False) & column.fillna("").ne(""), dtype=np.bool_)


def numbers_of(column: "pd.Series[str]") -> Labels:
    """Hash each text of a column without nulls to 64 bits."""
    return pd.util.hash_array(texts(column), categorize=False)


def are_among(numbers: Labels, several: Labels, /) -> Bools:
    """Mark which of `numbers` are in `several`, a short sorted array."""
    if not len(several):
        return np.zeros(len(numbers), dtype=np.bool_)
    # Few against many: a binary search for each costs less than np.isin, which sorts them all.
    spots = np.minimum(np.searchsorted(several, numbers), len(several) - 1)
    among: Bools = several[spots] == numbers
    return among


_BETWEEN = "\x1f"
ID_DIGITS = 16
"""Hexadecimal digits of a break_id and a match_id."""


def digest_of(frames: Iterable[pd.DataFrame]) -> str:
    """Return the SHA-256 over the columns of all frames in order; a blank differs from a zero."""
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
    """Yield the bytes of a column, in parts."""
    if isinstance(column.dtype, pd.StringDtype):
        yield from _texts(column)
    elif isinstance(column.dtype, pd.DatetimeTZDtype):
        yield instants_of(column).tobytes()
    else:
        yield amounts_of(column).tobytes()


def _texts(column: "pd.Series[str]") -> Iterator[Any]:
    """Yield the texts of a column joined by a separator, by Arrow without Python strings."""
    between = pa.scalar(_BETWEEN, pa.large_string())
    for number, labels in enumerate(pieces(column)):
        if number:
            yield _BETWEEN.encode()
        ends = pa.array([0, len(labels)], pa.int64())
        joined: Any = pc.binary_join(pa.LargeListArray.from_arrays(ends, labels), between)
        yield joined[0].as_buffer()


def id_of(*names: str) -> str:
    """Return the break_id or match_id for some names and a sequence number."""
    return hashlib.sha256(_BETWEEN.join(names).encode()).hexdigest()[:ID_DIGITS]


def first_ids(*columns: Column) -> Column:
    """Return the id of each row by its columns, with sequence number 1."""
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return np.array([id_of(*names, "1") for names in rows], dtype=object)
