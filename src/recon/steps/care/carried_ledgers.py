"""`recon db upgrade`: books that an earlier version kept as rows become files of the nights."""

from recon.archive.content import content_digest
from recon.archive.rows_file import sorted_rows
from recon.archive.schemas import SCHEMAS
from recon.model.errors import ArchiveBrokenError
from recon.proof.night_tables import table_of
from recon.steps.ground.environment import Environment
from recon.steps.ground.kept_books import LEDGER, entries_of_run, write_books
from recon.steps.ground.night_folder import BOOKS, bind, links
from recon.store.database import carried_entries
from recon.store.nights import runs


def carry_books(run_id: str, *, environment: Environment) -> bool:
    """Write the books of a run to its folder, unless they are there; whether they were written.

    Raises:
        ArchiveError: the archive cannot be written, or what was written says something else.
    """
    with environment.store.reading() as connection:
        run = runs.get(connection, run_id)
        if any(link.step == BOOKS for link in links(connection, run_id)):
            return False
        entries = table_of(carried_entries.entries_of(connection, run_id), name=LEDGER)
    sealed = write_books(run, entries=entries, environment=environment)
    with environment.store.writing() as connection:
        bind(connection, run, sealed=[sealed], environment=environment)
        kept = entries_of_run(connection, run, environment=environment)
        rows = sorted_rows(entries, schema=SCHEMAS[LEDGER])
        if content_digest(kept) != content_digest(rows):
            msg = f"the books of run {run.run_id} are others in its folder than in the database"
            raise ArchiveBrokenError(msg)
    return True
