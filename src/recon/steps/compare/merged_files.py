"""Files with rows of all parts of a night, each merged by another process.

What is left of the parts is written beside them; whoever merges reads both in the archive and
writes there, under a name of its own. The head of the night copies what came of it, byte by byte.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from recon.archive.rows_file import read_rows
from recon.archive.step_folder import Copied, Part, Rows, Sealed, whole_file
from recon.archive.storage import reachable
from recon.proof.night_parts import MERGED, Merged
from recon.steps.compare.handed_night import HandedNight, keys_needed, opened_night
from recon.steps.compare.part_files import write_files
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import UNREAD, rows_of

REST = "rest"


@dataclass(frozen=True, slots=True)
class ToMerge:
    """What a process is told of a file."""

    night: HandedNight
    name: str
    """Of its schema."""
    parts: Sequence[Sealed]
    """What each part wrote."""
    rest: Sealed
    """The rows that no part has."""


def merged_by_others(
    tables: Iterable[tuple[str, pa.Table]],
    *,
    night: HandedNight,
    parts: Sequence[Sealed],
    environment: Environment,
) -> list[Part]:
    """The files of a result in the order of their tables.

    Args:
        tables: of what is left of all parts, by the names of their schemas.
        night: as it was handed out.
        parts: what each part wrote.
        environment: who merges, and where the archive is.

    Raises:
        ClusterError: those who merge are gone.
        ArchiveError: the archive cannot be reached.
    """
    alone: dict[str, Rows] = {}
    names: list[str] = []

    def of_parts() -> Iterator[tuple[str, pa.Table]]:
        for name, table in tables:
            names.append(name)
            if name in MERGED:
                yield name, table
            else:
                (alone[name],) = rows_of([(name, table)])

    opened = opened_night(night, variables=environment.variables)
    rest = write_files(opened, name=REST, rows=rows_of(of_parts()))
    asked = [ToMerge(night, name, parts, rest) for name in names if name in MERGED]
    done = environment.workers.each(merged_file, asked, needs=keys_needed(environment))
    merged = {each.name: Copied.of(sealed) for each, sealed in zip(asked, done, strict=True)}
    return [merged.get(name) or alone[name] for name in names]


def merged_file(asked: ToMerge) -> Sealed:
    """What another process does: merge a file, and write it where the parts lie.

    Raises:
        ArchiveError: the archive cannot be reached, or a file is not as it was written.
    """
    night, file = opened_night(asked.night, variables=os.environ), f"{asked.name}.parquet"
    with reachable(night.storage, doing=UNREAD):
        content = whole_file(night.storage, asked.rest, name=file)
        rest = read_rows(content, name=f"{asked.rest.folder}/{file}")
        rows = Merged.of(asked.parts, storage=night.storage).file(asked.name, rest=rest)
    return write_files(night, name=asked.name, rows=[rows])
