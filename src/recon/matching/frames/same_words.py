"""What columns have in common held once: a word, all texts of another one, where texts begin.

The merchant, the account, the file that a row came from, whatever no row gives: of a night of one
account a third of all bytes of its sources say such a word. Arrow holds a column in pieces, and
nothing forbids that all of them are the same one. And nearly every order has one answer, which
names its number and its payment once more. Where all texts of a column are of one length, as ids of
a gateway, codes and currencies are, each piece of it begins its texts at the same bytes: eight a
row, two thirds of a column of currencies.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from recon.matching.frames.arrays import text_column
from recon.matching.frames.coding import only_word, pieces
from recon.matching.frames.grouping import Ints, Rows

PIECE_ROWS = 1 << 16
"""Rows of the one piece that stands for all; a column that is no longer is left as it is."""
_IDS = ("order_no", "transaction_id")
"""Columns that several sources have alike."""
LENGTHS_MAX = 16
"""Of texts, so many remembered; half a megabyte each."""


def stated_once(chunks: Iterable[pa.Array], *, size: int) -> "pd.Series[str] | None":
    """A column of the one word of these texts; None where they say several, or rows are few."""
    word = only_word(chunks) if size > PIECE_ROWS else None
    return None if word is None else same_word(word, size=size)


def same_word(word: str, *, size: int) -> "pd.Series[str]":
    """A column of so many rows that say the same."""
    whole, rest = divmod(size, PIECE_ROWS)
    piece = pa.repeat(pa.scalar(word, pa.large_string()), min(size, PIECE_ROWS))
    parts = [piece] * whole + ([piece.slice(0, rest)] if rest else [])
    return text_column(pa.chunked_array(parts, pa.large_string()))


def without_copies(frame: pd.DataFrame) -> pd.DataFrame:
    """The same frame, each column that says the same in every row held once."""
    if len(frame) <= PIECE_ROWS:
        return frame
    once = {name: _once(frame[name]) for name in frame.columns}
    columns = {name: frame[name] if each is None else each for name, each in once.items()}
    # A copy would hold each blank amount of its own again.
    return pd.DataFrame(columns, copy=False)


def taken(frame: pd.DataFrame, *, rows: Rows) -> pd.DataFrame:
    """Some of the rows.

    Arrow joins the pieces of a column before it takes some of its rows: of one that is held once it
    would make all that was spared, each time.
    """
    if len(frame) <= PIECE_ROWS:
        return frame.iloc[rows].reset_index(drop=True)
    columns = {}
    for name in frame.columns:
        word = _word_of_pieces(frame[name])
        columns[name] = (
            frame[name].iloc[rows].reset_index(drop=True)
            if word is None
            else same_word(word, size=len(rows))
        )
    return pd.DataFrame(columns, copy=False)


def permuted(column: "pd.Series[Any]", *, rows: Rows) -> "pd.Series[Any]":
    """All rows of a column in another order, held as `without_copies` holds them."""
    once = _once(column)
    return column.iloc[rows].reset_index(drop=True) if once is None else once


def held_once(frames: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The same frames; of columns of ids that say the same in several only the first's is held.

    Of texts of one length it is held once where they begin, of amounts that are all given that they
    are.
    """
    held: dict[str, list[pd.Series[str]]] = {name: [] for name in _IDS}
    return {which: _sharing(frame, held=held) for which, frame in frames.items()}


def _sharing(frame: pd.DataFrame, *, held: dict[str, "list[pd.Series[str]]"]) -> pd.DataFrame:
    """The frame with columns that are held already in place of its own; the others are noted."""
    if len(frame) <= PIECE_ROWS:
        return frame
    columns = {}
    for name in frame.columns:
        own, known = frame[name], held.get(name, [])
        first = next((other for other in known if _is_same(own, other)), None)
        columns[name] = _in_pieces(own) if first is None else first
        if first is None:
            known.append(columns[name])
    return pd.DataFrame(columns, copy=False)


