"""A night compared in parts: one after another in this process, or in parallel by others.

Each part is all rows of a range of order numbers. Sets that depend on no other part are classified
in the part and written to its files; what is left of all parts is compared here, as a night of few
rows. The result, its files and its digest are those of one comparison of the whole.

A part is a pure function: repeated anywhere, it gives the same. Its files are in a folder that no
history link covers until the results are sealed: a step of its own with a manifest, named after the
process that wrote it. So a worker that was taken for dead, but is not, disturbs nobody.
"""

import hashlib
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from recon.archive.rows_file import read_rows
from recon.archive.step_folder import Rows, Sealed, rows_of, whole_file, write_step
from recon.archive.storage import reachable
from recon.config.cluster import IN_PROCESS
from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.sources import Previous, Sources
from recon.matching.sets.independent_sets import LEGS, Elsewhere
from recon.model.step_progress import Way
from recon.model.uptime import give_back
from recon.proof.books_bridge import Books
from recon.proof.night_parts import (
    ORDERS_PER_PART,
    PARTS_MIN,
    SECTIONS,
    ClassifiedPart,
    Gathering,
    PartFigures,
    books_in_parts,
    classified_part,
    has_parts,
    left_of,
    reconcile_rest,
)
from recon.proof.night_tables import (
    FRAMES,
    ITEMS,
    SETTLEMENT,
    TARIFFS,
    frame_of_table,
    table_of,
    tariff_tables,
    with_tariffs,
)
from recon.steps.compare.rules_change import is_under_signed_rules
from recon.steps.compare.stored_sources import (
    IN_RANGES,
    NightJob,
    RowRange,
    keys_needed,
    night_job,
    opened_night,
    row_ranges,
    rows_of_range,
    small_of_night,
)
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.night_folder import (
    COMPARED,
    IN_PARTS,
    INPUTS,
    UNREAD,
    SealedNight,
    folder_of,
    sealed_night,
    storage_of,
)
from recon.store.nights.runs import Run

DONE = "judged a part"
"""A crash point."""


@dataclass(frozen=True, slots=True)
class CutNight:
    """The parts of a night before any is compared, and what each must know of the others."""

    cut: Sequence[RowRange]
    elsewhere: Elsewhere


UNWRITTEN = (
    "a part of the comparison could not be written; what was read, answered and sent is kept: make "
    "the archive writable, then start the night again"
)
NAME_DIGITS = 12


@dataclass(frozen=True, slots=True)
class PartOfNight:
    """What a process needs to compare one part."""

    night: NightJob
    row_range: RowRange
    elsewhere: Elsewhere


@dataclass(frozen=True, slots=True)
class PartDone:
    """The outcome of one part."""

    figures: PartFigures
    answers: frozenset[str]
    """Kinds of gateway answers among all its rows (see `KeyAnswer`)."""
    files: Sealed
    """Its tables (see `part_of`)."""


