"""Texts as numbers of 64 bits: equal texts have equal ones, so distinct ones prove distinct texts.

Numbers are made and sorted several times faster than a dictionary of a million distinct texts is
built. Two different texts may share one by chance or by design: that texts are equal is never
concluded from them.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from recon.matching.frames.coding import FEW_ROWS
from recon.matching.frames.grouping import Bools, Ints
from recon.matching.frames.remembered import Remembered

WORD_BYTES = 8
BLOCK_ROWS = 65_536
"""Texts whose numbers are drawn at once: their bytes stay near the processor."""
FIRST_BYTES = np.array([(1 << 8 * size) - 1 for size in range(WORD_BYTES + 1)], dtype=np.uint64)
"""By how many of its bytes belong to the text, the mask of a word."""
ODD = np.uint64(0xFF51AFD7ED558CCD)
"""Large and odd: multiplying by it loses nothing and carries every bit upwards."""
HALF = np.uint64(32)

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Texts:
    """The bytes of a column of texts."""

    words: Words
    """The eight bytes from every byte on, as a view of the bytes."""
    starts: Ints
    sizes: Ints
    """How many bytes each text has."""

    def blocks(self) -> Iterator[slice]:
        """Rows that are worked on at once."""
        for start in range(0, len(self.starts), BLOCK_ROWS):
            yield slice(start, start + BLOCK_ROWS)


def texts_of(column: pa.LargeStringArray) -> Texts:
    """Where the bytes of each text lie. The column has no blanks of the type null."""
    _, offsets, data = column.buffers()
    at = np.frombuffer(offsets, dtype=np.int64)[column.offset : column.offset + len(column) + 1]
    first, last = int(at[0]), int(at[-1])
    held = np.zeros(last - first + WORD_BYTES, dtype=np.uint8)
    if last > first:
        held[: last - first] = np.frombuffer(data, dtype=np.uint8)[first:last]
    words: Words = np.ndarray((last - first + 1,), dtype="<u8", buffer=held.data, strides=(1,))
    return Texts(words, at[:-1] - first, np.diff(at))


def fingerprints(texts: Texts) -> Words:
    """One number for each text."""
    numbers = np.empty(len(texts.starts), dtype=np.uint64)
    for block in texts.blocks():
        numbers[block] = _numbers(texts, starts=texts.starts[block], sizes=texts.sizes[block])
    return numbers


def _numbers(texts: Texts, *, starts: Ints, sizes: Ints) -> Words:
    numbers = sizes.astype(np.uint64) * ODD
    for at in range(0, int(sizes.max(initial=0)), WORD_BYTES):
        mixed = (numbers ^ word_of(texts, at=at, starts=starts, sizes=sizes)) * ODD
        # A text that has ended is not mixed on: longer ones beside it must not change its number.
        numbers = np.where(sizes > at, mixed ^ (mixed >> HALF), numbers)
    return numbers


def word_of(texts: Texts, *, at: int, starts: Ints, sizes: Ints) -> Words:
    """Eight bytes of each text from its byte `at` on, nothing beyond its end; the first is low."""
    inside = np.clip(sizes - at, 0, WORD_BYTES)
    spots = np.minimum(starts + at, len(texts.words) - 1)
    words: Words = texts.words[spots] & FIRST_BYTES[inside]
    return words


_DISTINCT: Remembered[bool] = Remembered()


def are_distinct(column: "pd.Series[str]") -> bool:
    """True only where no two texts are equal; may be False though none are."""
    if len(column) <= FEW_ROWS:
        return len({*column.tolist()}) == len(column) and not column.isna().any()
    return _DISTINCT.of(pa.array(column), make=_all_differ)


def _all_differ(text: Any) -> bool:
    return not text.null_count and not len(_shared(_of_text(text)))


def maybe_repeated(column: "pd.Series[str]") -> Bools:
    """The rows whose text may be that of another row as well: never too few, blanks left out."""
    if len(column) <= FEW_ROWS:
        words = column.fillna("").tolist()
        times = Counter(words)
        return np.array([word != "" and times[word] > 1 for word in words], dtype=np.bool_)
    column = column.fillna("")
    numbers, named = _of_text(pa.array(column)), column.ne("").to_numpy(dtype=np.bool_)
    return named & are_among(numbers, _shared(numbers if named.all() else numbers[named]))


def are_among(numbers: Words, several: Words, /) -> Bools:
    """Which of some numbers are among a few, which are sorted."""
    if not len(several):
        return np.zeros(len(numbers), dtype=np.bool_)
    # Few against many: looking each up costs less than np.isin, which sorts them all.
    spots = np.minimum(np.searchsorted(several, numbers), len(several) - 1)
    among: Bools = several[spots] == numbers
    return among


def numbers_of(column: "pd.Series[str]") -> Words:
    """The number of each text of a column that has no blanks of the type null."""
    return _of_text(pa.array(column))


def shared_numbers(parts: Sequence[Words]) -> Words:
    """The numbers that several texts of all parts have, sorted."""
    return _shared(np.concatenate([np.zeros(0, dtype=np.uint64), *parts]))


def _of_text(text: Any) -> Words:
    """The number of each text of a column without blanks of the type null."""
    chunks = text.chunks if isinstance(text, pa.ChunkedArray) else [text]
    parts = [fingerprints(texts_of(chunk.cast(pa.large_string()))) for chunk in chunks]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint64)


def _shared(numbers: Words) -> Words:
    """The numbers that several texts have, in order."""
    ordered = np.sort(numbers)
    return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
