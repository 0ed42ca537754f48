"""What a night compared, read from the files that it sealed: the same tonight and a year later."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from recon.archive.schemas import SCHEMAS
from recon.matching.frames.same_words import held_once
from recon.matching.frames.sources import Previous, Sources
from recon.proof.night_tables import FRAMES, TARIFFS, previous_of_tables, sources_of_tables
from recon.steps.compare.stretches import IN_STRETCHES
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import COMPARED, INPUTS, SealedNight, links, sealed_night
from recon.store import Connection
from recon.store.nights.runs import Run


def kept_sources(
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
    """The same without a row of what is read in stretches (see `stretches.rows_of_stretch`).

    Raises:
        ArchiveError: the night's folder cannot be reached, or is not as it was sealed.
    """
    return _without(night, names={*IN_STRETCHES, TARIFFS})


def _without(night: SealedNight, *, names: Collection[str]) -> tuple[Sources, Previous | None]:
    """What was compared, of some files no row."""
    schemas = {name: each for name, each in SCHEMAS.items() if each.folder == INPUTS}
    tables = {
        name: schema.columns.empty_table() if name in names else night.table(name)
        for name, schema in schemas.items()
        if (name in names and name in FRAMES) or night.has(name)
    }
    sources, previous = sources_of_tables(tables), previous_of_tables(tables)
    given = {field: getattr(sources, field) for field, _ in FRAMES.values()}
    frames = {field: frame for field, frame in given.items() if frame is not None}
    once: dict[str, Any] = {**held_once(frames)}
    return replace(sources, **once), previous
