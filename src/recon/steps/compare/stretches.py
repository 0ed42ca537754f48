"""What a night compared, read in stretches of order numbers: nobody has to hold all of it.

A stretch has all rows of its order numbers, of whichever account. The files are sorted by merchant,
account and order number, and of each only the row groups are read that can hold some; of the
gateway's answers, which lie as they came, only the files that do.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.answers_once import ANSWERS, PASSED_OVER, NamedReplies, whole_answers
from recon.archive.rows_file import is_between, row_batches, rows_between, sorted_rows
from recon.archive.schemas import SCHEMAS
from recon.archive.step_folder import Sealed
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
from recon.steps.ground.night_folder import COMPARED, INPUTS
from recon.steps.ground.sealed_night import SealedNight

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
    answers: tuple[str, ...] = ()
    """The files of the gateway's answers that name such an order, from the night's folder."""


class AnswerFile(NamedTuple):
    """What a file of the gateway's answers names."""

    path: str
    """From the night's folder."""
    first: str
    last: str
    marks: Sequence[str]
    """See `_marks`."""

    def is_in(self, first: str, after: str) -> bool:
        """Whether it may have a row of a stretch."""
        return self.last >= first and (not after or self.first < after)


def stretches(night: SealedNight, *, orders_per_part: int) -> tuple[Stretch, ...]:
    """The order numbers of a night cut into stretches of about so many orders; at least one.

    Raises:
        ArchiveError: the night's folder cannot be reached, or is not as it was sealed.
    """
    every = max(1, orders_per_part // MARKS_PER_STRETCH)
    files = night.replies(night.answered, columns=[ORDER_NO])
    named = [*_answer_files(files, every=every)]
    marks = [
        (number, name)
        for name in IN_STRETCHES
        if night.has(name)
        for number in _marks(night, name=name, every=every)
    ]
    return _cut(named, marks=marks, every=every, orders_per_part=orders_per_part)


def stretches_of_answers(files: Iterable[NamedReplies], *, rows: int) -> tuple[Stretch, ...]:
    """The same by files of answers alone, of about so many rows each.

    `files`: rows with an order number at least.
    """
    orders = max(1, rows // ROWS_AN_ORDER)
    every = max(1, orders // MARKS_PER_STRETCH)
    return _cut([*_answer_files(files, every=every)], marks=(), every=every, orders_per_part=orders)


def _cut(
    named: Sequence[AnswerFile],
    *,
    marks: Iterable[tuple[str, str]],
    every: int,
    orders_per_part: int,
) -> tuple[Stretch, ...]:
    marks = [*marks, *((number, ANSWERS) for each in named for number in each.marks)]
    limits = {name: _rows_max(name, orders=orders_per_part) for name in IN_STRETCHES}
    begins = ["", *_ends(sorted(marks), every=every, limits=limits)]
    return tuple(
        Stretch(
            number, first, after, tuple(each.path for each in named if each.is_in(first, after))
        )
        for number, (first, after) in enumerate(pairwise([*begins, ""]), start=1)
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


def _answer_files(files: Iterable[NamedReplies], *, every: int) -> Iterator[AnswerFile]:
    """Files of answers in their order; those without a row are none."""
    at = 0
    for path, table in files:
        if len(table):
            numbers = table[ORDER_NO]
            ends = pc.min_max(numbers).as_py()
            marks = numbers[-at % every :: every].to_pylist()
            yield AnswerFile(path, ends["min"], ends["max"], marks)
        at += len(table)


def rows_of_stretch(night: SealedNight, stretch: Stretch) -> Sources:
    """The rows of IN_STRETCHES of a stretch, each in the order of its file's key.

    The other sources are not given; all stretches together have the rows of `sources_of_night`.

    Raises:
        ArchiveError: the night's folder cannot be reached, or is not as it was sealed.
    """
    absent = _compared(night).manifest.about.absent
    frames: dict[str, pd.DataFrame] = {}
    for name in IN_STRETCHES:
        field, columns = FRAMES[name]
        table = _answers(night, stretch) if name == ANSWERS else _rows(night, stretch, name=name)
        frame = frame_of_table(table)
        if name == SETTLEMENT:
            frame = with_tariffs(frame, table=_tariffs(night, stretch))
        frames[field] = frame[[*columns]]
    given: dict[str, Any] = {**held_once(frames)}
    given |= {FRAMES[name][0]: None for name in IN_STRETCHES if name in absent}
    return Sources(**given, instructions=None)


def _compared(night: SealedNight) -> Sealed:
    return night.steps.get(COMPARED) or night.steps[INPUTS]


def _rows(night: SealedNight, stretch: Stretch, *, name: str) -> pa.Table:
    with night.opened(name) as (file, path):
        return rows_between(file, name=path, first=stretch.first, after=stretch.after)


def _tariffs(night: SealedNight, stretch: Stretch) -> pa.Table | None:
    """What settlement lines of a stretch tell beside their amounts; None where none tells any."""
    is_compared = SCHEMAS[TARIFFS].path in _compared(night).manifest.about.compared
    if is_compared or (INPUTS in night.steps and night.has(TARIFFS)):
        return _rows(night, stretch, name=TARIFFS)
    return None


def is_in(stretch: Stretch, rows: pa.Table) -> pa.ChunkedArray:
    """Which rows name an order of a stretch."""
    return is_between(rows[ORDER_NO], first=stretch.first, after=stretch.after)


def _answers(night: SealedNight, stretch: Stretch) -> pa.Table:
    """Those that no file of answers has, and those of the files without what was passed over."""
    own = _rows(night, stretch, name=ANSWERS)
    if not night.answered:
        return own
    names = pa.array(stretch.answers, pa.string())
    with night.opened(PASSED_OVER) as (file, path):
        passed_over = [
            table.filter(pc.is_in(table["file"].cast(pa.string()), value_set=names))
            for table in row_batches(file, name=path)
        ]
    whole = whole_answers(
        own,
        passed_over=pa.concat_tables([SCHEMAS[PASSED_OVER].columns.empty_table(), *passed_over]),
        replies=night.replies(stretch.answers),
        wanted=partial(is_in, stretch),
    )
    return sorted_rows(whole, schema=SCHEMAS[ANSWERS])
