"""`recon db upgrade`: settlement lines that an earlier version kept become files of facts."""

import pyarrow as pa

from recon.archive.content import content_digest
from recon.archive.facts_schemas import SETTLED_FACTS
from recon.model.errors import ArchiveBrokenError
from recon.proof.night_tables import table_of_schema
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import storages_of
from recon.store import Connection
from recon.store.database import carried_lines, carried_orders
from recon.store.nights import facts_rows, settled_lines, settlement_plan
from recon.store.nights.settled_sums import STORED

UNWRITTEN = (
    "the lines of settlement files could not be written to the archive, so the database stays as "
    "it was: make the archive writable, then run `recon db upgrade` again"
)


def carry_lines(number: str, *, environment: Environment) -> bool:
    """Write the lines of a settlement file to files of facts, unless it has some; if it was done.

    Raises:
        ArchiveError: the archive cannot be written, or what was written says something else.
    """
    file_id = int(number)
    with environment.store.reading() as connection:
        if facts_rows.of_files(connection, [file_id]):
            return False
        file = carried_orders.file_of(connection, file_id)
        settled = settlement_plan.written(
            _lines(connection, file_id),
            storage=storages_of(environment)((file.merchant_id, file.account_id)),
            into=settlement_plan.folder_of(file.business_date),
            doing=UNWRITTEN,
        )
    environment.crash_point("archived the lines")
    with environment.store.writing() as connection:
        settlement_plan.bind(connection, settled, file_id=file_id, at=environment.clock())
        _compare(connection, file_id, environment=environment)
    return True


def _lines(connection: Connection, file_id: int) -> pa.Table:
    schema = SETTLED_FACTS.columns
    parts = (
        table_of_schema(frame, schema=schema)
        for frame in carried_lines.lines_of_file(connection, file_id)
    )
    return pa.concat_tables(parts).unify_dictionaries()


def _compare(connection: Connection, file_id: int, *, environment: Environment) -> None:
    """What was written is what the rows said.

    Raises:
        ArchiveBrokenError: it is not.
    """
    (facts,) = facts_rows.of_files(connection, [file_id])
    tables = settled_lines.tables_of(facts, storages=storages_of(environment), columns=STORED)
    written = pa.concat_tables(tables)
    rows = _lines(connection, file_id).cast(written.schema)
    if content_digest(written) != content_digest(rows):
        msg = f"the lines of settlement file {file_id} are others in its file than in the database"
        raise ArchiveBrokenError(msg)
