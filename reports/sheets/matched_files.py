"""The matches of a large night beside its workbook: the same rows as Parquet and as packed CSV.

Where a result file of the run holds them already, as in `recon reconcile`, that one is named and
nothing is written twice. Written in parts, never whole in memory; the workbook names each file with
rows and SHA-256.
"""

import gzip
import hashlib
import io
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd
import pyarrow as pa
import pyarrow.csv as arrow_csv
from pyarrow import parquet

from recon.matching.breaks.result import AMOUNT_COLUMNS, MATCH_COLUMNS
from recon.model.figures import MatchedFile, MatchedRows
from recon.model.headway import on_the_way
from recon.steps.ground.csv_columns import csv_of
from reports.drawing.in_place import written_in_place

PARQUET_ENDING = "-matched.parquet"
CSV_ENDING = "-matched.csv.gz"
AMOUNT_TYPE = pa.decimal128(24, 4)
"""Major units, exactly: no currency has more than four decimals."""
SUMMED = "effect_orders"
READ_BYTES = 8 * 1024 * 1024
"""Of a file that are in memory at once when it is read back."""


def write_matched_files(matched: MatchedRows, *, beside: Path) -> tuple[MatchedFile, ...]:
    """Write both files beside the workbook's place.

    Raises:
        OutputError: too many versions stand there already.
        OSError: the folder cannot be written.
    """

    def write_parquet(file: BinaryIO) -> None:
        _write_parquet(matched, file)

    def write_csv(file: BinaryIO) -> None:
        _write_csv(matched, file)

    written = {PARQUET_ENDING: write_parquet, CSV_ENDING: write_csv}
    return tuple(
        described(
            written_in_place(write, path=beside.with_name(f"{beside.stem}{ending}")),
            rows=matched.count,
        )
        for ending, write in written.items()
    )


def described(path: Path, *, rows: int) -> MatchedFile:
    """A file as the workbook names it."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return MatchedFile(path.name, rows, path.stat().st_size, digest)


def _write_parquet(matched: MatchedRows, file: BinaryIO) -> None:
    with parquet.ParquetWriter(file, _schema(), compression="zstd") as writer:
        for batch in _counted(matched, "matches written as Parquet"):
            writer.write_table(_table(batch))


def _counted(matched: MatchedRows, what: str) -> Iterator[pd.DataFrame]:
    return on_the_way(matched.batches(), what, of=matched.count)


def _schema() -> Any:
    return pa.schema(
        [(name, AMOUNT_TYPE if name in AMOUNT_COLUMNS else pa.string()) for name in MATCH_COLUMNS]
    )


def _table(batch: pd.DataFrame) -> Any:
    """A batch with exact decimals, read from the same text that the CSV file holds."""
    text = csv_of(batch, columns=MATCH_COLUMNS).encode()
    read = arrow_csv.read_csv(
        io.BytesIO(text), parse_options=_PARSE, convert_options=_convert(MATCH_COLUMNS)
    )
    return read.cast(_schema())


_PARSE = arrow_csv.ParseOptions(newlines_in_values=True)


def _convert(names: Sequence[str]) -> Any:
    kinds = {name: _schema().field(name).type for name in names}
    return arrow_csv.ConvertOptions(
        column_types=kinds, include_columns=[*names], strings_can_be_null=False, null_values=[""]
    )


def _write_csv(matched: MatchedRows, file: BinaryIO) -> None:
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0) as packed:
        for number, batch in enumerate(_counted(matched, "matches written as CSV")):
            text = csv_of(batch, columns=MATCH_COLUMNS)
            packed.write((text if number == 0 else text.partition("\n")[2]).encode())


def totals_in(path: Path) -> tuple[int, Mapping[str, Decimal]]:
    """Rows of a file, and the sum of SUMMED by currency in major units; read in parts.

    The file is Parquet, CSV or packed CSV, by its ending.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not what was written.
    """
    rows = 0
    sums: defaultdict[str, Decimal] = defaultdict(Decimal)
    for batch in _batches(path):
        rows += batch.num_rows
        by_currency = pa.table(batch).group_by("currency").aggregate([(SUMMED, "sum")])
        for currency, amount in zip(
            *(by_currency[name].to_pylist() for name in _SUMS), strict=True
        ):
            sums[currency] += amount or Decimal(0)
    return rows, dict(sums)


_SUMS = ("currency", f"{SUMMED}_sum")


def _batches(path: Path) -> Iterator[Any]:
    names = ["currency", SUMMED]
    if path.suffix == ".parquet":
        with parquet.ParquetFile(path) as file:
            yield from file.iter_batches(columns=names)
        return
    with (
        gzip.open(path) if path.suffix == ".gz" else path.open("rb") as packed,
        arrow_csv.open_csv(
            packed,
            read_options=arrow_csv.ReadOptions(block_size=READ_BYTES),
            parse_options=_PARSE,
            convert_options=_convert(names),
        ) as reader,
    ):
        yield from reader
