"""Files that lie beside a workbook and hold all matches, where `_run` names them.

`matches.csv` of `recon reconcile`, and the copies that nights wrote before their workbooks named
the file in the night's folder.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

AMOUNT_TYPE = pa.decimal128(24, 4)
"""Major units, exactly: no currency has more than four decimals."""
SUMMED = "effect_orders"
READ_BYTES = 8 * 1024 * 1024
"""Of a file that are in memory at once when it is read back."""


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def totals_in(path: Path) -> tuple[int, Mapping[str, Decimal]]:
    """Rows of a CSV file, and the sum of SUMMED by currency in major units; read in parts.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not what was written.
    """
    rows = 0
    sums: defaultdict[str, Decimal] = defaultdict(Decimal)
    for batch in _batches(path):
        rows += batch.num_rows
        currencies, amounts = batch.column("currency"), batch.column(SUMMED)
        for currency in pc.unique(currencies).to_pylist():
            mine = amounts.filter(pc.equal(currencies, currency))
            sums[currency] += pc.sum(mine).as_py() or Decimal(0)
    return rows, dict(sums)


_CONVERT = arrow_csv.ConvertOptions(
    column_types={"currency": pa.string(), SUMMED: AMOUNT_TYPE},
    include_columns=["currency", SUMMED],
    strings_can_be_null=False,
    null_values=[""],
)


def _batches(path: Path) -> Iterator[Any]:
    with (
        path.open("rb") as file,
        arrow_csv.open_csv(
            file,
            read_options=arrow_csv.ReadOptions(block_size=READ_BYTES, use_threads=False),
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
            convert_options=_CONVERT,
        ) as reader,
    ):
        yield from reader
