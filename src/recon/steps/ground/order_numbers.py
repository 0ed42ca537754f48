"""Order numbers of any number, held as one column: a tenth of the room of as many texts."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.rows_file import ROWS_PER_GROUP

PARTS = 8
"""By the last byte of each number."""
Numbers: TypeAlias = "pa.Array | pa.ChunkedArray | Iterable[str]"


class OrderNumbers(Sequence[str]):
    """Each once and sorted; a text is made of those alone that somebody takes."""

    def __init__(self, column: pa.Array) -> None:
        self.column = column

    def __len__(self) -> int:
        return len(self.column)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            taken: list[str] = self.column[index].to_pylist()
            return taken
        number: str = self.column[index].as_py()
        return number


def order_numbers(parts: Iterable[Numbers]) -> OrderNumbers:
    """All that the parts name, the blank one included."""
    chunks = [chunk for part in parts for chunk in _columns_of(part)]
    every = _apart(pa.chunked_array(chunks, pa.string()))
    del chunks  # the order is found beside one column, not beside all
    different = pa.concat_arrays([pc.unique(some) for some in every])
    return OrderNumbers(different.take(pc.sort_indices(different)))


def _columns_of(part: Numbers) -> list[pa.Array]:
    if isinstance(part, pa.ChunkedArray):
        return [chunk.cast(pa.string()) for chunk in part.chunks]
    if isinstance(part, pa.Array):
        return [part.cast(pa.string())]
    return [pa.array([*part], pa.string())]


def _apart(column: pa.ChunkedArray) -> Iterator[pa.ChunkedArray]:
    """Many numbers in parts that share none: counting takes several times the room of its texts."""
    if len(column) <= ROWS_PER_GROUP:
        yield column
        return
    ends = pc.binary_slice(column.cast(pa.binary()), -1).dictionary_encode()
    codes = np.concatenate([chunk.indices.fill_null(0).to_numpy() for chunk in ends.chunks]).astype(
        np.uint8
    )
    for part in range(PARTS):
        yield column.filter(pa.array(codes % PARTS == part))
