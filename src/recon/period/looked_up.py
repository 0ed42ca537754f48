"""What belongs to each key of a column: amounts stay whole numbers, words stay words."""

from collections.abc import Mapping
from typing import Any

import pandas as pd


def amounts_at(
    keys: "pd.Series[Any]", *, sums: "pd.Series[int]", otherwise: int = 0
) -> "pd.Series[int]":
    """The amount of each key, `otherwise` where there is none; never by way of a float."""
    amounts = sums.astype("int64").reindex(keys, fill_value=otherwise)
    return pd.Series(amounts.to_numpy(), index=keys.index, dtype="int64")


def words_at(
    keys: "pd.Series[Any]", *, words: "Mapping[Any, Any] | pd.Series[Any]", otherwise: str = ""
) -> "pd.Series[str]":
    """The word of each key, `otherwise` where there is none."""
    known = words.to_dict() if isinstance(words, pd.Series) else words
    places, distinct = pd.factorize(keys)
    cells = [known.get(key, otherwise) for key in distinct.tolist()]
    # A key that is missing has the place -1, which is the last.
    each = pd.array([*cells, otherwise], dtype="str").take(places)
    return pd.Series(each, index=keys.index, dtype="str")
