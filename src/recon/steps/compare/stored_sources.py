"""What a night compared, read from the files that it sealed: the same tonight and a year later.

All of it; or in row_ranges of order numbers, so that nobody has to hold all of it; or by another
process, which is told a place, the rules, and the hashes by which every byte is known: no row and
no secret travels. A stretch has all rows of its order numbers, of whichever account. The files are
sorted by merchant, account and order number, and of each only the row groups are read that can hold
some.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from recon.archive.rows_file import row_batches, rows_between
from recon.archive.schemas import ANSWERS, SCHEMAS
from recon.archive.step_folder import Sealed, sealed_step
from recon.archive.storage import open_storage, reachable
from recon.config.night_archive import ArchiveSettings
from recon.config.rules import Rules
from recon.matching.frames.sources import Previous, Sources
from recon.model.errors import ArchiveBrokenError
from recon.proof.night_tables import (
    FRAMES,
    SETTLEMENT,
    TARIFFS,
    frame_of_table,
    previous_of_tables,
    sources_of_tables,
    with_tariffs,
)
from recon.steps.runtime.environment import Environment, machine_deadline
from recon.steps.runtime.night_folder import (
    COMPARED,
    INPUTS,
    LEDGER,
    UNREAD,
    SealedNight,
    archive_of_account,
    links,
    sealed_night,
)
from recon.store import Connection
from recon.store.nights.runs import Run

ORDER_NO = "order_no"
IN_RANGES = ("orders", ANSWERS, LEDGER, "universe", SETTLEMENT)
"""Files with rows of every order of a night."""
MARKS_PER_RANGE = 250
"""Places at which a stretch may end: it has by so much more or less than it should."""
ROWS_AN_ORDER = 4
"""Entries, lines and answers of a stretch for each order of it, where it ends before it has its
orders."""


@dataclass(frozen=True, slots=True)
class RowRange:
    """All rows of order numbers from `first` on and before `after`."""

    number: int
    """From 1, in the order of the numbers."""
    first: str
    """Blank of the first one, which has the rows that name no order."""
    after: str
    """Blank of the last one, which has no end."""


def row_ranges(night: SealedNight, *, orders_per_part: int) -> tuple[RowRange, ...]:
    """The order numbers of a night cut into row_ranges of about so many orders; at least one.

    Raises:
        ArchiveError: the night's folder cannot be reached, or is not as it was sealed.
    """
    every = max(1, orders_per_part // MARKS_PER_RANGE)
    marks = [
        (number, name)
        for name in IN_RANGES
        if night.has(name)
        for number in _marks(night, name=name, every=every)
    ]
    limits = dict.fromkeys(IN_RANGES, ROWS_AN_ORDER * orders_per_part)
    limits |= dict.fromkeys(("orders", "universe"), orders_per_part)
    begins = ["", *_ends(sorted(marks), every=every, limits=limits), ""]
    return tuple(
        RowRange(number, first, after)
        for number, (first, after) in enumerate(pairwise(begins), start=1)
    )


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


def rows_of_range(night: SealedNight, row_range: RowRange) -> Sources:
    """The rows of IN_RANGES of a stretch, each in the order of its file's key.

    The other sources are not given; all row_ranges together have the rows of `sources_of_night`.

    Raises:
        ArchiveError: the night's folder cannot be reached, or is not as it was sealed.
    """
    absent = night.steps[COMPARED].manifest.about.absent
    frames: dict[str, pd.DataFrame] = {}
    for name in IN_RANGES:
        field, columns = FRAMES[name]
        frame = frame_of_table(_rows(night, row_range, name=name))
        if name == SETTLEMENT:
            tariffs = _rows(night, row_range, name=TARIFFS) if night.has(TARIFFS) else None
            frame = with_tariffs(frame, table=tariffs)
        frames[field] = frame[[*columns]]
    given: dict[str, Any] = {**frames}
    given |= {FRAMES[name][0]: None for name in IN_RANGES if name in absent}
    return Sources(**given, instructions=None)


def _rows(night: SealedNight, row_range: RowRange, *, name: str) -> pa.Table:
    with night.opened(name) as (file, path):
        return rows_between(file, name=path, first=row_range.first, after=row_range.after)


def stored_sources(
    connection: Connection, run: Run, *, environment: Environment
) -> tuple[Sources, Previous | None] | None:
    """What a run compared and what it carried forward; None where it sealed nothing of it.

    The rows of every frame are in the order of the file's key.

    Raises:
        ArchiveError: the night's folder cannot be reached, or is not as it was sealed.
    """
    if COMPARED not in {link.step for link in links(connection, run.run_id)}:
        return None
    return sources_of_night(sealed_night(connection, run, environment=environment))


def sources_of_night(night: SealedNight) -> tuple[Sources, Previous | None]:
    """The same of a night that sealed what it compared.

    Raises:
        ArchiveError: the night's folder cannot be reached, or is not as it was sealed.
    """
    return _without(night, names=())


def small_of_night(night: SealedNight) -> tuple[Sources, Previous | None]:
    """The same without a row of what is read in row_ranges (see `rows_of_range`).

    Raises:
        ArchiveError: the night's folder cannot be reached, or is not as it was sealed.
    """
    return _without(night, names={*IN_RANGES, TARIFFS})


def _without(night: SealedNight, *, names: Collection[str]) -> tuple[Sources, Previous | None]:
    """What was compared, of some files no row."""
    schemas = {name: each for name, each in SCHEMAS.items() if each.folder == INPUTS}
    tables = {
        name: schema.columns.empty_table() if name in names else night.table(name)
        for name, schema in schemas.items()
        if (name in names and name in FRAMES) or night.has(name)
    }
    return sources_of_tables(tables), previous_of_tables(tables)


@dataclass(frozen=True, slots=True)
class NightJob:
    """Where another process finds what it is to compare."""

    run_id: str
    as_of: datetime
    rules_as_json: str
    archive: ArchiveSettings
    """Of its keys only the names of their variables."""
    steps: tuple[tuple[str, str], ...]
    """Folder and hash of each manifest, in the order of the night."""

    @property
    def rules(self) -> Rules:
        """By which it is compared."""
        return Rules.of(json.loads(self.rules_as_json), source=f"the rules of run {self.run_id}")


def night_job(run: Run, *, written: Iterable[Sealed], environment: Environment) -> NightJob:
    """What another process is told of a night; `written` are steps that no link binds yet."""
    account, rules = run.account, environment.settings.rules
    archive = archive_of_account(account, environment=environment)
    if not archive.is_remote:
        archive = archive.model_copy(update={"path": str(Path(archive.path).absolute())})
    with environment.store.reading() as connection:
        night = sealed_night(connection, run, environment=environment)
    steps = {**night.steps, **{each.manifest.about.step: each for each in written}}
    return NightJob(
        run_id=run.run_id,
        as_of=run.as_of,
        rules_as_json=json.dumps(rules.document, sort_keys=True),
        archive=archive,
        steps=tuple((sealed.folder, sealed.sha256) for sealed in steps.values()),
    )


def keys_needed(environment: Environment) -> frozenset[str]:
    """The variables without which another process does not reach the archive."""
    archive = environment.settings.archive
    return frozenset({archive.access_key_env, archive.secret_key_env} - {""})


def opened_night(night: NightJob, *, variables: Mapping[str, str]) -> SealedNight:
    """The night's folder as it was when the night was handed out.

    Raises:
        ArchiveError: the archive cannot be reached, or a step is not the one of then.
    """
    storage = open_storage(night.archive, variables=variables, deadline=machine_deadline())
    steps: dict[str, Sealed] = {}
    with reachable(storage, doing=UNREAD):
        for folder, sha256 in night.steps:
            sealed = sealed_step(storage, folder=folder)
            if sealed is None or sealed.sha256 != sha256:
                msg = f"{folder} of the archive {storage.shown} is not what the night wrote"
                raise ArchiveBrokenError(msg)
            steps[sealed.manifest.about.step] = sealed
    return SealedNight(night.run_id, storage, steps)
