"""Rows of a night in their order as a Parquet file of a declared schema, and back.

The schema's name and version stand in the file; a file of a version that this program does not
know is refused by name, never read as if it were another.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from recon.archive.schemas import METADATA, SCHEMAS, FileSchema
from recon.model.errors import ArchiveBrokenError, Defect


class Ordered(NamedTuple):
    """Rows in memory and their order: what is more than a row group is never copied as a whole."""

    table: pa.Table
    order: pa.Array | None = None
    """Which row comes where; None: they lie so."""

    @property
    def num_rows(self) -> int:
        """How many."""
        rows: int = self.table.num_rows
        return rows

    @property
    def schema(self) -> pa.Schema:
        """Their columns."""
        return self.table.schema

    def columns(self) -> Iterator[tuple[str, pa.ChunkedArray]]:
        """One column after another by its name, in order."""
        for name in self.table.column_names:
            column = self.table[name]
            yield name, column if self.order is None else column.take(self.order)

    def groups(self) -> Iterator[pa.Table]:
        """One row group after another, each of one chunk; at least one."""
        for start in range(0, self.table.num_rows or 1, ROWS_PER_GROUP):
            if self.order is None:
                yield self.table.slice(start, ROWS_PER_GROUP).combine_chunks()
            else:
                yield self.table.take(self.order.slice(start, ROWS_PER_GROUP)).combine_chunks()


ROWS_PER_GROUP = 250_000
DICTIONARY_MAX = 2**16 - 1
"""Different words of a column whose ranks fit into two bytes each."""
ROWS_PER_BATCH = 50_000
"""So many are held at once where rows are only counted, added up or chosen from."""
SMALL_BYTES = 2_000_000
"""Handing out less to several threads takes longer than reading it."""
COMPRESSION = "zstd"
LEVEL_OF_TEXTS, LEVEL_OF_NUMBERS = 9, 3
"""Numbers take the same room by more, and up to ten times as long."""


def ordered_rows(table: pa.Table, *, schema: FileSchema) -> Ordered:
    """The rows in the order of the schema's key, equal keys by all other columns.

    Raises:
        Defect: the table does not have exactly the schema's columns.
    """
    if not table.schema.equals(schema.columns):
        msg = f"rows of {schema.name} have columns {table.schema}, not {schema.columns}"
        raise Defect(msg)
    if table.num_rows <= 1:
        return Ordered(table)
    others = [name for name in schema.columns.names if name not in schema.key]
    order = sorted_keys(table, names=(*schema.key, *others))
    # A result comes in the order of its key, and taking its rows would copy all of them.
    in_order = pc.all(pc.equal(order, pa.array(np.arange(len(order), dtype=np.uint64)))).as_py()
    return Ordered(table, None if in_order else order)


def sorted_keys(table: pa.Table, *, names: Sequence[str]) -> pa.Array:
    """Which row comes where by some columns; equal rows stay in their order.

    >>> sorted_keys(pa.table({"order_no": ["B", "A", "B"]}), names=["order_no"]).to_pylist()
    [1, 0, 2]
    """
    keys = pa.table({name: sortable(table[name]) for name in names})
    return pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in names])


def sortable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Words of a dictionary as their ranks: Arrow sorts no dictionaries, and numbers are quick."""
    if not pa.types.is_dictionary(column.type) or len(column) == 0:
        return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
    whole = column.unify_dictionaries().combine_chunks()
    words = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    ranks = pc.rank(words.dictionary, tiebreaker="dense")
    # Of a million rows each column of words would take 8 MB more.
    kind = pa.uint16() if len(ranks) <= DICTIONARY_MAX else pa.uint32()
    return ranks.cast(kind).take(words.indices)


def write_ordered(file: BinaryIO, rows: Ordered, *, schema: FileSchema) -> None:
    """Write rows as they come: the same rows are the same bytes, wherever they lie."""
    if rows.num_rows:
        write_parts(file, map(_numbered_alike, rows.groups()), schema=schema)
    else:
        file.write(_without_rows(schema))


