"""Reading and writing of a night's rows, in order, as Parquet files of a declared schema.

The file contains the schema's name and version; a file with a version that this program does not
know is refused, never read with another schema.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from recon.archive.schemas import METADATA, SCHEMAS, FileSchema
from recon.model.errors import ArchiveBrokenError, Defect

ROWS_PER_GROUP = 250_000
ROWS_PER_BATCH = 50_000
"""Rows held in memory at once where they are only counted, summed or filtered."""
COMPRESSION = "zstd"
LEVEL_OF_TEXTS, LEVEL_OF_NUMBERS = 9, 3
"""Compression levels; for numbers a higher level saves no space and takes up to ten times
longer."""


def ordered_rows(table: pa.Table, *, schema: FileSchema) -> pa.Table:
    """Return rows in the order of the schema's key; equal keys by all other columns.

    Raises:
        Defect: The table does not have exactly the schema's columns.
    """
    if not table.schema.equals(schema.columns):
        msg = f"rows of {schema.name} have columns {table.schema}, not {schema.columns}"
        raise Defect(msg)
    others = [name for name in schema.columns.names if name not in schema.key]
    order = sorted_keys(table, names=(*schema.key, *others))
    # Results are usually in order already, and taking rows would copy all of them.
    in_order = pc.all(pc.equal(order, pa.array(np.arange(len(order), dtype=np.uint64)))).as_py()
    return table if in_order else table.take(order)


def sorted_keys(table: pa.Table, *, names: Sequence[str]) -> pa.Array:
    """Return the row indices in ascending order of some columns; the sort is stable.

    >>> sorted_keys(pa.table({"order_no": ["B", "A", "B"]}), names=["order_no"]).to_pylist()
    [1, 0, 2]
    """
    keys = pa.table({name: sortable(table[name]) for name in names})
    return pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in names])


def sortable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a dictionary column as ranks: Arrow does not sort dictionaries, and ranks are fast."""
    if not pa.types.is_dictionary(column.type) or len(column) == 0:
        return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
    whole = column.unify_dictionaries().combine_chunks()
    texts = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    ranks = pc.rank(texts.dictionary, tiebreaker="dense")
    return ranks.cast(pa.uint32()).take(texts.indices)


def write_ordered(file: BinaryIO, rows: pa.Table, *, schema: FileSchema) -> None:
    """Write rows in order; equal rows give equal bytes, however they are laid out in memory."""
    starts = range(0, rows.num_rows or 1, ROWS_PER_GROUP)
    groups = (rows.slice(start, ROWS_PER_GROUP).combine_chunks() for start in starts)
    write_tables(file, map(_numbered_alike, groups), schema=schema)


def write_tables(file: BinaryIO, tables: Iterable[pa.Table], *, schema: FileSchema) -> None:
    """Write tables one after another, each as row groups of its own."""
    metadata = {**(schema.columns.metadata or {}), METADATA: schema.label}
    equals = {field.name: pa.types.is_dictionary(field.type) for field in schema.columns}
    is_text = {field.name: pa.types.is_string(field.type) for field in schema.columns}
    writer: pq.ParquetWriter | None = None
    try:
        for table in tables:
            writer = writer or pq.ParquetWriter(
                file,
                schema.columns.with_metadata(metadata),
                compression=COMPRESSION,
                compression_level={
                    name: LEVEL_OF_TEXTS if equals[name] or is_text[name] else LEVEL_OF_NUMBERS
                    for name in equals
                },
                store_schema=True,
                use_dictionary=[name for name in equals if equals[name]],
                # Delta encodings, since neighbouring rows have similar numbers and times.
                column_encoding={
                    name: "DELTA_BYTE_ARRAY" if is_text[name] else "DELTA_BINARY_PACKED"
                    for name in equals
                    if not equals[name]
                },
            )
            named = table.replace_schema_metadata(metadata)
            writer.write_table(named, row_group_size=ROWS_PER_GROUP)
    finally:
        if writer is not None:
            writer.close()


