"""One SHA-256 over frames: the same inputs, the same digest (T14)."""

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from recon.matching.frames.grouping import amounts_of, given, instants_of

_BETWEEN = "\x1f"
LATER_COLUMNS = frozenset({"bank_amount", "effect_bank"})
"""Columns that nights of earlier releases did not have: blank throughout, they change no digest."""


def digest_of(frames: Iterable[pd.DataFrame]) -> str:
    """SHA-256 over the columns of every frame in their order, blanks told from zeros."""
    sum_of_all = hashlib.sha256()
    for frame in frames:
        columns = [name for name in frame.columns if _counts(frame, name)]
        sum_of_all.update(f"{columns}{len(frame)}".encode())
        for name in columns:
            column = frame[name]
            sum_of_all.update(np.logical_not(given(column)).tobytes())
            sum_of_all.update(_bytes(column))
    return sum_of_all.hexdigest()


def _counts(frame: pd.DataFrame, name: str) -> bool:
    return name not in LATER_COLUMNS or bool(given(frame[name]).any())


def _bytes(column: "pd.Series[Any]") -> bytes:
    if isinstance(column.dtype, pd.StringDtype):
        words = column if given(column).all() else column.fillna("")
        return _BETWEEN.join(words.tolist()).encode()
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        return instants_of(column).tobytes()
    return amounts_of(column).tobytes()
