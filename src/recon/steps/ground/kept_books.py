"""The books as a run read them: a step of its night, bound before anything is judged by them.

What is compared is a part of them (the window, the account); what they are proven by, and what
shoppers' banks took back, is asked of the whole.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.rows_file import read_rows, row_batches
from recon.archive.schemas import SCHEMAS
from recon.archive.step_folder import Sealed, opened_file, whole_file
from recon.archive.storage import Storage, reachable
from recon.matching.frames.sources import LEDGER_COLUMNS
from recon.model.errors import (
    ArchiveBrokenError,
)
from recon.model.words import REVERSAL_SUFFIX, EntryType, SourceFile
from recon.proof.night_tables import frame_of_table
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import (
    BOOKS,
    NOT_READ,
    Terms,
    bound_step,
    links,
    refuse_let_go,
    rows_of,
    storage_of,
    write,
)
from recon.store import Connection
from recon.store.nights import journal_rows, runs
from recon.store.nights.runs import Run

LEDGER = "ledger"
"""The one file of the step, of the schema that compared entries have."""
UNREAD = f"the books of the night {NOT_READ}"
_TAKEN_BACK = (
    *("merchant_id", "account_id", "order_no", "transaction_id", "entry_type"),
    *("currency", "amount", "transaction_currency", "transaction_amount"),
)
"""What an entry says of a chargeback."""


@dataclass(frozen=True, slots=True)
class KeptBooks:
    """What a run read of its books."""

    table: pa.Table
    """Columns of the schema `ledger`: every accepted entry, of any account and age."""
    source: SourceFile

    def extract(self) -> tuple[pd.DataFrame, SourceFile]:
        """The entries as LEDGER_COLUMNS, sorted by key, and where they came from."""
        return frame_of_table(self.table), self.source

    def sums_by_type(self) -> dict[tuple[str, str], int]:
        """See `sums_of_entries`."""
        return sums_of_entries(self.table)


def sums_of_entries(table: pa.Table) -> dict[tuple[str, str], int]:
    """(entry type, currency) -> minor units, added up by Arrow and not by what is compared."""
    by = ["entry_type", "currency"]
    plain = pa.table(
        {
            **{name: table[name].cast(pa.string()) for name in by},
            "amount": table["amount"],
        }
    )
    summed = plain.group_by(by).aggregate([("amount", "sum")])
    columns = (summed[name].to_pylist() for name in (*by, "amount_sum"))
    return {(kind, currency): total for kind, currency, total in zip(*columns, strict=True)}


def write_books(run: Run, *, entries: pa.Table, environment: Environment) -> Sealed:
    """Write what a run read of its books, of the schema; whoever notes its source binds it.

    Raises:
        ArchiveError: the archive cannot be written; nothing was sent.
    """
    sealed = write(
        run,
        BOOKS,
        parts=[*rows_of([(LEDGER, entries)])],
        terms=Terms("", environment.settings.rules.digest),
        after={},
        environment=environment,
    )
    environment.crash_point("archived the books")
    return sealed


def books_of_run(connection: Connection, run: Run, *, environment: Environment) -> KeptBooks | None:
    """The books as a run read them; None when it read none.

    Raises:
        ArchiveError: the file cannot be reached, or is not the one that the history binds.
    """
    source = journal_rows.source_of(connection, run.run_id)
    if source is None:
        return None
    return KeptBooks(entries_of_run(connection, run, environment=environment), source)


def charged_back(
    connection: Connection, run: Run, *, environment: Environment
) -> dict[tuple[str, str, str], int]:
    """Order, transaction ("" where none is booked) and currency -> minor units charged back.

    By the books that the run read itself, else by the newest that any run of the account read;
    reversals count against it.

    Raises:
        ArchiveError: see `books_of_run`.
    """
    reader = _newest_reader(connection, run)
    if reader is None:
        return {}
    kind = EntryType.CHARGEBACK.value
    wanted: Mapping[str, list[str]] = {
        "merchant_id": [run.merchant_id],
        "account_id": [run.account_id],
        "entry_type": [kind, kind + REVERSAL_SUFFIX],
    }
    sums: Counter[tuple[str, str, str]] = Counter()
    for table in entry_batches(connection, reader, columns=_TAKEN_BACK, environment=environment):
        rows = table
        for name, words in wanted.items():
            rows = rows.filter(pc.is_in(rows[name].cast(pa.string()), value_set=pa.array(words)))
        for row in rows.to_pylist():
            amount, currency = row["transaction_amount"], row["transaction_currency"]
            if amount is None:
                amount, currency = row["amount"], row["currency"]
            sign = 1 if row["entry_type"] == kind else -1
            sums[row["order_no"], row["transaction_id"], currency] += sign * amount
    return dict(sums)


def entries_of_run(connection: Connection, run: Run, *, environment: Environment) -> pa.Table:
    """The entries that a run read, as the columns of the schema `ledger`.

    Raises:
        ArchiveError: see `books_of_run`.
    """
    content, name = _content_of(connection, run, environment=environment)
    return read_rows(content, name=name, schemas={LEDGER: SCHEMAS[LEDGER]})


def entry_batches(
    connection: Connection, run: Run, *, columns: Sequence[str], environment: Environment
) -> Iterator[pa.Table]:
    """Some columns of them in their order, some rows at a time.

    Raises:
        ArchiveError: see `books_of_run`.
    """
    storage, sealed, name = _place_of(connection, run, environment=environment)
    schemas = {LEDGER: SCHEMAS[LEDGER]}
    with reachable(storage, doing=UNREAD), opened_file(storage, sealed, name=name) as file:
        path = f"{sealed.folder}/{name}"
        yield from row_batches(file, name=path, schemas=schemas, columns=columns)


def entries_of_types(
    connection: Connection, run: Run, *, types: Collection[str], environment: Environment
) -> pd.DataFrame | None:
    """LEDGER_COLUMNS of the entries of some types, and of all that bear the id of one of them.

    None where the run read no books.

    Raises:
        ArchiveError: see `books_of_run`.
    """
    if journal_rows.source_of(connection, run.run_id) is None:
        return None
    read = partial(entry_batches, connection, run, environment=environment)
    words, ids = pa.array([*types], pa.string()), set[str]()
    for table in read(columns=("entry_id", "entry_type")):
        of_type = pc.is_in(table["entry_type"].cast(pa.string()), value_set=words)
        ids.update(table["entry_id"].filter(of_type).to_pylist())
    columns, named = SCHEMAS[LEDGER].columns, pa.array(sorted(ids), pa.string())
    rows = (
        table.filter(pc.is_in(table["entry_id"], value_set=named)).cast(columns)
        for table in (read(columns=columns.names) if ids else ())
    )
    whole = pa.concat_tables([columns.empty_table(), *rows])
    return frame_of_table(whole)[[*LEDGER_COLUMNS]]


def _content_of(connection: Connection, run: Run, *, environment: Environment) -> tuple[bytes, str]:
    """The bytes of the books that a run read, and the file's name for sentences."""
    storage, sealed, name = _place_of(connection, run, environment=environment)
    with reachable(storage, doing=UNREAD):
        return whole_file(storage, sealed, name=name), f"{sealed.folder}/{name}"


def _place_of(
    connection: Connection, run: Run, *, environment: Environment
) -> tuple[Storage, Sealed, str]:
    """Where the books that a run read lie: archive, step and file."""
    bound = [link for link in links(connection, run.run_id) if link.step == BOOKS]
    if not bound:
        msg = (
            f"the history binds no books of run {run.run_id}, though its row says that it read "
            "some: put back a backup of the database"
        )
        raise ArchiveBrokenError(msg)
    refuse_let_go(connection, run.run_id)
    storage = storage_of(run, environment=environment)
    return storage, bound_step(storage, bound[-1], doing=UNREAD), f"{LEDGER}.parquet"


def _newest_reader(connection: Connection, run: Run) -> Run | None:
    """The run whose books count: a row that hides that this very run read some changes nothing."""
    if any(link.step == BOOKS for link in links(connection, run.run_id)):
        return run
    run_id = journal_rows.newest_reader(connection, run)
    return None if run_id is None else runs.get(connection, run_id)
