"""What a night compared, read from the files that it sealed: the same tonight and a year later."""

from recon.archive.schemas import SCHEMAS
from recon.matching.frames.sources import Previous, Sources
from recon.proof.compared_tables import previous_of_tables, sources_of_tables
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import COMPARED, INPUTS, links
from recon.steps.ground.sealed_night import SealedNight, sealed_night
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
    names = (name for name, schema in SCHEMAS.items() if schema.folder in {INPUTS, COMPARED})
    tables = {name: night.table(name) for name in names if night.has(name)}
    return sources_of_tables(tables), previous_of_tables(tables)
