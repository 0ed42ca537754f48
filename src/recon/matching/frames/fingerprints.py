"""Texts as numbers of 64 bits: equal texts have equal ones, in every process.

Two different texts may share one by chance or by design: that texts are equal is never concluded
from them.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from recon.matching.frames.arrays import texts
from recon.matching.frames.grouping import Bools

Words = npt.NDArray[np.uint64]


def are_distinct(column: "pd.Series[str]") -> bool:
    """Whether no two texts of a column are equal, and none is blank of the type null."""
    return bool(column.is_unique and not column.hasnans)


def are_repeated(column: "pd.Series[str]") -> Bools:
    """The rows whose text is that of another row as well, blanks left out."""
    if are_distinct(column):
        return np.zeros(len(column), dtype=np.bool_)
    return np.asarray(column.duplicated(keep=False) & column.fillna("").ne(""), dtype=np.bool_)


def numbers_of(column: "pd.Series[str]") -> Words:
    """The number of each text of a column that has no blanks of the type null."""
    return pd.util.hash_array(texts(column), categorize=False)


def shared_numbers(parts: Sequence[Words]) -> Words:
    """The numbers that several texts of all parts have, sorted."""
    ordered = np.sort(np.concatenate([np.zeros(0, dtype=np.uint64), *parts]))
    return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])


def are_among(numbers: Words, several: Words, /) -> Bools:
    """Which of some numbers are among a few, which are sorted."""
    if not len(several):
        return np.zeros(len(numbers), dtype=np.bool_)
    # Few against many: looking each up costs less than np.isin, which sorts them all.
    spots = np.minimum(np.searchsorted(several, numbers), len(several) - 1)
    among: Bools = several[spots] == numbers
    return among
