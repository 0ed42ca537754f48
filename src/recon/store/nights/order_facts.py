"""The rows of files of facts, and what is the matter with one."""

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.facts_files import FactsFile, facts_at, read_facts, rows_in, whole_facts
from recon.archive.schemas import ORDER_FACTS
from recon.archive.storage import Storage
from recon.model.errors import ArchiveError, ConfigurationError
from recon.proof.sql_session import SqlError, SqlSession, reading
from recon.store.nights.facts_rows import Account, StoredFacts

StorageOf = Callable[[Account], Storage]
"""The archive of an account's files."""
Bools = npt.NDArray[np.bool_]
UNREAD = "the rows of files could not be read, so the night goes no further"
KEPT = "what was done before is kept: start the night again"
MEMORY_MB = 256
"""What DuckDB may hold of facts; the rest goes to temporary files."""
FEW_ROWS = 50_000
"""For so few in all no better plan of a statement is looked for."""
LOST = "rows of an order file are not as they were kept"


ANSWERS_KEPT = 6
"""A night asks the same several times."""
_ANSWERED: dict[Hashable, Any] = {}
"""The newest of them, and no archive beside them."""
Answer = TypeVar("Answer")


def answered(question: Hashable, *, ask: Callable[[], Answer]) -> Answer:
    """What is known of facts, looked up once: files never change, their hashes name them."""
    if question not in _ANSWERED:
        found = ask()
        if len(_ANSWERED) >= ANSWERS_KEPT:
            _ANSWERED.pop(next(iter(_ANSWERED)))
        _ANSWERED[question] = found
    known: Answer = _ANSWERED[question]
    return known


@contextmanager
def in_sql(
    files: Sequence[StoredFacts], *, storages: StorageOf
) -> Iterator[tuple[SqlSession, list[str]]]:
    """DuckDB that reads these files and nothing else, and where each lies.

    Its table `arrivals` has number, path, name and sender of each.

    Raises:
        ArchiveError: a file cannot be read, or is not the one whose hash the database has; or a
            bound of memory or time was reached.
    """
    places = ((storages(file.inbox), file.rows) for file in files)
    with facts_at(places, doing=UNREAD) as found:
        folders = dict.fromkeys(path.resolve().parent for path in found)
        paths = [str(path.resolve()) for path in found]
        columns = {
            "file_id": [file.file_id for file in files],
            "path": paths,
            "name": [file.name for file in files],
            "sender": [f"{file.sender}/{file.name}" for file in files],
        }
        try:
            with reading(*folders, memory_mb=MEMORY_MB) as sql:
                sql.register("arrivals", pa.table(columns))
                yield sql, paths
        except SqlError as error:
            msg = f"{UNREAD}: {error.reason}; {KEPT}"
            raise ArchiveError(msg) from error


def rows_of(file: StoredFacts, *, storages: StorageOf, columns: Sequence[str]) -> pa.Table:
    """The rows that an order file brought; see `read_facts`."""
    return read_facts(
        storages(file.inbox), file.rows, schema=ORDER_FACTS, columns=columns, doing=UNREAD
    )


def stored_rows(files: Sequence[StoredFacts], *, storages: StorageOf) -> int:
    """How many rows these files have, counted by themselves; see `read_facts`."""
    return sum(
        rows_in(whole_facts(storages(file.inbox), file.rows, doing=UNREAD), path=file.rows.path)
        for file in files
    )


def facts_problems(files: Sequence[StoredFacts], *, storages: StorageOf) -> Iterator[str]:
    """What of these files is not as it was written, each as a sentence."""
    for inbox, rows in dict.fromkeys((file.inbox, file.rows) for file in files):
        yield from problems_of(rows, inbox=inbox, storages=storages)


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
