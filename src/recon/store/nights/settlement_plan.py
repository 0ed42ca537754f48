"""What a settlement file comes to, with its files of facts written before anybody waits for it.

Lines that another file told are left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection

from recon.archive.facts_files import write_facts
from recon.archive.facts_schemas import FOLDER, SETTLED_FACTS
from recon.archive.storage import MAKE_WRITABLE, Storage
from recon.config.fee_contract import FACTS
from recon.matching.frames.sources import LoadCounts
from recon.model.words import SourceFile
from recon.proof.night_tables import table_of_schema
from recon.store.nights import facts_rows, settled_sums
from recon.store.nights.facts_rows import OfAccountRows, StoredFacts
from recon.store.nights.order_facts import Bools, StorageOf
from recon.store.nights.runs import Run
from recon.store.nights.settled_lines import PLAIN, tables_of
from recon.store.nights.settled_sums import STORED, Digests, Sum, days_of

UNWRITTEN = (
    "the lines of a settlement file could not be kept, so nothing of it was stored and nothing was "
    f"sent: {MAKE_WRITABLE}"
)
TOLD = tuple(name for name in STORED if name not in {*FACTS, "line"})
"""What makes a line a repeat of another; one that tells the brand as well settles nothing more."""


@dataclass(frozen=True, slots=True)
class SettledFacts:
    """Lines that were written, and what the database says of them."""

    facts: StoredFacts
    sums: Sequence[Sum]
    rows: pa.Table
    """The lines that the database has, too."""

    @property
    def accounts(self) -> list[OfAccountRows]:
        """What the file has of each account."""
        return [
            OfAccountRows(merchant_id, account_id, lines, first, last)
            for (merchant_id, account_id), (lines, first, last) in days_of(self.sums).items()
        ]

    @property
    def beside(self) -> Digests:
        """Digests of what the database says of it."""
        return settled_sums.digests_of(self.sums, self.rows.to_pylist())


@dataclass(frozen=True, slots=True)
class PlannedLines:
    """What a settlement file comes to."""

    source: SourceFile
    counts: LoadCounts
    settled: SettledFacts | None
    """None: every line of it was told already."""
    last_file: int
    """The newest file that it was held against."""


def plan(
    connection: Connection,
    run: Run,
    *,
    lines: pd.DataFrame,
    source: SourceFile,
    storages: StorageOf,
    until: int | None = None,
) -> PlannedLines:
    """Hold SETTLEMENT_COLUMNS of a file against what others tell, and write its file of facts.

    `until` is the last file that it is held against, where it is read again.

    Raises:
        ArchiveError: the archive cannot be written, or an earlier file cannot be read.
        OutputError: there is no room to lay the lines aside.
    """
    last = settled_sums.last_file(connection, run)
    table = table_of_schema(lines[[*STORED]], schema=SETTLED_FACTS.columns)
    repeats = _told_elsewhere(
        connection, run, lines=table, name=source.name, storages=storages, until=until
    )
    new = table.filter(pa.array(~repeats))
    counts = LoadCounts(table.num_rows, new.num_rows, int(repeats.sum()), 0)
    settled = None
    if new.num_rows:
        storage = storages((run.merchant_id, run.account_id))
        settled = written(new, storage=storage, into=folder_of(run.business_date))
    return PlannedLines(source, counts, settled, last)


def is_stale(connection: Connection, run: Run, planned: PlannedLines) -> bool:
    """Whether another file came since, so that it is to be planned anew."""
    return settled_sums.last_file(connection, run) != planned.last_file


def folder_of(business_date: date) -> str:
    """Where the lines of a night's settlement files lie, below the archive."""
    return f"{FOLDER}/settlement/{business_date:%Y/%m}"


def written(
    lines: pa.Table, *, storage: Storage, into: str, doing: str = UNWRITTEN
) -> SettledFacts:
    """Write lines with the columns of SETTLED_FACTS.

    Raises:
        ArchiveError: the archive cannot be written.
        OutputError: there is no room to lay the lines aside.
    """
    whole = lines.combine_chunks()
    rows = write_facts(storage, [whole], folder=into, schema=SETTLED_FACTS, doing=doing)
    facts = StoredFacts(
        folder=into,
        rows_sha256=rows.sha256,
        size_bytes=rows.size_bytes,
        row_count=whole.num_rows,
    )
    rows_of_lines = settled_sums.rows_of_lines(whole)
    return SettledFacts(facts, settled_sums.sums_of(whole), rows_of_lines)


def bind(connection: Connection, settled: SettledFacts, *, file_id: int, at: datetime) -> None:
    """Keep what lines that were written come to, and bind it with their files in the history."""
    settled_sums.save_sums(connection, settled.sums, file_id=file_id)
    facts_rows.save(
        connection,
        settled.facts,
        file_id=file_id,
        accounts=settled.accounts,
        at=at,
        beside=settled.beside,
    )


def is_told_still(connection: Connection, run: Run, *, file_id: int, storages: StorageOf) -> bool:
    """Whether the newest files tell every line that a version of one brought, as often as it did.

    Raises:
        ArchiveError: a file cannot be read, or is not the one whose hash the database has.
    """
    schema = pa.schema([PLAIN.field(each) for each in TOLD])
    tables = (
        table
        for file in facts_rows.of_files(connection, [file_id])
        for table in tables_of(file, storages=storages, columns=TOLD)
    )
    lines = pa.concat_tables([schema.empty_table(), *tables])
    return bool(_told_elsewhere(connection, run, lines=lines, name="", storages=storages).all())


def _told_elsewhere(
    connection: Connection,
    run: Run,
    *,
    lines: pa.Table,
    name: str,
    storages: StorageOf,
    until: int | None = None,
) -> Bools:
    """Which lines another file's newest version tells, equal ones as often as it does."""
    batches = lines["batch_id"].cast(pa.string()).unique()
    others = settled_sums.telling_of(
        connection, run, batches=batches.to_pylist(), but=name, until=until
    )
    schema = pa.schema([PLAIN.field(each) for each in TOLD])
    known = (
        table.filter(pc.is_in(table["batch_id"], value_set=batches))
        for file in facts_rows.of_files(connection, others)
        for table in tables_of(file, storages=storages, columns=TOLD)
    )
    before = pa.concat_tables([schema.empty_table(), *known])
    if not before.num_rows:
        return np.zeros(lines.num_rows, dtype=bool)
    arriving = lines.select([*TOLD]).cast(schema)
    every = pa.concat_tables([before, arriving]).to_pandas()
    numbers = every.groupby([*TOLD], sort=False).ngroup().to_numpy()
    earlier, now = numbers[: before.num_rows], pd.Series(numbers[before.num_rows :])
    times = np.bincount(earlier, minlength=int(numbers.max()) + 1)
    which: Bools = now.groupby(now).cumcount().to_numpy() < times[now.to_numpy()]
    return which
