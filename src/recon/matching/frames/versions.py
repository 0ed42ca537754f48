"""Classifies rows about the same thing: new, repeat, superseded or conflict.

An identical repeat is skipped and counted; a row with a later instant supersedes; anything else is
a conflict that is shown. The file and line a row came from are never part of the comparison.
"""

import numpy as np
import numpy.typing as npt
import pandas as pd

from recon.matching.frames.grouping import Rows, instants_of
from recon.matching.frames.sources import PLACE_COLUMNS

NEW, REPEAT, SUPERSEDED, CONFLICT = range(4)

Versions = npt.NDArray[np.int8]


def versions(frame: pd.DataFrame, *, groups: Rows, newest: str | None) -> Versions:
    """Return NEW, REPEAT, SUPERSEDED or CONFLICT for each row of a source frame.

    Args:
        frame: rows of one source.
        groups: the number of what each row is about; -1 for rows that are not classified.
        newest: the column of instants by which a row supersedes; None where none can.
    """
    outcome = np.full(len(frame), NEW, dtype=np.int8)
    inside = groups >= 0
    crowded = inside.copy()
    crowded[inside] = np.bincount(groups[inside])[groups[inside]] > 1
    if not crowded.any():
        return outcome
    content = [name for name in frame.columns if name not in PLACE_COLUMNS]
    rows = frame.loc[:, content].iloc[np.flatnonzero(crowded)]
    rows = rows.assign(_group=groups[crowded], _row=np.flatnonzero(crowded))
    repeat = rows.duplicated([*content, "_group"]).to_numpy()
    outcome[rows["_row"].to_numpy()[repeat]] = REPEAT
    rows = rows[~repeat]
    rows = rows[rows["_group"].duplicated(keep=False)]
    if len(rows):
        outcome[rows["_row"].to_numpy()] = _superseding(rows, newest=newest)
    return outcome


def _superseding(rows: pd.DataFrame, *, newest: str | None) -> Versions:
    if newest is None:
        return np.full(len(rows), CONFLICT, dtype=np.int8)
    at = pd.Series(instants_of(rows[newest]), index=rows.index)
    is_latest = at.eq(at.groupby(rows["_group"]).transform("max"))
    decided = is_latest.groupby(rows["_group"]).transform("sum").eq(1)
    older = np.where(is_latest, NEW, SUPERSEDED)
    return np.where(decided, older, CONFLICT).astype(np.int8)