def _in_pieces(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """The column, what all its pieces have in common held once."""
    if isinstance(column.dtype, pd.StringDtype):
        return _of_one_length(column)
    if isinstance(column.dtype, pd.Int64Dtype) and not column.isna().any():
        amounts = column.to_numpy(dtype=np.int64)
        array = pd.arrays.IntegerArray(amounts, np.broadcast_to(np.False_, (len(column),)))
        return pd.Series(array, copy=False)
    return column


def _of_one_length(column: "pd.Series[str]") -> "pd.Series[str]":
    """Texts of one length in pieces that share where each begins; others stay as they are."""
    chunks = pieces(column)
    held = {chunk.buffers()[1].address for chunk in chunks}
    begins = [_begins(chunk) for chunk in chunks]
    size = int(begins[0][1] - begins[0][0])
    if not size or (len(chunks) > 1 and len(held) == 1):
        return column  # blank throughout, or held once already
    if any(at[-1] - at[0] != size * (len(at) - 1) for at in begins):
        return column
    if any((np.diff(at) != size).any() for at in begins):
        return column
    shared, parts = _offsets(size, rows=PIECE_ROWS), []
    for chunk, at in zip(chunks, begins, strict=True):
        texts = chunk.buffers()[2]
        for first, last in pairwise([*range(0, len(chunk), PIECE_ROWS), len(chunk)]):
            own = texts.slice(int(at[first]), size * (last - first))
            parts.append(pa.LargeStringArray.from_buffers(last - first, shared, own))
    return text_column(pa.chunked_array(parts, pa.large_string()))


def _begins(chunk: pa.LargeStringArray) -> Ints:
    """Where each text begins, and where the last one ends."""
    offsets = np.frombuffer(chunk.buffers()[1], dtype=np.int64)
    return offsets[chunk.offset : chunk.offset + len(chunk) + 1]


@lru_cache(LENGTHS_MAX)
def _offsets(size: int, *, rows: int) -> pa.Buffer:
    return pa.py_buffer(np.arange(rows + 1, dtype=np.int64) * size)


def _is_same(left: "pd.Series[str]", right: "pd.Series[str]") -> bool:
    if len(left) != len(right) or left.iloc[0] != right.iloc[0]:
        return False
    ours, others = (pa.chunked_array(pieces(each), pa.large_string()) for each in (left, right))
    return bool(ours.equals(others))


def _once(column: "pd.Series[Any]") -> "pd.Series[Any] | None":
    """A column of texts that all say the same, or of blank amounts, held once; None for others."""
    size = len(column)
    if isinstance(column.dtype, pd.StringDtype):
        return stated_once(pieces(column), size=size)
    is_blank = isinstance(column.dtype, pd.Int64Dtype) and size > PIECE_ROWS
    return _blank(size) if is_blank and column.isna().all() else None


def _word_of_pieces(column: "pd.Series[Any]") -> str | None:
    """The word of a column that is held once; None for any other, whatever it says."""
    if not isinstance(column.dtype, pd.StringDtype) or len(chunks := pieces(column)) == 1:
        return None
    # Texts of one length share where they begin, and say different words all the same.
    held = {(*_places(chunk), chunk.offset) for chunk in chunks}
    return str(chunks[0][0].as_py()) if len(held) == 1 and _says_one(chunks[0]) else None


def _places(piece: pa.Array) -> list[int]:
    return [0 if buffer is None else buffer.address for buffer in piece.buffers()]


def _says_one(piece: pa.Array) -> bool:
    return only_word([piece]) is not None


def _blank(size: int) -> "pd.Series[int]":
    """A column of amounts of which no row gives one."""
    amounts = np.broadcast_to(np.int64(0), (size,))
    array = pd.arrays.IntegerArray(amounts, np.broadcast_to(np.True_, (size,)))
    return pd.Series(array, copy=False)
