"""What a night compared, read from the files that it sealed: the same tonight and a year later.

It can be read whole; in row ranges of order numbers, so that no process holds all of it; or by
another process, which receives a location, the rules, and the hashes that verify every byte: no row
and no secret is sent. A range has all rows of its order numbers, of whichever account. The files
are sorted by merchant, account and order number, and only the row groups that can hold rows of the
range are read.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from recon.archive.rows_file import row_batches, rows_between
from recon.archive.schemas import ANSWERS, SCHEMAS
from recon.archive.step_folder import Sealed, sealed_step
from recon.archive.storage import open_storage, reachable
from recon.config.night_archive import ArchiveSettings
from recon.config.rules import Rules
from recon.matching.frames.sources import Previous, Sources
from recon.model.errors import ArchiveBrokenError
from recon.proof.buckets import NAMES, Cut, Range, cut_of, names_of
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

IN_RANGES = ("orders", ANSWERS, LEDGER, "universe", SETTLEMENT)
"""Files with rows of every order of a night."""


def cut_of_night(
    night: SealedNight, *, small: Sources, previous: Previous | None, rows_per_bucket: int
) -> Cut:
    """Cut a night into buckets; see `cut_of`, and `small_of_night` for its sources.

    Raises:
        ArchiveError: the night's folder cannot be reached, or differs from what was sealed.
    """

    def read(name: str) -> Iterator[pa.Table]:
        if name not in IN_RANGES:
            yield from names_of(small, name)
            return
        yield SCHEMAS[name].columns.empty_table().select(NAMES[name])
        if night.has(name):
            with night.opened(name) as (file, path):
                yield from row_batches(file, name=path, columns=NAMES[name])

    return cut_of(read, small=small, previous=previous, rows_per_bucket=rows_per_bucket)


def rows_of_range(night: SealedNight, within: Range, *, small: Sources) -> Sources:
    """The rows of a range in the files IN_RANGES and the instructions, in the order of their key.

    All ranges together have the rows of `sources_of_night`; `small`: see `small_of_night`.

    Raises:
        ArchiveError: the night's folder cannot be reached, or differs from what was sealed.
    """
    frames: dict[str, Any] = {}
    for name in (*IN_RANGES, "instructions"):
        field, columns = FRAMES[name]
        if getattr(small, field) is None:
            continue
        frame = frame_of_table(_rows(night, within, name=name))
        if name == SETTLEMENT:
            tariffs = _rows(night, within, name=TARIFFS) if night.has(TARIFFS) else None
            frame = with_tariffs(frame, table=tariffs)
        frames[field] = frame[[*columns]]
    return replace(small, **frames)


def _rows(night: SealedNight, within: Range, *, name: str) -> pa.Table:
    with night.opened(name) as (file, path):
        return rows_between(file, name=path, first=within.first, after=within.after)


def stored_sources(
    connection: Connection, run: Run, *, environment: Environment
) -> tuple[Sources, Previous | None] | None:
    """What a run compared and what it carried forward; None where it has not sealed it.

    The rows of every frame are in the order of the file's key.

    Raises:
        ArchiveError: the night's folder cannot be reached, or differs from what was sealed.
    """
    if COMPARED not in {link.step for link in links(connection, run.run_id)}:
        return None
    return sources_of_night(sealed_night(connection, run, environment=environment))


def sources_of_night(night: SealedNight) -> tuple[Sources, Previous | None]:
    """Like `stored_sources`, for a night that sealed what it compared.

    Raises:
        ArchiveError: the night's folder cannot be reached, or differs from what was sealed.
    """
    return _without(night, names=())


def small_of_night(night: SealedNight) -> tuple[Sources, Previous | None]:
    """Like `sources_of_night`, without the rows that are read in ranges (see `rows_of_range`).

    Raises:
        ArchiveError: the night's folder cannot be reached, or differs from what was sealed.
    """
    return _without(night, names={*IN_RANGES, TARIFFS})


def _without(night: SealedNight, *, names: Collection[str]) -> tuple[Sources, Previous | None]:
    """What was compared, without the rows of some files."""
    schemas = {name: each for name, each in SCHEMAS.items() if each.folder == INPUTS}
    tables = {
        name: schema.columns.empty_table() if name in names else night.table(name)
        for name, schema in schemas.items()
        if (name in names and name in FRAMES) or night.has(name)
    }
    return sources_of_tables(tables), previous_of_tables(tables)


@dataclass(frozen=True, slots=True)
class NightJob:
    """What another process needs to find and compare a night."""

    run_id: str
    as_of: datetime
    rules_as_json: str
    archive: ArchiveSettings
    """Holds only the names of the variables of its keys."""
    steps: tuple[tuple[str, str], ...]
    """Folder and hash of each manifest, in the order of the night's steps."""

    @property
    def rules(self) -> Rules:
        """The rules of the comparison."""
        return Rules.of(json.loads(self.rules_as_json), source=f"the rules of run {self.run_id}")


def night_job(run: Run, *, written: Iterable[Sealed], environment: Environment) -> NightJob:
    """The description of a night for another process; `written` are steps not linked to it yet."""
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
    """Names of the variables without which another process cannot reach the archive."""
    archive = environment.settings.archive
    return frozenset({archive.access_key_env, archive.secret_key_env} - {""})


def opened_night(night: NightJob, *, variables: Mapping[str, str]) -> SealedNight:
    """The night's folder, with its steps checked against the hashes of the job.

    Raises:
        ArchiveError: the archive cannot be reached, or a step differs from that of the job.
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
