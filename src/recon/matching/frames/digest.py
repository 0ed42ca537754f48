"""One SHA-256 over frames: the same inputs, the same digest (T14)."""

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from recon.matching.frames.grouping import amounts_of, given, instants_of

_BETWEEN = "\x1f"


def digest_of(frames: Iterable[pd.DataFrame]) -> str:
    """SHA-256 over the columns of every frame in their order, blanks told from zeros."""
    sum_of_all = hashlib.sha256()
    for frame in frames:
        sum_of_all.update(f"{list(frame.columns)}{len(frame)}".encode())
        for name in frame.columns:
            column = frame[name]
            sum_of_all.update(np.logical_not(given(column)).tobytes())
            sum_of_all.update(_bytes(column))
    return sum_of_all.hexdigest()


def _bytes(column: "pd.Series[Any]") -> bytes:
    if isinstance(column.dtype, pd.StringDtype):
        words = column if given(column).all() else column.fillna("")
        return _BETWEEN.join(words.tolist()).encode()
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        return instants_of(column).tobytes()
    return amounts_of(column).tobytes()