def _numbered_alike(rows: pa.Table) -> pa.Table:
    """Return rows with dictionaries in order of first use and without unused entries.

    A file stores each row group's dictionary as it is, and must not show how rows were assembled.
    """
    for at, field in enumerate(rows.schema):
        if pa.types.is_dictionary(field.type):
            texts = rows.column(at).cast(pa.string()).combine_chunks()
            rows = rows.set_column(at, field, texts.dictionary_encode())
    return rows


def read_rows(
    content: bytes,
    *,
    name: str,
    schemas: Mapping[str, FileSchema] = SCHEMAS,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """Return the rows of a file with one of these schemas; `name` is the file's, for errors.

    `columns` limits the result to some columns.

    Raises:
        ArchiveBrokenError: It is not a Parquet file, or has a schema this program does not know.
    """
    with _readable(content, name=name):
        file = _parquet(content, name=name, schemas=schemas)
        return file.read(columns=columns and [*columns])


def row_batches(
    content: bytes | BinaryIO,
    *,
    name: str,
    rows_max: int = ROWS_PER_BATCH,
    schemas: Mapping[str, FileSchema] = SCHEMAS,
    columns: Sequence[str] | None = None,
) -> Iterator[pa.Table]:
    """Yield the rows of a file in order, at most `rows_max` at a time; see `read_rows`.

    `content` may be an open file, of which then only what is needed is held in memory.

    Raises:
        ArchiveBrokenError: It is not a Parquet file, or has a schema this program does not know.
    """
    with _readable(content, name=name):
        file = _parquet(content, name=name, schemas=schemas)
        for batch in file.iter_batches(batch_size=rows_max, columns=columns and [*columns]):
            yield pa.Table.from_batches([batch])


def rows_between(
    file: BinaryIO, *, name: str, first: str, after: str, by: str = "order_no"
) -> pa.Table:
    """Return the rows whose `by` is at least `first` and less than `after` (blank: no end).

    Only row groups that can contain such a row are read; see `read_rows`.

    Raises:
        ArchiveBrokenError: It is not a Parquet file, or has a schema this program does not know.
    """
    with _readable(file, name=name):
        parquet = _parquet(file, name=name, schemas=SCHEMAS)
        tables = [parquet.schema_arrow.empty_table()]
        for group in range(parquet.num_row_groups):
            if _may_hold(parquet, group=group, by=by, first=first, after=after):
                rows = parquet.read_row_group(group, use_threads=False)
                inside = pc.greater_equal(rows[by], first)
                inside = pc.and_(inside, pc.less(rows[by], after)) if after else inside
                tables.append(rows.filter(inside))
                del rows  # free it before the next one is read
        return pa.concat_tables(tables).unify_dictionaries()


def _may_hold(parquet: pq.ParquetFile, *, group: int, by: str, first: str, after: str) -> bool:
    at = parquet.schema_arrow.get_field_index(by)
    known = parquet.metadata.row_group(group).column(at).statistics
    if known is None or not known.has_min_max:
        return True
    return bool(known.max >= first and (not after or known.min < after))


def _parquet(
    source: bytes | BinaryIO, *, name: str, schemas: Mapping[str, FileSchema]
) -> pq.ParquetFile:
    """Open a file and check that it has one of these schemas."""
    content = pa.BufferReader(source) if isinstance(source, bytes) else source
    # A row group of a remote file is fetched with one request, not column by column.
    file = pq.ParquetFile(content, pre_buffer=True)
    which = (file.schema_arrow.metadata or {}).get(METADATA, b"").decode()
    known = {schema.label.decode() for schema in schemas.values()}
    if which not in known:
        kind = which.split("/", maxsplit=1)[0]
        ours = next((each for each in sorted(known) if each.split("/")[0] == kind), "none of it")
        msg = (
            f"{name} of the archive has the schema {which or 'of nobody'}, and this version of "
            f"recon knows {ours}: read it with the version that wrote it, or a newer one"
        )
        raise ArchiveBrokenError(msg)
    return file


@contextmanager
def _readable(source: bytes | BinaryIO, *, name: str) -> Iterator[None]:
    """Translate errors of Parquet to ArchiveBrokenError; those of the storage pass unchanged."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and not isinstance(source, bytes):
            raise
        msg = f"{name} of the archive is no whole Parquet file: {error}"
        raise ArchiveBrokenError(msg) from error
