"""`recon db upgrade`: order rows that an earlier version kept in a table become files of facts."""

from collections.abc import Iterator

import pyarrow as pa

from recon.archive.content import content_digest
from recon.archive.facts_files import write_facts
from recon.archive.facts_schemas import ORDER_FACTS
from recon.model.errors import ArchiveBrokenError
from recon.proof.night_tables import table_of_schema
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import storages_of
from recon.store import Connection
from recon.store.database import carried_orders
from recon.store.nights import facts_rows, order_facts, order_plan
from recon.store.nights.facts_rows import OWN
from recon.store.nights.order_keys import hashes_of
from recon.store.nights.order_merge import KeptRows

UNWRITTEN = (
    "the rows of order files could not be written to the archive, so the database stays as it was: "
    "make the archive writable, then run `recon db upgrade` again"
)


def carry_orders(number: str, *, environment: Environment) -> bool:
    """Write the rows of an order file to files of facts, unless it has some; whether it was done.

    Raises:
        ArchiveError: the archive cannot be written, or what was written says something else.
    """
    file_id, kept = int(number), KeptRows()
    with environment.store.reading() as connection:
        if facts_rows.of_files(connection, [file_id]):
            return False
        file = carried_orders.file_of(connection, file_id)
        storage = storages_of(environment)((file.merchant_id, file.account_id))
        rows = write_facts(
            storage,
            _counted(_parts(connection, file_id), kept=kept),
            folder=order_plan.folder_of(file.business_date),
            schema=ORDER_FACTS,
            doing=UNWRITTEN,
        )
        gone = [
            (OWN if of_file == file_id else of_file, row)
            for of_file, row in carried_orders.gone_by(connection, file_id)
        ]
        facts = order_plan.with_marks(rows, kept=kept, gone=gone, storage=storage)
    environment.crash_point("archived the orders")
    with environment.store.writing() as connection:
        accounts, at = [*kept.accounts.values()], environment.clock()
        facts_rows.save(connection, facts, file_id=file_id, accounts=accounts, at=at)
        _compare(connection, file_id, environment=environment)
    return True


def _counted(parts: Iterator[pa.Table], *, kept: KeptRows) -> Iterator[pa.Table]:
    for part in parts:
        kept.add(part, hashes=hashes_of(part))
        yield part


def _parts(connection: Connection, file_id: int) -> Iterator[pa.Table]:
    for frame in carried_orders.rows_of_file(connection, file_id):
        yield table_of_schema(frame, schema=ORDER_FACTS.columns)


def _compare(connection: Connection, file_id: int, *, environment: Environment) -> None:
    """What was written is what the rows said.

    Raises:
        ArchiveBrokenError: it is not.
    """
    (facts,) = facts_rows.of_files(connection, [file_id])
    written = order_facts.rows_of(facts, storages=storages_of(environment))
    read = 0
    for part in _parts(connection, file_id):
        same = written.slice(read, part.num_rows)
        read += part.num_rows
        if content_digest(same) != content_digest(part):
            read = -1
            break
    if read != written.num_rows:
        msg = f"the rows of order file {file_id} are others in its files than in the database"
        raise ArchiveBrokenError(msg)
