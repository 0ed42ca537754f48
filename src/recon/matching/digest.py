"""One SHA-256 over frames: the same inputs, the same digest (T14)."""

import hashlib
from collections.abc import Iterable

import pandas as pd

_BETWEEN = "\x1f"


def digest_of(frames: Iterable[pd.DataFrame]) -> str:
    """SHA-256 over the columns of every frame in their order, blanks told from zeros."""
    sum_of_all = hashlib.sha256()
    for frame in frames:
        sum_of_all.update(f"{list(frame.columns)}{len(frame)}".encode())
        for name in frame.columns:
            column = frame[name]
            sum_of_all.update(column.isna().to_numpy().tobytes())
            sum_of_all.update(_bytes(column))
    return sum_of_all.hexdigest()


def _bytes(column: "pd.Series[str]") -> bytes:
    if isinstance(column.dtype, pd.StringDtype):
        return _BETWEEN.join(column.fillna("").tolist()).encode()
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        return pd.DatetimeIndex(column).as_unit("us").asi8.tobytes()
    return column.fillna(0).to_numpy(dtype="int64").tobytes()
