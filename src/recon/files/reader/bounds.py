"""How much memory and time the reader of one file may take: by the size of the file, nothing else.

Time is that of the processor, so that a busy machine refuses no file that an idle one reads; the
clock on the wall bounds what waits instead of working, such as a folder that no longer answers.
"""

from dataclasses import dataclass
from pathlib import Path

MIB = 1024 * 1024

SMALL_BYTES = 10_000_000
"""Files below this have one bound, that of 512 MiB and 20 s."""

DATA_BYTES_MIN = 432 * MIB
"""Memory of the reader of a small file that is its own: with the libraries' code 512 MiB. The most
that was measured of honest files of this size is 387 MiB in all (Parquet of 300,000 rows)."""

DATA_BYTES_PER_BYTE = 40
"""More of it for each further byte; Parquet takes 30, CSV 12, workbooks 28."""

DATA_BYTES_MAX = 16 * 1024 * MIB

SECONDS_MIN = 20
"""Processor time for a small file; a workbook of 150,000 rows takes 9."""

SECONDS_PER_MIB = 3
"""More of it for each further MiB; workbooks, the slowest, take 1."""

WALL_SECONDS_PER_SECOND = 10
"""How much longer than its processor time a file may take on a busy machine."""

FACTS_BYTES_MAX = 256 * MIB
"""Rejects and counts of one file, as JSON; its rows are not among them."""

OUT_BYTES_MIN = 512 * MIB
OUT_BYTES_PER_BYTE = 64
"""What the reader may lay aside, per byte of the file."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the reader of one file may take."""

    data_bytes: int
    seconds: int
    """Of the processor."""
    wall_seconds: int
    out_bytes: int


def bounds_of(size_bytes: int) -> Bounds:
    """The bounds of the reader of a file of so many bytes."""
    further = max(0, size_bytes - SMALL_BYTES)
    seconds = SECONDS_MIN + SECONDS_PER_MIB * further // MIB
    return Bounds(
        data_bytes=min(DATA_BYTES_MIN + DATA_BYTES_PER_BYTE * further, DATA_BYTES_MAX),
        seconds=seconds,
        wall_seconds=WALL_SECONDS_PER_SECOND * seconds,
        out_bytes=OUT_BYTES_MIN + OUT_BYTES_PER_BYTE * further,
    )


def size_of(path: Path) -> int:
    """Bytes of a file, 0 of what is none: its reader says what is the matter with it."""
    try:
        return path.lstat().st_size
    except (OSError, ValueError):
        return 0
