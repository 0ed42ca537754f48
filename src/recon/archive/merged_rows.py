"""Sorted rows that lie in several places, as one table that nobody holds.

The parts of a night each have the rows of a stretch of order numbers; what is left of them is
judged together, and lies among them. Which row comes from where is found first: two bytes a row.
Then each origin is read from its beginning to its end, a column of it or all of them, and of all
rows no more is held than a column, or a row group.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from recon.archive.fields import FileSchema
from recon.archive.in_order import ROWS_PER_GROUP
from recon.archive.merge_order import Which, merge_order
from recon.archive.rows_file import ROWS_PER_BATCH, sorted_rows
from recon.archive.sorted_rows import SortedRows, TableRows
from recon.model.errors import Defect

ROWS_PER_BATCH_MIN = 4_096
"""Of many origins that are read in turn; fewer rows at once cost more than they spare."""


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
