"""A SHA-256 over what a table says: the same rows, the same digest, whoever wrote the file."""

import hashlib
from collections.abc import Iterable
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recon.model.errors import Defect


def content_digest(table: pa.Table) -> str:
    """SHA-256 over names, blanks and values of every column, in the order of the rows.

    Args:
        table: Columns of text, whole numbers, true or false, days or instants; text may be a
            dictionary.
    """
    return content_digest_of(zip(table.column_names, table.columns, strict=True), like=table)


def content_digest_of(columns: Iterable[tuple[str, pa.ChunkedArray]], *, like: pa.Table) -> str:
    """As `content_digest`, of columns that are made one after another; `like` is their table."""
    return _digest(columns, rows=len(like)) if len(like) else _digest_of_none(like.schema)


@cache
def _digest_of_none(columns: pa.Schema) -> str:
    return _digest(zip(columns.names, columns.empty_table().columns, strict=True), rows=0)


def _digest(columns: Iterable[tuple[str, pa.ChunkedArray]], *, rows: int) -> str:
    digest = hashlib.sha256(f"{rows}".encode())
    for name, column in columns:
        values = _plain(column)
        digest.update(f"\x1e{name}\x1f{values.type}\x1f".encode())
        digest.update(_given(values))
        _add(digest, values)
    return digest.hexdigest()


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """One array without dictionaries; text with long offsets, for any number of rows."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    wanted = pa.large_string() if pa.types.is_string(kind) else kind
    whole = (column if column.type == wanted else column.cast(wanted)).combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def _given(values: pa.Array) -> bytes:
    """For each row a byte: 1 where it has a value."""
    if not values.null_count:
        return b"\x01" * len(values)
    return _numbers(pc.is_valid(values), pa.uint8()).tobytes()


def _add(digest: "hashlib._Hash", values: pa.Array) -> None:
    if pa.types.is_large_string(values.type):
        texts = pc.fill_null(values, "") if values.null_count else values
        ends = _ends(texts)
        digest.update(np.diff(ends).tobytes())
        digest.update(_text_bytes(texts, ends=ends))
        return
    if pa.types.is_timestamp(values.type) or pa.types.is_date(values.type):
        values = values.view(pa.int64() if pa.types.is_timestamp(values.type) else pa.int32())
    if not (pa.types.is_integer(values.type) or pa.types.is_boolean(values.type)):
        msg = f"a column of {values.type} has no place in a file of a night"
        raise Defect(msg)
    if values.null_count:
        values = pc.fill_null(values, pa.scalar(0).cast(values.type))
    digest.update(_numbers(values, pa.int64()).tobytes())


def _numbers(values: pa.Array, kind: pa.DataType) -> npt.NDArray[np.generic]:
    # A cast that changes nothing costs as much as all else of a small column.
    numbers: npt.NDArray[np.generic] = (
        values if values.type == kind else values.cast(kind)
    ).to_numpy()
    return numbers


def _ends(texts: pa.Array) -> npt.NDArray[np.int64]:
    """Where each text begins and the last one ends, in the bytes of all."""
    if not len(texts):
        return np.zeros(1, dtype=np.int64)
    offsets = np.frombuffer(texts.buffers()[1], dtype=np.int64)
    return offsets[texts.offset : texts.offset + len(texts) + 1]


def _text_bytes(texts: pa.Array, *, ends: npt.NDArray[np.int64]) -> memoryview:
    """The bytes of all texts one after another, without what lies before and after a slice."""
    data = texts.buffers()[2]
    return memoryview(data or b"")[int(ends[0]) : int(ends[-1])]
