"""Which partition a row belongs to: a hash of its order number, the same in every source.

Rows that share an order number share a partition, in any process and on any machine; the balance
of the partitions is a matter of speed only.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from recon.matching.frames.grouping import Rows

_Hashes = npt.NDArray[np.uint64]
_WORD_BYTES = 8
_WORDS = 4
"""The last 32 bytes of a number and its length decide; no number of an order is longer in use."""
_ODD = 0x9E3779B97F4A7C15
_HIGH_BITS = np.uint64(32)


def partition_of(order_nos: "pd.Series[str]", *, partitions: int) -> Rows:
    """The partition of each row, 0 .. partitions-1."""
    hashed = _hashes(order_nos) >> _HIGH_BITS
    return np.asarray(hashed % np.uint64(partitions), dtype=np.intp)


def rows_by_partition(order_nos: "pd.Series[str]", *, partitions: int) -> list[Rows]:
    """The rows of each partition in their order; a row without an order number is in none."""
    numbers = partition_of(order_nos, partitions=partitions)
    numbers[order_nos.eq("").to_numpy()] = partitions
    ordered = np.argsort(numbers.astype(np.int16), kind="stable")  # so narrow it is no comparison
    ends = np.cumsum(np.bincount(numbers, minlength=partitions + 1))
    return np.split(ordered, ends[:-1])[:partitions]


def _hashes(column: "pd.Series[str]") -> _Hashes:
    """A number for each text, made of its last bytes, eight at a time."""
    starts, ends, content = _bytes_of(column)
    # Every window of eight bytes as one number, read where it stands.
    windows: Any = np.ndarray(len(content) - _WORD_BYTES + 1, "<u8", content.tobytes(), 0, (1,))
    lengths = ends - starts
    hashes: _Hashes = lengths.astype(np.uint64)
    for word in range(_WORDS):
        left = lengths - word * _WORD_BYTES
        there = left > 0
        missing = (_WORD_BYTES - np.clip(left, 1, _WORD_BYTES)).astype(np.uint64)
        places = np.where(there, ends - word * _WORD_BYTES, 0)
        value = windows[places] >> (missing * np.uint64(8))
        hashes = np.where(there, _mixed(hashes ^ value), hashes)
    return hashes


def _mixed(hashes: _Hashes) -> _Hashes:
    hashes = hashes * np.uint64(_ODD)
    return hashes ^ (hashes >> _HIGH_BITS)


def _bytes_of(column: "pd.Series[str]") -> tuple[Rows, Rows, npt.NDArray[np.uint8]]:
    """Where each text starts and ends, and the bytes of all behind eight of padding."""
    text: Any = pa.array(column)
    if isinstance(text, pa.ChunkedArray):
        text = pa.concat_arrays(text.chunks) if text.num_chunks else pa.array([], text.type)
    text = text.cast(pa.large_string()).fill_null("")
    _, places, content = text.buffers()
    offsets = np.frombuffer(places, np.int64)[text.offset : text.offset + len(text) + 1]
    raw = np.frombuffer(content or b"", np.uint8)
    padded = np.concatenate([np.zeros(_WORD_BYTES, np.uint8), raw])
    return offsets[:-1], offsets[1:], padded
