"""One part of a comparison, done by any process: read, judged, written.

It is told the folder of the night, its hashes, the rules and a stretch of order numbers, no row and
no secret; back come figures and breaks. It is a pure function: done again, anywhere, it comes to
the same. What it writes lies in a folder that no link binds, until the results are sealed: a step
of its own with a manifest, under a name of whoever wrote it. One that was taken for dead, and is
not, disturbs nobody.
"""

import hashlib
import os
import platform
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from recon.archive.rows_file import read_rows
from recon.archive.step_folder import Rows, Sealed, whole_file, write_step
from recon.archive.storage import reachable
from recon.matching.frames.sources import Sources
from recon.matching.sets.standing_alone import LEGS, Elsewhere
from recon.proof.night_parts import (
    SECTIONS,
    JudgedPart,
    PartFigures,
    judged_part,
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
from recon.steps.compare.handed_night import HandedNight, opened_night
from recon.steps.compare.kept_sources import small_of_night
from recon.steps.compare.stretches import IN_STRETCHES, Stretch, rows_of_stretch
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import (
    COMPARED,
    IN_PARTS,
    SealedNight,
    folder_of,
    rows_of,
    storage_of,
)
from recon.store.nights.runs import Run

UNWRITTEN = (
    "a part of the comparison could not be written; what was read, answered and sent is kept: make "
    "the archive writable, then start the night again"
)
NAME_DIGITS = 12


@dataclass(frozen=True, slots=True)
class PartOfNight:
    """What a process is told of a part."""

    night: HandedNight
    stretch: Stretch
    elsewhere: Elsewhere


@dataclass(frozen=True, slots=True)
class PartDone:
    """What came of a part."""

    figures: PartFigures
    orders: int
    answers: Mapping[str, int]
    """Answer -> rows of the part, aside or left."""
    files: Sealed
    """Its tables (see `part_of`)."""


def do_part(part: PartOfNight) -> PartDone:
    """Do a part with the archive's keys as the environment of this process has them.

    Raises:
        ArchiveError: the archive cannot be reached, or a file is not as the night wrote it.
    """
    return do_part_with(part, variables=os.environ)


def do_part_with(part: PartOfNight, *, variables: Mapping[str, str]) -> PartDone:
    """As `do_part`, with an environment that is passed in."""
    night = opened_night(part.night, variables=variables)
    small, previous = small_of_night(night)
    rows = rows_of_stretch(night, part.stretch)
    cut: dict[str, Any] = {leg: getattr(rows, leg) for leg in LEGS}
    judged = judged_part(
        replace(small, **cut),
        elsewhere=part.elsewhere,
        rules=part.night.rules,
        as_of=part.night.as_of,
        previous=previous,
    )
    figures = judged.figures
    files = write_files(night, name=f"{part.stretch.number:05}", rows=rows_of(_tables(judged)))
    answers = Counter(rows.gateway["answer"].tolist())
    return PartDone(figures, len(rows.orders), answers, files)


def _tables(part: JudgedPart) -> Iterator[tuple[str, pa.Table]]:
    for name in SECTIONS:
        yield name, table_of(part.frames[name], name=name)
    yield ITEMS, part.items
    for name in IN_STRETCHES:
        frame = getattr(part.left, FRAMES[name][0])
        if frame is not None:
            yield name, table_of(frame, name=name)
    yield from tariff_tables(part.left.settlement).items()


def part_of(done: PartDone, *, small: Sources, night: SealedNight) -> JudgedPart:
    """A part as its files have it.

    They are SECTIONS and items of what is aside, IN_STRETCHES of what is left, and tariffs of lines
    that are left where any tells some.

    Raises:
        ArchiveError: the archive cannot be reached, or a file is not as it was written.
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
    for name in IN_STRETCHES:
        field, columns = FRAMES[name]
        if getattr(small, field) is not None:
            frame = frame_of_table(tables[name])
            if name == SETTLEMENT:
                frame = with_tariffs(frame, table=tables.get(TARIFFS))
            left[field] = frame[[*columns]]
    return JudgedPart(done.figures, frames, tables[ITEMS], replace(small, **left))


def write_files(night: SealedNight, *, name: str, rows: Iterable[Rows]) -> Sealed:
    """Write the files of a part; one that was written by this process already is used.

    Args:
        night: whose part it is.
        name: of the part.
        rows: each file's, made when they are asked for.

    Raises:
        ArchiveError: the archive cannot be written.
    """
    compared = night.steps[COMPARED]
    folder = f"{compared.folder.rpartition('/')[0]}/{IN_PARTS}"
    step = f"{name}-{_own_name()}"
    after = {COMPARED: compared.sha256}
    about = replace(compared.manifest.about, step=step, after=after, absent=())
    with reachable(night.storage, doing=UNWRITTEN):
        return write_step(night.storage, night=folder, about=about, parts=rows)


def remove_files(run: Run, *, environment: Environment) -> None:
    """Remove what parts of a run wrote, of this start of the night and of those before.

    Raises:
        ArchiveError: the archive cannot be reached.
    """
    storage = storage_of(run, environment=environment)
    with reachable(storage, doing="parts of the comparison that are done could not be removed"):
        storage.clear(f"{folder_of(run)}/{IN_PARTS}")


def _own_name() -> str:
    """Of this process, among those of all machines."""
    own = f"{platform.node()} {os.getpid()}"
    return hashlib.sha256(own.encode()).hexdigest()[:NAME_DIGITS]
