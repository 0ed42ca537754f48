"""A SHA-256 over what a table says: the same rows, the same digest, whoever wrote the file."""

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recon.model.errors import Defect


def content_digest(table: pa.Table) -> str:
    """SHA-256 over names, blanks and values of every column, in the order of the rows.

    Args:
        table: Columns of text, whole numbers, true or false, days or instants; text may be a
            dictionary.
    """
    digest = hashlib.sha256(f"{table.num_rows}".encode())
    for name in table.column_names:
        values = _plain(table[name])
        digest.update(f"\x1e{name}\x1f{values.type}\x1f".encode())
        digest.update(_numbers(pc.is_valid(values), pa.uint8()).tobytes())
        _add(digest, values)
    return digest.hexdigest()


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """One array without dictionaries; text with long offsets, for any number of rows."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    wanted = pa.large_string() if pa.types.is_string(kind) else kind
    whole = column.cast(wanted).combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def _add(digest: "hashlib._Hash", values: pa.Array) -> None:
    if pa.types.is_large_string(values.type):
        texts = pc.fill_null(values, "")
        digest.update(_numbers(pc.binary_length(texts), pa.int64()).tobytes())
        digest.update(_text_bytes(texts))
        return
    if pa.types.is_timestamp(values.type) or pa.types.is_date(values.type):
        values = values.cast(pa.int64() if pa.types.is_timestamp(values.type) else pa.int32())
    if not (pa.types.is_integer(values.type) or pa.types.is_boolean(values.type)):
        msg = f"a column of {values.type} has no place in a file of a night"
        raise Defect(msg)
    zero = pa.scalar(0).cast(values.type)
    digest.update(_numbers(pc.fill_null(values, zero), pa.int64()).tobytes())


def _numbers(values: pa.Array, kind: pa.DataType) -> "np.ndarray[tuple[int], np.dtype[np.generic]]":
    numbers: np.ndarray[tuple[int], np.dtype[np.generic]] = values.cast(kind).to_numpy(
        zero_copy_only=False
    )
    return numbers


def _text_bytes(texts: pa.Array) -> memoryview:
    """The bytes of all texts one after another, without what lies before and after a slice."""
    _, offsets, data = texts.buffers()
    if data is None:
        return memoryview(b"")
    ends = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return memoryview(data)[int(ends[0]) : int(ends[-1])]
