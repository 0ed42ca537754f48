"""Rows of a file in their order, as who writes them or takes their digest wants them."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import pyarrow as pa

ROWS_PER_GROUP = 250_000


class InOrder(Protocol):
    """Rows of a file in the order in which they are written, wherever they lie."""

    @property
    def num_rows(self) -> int:
        """How many."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """Their columns."""
        ...

    def columns(self) -> Iterator[tuple[str, pa.ChunkedArray]]:
        """One column after another by its name, in order."""
        ...

    def groups(self) -> Iterator[pa.Table]:
        """One row group after another, each of one chunk; at least one."""
        ...


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
