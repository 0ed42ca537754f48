"""Parquet as text columns: types that are exact, or a refusal that names the column.

Decimals keep their exact value and are marked as numbers, so that their scale does not matter.
Whole numbers are taken as written: in an amount column they fit only currencies without decimals,
since nobody could say whether they meant major or minor units. Binary fractions are refused.
"""

from collections.abc import Container, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from recon.foreign_bytes.limits import PARQUET_BYTES_MAX
from recon.foreign_bytes.opening import FileBytes
from recon.foreign_bytes.raw_table import (
    RawTable,
    checked_header,
    refuse,
    refuse_too_many_rows,
    trimmed,
)
from recon.foreign_bytes.record_rows import ROWS_AT_ONCE

FIRST_LINE = 2
"""Of a table's rows; 1 is its header."""
MAGIC = b"PAR1"
ENCRYPTED_MAGIC = b"PARE"


def parquet_parts(
    file: FileBytes, *, wanted: Container[str], rows_at_once: int = ROWS_AT_ONCE
) -> Iterator[RawTable]:
    """The wanted columns of a Parquet file, some rows at a time.

    Raises:
        SourceUnreadableError: not Parquet, damaged, too large, or a column is of no exact type.
    """
    name = file.path.name
    if file.content.startswith(ENCRYPTED_MAGIC):
        refuse(name, "is an encrypted Parquet file; write it without encryption")
    if not (file.content.startswith(MAGIC) and file.content.endswith(MAGIC)):
        refuse(name, "is not a Parquet file, or was cut (its ends are not PAR1)")
    try:
        source = pq.ParquetFile(pa.BufferReader(file.content), page_checksum_verification=True)
        declared = source.metadata.num_rows
        header = _header(source, name=name)
        columns = [column for column in header if column in wanted]
        line = FIRST_LINE
        for rows in _batches(source, columns=columns, rows_at_once=rows_at_once):
            yield _part(rows, header=header, name=name, line=line)
            line += rows.num_rows
        if line - FIRST_LINE != declared:
            refuse(name, "is a damaged Parquet file: it holds other rows than it declares")
    except (pa.ArrowException, OSError, ValueError) as error:
        refuse(name, f"is a damaged Parquet file: {str(error).splitlines()[0]}")


def _header(source: pq.ParquetFile, *, name: str) -> tuple[str, ...]:
    declared = source.metadata
    groups = range(declared.num_row_groups)
    size = sum(declared.row_group(group).total_byte_size for group in groups)
    if size > PARQUET_BYTES_MAX:
        refuse(name, f"unpacks to {size} bytes; at most {PARQUET_BYTES_MAX} are read: split it")
    refuse_too_many_rows(declared.num_rows, name=name)
    return checked_header(source.schema_arrow.names, name=name)


def _batches(
    source: pq.ParquetFile, *, columns: list[str], rows_at_once: int
) -> Iterator[pa.Table]:
    """Its rows; one batch without rows where it has none."""
    empty = True
    for batch in source.iter_batches(batch_size=rows_at_once, columns=columns):
        yield pa.Table.from_batches([batch])
        empty = False
    if empty:
        yield source.read(columns=columns)


def _part(rows: pa.Table, *, header: tuple[str, ...], name: str, line: int) -> RawTable:
    columns = {
        column: _text(rows.column(column), column=column, name=name) for column in rows.column_names
    }
    numbers = {
        field.name: pa.array(np.ones(rows.num_rows, dtype=bool))
        for field in rows.schema
        if pa.types.is_decimal(field.type)
    }
    return RawTable(
        name=name,
        sha256="",
        size_bytes=0,
        header=header,
        columns=columns,
        lines=np.arange(line, line + rows.num_rows, dtype=np.int64),
        numbers=numbers,
        typed_dates=True,
    )


def _text(cells: pa.ChunkedArray, *, column: str, name: str) -> pa.Array:
    kind = cells.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        cells = cells.cast(kind)
    if pa.types.is_floating(kind):
        refuse(name, f"holds binary fractions in column {column!r}; write decimals or text")
    if pa.types.is_null(kind):
        cells = cells.cast(pa.string())
    elif pa.types.is_timestamp(kind):
        cells = cells.cast(pa.timestamp("us", tz=kind.tz)).cast(pa.string())
    elif not _is_exact(kind):
        refuse(name, f"holds {kind} in column {column!r}; write text, decimals or timestamps")
    filled: Any = pc.fill_null(cells.cast(pa.large_string()), "")
    return trimmed(filled)


def _is_exact(kind: pa.DataType) -> bool:
    types = pa.types
    text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return bool(text or types.is_integer(kind) or types.is_decimal(kind) or types.is_date(kind))
