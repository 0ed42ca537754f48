"""What belongs to each key of a column: amounts stay whole numbers, words stay words.

Columns stay in Arrow: a text of its own for each row costs more than all else of a month.
"""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.matching.frames.arrays import text_array

_TEXT = pa.large_string()


def amounts_at(
    keys: "pd.Series[Any]", *, sums: "pd.Series[int]", otherwise: int = 0
) -> "pd.Series[int]":
    """The amount of each key, `otherwise` where there is none; never by way of a float."""
    own = sums.astype("int64").to_numpy()
    amounts = np.full(len(keys), otherwise, dtype=np.int64)
    if len(own):
        at = _places(keys, of=sums.index)
        amounts[at >= 0] = own[at[at >= 0]]
    return pd.Series(amounts, index=keys.index, dtype="int64")


def words_at(
    keys: "pd.Series[Any]", *, words: "Mapping[Any, Any] | pd.Series[Any]", otherwise: str = ""
) -> "pd.Series[str]":
    """The word of each key, `otherwise` where there is none."""
    if not len(words):
        return pd.Series(otherwise, index=keys.index, dtype="str")
    named, cells = (words.index, words) if isinstance(words, pd.Series) else _sides(words)
    at = pa.array(_places(keys, of=named))
    at = pc.if_else(pc.less(at, 0), pa.scalar(None, pa.int64()), at)
    each = pc.fill_null(pc.take(_arrow(cells), at), otherwise)
    return pd.Series(text_array(each), index=keys.index)


def is_among(
    keys: "pd.Series[str]", words: "pd.Series[str] | Collection[str]"
) -> "pd.Series[bool]":
    """Which of the keys is one of some words."""
    among = pc.is_in(_arrow(keys), value_set=_arrow(words))
    return pd.Series(among.to_numpy(zero_copy_only=False), index=keys.index, dtype="bool")


def run_starts(keys: "pd.Series[str]") -> npt.NDArray[np.bool_]:
    """Which rows begin a run of equal keys."""
    cells = _arrow(keys)
    starts = np.ones(len(cells), dtype=np.bool_)
    if len(cells) > 1:
        differs = pc.not_equal(cells.slice(1), cells.slice(0, len(cells) - 1))
        starts[1:] = differs.to_numpy(zero_copy_only=False)
    return starts


def currencies_of(*frames: pd.DataFrame) -> set[str]:
    """The currencies that any of these frames has."""
    return {str(word) for frame in frames for word in frame["currency"].unique()}


def _sides(words: Mapping[Any, Any]) -> tuple[list[Any], list[Any]]:
    return [*words], [*words.values()]


def _places(keys: Any, *, of: Any) -> npt.NDArray[np.int64]:
    """Where each key stands among others, -1 where it does not."""
    at = pc.index_in(_arrow(keys), value_set=_arrow(of))
    places: npt.NDArray[np.int64] = at.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return places


def _arrow(column: Any) -> pa.Array:
    """A column, or some words, as one array: texts of one type, whole numbers as they are."""
    cells: Any = pa.array(column if isinstance(column, pd.Series | pd.Index) else [*column])
    whole = cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells
    return whole if pa.types.is_integer(whole.type) else whole.cast(_TEXT)
