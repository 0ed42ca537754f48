"""What a night compared, read in stretches of order numbers: nobody has to hold all of it.

A stretch has all rows of its order numbers, of whichever account. The files are sorted by merchant,
account and order number, and of each only the row groups are read that can hold some.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pandas as pd
import pyarrow as pa

from recon.archive.rows_file import row_batches, rows_between
from recon.archive.schemas import ANSWERS
from recon.matching.frames.same_words import held_once
from recon.matching.frames.sources import Sources
from recon.proof.night_tables import (
    FRAMES,
    SETTLEMENT,
    TARIFFS,
    frame_of_table,
    with_tariffs,
)
from recon.steps.ground.kept_books import LEDGER
from recon.steps.ground.night_folder import COMPARED, SealedNight

ORDER_NO = "order_no"
IN_STRETCHES = ("orders", ANSWERS, LEDGER, "universe", SETTLEMENT)
"""Files with rows of every order of a night."""
MARKS_PER_STRETCH = 250
"""Places at which a stretch may end: it has by so much more or less than it should."""
ROWS_AN_ORDER = 4
"""Entries, lines and answers of a stretch for each order of it, where it ends before it has its
orders."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """All rows of order numbers from `first` on and before `after`."""

    number: int
    """From 1, in the order of the numbers."""
    first: str
    """Blank of the first one, which has the rows that name no order."""
    after: str
    """Blank of the last one, which has no end."""


def stretches(night: SealedNight, *, orders_per_part: int) -> tuple[Stretch, ...]:
    """The order numbers of a night cut into stretches of about so many orders; at least one.

    Raises:
        ArchiveError: the night's folder cannot be reached, or is not as it was sealed.
    """
    every = max(1, orders_per_part // MARKS_PER_STRETCH)
    marks = [
        (number, name)
        for name in IN_STRETCHES
        if night.has(name)
        for number in _marks(night, name=name, every=every)
    ]
    limits = {name: _rows_max(name, orders=orders_per_part) for name in IN_STRETCHES}
    begins = ["", *_ends(sorted(marks), every=every, limits=limits), ""]
    return tuple(
        Stretch(number, first, after)
        for number, (first, after) in enumerate(pairwise(begins), start=1)
    )


def _rows_max(name: str, *, orders: int) -> int:
    return orders if name in {"orders", "universe"} else ROWS_AN_ORDER * orders


def _ends(
    marks: Iterable[tuple[str, str]], *, every: int, limits: Mapping[str, int]
) -> Iterator[str]:
    """Numbers before which a stretch ends: one of its files has as many rows as it should.

    A mark stands for so many rows of a file; numbers are told once, and never parted.
    """
    counted, last = Counter[str](), ""
    for number, name in marks:
        if number != last and any(counted[each] >= most for each, most in limits.items()):
            yield number
            counted.clear()
        counted[name] += every
        last = number


def _marks(night: SealedNight, *, name: str, every: int) -> Iterator[str]:
    """The number of each so-manieth row of a file."""
    with night.opened(name) as (file, path):
        at = 0
        for table in row_batches(file, name=path, columns=[ORDER_NO]):
            yield from table[ORDER_NO][-at % every :: every].to_pylist()
            at += len(table)


def rows_of_stretch(night: SealedNight, stretch: Stretch) -> Sources:
    """The rows of IN_STRETCHES of a stretch, each in the order of its file's key.

    The other sources are not given; all stretches together have the rows of `sources_of_night`.

    Raises:
        ArchiveError: the night's folder cannot be reached, or is not as it was sealed.
    """
    absent = night.steps[COMPARED].manifest.about.absent
    frames: dict[str, pd.DataFrame] = {}
    for name in IN_STRETCHES:
        field, columns = FRAMES[name]
        frame = frame_of_table(_rows(night, stretch, name=name))
        if name == SETTLEMENT:
            tariffs = _rows(night, stretch, name=TARIFFS) if night.has(TARIFFS) else None
            frame = with_tariffs(frame, table=tariffs)
        frames[field] = frame[[*columns]]
    given: dict[str, Any] = {**held_once(frames)}
    given |= {FRAMES[name][0]: None for name in IN_STRETCHES if name in absent}
    return Sources(**given, instructions=None)


def _rows(night: SealedNight, stretch: Stretch, *, name: str) -> pa.Table:
    with night.opened(name) as (file, path):
        return rows_between(file, name=path, first=stretch.first, after=stretch.after)