@cache
def _without_rows(schema: FileSchema) -> bytes:
    """A file without a row, as most of a small night are: always the same bytes."""
    file = BytesIO()
    write_parts(file, [schema.columns.empty_table()], schema=schema)
    return file.getvalue()


def write_parts(file: BinaryIO, parts: Iterable[pa.Table], *, schema: FileSchema) -> None:
    """Write tables one after another, each as row groups of its own."""
    metadata = {**(schema.columns.metadata or {}), METADATA: schema.label}
    equals = {field.name: pa.types.is_dictionary(field.type) for field in schema.columns}
    is_text = {field.name: pa.types.is_string(field.type) for field in schema.columns}
    writer: pq.ParquetWriter | None = None
    try:
        for table in parts:
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
                # By what changes from row to row: neighbours have numbers and times alike.
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
    """The rows, words numbered as they come, and none that no row says.

    A file holds the numbers and words of each row group as they are: how its rows came together
    must not show.
    """
    for at, field in enumerate(rows.schema):
        if pa.types.is_dictionary(field.type) and len(rows):
            rows = rows.set_column(at, field, _as_they_come(rows.column(at)))
    return rows


def _as_they_come(column: pa.ChunkedArray) -> pa.Array:
    words = column.combine_chunks()
    words = words.chunk(0) if isinstance(words, pa.ChunkedArray) else words
    numbers, size = words.indices.to_numpy(), len(words.dictionary)
    first = np.full(size, len(numbers))
    first[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)
    used = np.argsort(first)[: np.count_nonzero(first < len(numbers))]
    if len(used) == size and (np.diff(used) > 0).all():
        return words
    places = np.zeros(size, dtype=numbers.dtype)
    places[used] = np.arange(len(used))
    return pa.DictionaryArray.from_arrays(places[numbers], words.dictionary.take(pa.array(used)))


def read_rows(
    content: bytes,
    *,
    name: str,
    schemas: Mapping[str, FileSchema] = SCHEMAS,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """The rows of a file of one of these schemas; `name` is the file's, for the sentence.

    `columns`: only these of them.

    Raises:
        ArchiveBrokenError: it is no Parquet file, or of a schema that this program does not know.
    """
    with _readable(content, name=name):
        file = _parquet(content, name=name, schemas=schemas)
        threads = len(content) > SMALL_BYTES
        return file.read(columns=columns and [*columns], use_threads=threads)


def row_batches(
    content: bytes | BinaryIO,
    *,
    name: str,
    rows_max: int = ROWS_PER_BATCH,
    schemas: Mapping[str, FileSchema] = SCHEMAS,
    columns: Sequence[str] | None = None,
) -> Iterator[pa.Table]:
    """The rows of a file in order, so many at a time; see `read_rows`.

    `content`: or the file, and then only what is asked of it is held.

    Raises:
        ArchiveBrokenError: it is no Parquet file, or of a schema that this program does not know.
    """
    with _readable(content, name=name):
        file = _parquet(content, name=name, schemas=schemas)
        for batch in file.iter_batches(batch_size=rows_max, columns=columns and [*columns]):
            yield pa.Table.from_batches([batch])


def rows_between(
    file: BinaryIO, *, name: str, first: str, after: str, by: str = "order_no"
) -> pa.Table:
    """The rows of a file with texts from `first` on, before `after` (blank: to the end).

    Of the row groups only those that can hold such a row are read; see `read_rows`.

    Raises:
        ArchiveBrokenError: it is no Parquet file, or of a schema that this program does not know.
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
                del rows  # before the next one is read
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
    """A file of one of these schemas."""
    content = pa.BufferReader(source) if isinstance(source, bytes) else source
    # Of a file that is elsewhere a row group is asked for at once, not column by column.
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
    """What is wrong with a file as a sentence; what its storage says is the storage's to tell."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and not isinstance(source, bytes):
            raise
        msg = f"{name} of the archive is no whole Parquet file: {error}"
        raise ArchiveBrokenError(msg) from error
