"""Rows of one schema in the order of its key, read as often as they are wanted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from recon.archive.opened_files import opened_file
from recon.archive.rows_file import row_batches
from recon.archive.step_folder import Sealed
from recon.archive.storage import Storage


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
