"""SHA-256 digests of frames, and the ids of sets."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.matching.frames.arrays import Column
from recon.matching.frames.grouping import amounts_of, given, instants_of

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
            for chunk in _parts(column):
                sum_of_all.update(chunk)
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
    labels: Any = pa.array(column, pa.large_string())
    if isinstance(labels, pa.ChunkedArray):
        labels = labels.combine_chunks()
    labels = pc.fill_null(labels, "")
    whole = pa.LargeListArray.from_arrays(pa.array([0, len(labels)], pa.int64()), labels)
    joined: Any = pc.binary_join(whole, pa.scalar(_BETWEEN, pa.large_string()))
    yield joined[0].as_buffer()


def id_of(*names: str) -> str:
    """Return the break_id or match_id for some names and a sequence number."""
    return hashlib.sha256(_BETWEEN.join(names).encode()).hexdigest()[:ID_DIGITS]


def first_ids(*columns: Column) -> Column:
    """Return the id of each row by its columns, with sequence number 1."""
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return np.array([id_of(*names, "1") for names in rows], dtype=object)
