"""Frames of many rows sorted by text: by the key that tells nearly all apart, then by the rest.

The order is that of `DataFrame.sort_values` with a stable sort, at less than half its cost.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from recon.matching.frames.coding import pieces, placed
from recon.matching.frames.grouping import Rows
from recon.matching.frames.same_words import PIECE_ROWS, permuted, taken
from recon.matching.frames.text_order import in_text_order

LEADING = ["merchant_id", "account_id", "order_no"]
MANY_ROWS = 10_000
"""Fewer are sorted as they are."""


def in_order(frame: pd.DataFrame, *, by: list[str]) -> pd.DataFrame:
    """Sorted by these columns, whatever the order of the inputs."""
    if len(frame) < MANY_ROWS or by[: len(LEADING)] != LEADING:
        return frame.sort_values(by, kind="stable").reset_index(drop=True)
    return frame.iloc[_order(frame, by=by)].reset_index(drop=True)


def many_in_order(frame: pd.DataFrame, *, by: list[str]) -> pd.DataFrame:
    """The same, of rows so many that columns are held once, and as they hold it; others stay."""
    if len(frame) <= PIECE_ROWS:
        return frame
    order = _order(frame, by=by)
    is_in_order = bool(np.all(order[1:] > order[:-1]))
    return frame if is_in_order else taken(frame, rows=order)


def columns_in_order(columns: "dict[str, pd.Series[Any]]", *, by: list[str]) -> pd.DataFrame:
    """The same of the columns of a frame; each goes as soon as it is sorted, LEADING among `by`."""
    order = _order(pd.DataFrame({name: columns[name] for name in by}, copy=False), by=by)
    ordered = {name: permuted(columns.pop(name), rows=order) for name in [*columns]}
    return pd.DataFrame(ordered, copy=False)


def _order(frame: pd.DataFrame, *, by: list[str]) -> Rows:
    return order_of(frame, rows_of=lambda rows: frame.iloc[rows], by=by)


def order_of(
    leading: pd.DataFrame, *, rows_of: Callable[[Rows], pd.DataFrame], by: list[str]
) -> Rows:
    """The rows of a frame, sorted.

    Args:
        leading: its columns LEADING.
        rows_of: some of its rows with all columns of `by`; only rows that are tied are asked for.
        by: what it is sorted by, LEADING first.
    """
    names = pa.concat_arrays(pieces(leading[LEADING[-1]]))
    order, tied = in_text_order(names, within=_ranks(leading, by=LEADING[:-1]))
    if tied.any():
        # Tied rows stand together, so sorted as a whole they fit their places.
        rows = np.sort(order[tied])
        inside = rows_of(rows).reset_index(drop=True).sort_values(by, kind="stable").index
        order[tied] = rows[inside.to_numpy()]
    return order


def _ranks(frame: pd.DataFrame, *, by: list[str]) -> Rows:
    """The place of each row's words among all combinations of them, in their order."""
    numbers, places = placed(frame, by=by)
    ranks = np.empty(len(places), dtype=np.intp)
    ranks[sorted(range(len(places)), key=lambda number: places[number])] = np.arange(len(places))
    ordered: Rows = ranks[numbers]
    return ordered
