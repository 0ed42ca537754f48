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
    columns = zip(table.column_names, table.columns, strict=True)
    return content_digest_of(columns, rows=len(table), schema=table.schema)


def content_digest_of(
    columns: Iterable[tuple[str, pa.ChunkedArray]], *, rows: int, schema: pa.Schema
) -> str:
    """As `content_digest`, of columns that are made one after another; `schema` is their table's.

    Of a column it holds no copy: it looks at one chunk after another.
    """
    return _digest(columns, rows=rows) if rows else _digest_of_none(schema)


@cache
def _digest_of_none(columns: pa.Schema) -> str:
    return _digest(zip(columns.names, columns.empty_table().columns, strict=True), rows=0)


def _digest(columns: Iterable[tuple[str, pa.ChunkedArray]], *, rows: int) -> str:
    digest = hashlib.sha256(f"{rows}".encode())
    for name, column in columns:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        shown = pa.large_string() if is_text else kind
        digest.update(f"\x1e{name}\x1f{shown}\x1f".encode())
        chunks = [chunk.cast(kind) for chunk in column.chunks if len(chunk)]
        for chunk in chunks:
            digest.update(_given(chunk))
        _add(digest, chunks, kind=shown)
    return digest.hexdigest()


def _given(values: pa.Array) -> bytes:
    """For each row a byte: 1 where it has a value."""
    if not values.null_count:
        return b"\x01" * len(values)
    return _numbers(pc.is_valid(values), pa.uint8()).tobytes()


def _add(digest: "hashlib._Hash", chunks: Iterable[pa.Array], *, kind: pa.DataType) -> None:
    if pa.types.is_large_string(kind):
        texts = [pc.fill_null(each, "") if each.null_count else each for each in chunks]
        for each in texts:
            digest.update(np.diff(_ends(each)).astype(np.int64).tobytes())
        for each in texts:
            digest.update(_text_bytes(each, ends=_ends(each)))
        return
    if not (pa.types.is_integer(kind) or pa.types.is_boolean(kind) or _is_time(kind)):
        msg = f"a column of {kind} has no place in a file of a night"
        raise Defect(msg)
    for each in chunks:
        digest.update(_whole_numbers(each).tobytes())


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _whole_numbers(values: pa.Array) -> npt.NDArray[np.generic]:
    """What each row says as a number; a blank is 0."""
    if _is_time(values.type):
        values = values.view(pa.int64() if pa.types.is_timestamp(values.type) else pa.int32())
    if values.null_count:
        values = pc.fill_null(values, pa.scalar(0).cast(values.type))
    return _numbers(values, pa.int64())


def _numbers(values: pa.Array, kind: pa.DataType) -> npt.NDArray[np.generic]:
    # A cast that changes nothing costs as much as all else of a small column.
    numbers: npt.NDArray[np.generic] = (
        values if values.type == kind else values.cast(kind)
    ).to_numpy()
    return numbers


def _ends(texts: pa.Array) -> npt.NDArray[np.generic]:
    """Where each text begins and the last one ends, in the bytes of all; there is at least one."""
    size = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    offsets = np.frombuffer(texts.buffers()[1], dtype=size)
    return offsets[texts.offset : texts.offset + len(texts) + 1]


def _text_bytes(texts: pa.Array, *, ends: npt.NDArray[np.generic]) -> memoryview:
    """The bytes of all texts one after another, without what lies before and after a slice."""
    data = texts.buffers()[2]
    return memoryview(data or b"")[int(ends[0]) : int(ends[-1])]
