"""Sorted rows that lie in several places, as one table that nobody holds.

The parts of a night each have the rows of a stretch of order numbers; what is left of them is
judged together, and lies among them. Which row comes from where is found first, by their keys
alone. Then each origin is read from its beginning to its end, a column of it or all of them, and of
all rows no more is held than their keys, a column, or a row group.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.rows_file import (
    ROWS_PER_BATCH,
    ROWS_PER_GROUP,
    row_batches,
    sortable,
    sorted_keys,
    sorted_rows,
)
from recon.archive.schemas import BY_KEY, FileSchema
from recon.archive.step_folder import Sealed, opened_file
from recon.archive.storage import Storage
from recon.model.errors import Defect

Which: TypeAlias = "npt.NDArray[np.uint16]"
"""For each row of all, the origin that it comes from: 0 is the rest, the parts follow."""
PARTS_MAX = 2**16 - 1
ROWS_PER_BATCH_MIN = 4_096
"""Of many origins that are read in turn; fewer rows at once cost more than they spare."""
_Numbers: TypeAlias = "npt.NDArray[np.uint64]"


class SortedRows(Protocol):
    """Rows that lie somewhere."""

    @property
    def num_rows(self) -> int:
        """How many."""
        ...

    def batches(self, columns: Sequence[str], *, rows_max: int) -> Iterator[pa.Table]:
        """These columns of all rows in order, at most so many rows at a time."""
        ...


@dataclass(frozen=True, slots=True)
class TableRows:
    """Rows in memory."""

    table: pa.Table

    @property
    def num_rows(self) -> int:
        """How many."""
        rows: int = self.table.num_rows
        return rows

    def batches(self, columns: Sequence[str], *, rows_max: int) -> Iterator[pa.Table]:
        """See SortedRows."""
        chosen = self.table.select([*columns])
        for start in range(0, len(chosen), rows_max):
            yield chosen.slice(start, rows_max)


@dataclass(frozen=True, slots=True)
class FileRows:
    """Rows of a file of a sealed step; only what is asked of it is held."""

    storage: Storage
    sealed: Sealed
    table: str
    """The name of its schema."""

    @property
    def num_rows(self) -> int:
        """How many."""
        return sum(entry.rows for entry in self.sealed.manifest.files if entry.name == self._file)

    def batches(self, columns: Sequence[str], *, rows_max: int) -> Iterator[pa.Table]:
        """See SortedRows.

        Raises:
            ArchiveBrokenError: it is gone, or is not the file that was sealed.
        """
        with opened_file(self.storage, self.sealed, name=self._file) as file:
            path = f"{self.sealed.folder}/{self._file}"
            for batch in row_batches(file, name=path, rows_max=rows_max, columns=columns):
                yield batch.select([*columns])

    @property
    def _file(self) -> str:
        return f"{self.table}.parquet"


class MergedRows:
    """Rows of all origins in the order of their key; see `in_order.InOrder`."""

    def __init__(self, origins: Sequence[SortedRows], *, which: Which, schema: pa.Schema) -> None:
        """Rows of these origins; `which` of them each row comes from."""
        self.schema = schema
        self._origins, self._which = origins, which

    @classmethod
    def of(cls, parts: Sequence[SortedRows], *, rest: pa.Table, schema: FileSchema) -> "MergedRows":
        """Rows of parts and of the rest as a file has them.

        Args:
            parts: each as a file of this schema has its rows.
            rest: of this schema, in any order.
            schema: its key begins with merchant, account and order number.

        Raises:
            Defect: a part has other rows than it says, or in another order.
        """
        ordered = sorted_rows(rest, schema=schema)
        others = [name for name in schema.columns.names if name not in schema.key]
        which = merge_order(parts, rest=ordered, by=(*schema.key, *others))
        return cls([TableRows(ordered), *parts], which=which, schema=schema.columns)

    @property
    def num_rows(self) -> int:
        """How many."""
        return len(self._which)

    def in_order(self, name: str) -> pa.ChunkedArray:
        """One column in order."""
        tables = self._groups([name], rows_max=ROWS_PER_GROUP)
        chunks = [chunk for table in tables for chunk in table[name].chunks]
        return pa.chunked_array(chunks, self.schema.field(name).type)

    def some(self, name: str) -> Iterator[pa.Table]:
        """One column in order, so many rows as a row group at a time; at least one table."""
        yield from self._groups([name], rows_max=ROWS_PER_GROUP)

    def columns(self) -> Iterator[tuple[str, pa.ChunkedArray]]:
        """One column after another by its name, in order."""
        for name in self.schema.names:
            yield name, self.in_order(name)

    def groups(self) -> Iterator[pa.Table]:
        """One row group after another, each of one chunk; at least one."""
        for table in self._groups(self.schema.names, rows_max=ROWS_PER_GROUP):
            yield table.combine_chunks()

    def _groups(self, names: Sequence[str], *, rows_max: int) -> Iterator[pa.Table]:
        """These columns in order, so many rows at a time; at least one table."""
        if not self.num_rows:
            yield pa.schema([self.schema.field(name) for name in names]).empty_table()
        at_once = min(ROWS_PER_BATCH, max(ROWS_PER_BATCH_MIN, ROWS_PER_GROUP // len(self._origins)))
        readers = [
            _Reader(origin.batches(names, rows_max=at_once), rows=origin.num_rows)
            for origin in self._origins
        ]
        for start in range(0, self.num_rows, rows_max):
            which = self._which[start : start + rows_max]
            counts = np.bincount(which)
            tables = [readers[origin].take(counts[origin]) for origin in np.flatnonzero(counts)]
            yield _in_turn(pa.concat_tables(tables), which=which)


def merge_order(parts: Sequence[SortedRows], *, rest: pa.Table, by: Sequence[str]) -> Which:
    """Where each row of all comes from; rows of one origin stay in their order.

    Args:
        parts: in any order, each sorted by `by`.
        rest: sorted alike; of equal rows its own come first.
        by: the columns that tell the order: merchant, account and order number before others.

    Raises:
        Defect: a part has other rows than it says, or in another order; there are too many parts.
    """
    if len(parts) > PARTS_MAX or tuple(by[: len(BY_KEY)]) != BY_KEY:
        msg = f"{len(parts)} parts by {by} cannot be merged: at most {PARTS_MAX} by {BY_KEY} can"
        raise Defect(msg)
    origins = [TableRows(rest), *parts]
    keys = _keys(origins, like=rest)
    sizes = [origin.num_rows for origin in origins]
    # Stable: rows of one key come origin after origin, those of one origin as they lie.
    order = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in BY_KEY]).to_numpy()
    origin_of = np.repeat(np.arange(len(origins), dtype=np.uint16), sizes)
    which: Which = origin_of[order]
    _refuse_unsorted(order, origin_of=origin_of)
    tied = _tied(keys, order=order, which=which)
    if len(tied):
        # Their keys do not tell them apart: all columns do. They stand together, so sorted as a
        # whole they fit their places.
        rows, begins = np.sort(order[tied]), np.cumsum([0, *sizes])
        tables = [
            table
            for number, origin in enumerate(origins)
            for table in _rows_at(
                origin, rows=_within(rows, *begins[number : number + 2]), columns=by
            )
        ]
        which[tied] = origin_of[rows][sorted_keys(pa.concat_tables(tables), names=by).to_numpy()]
    return which


def _keys(origins: Sequence[SortedRows], *, like: pa.Table) -> pa.Table:
    """The keys of all rows, origin after origin, in columns that Arrow sorts."""
    tables = [like.select([*BY_KEY]).slice(0, 0)]
    for origin in origins:
        batches = [*origin.batches(BY_KEY, rows_max=ROWS_PER_BATCH)]
        if (rows := sum(map(len, batches))) != origin.num_rows:
            msg = f"a part has {rows} rows and says {origin.num_rows}"
            raise Defect(msg)
        tables += batches
    whole = pa.concat_tables(tables)
    return pa.table({name: sortable(whole[name]) for name in BY_KEY})


def _refuse_unsorted(order: _Numbers, *, origin_of: Which) -> None:
    """Refuse rows of an origin that would have to change places."""
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    if not ((np.diff(places) > 0) | (origin_of[1:] != origin_of[:-1])).all():
        msg = "rows of a part do not lie in the order of their key"
        raise Defect(msg)


def _tied(keys: pa.Table, *, order: _Numbers, which: Which) -> "npt.NDArray[np.intp]":
    """Places in the order whose key rows of several origins have."""
    is_new = np.ones(len(order), dtype=np.bool_)
    for start in range(1, len(order), ROWS_PER_GROUP):
        # Some at a time: the keys are not held a second time.
        some = keys.take(pa.array(order[start - 1 : start + ROWS_PER_GROUP]))
        pairs = [pc.equal(column[1:], column[:-1]).to_numpy() for column in some.columns]
        is_new[start : start + ROWS_PER_GROUP] = ~np.logical_and.reduce(pairs)
    group = np.cumsum(is_new)
    of_several = group[1:][~is_new[1:] & (which[1:] != which[:-1])]
    return np.flatnonzero(np.isin(group, of_several))


def _within(rows: _Numbers, begins: int, ends: int) -> _Numbers:
    """Which of some rows are of an origin, counted from its first one."""
    first, last = np.searchsorted(rows, [begins, ends])
    return rows[first:last] - np.uint64(begins)


def _rows_at(part: SortedRows, *, rows: _Numbers, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Some rows of a part, in order."""
    at = 0
    for batch in part.batches(columns, rows_max=ROWS_PER_BATCH) if len(rows) else ():
        first, last = np.searchsorted(rows, [at, at + len(batch)])
        if first < last:
            yield batch.take(pa.array(rows[first:last] - np.uint64(at)))
        at += len(batch)


class _Reader:
    """Rows of an origin that are taken in turn."""

    def __init__(self, batches: Iterator[pa.Table], *, rows: int) -> None:
        self._batches = batches
        self._left = rows
        self._held: pa.Table | None = None

    def take(self, rows: int) -> pa.Table:
        """The next rows."""
        taken = []
        self._left -= rows
        while rows:
            held = next(self._batches, None) if self._held is None else self._held
            if held is None:
                msg = f"a part has {rows} rows fewer than its keys"
                raise Defect(msg)
            taken.append(held.slice(0, rows))
            self._held = held.slice(rows) if len(held) > rows else None
            rows -= len(taken[-1])
        if not self._left:
            # A file that is read to its end would else stay open, with its last pages.
            self._batches = iter(())
        return pa.concat_tables(taken)


def _in_turn(rows: pa.Table, *, which: Which) -> pa.Table:
    """Rows that lie origin after origin, in the order in which they come from there."""
    if (which[1:] >= which[:-1]).all():
        return rows
    order = np.empty(len(which), dtype=np.int64)
    order[np.argsort(which, kind="stable")] = np.arange(len(which))
    return rows.take(pa.array(order))
