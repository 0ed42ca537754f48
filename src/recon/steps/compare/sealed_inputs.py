"""What a night read, sealed in its folder before money moves; later what was compared instead."""

from collections.abc import Mapping

import pyarrow as pa

from recon.archive.manifest import Manifest
from recon.archive.step_folder import Part, Rows, Sealed, sealed_step
from recon.archive.storage import reachable
from recon.matching.frames.sources import Sources
from recon.proof.night_tables import FRAMES, input_tables
from recon.steps.compare.inputs import frozen_inputs, sources_of
from recon.steps.ground import night_folder
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import (
    INPUTS,
    Terms,
    bind,
    folder_of,
    links,
    newest,
    rows_of,
    write,
)
from recon.store.nights.runs import Run


def seal_inputs(run: Run, *, environment: Environment) -> Sealed:
    """Write what the run read so far, and bind it before anything is sent.

    Raises:
        ArchiveError: the archive cannot be written; nothing was sent.
    """
    rules, inputs = environment.settings.rules, frozen_inputs(run, environment=environment)
    sources = sources_of(run, inputs=inputs, rules=rules, environment=environment)
    terms = Terms(inputs.previous_run_id, rules.digest, absent=absent_of(sources))
    sealed = write(
        run,
        INPUTS,
        parts=rows_of(input_tables(sources)),
        terms=terms,
        after={},
        environment=environment,
    )
    with environment.store.writing() as connection:
        bind(connection, run, sealed=[sealed], environment=environment)
    return sealed


def absent_of(sources: Sources) -> tuple[str, ...]:
    """Files without a row because the source was not given at all."""
    return tuple(name for name, (field, _) in FRAMES.items() if getattr(sources, field) is None)


def changed_inputs(
    run: Run, *, tables: Mapping[str, pa.Table], environment: Environment
) -> tuple[list[Part], dict[str, str]]:
    """What of the compared inputs is not what was sealed before money moved, and in whose place.

    Returns:
        The files to seal with what was compared; sealed file -> file that was compared.

    Raises:
        ArchiveError: the archive cannot be read.
    """
    storage = night_folder.storage_of(run, environment=environment)
    with reachable(storage, doing="what the night read cannot be looked up"):
        sealed = sealed_step(storage, folder=f"{folder_of(run)}/{INPUTS}")
    with environment.store.reading() as connection:
        bound = newest(links(connection, run.run_id))
    # What nobody bound, or somebody changed since, stands for nothing: all is written once more.
    before = _contents(sealed.manifest) if sealed and sealed.sha256 == bound.get(INPUTS) else {}
    rows = [part for part in rows_of(tables) if isinstance(part, Rows)]
    changed = [part for part in rows if before.get(part.name) != part.content]
    moved = {f"{INPUTS}/{part.name}": f"{night_folder.COMPARED}/{part.name}" for part in changed}
    return [*changed], moved


def _contents(manifest: Manifest) -> dict[str, str]:
    return {entry.name: entry.content for entry in manifest.files}
