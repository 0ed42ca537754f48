"""What parts of a night and its rest came to, merged: the files of the night, and its digest."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa

from recon.archive.merged_rows import FileRows, MergedRows, SortedRows, TableRows, merge_order
from recon.archive.schemas import SCHEMAS
from recon.archive.step_folder import Rows, Sealed
from recon.archive.storage import Storage
from recon.matching.breaks.result_frames import OPEN_SORTED_BY
from recon.matching.frames.digest import Columns
from recon.proof.match_ids import ID, MATCHES, NAMED_BY, with_first_ids
from recon.proof.night_parts import SECTIONS
from recon.proof.night_tables import ITEMS, frame_of_table, table_of

MERGED = (*SECTIONS, ITEMS)
"""Tables that each part has rows of."""


@dataclass(frozen=True, slots=True)
class Merged:
    """The rows of all parts by table, each as its file has them."""

    parts: Mapping[str, Sequence[SortedRows]]

    @classmethod
    def of(cls, steps: Sequence[Sealed], *, storage: Storage) -> "Merged":
        """The rows of parts that each wrote a step with these tables."""
        return cls({name: [FileRows(storage, step, name) for step in steps] for name in MERGED})

    def rows(self, name: str) -> int:
        """How many rows of a table the parts have."""
        return sum(part.num_rows for part in self.parts.get(name, ()))

    def columns(self, name: str, *, rest: pd.DataFrame) -> Columns:
        """The frame of parts and rest, for who looks at one column after the other.

        Args:
            name: matches, pending or unverified.
            rest: the rest's frame, sorted by OPEN_SORTED_BY.

        Raises:
            Defect: a part has other rows than it says, or in another order.
        """
        parts = [_WithIds(part) if name == MATCHES else part for part in self.parts.get(name, ())]
        table = table_of(rest, name=name)
        which = merge_order(parts, rest=table, by=OPEN_SORTED_BY)
        origins = [TableRows(table), *parts]
        merged = MergedRows(origins, which=which, schema=SCHEMAS[name].columns)
        return MergedColumns(merged, names=tuple(rest.columns))

    def file(self, name: str, *, rest: pa.Table) -> Rows:
        """The file of parts and rest, the rest as `night_tables.result_tables` has it.

        Raises:
            Defect: a part has other rows than it says, or in another order.
        """
        schema = SCHEMAS[name]
        merged = MergedRows.of(self.parts.get(name, ()), rest=rest, schema=schema)
        return Rows.in_order(merged, schema=schema)


class MergedColumns:
    """The columns of a frame; each is made when it is asked for, and not kept."""

    def __init__(self, rows: MergedRows, *, names: tuple[str, ...]) -> None:
        """Columns of these names, in their order."""
        self.columns = names
        self._rows = rows

    def __len__(self) -> int:
        """How many rows."""
        return self._rows.num_rows

    def __getitem__(self, name: str) -> "pd.Series[Any]":
        """One column."""
        field = self._rows.schema.field(name)
        if not pa.types.is_string(field.type):
            return frame_of_table(pa.table([self._rows.in_order(name)], pa.schema([field])))[name]
        # Texts of a frame have longer offsets: some at a time, or the column stood there twice.
        some = (frame_of_table(table)[name] for table in self._rows.some(name))
        column: pd.Series[Any] = pd.concat(some, ignore_index=True)
        return column


@dataclass(frozen=True, slots=True)
class _WithIds:
    """Matches with the ids that their file leaves out."""

    part: SortedRows

    @property
    def num_rows(self) -> int:
        return self.part.num_rows

    def batches(self, columns: Sequence[str], *, rows_max: int) -> Iterator[pa.Table]:
        if ID not in columns:
            yield from self.part.batches(columns, rows_max=rows_max)
            return
        for batch in self.part.batches([*{*columns, *NAMED_BY}], rows_max=rows_max):
            yield with_first_ids(batch).select([*columns])
