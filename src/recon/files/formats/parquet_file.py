"""Parquet reader: exact types as text columns; a column of any other type is refused by name.

Decimals keep their exact value and are marked as numbers, so their scale does not matter. Integers
are taken as written: in an amount column they are accepted only for currencies without decimals,
since they could be major or minor units. Floating-point columns are refused.
"""

from collections.abc import Container
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from recon.files.formats.format_limits import (
    CELL_CHARACTERS_MAX,
    PARQUET_BYTES_MAX,
    PARQUET_RATIO_FREE_BYTES,
    PARQUET_RATIO_MAX,
)
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_table import (
    ROWS_AT_ONCE,
    RawTable,
    checked_header,
    joined,
    refuse,
    refuse_too_many_rows,
    trimmed,
)
from recon.privacy.displayed_text import redacted

FIRST_LINE = 2
"""Line number of the first row; line 1 is the header."""
MAGIC = b"PAR1"
ENCRYPTED_MAGIC = b"PARE"


def parquet_table(file: FileBytes, *, columns_read: Container[str]) -> RawTable:
    """Read the wanted columns of a Parquet file.

    Raises:
        SourceUnreadableError: not Parquet, damaged, too large, or a column has no exact type.
    """
    name = file.path.name
    if file.content.startswith(ENCRYPTED_MAGIC):
        refuse(name, "is an encrypted Parquet file; write it without encryption")
    if not (file.content.startswith(MAGIC) and file.content.endswith(MAGIC)):
        refuse(name, "is not a Parquet file, or was cut (its ends are not PAR1)")
    try:
        metadata = pq.read_metadata(pa.BufferReader(file.content))
        declared = metadata.num_rows
        text, line = _Text(name, size=len(file.content)), FIRST_LINE
        groups = range(metadata.num_row_groups)
        text.refuse_too_much(sum(metadata.row_group(group).total_byte_size for group in groups))
        refuse_too_many_rows(declared, name=name)
        header = checked_header(metadata.schema.to_arrow_schema().names, name=name)
        columns = [column for column in header if column in columns_read]
        leaves = [metadata.schema.column(at) for at in range(len(metadata.schema))]
        # Text columns are read dictionary-encoded, so their size is known before they are expanded.
        texts = {leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"}
        source = pq.ParquetFile(
            pa.BufferReader(file.content),
            read_dictionary=[column for column in columns if column in texts],
            page_checksum_verification=True,
        )
        parts = []
        for batch in source.iter_batches(batch_size=ROWS_AT_ONCE, columns=columns):
            rows = pa.Table.from_batches([batch])
            parts.append(_part(rows, header=header, text=text, line=line))
            line += rows.num_rows
        if line - FIRST_LINE != declared:
            refuse(name, "is a damaged Parquet file: it holds other rows than it declares")
        if not parts:
            rows = source.read(columns=columns)
            parts.append(_part(rows, header=header, text=text, line=line))
        return joined(parts)
    except MemoryError:
        raise  # Arrow's MemoryError is also an ArrowException; the file is too large, not damaged
    except (pa.ArrowException, OSError, ValueError) as error:
        refuse(name, f"is a damaged Parquet file: {str(error).splitlines()[0]}")


class _Text:
    """Counts the text of a file's cells against the size limits."""

    def __init__(self, name: str, *, size: int) -> None:
        self.name = name
        self._size = size
        self._bytes = 0

    def take(self, column: pa.ChunkedArray, *, named: str) -> None:
        """Count a column's text before it is expanded.

        Raises:
            SourceUnreadableError: a cell is too long, or the total is too large.
        """
        for chunk in column.chunks:
            lengths = pc.binary_length(chunk.dictionary)
            longest = pc.max(pc.utf8_length(chunk.dictionary)).as_py() or 0
            if longest > CELL_CHARACTERS_MAX:
                sentence = f"holds a cell of {longest} characters in column {redacted(named)!r}"
                refuse(self.name, f"{sentence}; at most {CELL_CHARACTERS_MAX} are read")
            spread = lengths.cast(pa.int64()).take(chunk.indices)
            self._bytes += pc.sum(spread).as_py() or 0
            self.refuse_too_much(self._bytes)

    def refuse_too_much(self, unpacked: int) -> None:
        """Refuse a file that unpacks too far; dictionaries let few bytes expand to gigabytes."""
        most = min(PARQUET_BYTES_MAX, max(PARQUET_RATIO_FREE_BYTES, PARQUET_RATIO_MAX * self._size))
        if unpacked > most:
            bound = f"at most {most} are read of a file of {self._size} bytes"
            refuse(self.name, f"unpacks to {unpacked} bytes or more; {bound}: split it")


def _part(rows: pa.Table, *, header: tuple[str, ...], text: _Text, line: int) -> RawTable:
    columns = {
        column: _cells(rows.column(column), column=column, text=text)
        for column in rows.column_names
    }
    numbers = {
        field.name: pa.array(np.ones(rows.num_rows, dtype=bool))
        for field in rows.schema
        if pa.types.is_decimal(field.type)
    }
    return RawTable(
        name=text.name,
        header=header,
        columns=columns,
        lines=np.arange(line, line + rows.num_rows, dtype=np.int64),
        numbers=numbers,
        typed_dates=True,
    )


def _cells(cells: pa.ChunkedArray, *, column: str, text: _Text) -> pa.Array:
    kind, name = cells.type, text.name
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            text.take(cells, named=column)
            kind = pa.large_string()
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
