"""Typed entries of banks as batches of Arrow in the columns of the contract, a block at a time.

A statement of a million entries stands in memory once, in as few bytes as its words have: what
every row repeats (statement, currency, state) is written out only in the batch that is handed on.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from recon.files.formats.bank_records import EntryBlock
from recon.files.kinds.bank_columns import EntryColumns
from recon.matching.frames.bank_sources import BANK_ENTRY_COLUMNS, BOOKED, PENDING, no_entries
from recon.matching.frames.grouping import Ints

Row = dict[str, Any]
ENTRY_SCHEMA: pa.Schema = pa.Schema.from_pandas(no_entries(), preserve_index=False)
"""BANK_ENTRY_COLUMNS as Arrow."""
DAYS = ("booked_on", "value_on")
WORDS = ("end_to_end_id", "reference", "counterparty", "text")


@dataclass(frozen=True, slots=True)
class TypedEntries:
    """The entries of one statement."""

    number: int
    """Of the statement in its file."""
    currency: str
    columns: EntryColumns
    amounts: Ints
    numbers: pa.ChunkedArray
    """A chunk for each block."""
    more: Mapping[int, Row]
    """Row -> what only few entries say; in the order of rows."""
    parts: Mapping[int, list[Row]]
    """Row -> the payments that stand behind it."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """ENTRY_SCHEMA, of all that have rows."""
        odd = [*self.more]
        for (start, block), numbers in zip(self.columns.starts(), self.numbers.chunks, strict=True):
            end = start + len(block)
            mine = odd[bisect_left(odd, start) : bisect_left(odd, end)]
            if end > start:
                yield self._batch(block, start=start, odd=mine, numbers=numbers)

    def _batch(
        self, block: EntryBlock, *, start: int, odd: Iterable[int], numbers: pa.Array
    ) -> pa.RecordBatch:
        size = len(block)
        charges, instructed = np.zeros(size, dtype=np.int64), [""] * size
        ordered: list[int | None] = [None] * size
        for row in odd:
            cells = self.more[row]
            charges[row - start] = cells["charges"]
            instructed[row - start] = cells["instructed_currency"]
            ordered[row - start] = cells["instructed_amount"]
        texts = _with_words(
            block.texts,
            words={row - start: self.more[row] for row in odd if "text" in self.more[row]},
        )
        columns = {
            "statement": np.full(size, self.number, dtype=np.int64),
            "entry_no": numbers,
            "part": np.zeros(size, dtype=np.int64),
            **{name: texts[name] for name in (*DAYS, *WORDS)},
            "currency": [self.currency] * size,
            "amount": self.amounts[start : start + size],
            "status": np.where(block.booked, BOOKED, PENDING),
            "charges": charges,
            "instructed_currency": instructed,
            "instructed_amount": ordered,
        }
        arrays = [_typed(columns[name], kind=ENTRY_SCHEMA.field(name).type) for name in columns]
        whole = pa.RecordBatch.from_arrays(arrays, names=[*columns]).select(ENTRY_SCHEMA.names)
        batch = pa.RecordBatch.from_arrays(whole.columns, schema=ENTRY_SCHEMA)
        return _with_parts(batch, parts={row - start: self.parts.get(row, []) for row in odd})


def _with_words(texts: Mapping[str, pa.Array], *, words: Mapping[int, Row]) -> dict[str, pa.Array]:
    """The columns with the words of entries whose lists cannot be counted, each written once."""
    columns = dict(texts)
    for name in WORDS if words else ():
        cells = columns[name].to_pylist()
        for at, own in words.items():
            cells[at] = own[name]
        columns[name] = pa.array(cells, columns[name].type)
    return columns


def _typed(cells: Any, *, kind: pa.DataType) -> pa.Array:
    return cells.cast(kind) if isinstance(cells, pa.Array) else pa.array(cells, kind)


def _with_parts(batch: pa.RecordBatch, *, parts: Mapping[int, list[Row]]) -> pa.RecordBatch:
    """The payments of entries, each behind its entry."""
    rows = [row for several in parts.values() for row in several]
    if not rows:
        return batch
    at = np.repeat([*parts], [len(several) for several in parts.values()])
    order = np.argsort(np.concatenate([np.arange(len(batch)), at]), kind="stable")
    further = pa.RecordBatch.from_pylist(rows, schema=ENTRY_SCHEMA)
    return pa.concat_batches([batch, further]).take(pa.array(order))


def frame_of_batches(batches: Iterable[pa.RecordBatch]) -> pd.DataFrame:
    """BANK_ENTRY_COLUMNS."""
    table = pa.Table.from_batches([*batches], schema=ENTRY_SCHEMA)
    frame: pd.DataFrame = table.to_pandas()[list(BANK_ENTRY_COLUMNS)]
    return frame
