"""Settlement lines that stand for many: those of sets that were judged in parts of a night.

Groups of fees and reserves and the batches count them by what they come to. Of payments they tell
nothing any more: their sets were judged where each line stood by itself.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from recon.matching.frames.coding import placed, sums_of
from recon.matching.frames.grouping import Bools, Ints, amounts_of
from recon.matching.frames.sources import SETTLEMENT_COLUMNS, frame_of

STANDS_FOR = "stands_for"
"""Column of settlement lines, where some are summed: how many a row stands for, 0 of a line that is
there by itself."""
_BY = ("merchant_id", "account_id", "batch_id", "settled_on", "entry_type", "currency")
_AMOUNTS = ("gross", "fee", "net")
_SIGNED = ("gross", "fee")
"""Amounts of which only those of one sign are added up: what they come to without it is told."""
_SIGNS = 3


def is_summed(lines: pd.DataFrame) -> Bools:
    """The rows that stand for several lines."""
    if STANDS_FOR not in lines.columns:
        return np.zeros(len(lines), dtype=np.bool_)
    summed: Bools = lines[STANDS_FOR].to_numpy(dtype=np.int64) > 0
    return summed


def lines_of_rows(lines: pd.DataFrame) -> Ints:
    """How many lines each row is."""
    if STANDS_FOR not in lines.columns:
        return np.ones(len(lines), dtype=np.int64)
    several: Ints = lines[STANDS_FOR].to_numpy(dtype=np.int64)
    return np.where(several > 0, several, 1)


def one_by_one(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines that are there by themselves."""
    summed = is_summed(lines)
    return lines[~summed].reset_index(drop=True) if summed.any() else lines


def summed_lines(lines: pd.DataFrame) -> pd.DataFrame:
    """SETTLEMENT_COLUMNS and STANDS_FOR: a few rows of no payment for all lines of a batch.

    Args:
        lines: of payments; those that are sums are summed once more.
    """
    amounts = {name: amounts_of(lines[name]) for name in _AMOUNTS}
    groups, places = placed(lines, by=_BY)
    for name in _SIGNED:
        groups = groups * _SIGNS + np.sign(amounts[name]) + 1
    known, rows = np.unique(groups, return_inverse=True)
    size = len(known)
    sums = {name: sums_of(amounts[name], groups=rows, size=size).tolist() for name in amounts}
    cells = (
        {**dict(zip(_BY, places[number], strict=True)), **{name: sums[name][at] for name in sums}}
        for at, number in enumerate((known // _SIGNS ** len(_SIGNED)).tolist())
    )
    frame = frame_of(({**row, "line": 0} for row in cells), columns=SETTLEMENT_COLUMNS)
    counts = sums_of(lines_of_rows(lines), groups=rows, size=size)
    return frame.assign(**{STANDS_FOR: counts})


def with_summed(lines: pd.DataFrame, *, parts: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Lines that are there by themselves, with what the sums of all parts come to.

    Args:
        lines: SETTLEMENT_COLUMNS.
        parts: as `summed_lines` gives them.
    """
    whole = lines.assign(**{STANDS_FOR: np.zeros(len(lines), dtype=np.int64)})
    every = [part for part in parts if len(part)]
    if not every:
        return whole
    sums = summed_lines(pd.concat(every, ignore_index=True))
    return pd.concat([whole, sums], ignore_index=True)
