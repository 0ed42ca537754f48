"""Parquet as text columns: types that are exact, or a refusal that names the column.

Decimals keep their exact value and are marked as numbers, so that their scale does not matter.
Whole numbers are taken as written: in an amount column they fit only currencies without decimals,
since nobody could say whether they meant major or minor units. Binary fractions are refused.
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
from recon.privacy.shown_text import redacted

FIRST_LINE = 2
"""Of a table's rows; 1 is its header."""
MAGIC = b"PAR1"
ENCRYPTED_MAGIC = b"PARE"


def parquet_table(file: FileBytes, *, wanted: Container[str]) -> RawTable:
    """The wanted columns of a Parquet file.

    Raises:
        SourceUnreadableError: not Parquet, damaged, too large, or a column is of no exact type.
    """
    name = file.path.name
    if file.content.startswith(ENCRYPTED_MAGIC):
        refuse(name, "is an encrypted Parquet file; write it without encryption")
    if not (file.content.startswith(MAGIC) and file.content.endswith(MAGIC)):
        refuse(name, "is not a Parquet file, or was cut (its ends are not PAR1)")
    try:
        metadata = pq.read_metadata(pa.BufferReader(file.content))
        declared = metadata.num_rows
        header = _header(metadata, size=len(file.content), name=name)
        columns = [column for column in header if column in wanted]
        source = pq.ParquetFile(
            pa.BufferReader(file.content),
            read_dictionary=_texts(metadata, among=columns),
            page_checksum_verification=True,
        )
        text, line = _Text(name, size=len(file.content)), FIRST_LINE
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
        raise  # Arrow's is an error of its own as well; the file is too large, not damaged
    except (pa.ArrowException, OSError, ValueError) as error:
        refuse(name, f"is a damaged Parquet file: {str(error).splitlines()[0]}")


def _header(declared: pq.FileMetaData, *, size: int, name: str) -> tuple[str, ...]:
    groups = range(declared.num_row_groups)
    unpacked = sum(declared.row_group(group).total_byte_size for group in groups)
    _refuse_too_much(unpacked, size=size, name=name)
    refuse_too_many_rows(declared.num_rows, name=name)
    return checked_header(declared.schema.to_arrow_schema().names, name=name)


def _texts(declared: pq.FileMetaData, *, among: list[str]) -> list[str]:
    """Columns of text, which are counted before they are written out."""
    leaves = [declared.schema.column(at) for at in range(len(declared.schema))]
    plain = {leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"}
    return [column for column in among if column in plain]


def _refuse_too_much(unpacked: int, *, size: int, name: str) -> None:
    """A few bytes may stand for gigabytes of the same text."""
    fair = max(PARQUET_RATIO_FREE_BYTES, PARQUET_RATIO_MAX * size)
    if unpacked > min(fair, PARQUET_BYTES_MAX):
        most = f"at most {min(fair, PARQUET_BYTES_MAX)} are read of a file of {size} bytes"
        refuse(name, f"unpacks to {unpacked} bytes or more; {most}: split it")


class _Text:
    """What the cells of one file say so far."""

    def __init__(self, name: str, *, size: int) -> None:
        self.name = name
        self._size = size
        self._bytes = 0

    def take(self, column: pa.ChunkedArray, *, named: str) -> None:
        """Count a column before its cells are written out.

        Raises:
            SourceUnreadableError: a cell is too long, or all of them are too much.
        """
        for chunk in column.chunks:
            lengths = pc.binary_length(chunk.dictionary)
            longest = pc.max(pc.utf8_length(chunk.dictionary)).as_py() or 0
            if longest > CELL_CHARACTERS_MAX:
                sentence = f"holds a cell of {longest} characters in column {redacted(named)!r}"
                refuse(self.name, f"{sentence}; at most {CELL_CHARACTERS_MAX} are read")
            spread = lengths.cast(pa.int64()).take(chunk.indices)
            self._bytes += pc.sum(spread).as_py() or 0
            _refuse_too_much(self._bytes, size=self._size, name=self.name)


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
