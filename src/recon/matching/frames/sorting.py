"""Rows in the order of their texts, byte by byte; rows that say the same stay as they stood."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.matching.frames.grouping import Rows
from recon.matching.frames.same_words import PIECE_ROWS, permuted, taken

LEADING = ["merchant_id", "account_id", "order_no"]


def order_of(columns: "pd.DataFrame | Mapping[str, Any]", *, by: Sequence[str]) -> Rows:
    """The rows of some columns, sorted: as `DataFrame.sort_values`, at a fifth of its cost."""
    table = pa.table({name: pa.array(columns[name]) for name in by})
    if not table.num_rows:
        return np.arange(0)
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in by])
    return np.asarray(order).astype(np.intp)


def in_order(frame: pd.DataFrame, *, by: Sequence[str]) -> pd.DataFrame:
    """Sorted by these columns, whatever the order of the inputs."""
    return frame.iloc[order_of(frame, by=by)].reset_index(drop=True)


def many_in_order(frame: pd.DataFrame, *, by: Sequence[str]) -> pd.DataFrame:
    """The same, of rows so many that columns are held once, and as they hold it; others stay."""
    if len(frame) <= PIECE_ROWS:
        return frame
    order = order_of(frame, by=by)
    is_in_order = bool(np.all(order[1:] > order[:-1]))
    return frame if is_in_order else taken(frame, rows=order)


def columns_in_order(columns: "dict[str, pd.Series[Any]]", *, by: Sequence[str]) -> pd.DataFrame:
    """The same of the columns of a frame; each goes as soon as it is sorted."""
    order = order_of(columns, by=by)
    ordered = {name: permuted(columns.pop(name), rows=order) for name in [*columns]}
    return pd.DataFrame(ordered, copy=False)