def is_large(run: Run, *, environment: Environment) -> bool:
    """Whether a run sealed orders enough for several parts before money moved."""
    with environment.store.reading() as connection:
        inputs = sealed_night(connection, run, environment=environment).steps.get(INPUTS)
    files = inputs.manifest.files if inputs else ()
    orders = sum(entry.rows for entry in files if entry.name == "orders.parquet")
    return -(-orders // ORDERS_PER_PART) >= PARTS_MIN


def is_in_parts(run: Run, *, small: Sources, environment: Environment) -> bool:
    """Whether a run is compared in parts; `small` has the sources that are not cut.

    Not where the rules changed since an approver signed: each set is then compared under both.
    """
    rules = environment.settings.rules
    return (
        is_large(run, environment=environment)
        and has_parts(settled=small.settlement is not None, rules=rules)
        and is_under_signed_rules(run, environment=environment)
    )


def gathered(night: SealedNight, *, small: Sources) -> CutNight:
    """Cut a night into parts, and collect what each must know of the others.

    Args:
        night: What is compared, as far as it is written.
        small: All sources that are not cut, without rows of the others.

    Raises:
        ArchiveError: the archive cannot be reached, or a file differs from what was written.
    """
    cut = row_ranges(night, orders_per_part=ORDERS_PER_PART)
    gathering, way = Gathering(small), Way("parts looked at", of=len(cut))
    for row_range in cut:
        gathering.see(rows_of_range(night, row_range))
        give_back()
        way.more()
    return CutNight(cut, gathering.elsewhere())


def compared_in_parts(
    run: Run,
    gathered: CutNight,
    *,
    small: Sources,
    previous: Previous | None,
    compared: Sealed,
    environment: Environment,
) -> tuple[Reconciliation, Books, frozenset[str]]:
    """Compare all parts of a night and then what is left of them.

    Returns the whole result, the steps of the ledger's money, and the kinds of answers.

    Args:
        run: The run of the night.
        gathered: Its parts.
        small: As for `gathered`.
        previous: What the night before left open.
        compared: The step `compared` as written to the archive.
        environment: Gives the workers and the archive.

    Raises:
        ClusterError: the workers are gone.
        ArchiveError: the archive cannot be reached.
    """
    handed = night_job(run, written=[compared], environment=environment)
    asked = [PartOfNight(handed, each, gathered.elsewhere) for each in gathered.cut]
    done = _done(asked, environment=environment)
    give_back()
    night = opened_night(handed, variables=environment.variables)
    with reachable(night.storage, doing=UNREAD):
        parts = [part_of(each, small=small, night=night) for each in done]
    rules = environment.settings.rules
    rest = left_of(small, parts=parts)
    books = books_in_parts(small, rest=rest, parts=parts, rules=rules)
    result = reconcile_rest(rest, parts=parts, rules=rules, as_of=run.as_of, previous=previous)
    return result, books, frozenset[str]().union(*(part.answers for part in done))


def _done(parts: Sequence[PartOfNight], *, environment: Environment) -> list[PartDone]:
    """The compared parts in order, by the workers or by this process."""
    workers, needs = environment.workers, keys_needed(environment)
    if workers.helps:
        each = workers.each(do_part, parts, needs=needs)
    else:
        here = partial(do_part_with, variables=environment.variables)
        each = IN_PROCESS.each(here, parts)
    done, way = [], Way("parts compared", of=len(parts))
    for part in each:
        done.append(part)
        give_back()
        way.more()
        environment.crash_point(DONE)
    return done


def do_part(part: PartOfNight) -> PartDone:
    """Compare a part, with the archive's keys from the environment of this process.

    Raises:
        ArchiveError: the archive cannot be reached, or a file differs from what the night wrote.
    """
    return do_part_with(part, variables=os.environ)


def do_part_with(part: PartOfNight, *, variables: Mapping[str, str]) -> PartDone:
    """Like `do_part`, with the environment variables passed in."""
    night = opened_night(part.night, variables=variables)
    small, previous = small_of_night(night)
    rows = rows_of_range(night, part.row_range)
    cut: dict[str, Any] = {leg: getattr(rows, leg) for leg in LEGS}
    classified = classified_part(
        replace(small, **cut),
        elsewhere=part.elsewhere,
        rules=part.night.rules,
        as_of=part.night.as_of,
        previous=previous,
    )
    figures = classified.figures
    files = write_files(
        night, name=f"{part.row_range.number:05}", rows=rows_of(_tables(classified))
    )
    return PartDone(figures, frozenset(rows.gateway["answer"].unique()), files)


def _tables(part: ClassifiedPart) -> Iterator[tuple[str, pa.Table]]:
    for name in SECTIONS:
        yield name, table_of(part.frames[name], name=name)
    yield ITEMS, part.items
    for name in IN_RANGES:
        frame = getattr(part.left, FRAMES[name][0])
        if frame is not None:
            yield name, table_of(frame, name=name)
    yield from tariff_tables(part.left.settlement).items()


def part_of(done: PartDone, *, small: Sources, night: SealedNight) -> ClassifiedPart:
    """A part as read from its files.

    They are SECTIONS and items of the sets classified there, IN_RANGES of the rows left over, and
    the tariffs of left-over lines where there are any.

    Raises:
        ArchiveError: the archive cannot be reached, or a file differs from what was written.
    """
    tables = {
        name: read_rows(
            whole_file(night.storage, done.files, name=f"{name}.parquet"),
            name=f"{done.files.folder}/{name}.parquet",
        )
        for name in (entry.name.removesuffix(".parquet") for entry in done.files.manifest.files)
    }
    frames = {name: frame_of_table(tables[name]) for name in SECTIONS}
    left: dict[str, Any] = {}
    for name in IN_RANGES:
        field, columns = FRAMES[name]
        if getattr(small, field) is not None:
            frame = frame_of_table(tables[name])
            if name == SETTLEMENT:
                frame = with_tariffs(frame, table=tables.get(TARIFFS))
            left[field] = frame[[*columns]]
    return ClassifiedPart(done.figures, frames, tables[ITEMS], replace(small, **left))


def write_files(night: SealedNight, *, name: str, rows: Iterable[Rows]) -> Sealed:
    """Write the files of a part; those that this process has written already are used as they are.

    Args:
        night: The night of the part.
        name: Name of the part.
        rows: Rows of each file, made when they are needed.

    Raises:
        ArchiveError: the archive cannot be written.
    """
    compared = night.steps[COMPARED]
    folder = f"{compared.folder.rpartition('/')[0]}/{IN_PARTS}"
    # A name of this process, unique among all machines.
    own = hashlib.sha256(f"{platform.node()} {os.getpid()}".encode()).hexdigest()
    step = f"{name}-{own[:NAME_DIGITS]}"
    after = {COMPARED: compared.sha256}
    about = replace(compared.manifest.about, step=step, after=after, absent=())
    with reachable(night.storage, doing=UNWRITTEN):
        return write_step(night.storage, night=folder, about=about, parts=rows)


def remove_files(run: Run, *, environment: Environment) -> None:
    """Remove the files of a run's parts, written by this attempt at the night or earlier ones.

    Raises:
        ArchiveError: the archive cannot be reached.
    """
    storage = storage_of(run, environment=environment)
    with reachable(storage, doing="parts of the comparison that are done could not be removed"):
        storage.clear(f"{folder_of(run)}/{IN_PARTS}")
