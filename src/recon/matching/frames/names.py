"""Whether the names in a column are among some others."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

MANY_MORE = 4
"""So many times more others than texts are first held against these: whatever is looked up in
stands in a table of its own, which takes 70 bytes for each."""


def is_among(column: "pd.Series[str]", wanted: Iterable[str]) -> "pd.Series[bool]":
    """Whether each text is one of some others; of the column's own index.

    `Series.isin` takes the others one by one through Python, which for a million orders costs more
    than comparing them.
    """
    names = wanted.array if isinstance(wanted, pd.Series) else [*wanted]
    known: pa.Array = pa.array(names, pa.large_string())
    texts: pa.Array = pa.array(column, pa.large_string())
    if len(known) > MANY_MORE * len(texts):
        known = known.filter(pc.is_in(known, value_set=texts))
    is_known: pa.Array = pc.is_in(texts, value_set=known)
    return pd.Series(np.asarray(is_known, dtype=bool), index=column.index)
