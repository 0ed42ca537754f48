"""The different texts of a column: each is judged once, and each row takes what it says.

Most columns of a large file say few different things: accounts, currencies, states, often the day.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

LOOKED_AT = 64
"""Rows at the beginning by which a column is said to be worth a dictionary."""
ROWS_PER_TEXT = 16
"""How often each text stands there on average."""


class Distinct(NamedTuple):
    """A column as texts, and the number of one in each row."""

    texts: pa.Array
    codes: npt.NDArray[np.int64]

    def by_row(self, problems: Mapping[int, str]) -> dict[int, str]:
        """What is wrong with each row, from what is wrong with the texts."""
        if not problems:
            return {}
        rows = np.flatnonzero(np.isin(self.codes, [*problems]))
        return {int(row): problems[int(self.codes[row])] for row in rows}

    def rows_of(self, texts: Sequence[int]) -> int:
        """How many rows say one of these."""
        return int(np.isin(self.codes, texts).sum())


def distinct(cells: pa.Array) -> Distinct:
    """The different texts of a column, in order of first appearance."""
    encoded: Any = cells.dictionary_encode()
    return Distinct(encoded.dictionary, np.asarray(encoded.indices).astype(np.int64))


def distinct_if_few(cells: pa.Array) -> Distinct:
    """The same; of a column that begins with many different ones each cell stands for itself."""
    seen = pc.unique(cells.slice(0, LOOKED_AT))
    if len(seen) * ROWS_PER_TEXT <= len(cells.slice(0, LOOKED_AT)):
        return distinct(cells)
    return Distinct(cells, np.arange(len(cells)))
