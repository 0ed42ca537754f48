"""Columns that say few different things: each is judged once, and each row takes what it says.

Most columns of a large file are such: accounts, currencies, states, blanks, often the day.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

ROWS_MIN = 256
"""Fewer are judged one by one."""
LOOKED_AT = 64
"""Rows at the beginning by which a column is said to be worth a dictionary."""
ROWS_PER_WORD = 16
"""How often each word must stand in a column on average, there and in the whole of it."""


class FewWords(NamedTuple):
    """A column of texts as the number of a word in each row."""

    words: pa.Array
    numbers: npt.NDArray[np.int32]

    def by_row(self, problems: Mapping[int, str]) -> dict[int, str]:
        """What is wrong with each row, from what is wrong with the words."""
        if not problems:
            return {}
        rows = np.flatnonzero(np.isin(self.numbers, [*problems]))
        return {int(row): problems[int(self.numbers[row])] for row in rows}

    def times(self) -> npt.NDArray[np.intp]:
        """How many rows say each word."""
        return np.bincount(self.numbers, minlength=len(self.words))


def few_words(cells: pa.Array) -> FewWords | None:
    """The words of a column, None where they are many or the rows are few."""
    if len(cells) < ROWS_MIN:
        return None
    if len(pc.unique(cells.slice(0, LOOKED_AT))) > LOOKED_AT // ROWS_PER_WORD:
        return None
    numbered = numbered_words(cells)
    return numbered if len(numbered.words) * ROWS_PER_WORD <= len(cells) else None


def numbered_words(cells: pa.Array) -> FewWords:
    """The words of a column, however many they are, in order of first appearance."""
    if len(cells) and bool(pc.all(pc.equal(cells, cells[0])).as_py()):
        return FewWords(cells.slice(0, 1), np.zeros(len(cells), np.int32))
    numbered: Any = cells.dictionary_encode()
    return FewWords(numbered.dictionary, np.asarray(numbered.indices))
