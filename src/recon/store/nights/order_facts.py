"""The order rows of files of facts, with what later files say of them.

A row stands until a row of a later file (or a later row of its own) takes its place. Which rows
those are every file says when it is stored, so nobody folds versions once more.
"""

from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection

from recon.archive.facts_files import FactsFile, read_facts, rows_in, whole_facts
from recon.archive.facts_schemas import ORDER_FACTS, ORDER_GONE
from recon.archive.storage import Storage
from recon.model.errors import ArchiveError, ConfigurationError
from recon.store.nights import facts_rows
from recon.store.nights.facts_rows import OWN, Account, StoredFacts

StorageOf = Callable[[Account], Storage]
"""The archive of an account's files."""
Bools = npt.NDArray[np.bool_]
UNREAD = "the rows of files could not be read, so the night goes no further"
LOST = "rows of an order file are not as they were kept"


def standing(
    connection: Connection,
    files: Sequence[StoredFacts],
    *,
    storages: StorageOf,
    columns: Sequence[str],
    until: int | None = None,
) -> Iterator[tuple[StoredFacts, pa.Table, Bools]]:
    """Each file's rows, and which of them stood when order file `until` had been read.

    Raises:
        ArchiveError: a file cannot be read, or is not the one whose hash the database has.
    """
    gone = _gone(connection, files, until=until, storages=storages)
    for file in files:
        table = rows_of(file, storages=storages, columns=columns)
        stands = np.ones(table.num_rows, dtype=bool)
        for rows in gone.get(file.file_id, ()):
            stands[rows] = False
        yield file, table, stands


def rows_of(
    file: StoredFacts, *, storages: StorageOf, columns: Sequence[str] | None = None
) -> pa.Table:
    """The rows that an order file brought; see `standing`."""
    return read_facts(
        storages(file.inbox), file.rows, schema=ORDER_FACTS, columns=columns, doing=UNREAD
    )


def stored_rows(files: Sequence[StoredFacts], *, storages: StorageOf) -> int:
    """How many rows these files have, counted by themselves; see `standing`."""
    return sum(
        rows_in(whole_facts(storages(file.inbox), file.rows, doing=UNREAD), path=file.rows.path)
        for file in files
    )


def facts_problems(files: Sequence[StoredFacts], *, storages: StorageOf) -> Iterator[str]:
    """What of these files is not as it was written, each as a sentence."""
    for file in files:
        for each in file.every:
            yield from problems_of(each, inbox=file.inbox, storages=storages)


def problems_of(file: FactsFile, *, inbox: Account, storages: StorageOf) -> Iterator[str]:
    """What is the matter with one file of facts of an inbox."""
    try:
        whole_facts(storages(inbox), file, doing=LOST)
    except (ArchiveError, ConfigurationError) as error:
        yield str(error)


def is_of(table: pa.Table, accounts: Collection[Account]) -> Bools:
    """Which rows are of some accounts."""
    chosen = np.zeros(table.num_rows, dtype=bool)
    for merchant_id, account_id in accounts:
        chosen |= _has(table["merchant_id"], merchant_id) & _has(table["account_id"], account_id)
    return chosen


def _has(column: pa.ChunkedArray, word: str) -> Bools:
    cells: Bools = pc.equal(column.cast(pa.string()), word).to_numpy()
    return cells


def _gone(
    connection: Connection,
    files: Sequence[StoredFacts],
    *,
    until: int | None,
    storages: StorageOf,
) -> dict[int, list[npt.NDArray[np.int64]]]:
    """File -> which of its rows are gone."""
    gone: dict[int, list[npt.NDArray[np.int64]]] = {}
    wanted = {file.file_id for file in files}
    for later in facts_rows.taking_place(connection, files, until=until):
        if later.gone is None:
            continue
        table = read_facts(storages(later.inbox), later.gone, schema=ORDER_GONE, doing=UNREAD)
        which, rows = table["file_id"].to_numpy(), table["row"].to_numpy()
        for number in np.unique(which).tolist():
            file_id = later.file_id if number == OWN else number
            if file_id in wanted:
                gone.setdefault(file_id, []).append(rows[which == number])
    return gone
