"""How each column of a Parquet file costs least."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from recon.archive.fields import FileSchema
from recon.archive.in_order import ROWS_PER_GROUP, InOrder

COMPRESSION = "zstd"
COMPRESSION_LEVEL, LEVEL_OF_NUMBERS = 9, 3
"""Numbers take the same room by more, and up to ten times as long."""
REPEATED_SHARE = 0.6
"""Texts of which fewer than this share are different cost less by a dictionary."""
MANY_ROWS, SAMPLE_ROWS = 20_000, 5_000
"""Of so many rows the first show how a column costs least; of fewer any way costs little."""
WORTH_SHARE = 0.95
"""So much smaller the other encoding is in a sample, where it is in the whole file."""
_OF_NUMBERS = ("DELTA_BINARY_PACKED", "PLAIN")
"""By what changes from row to row, or as they are: amounts of which many are none."""
_OF_TEXTS = ("DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY")
"""By what changes from row to row, or as they are."""
TEXT_PARTS = 8
"""By the last byte of each."""


def encodings_of(rows: InOrder, *, first: pa.Table, schema: FileSchema) -> dict[str, Any]:
    """How each column costs least, by its `first` rows."""
    by_dictionary, others, levels = [], {}, {}
    usual = rows.num_rows < MANY_ROWS
    for field in schema.columns:
        name = field.name
        is_text, is_word = pa.types.is_string(field.type), pa.types.is_dictionary(field.type)
        levels[name] = COMPRESSION_LEVEL if is_text or is_word else LEVEL_OF_NUMBERS
        if is_word or (is_text and name not in schema.key and _repeats(rows.column(name))):
            by_dictionary.append(name)
        else:
            ways = _OF_TEXTS if is_text else _OF_NUMBERS
            sample = first[name].slice(0, SAMPLE_ROWS)
            others[name] = ways[0] if usual else _cheapest(sample, ways=ways, level=levels[name])
    return {
        "use_dictionary": by_dictionary,
        "column_encoding": others,
        "compression_level": levels,
    }


def _cheapest(first: pa.ChunkedArray, *, ways: Sequence[str], level: int) -> str:
    """The usual encoding, or the other one where the first rows take much less room in it."""
    usual, other = ways
    sample = pa.table({"": first})
    sizes = [_size_of(sample, encoding=encoding, level=level) for encoding in ways]
    return other if sizes[1] < WORTH_SHARE * sizes[0] else usual


def _size_of(sample: pa.Table, *, encoding: str, level: int) -> int:
    target = pa.BufferOutputStream()
    pq.write_table(
        sample,
        target,
        compression=COMPRESSION,
        compression_level=level,
        use_dictionary=False,
        column_encoding={"": encoding},
    )
    size: int = target.tell()
    return size


def _repeats(column: pa.ChunkedArray) -> bool:
    different: int = sum(pc.count_distinct(part).as_py() for part in apart(column))
    return different < REPEATED_SHARE * len(column)


def apart(column: pa.ChunkedArray) -> Iterator[pa.ChunkedArray]:
    """Many texts in parts that share none: counting takes several times the room of its texts."""
    if len(column) <= ROWS_PER_GROUP:
        yield column
        return
    ends = pc.binary_slice(column.cast(pa.binary()), -1).dictionary_encode()
    codes = np.concatenate([chunk.indices.fill_null(0).to_numpy() for chunk in ends.chunks]).astype(
        np.uint8
    )
    for part in range(TEXT_PARTS):
        yield column.filter(pa.array(codes % TEXT_PARTS == part))
