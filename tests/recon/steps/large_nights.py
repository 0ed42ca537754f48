"""Files of nights as large as a test likes, and what was held at most while they were read."""

import tracemalloc
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from recon.archive import rows_file
from recon.archive.schemas import SCHEMAS
from recon.archive.step_folder import About, rows_of, write_step
from recon.archive.storage import LocalStorage
from recon.steps.runtime.night_folder import COMPARED, INPUTS, SealedNight
from tests.arrow_memory import counted

AT = datetime(2026, 11, 20, 10, tzinfo=UTC)
NUMBERED = {"order_no", "entry_id", "transaction_id"}
"""Columns whose text is another one in each row."""


def sealed(folder: Path, *, tables: Mapping[str, pa.Table]) -> SealedNight:
    """A night that sealed these inputs and small tables, and none of anything else."""
    storage, steps = LocalStorage(folder), {}
    for step in (INPUTS, COMPARED):
        about = About("R", "M", "1", "2026-11-20", "live", step, "", "", "", "")
        given = (
            (name, tables.get(name, schema.columns.empty_table()))
            for name, schema in SCHEMAS.items()
            if schema.folder == step
        )
        steps[step] = write_step(storage, night="night", about=about, files=[*rows_of(given)])
    return SealedNight("R", storage, steps)


def many(name: str, *, rows: int, **cells: str) -> pa.Table:
    """So many rows of a schema, each with a number of its own."""
    schema = SCHEMAS[name].columns
    return pa.table([_column(field, rows=rows, cells=cells) for field in schema], schema=schema)


def _column(field: pa.Field, *, rows: int, cells: Mapping[str, str]) -> pa.Array:
    if field.name in NUMBERED:
        return pa.array([f"{number:020}" for number in range(rows)], field.type)
    if pa.types.is_timestamp(field.type):
        return pa.repeat(pa.scalar(AT, field.type), rows)
    if pa.types.is_integer(field.type):
        return pa.array(range(rows), field.type)
    word = cells.get(field.name, {"merchant_id": "M", "account_id": "1"}.get(field.name, "word"))
    return pa.repeat(pa.scalar(word, pa.string()), rows).cast(field.type)


def in_groups_of(rows: int, *, patch: pytest.MonkeyPatch) -> None:
    """Let files have row groups of so many rows, so that few rows are several groups."""
    patch.setattr(rows_file, "ROWS_PER_GROUP", rows)


def peak_bytes(do: Callable[[], Any]) -> int:
    """What Arrow held at most while it was done; the rest of the process does not count."""
    with counted() as pool:
        do()
        return int(pool.max_memory())


def peak_bytes_of_objects(do: Callable[[], Any]) -> int:
    """What Python and numpy held more at most while it was done; Arrow's tables do not count."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        do()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
