"""Lines of settlement files, some at a time, from the files of facts that have them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection

from recon.archive.facts_files import whole_facts
from recon.archive.rows_file import row_batches
from recon.archive.schemas import SETTLED_FACTS
from recon.matching.frames.sources import SETTLEMENT_COLUMNS, TEXT
from recon.model.errors import ArchiveError, ConfigurationError
from recon.model.words import SourceKind
from recon.store.nights import facts_rows, settled_sums
from recon.store.nights.facts_rows import StoredFacts
from recon.store.nights.order_facts import Bools, StorageOf, answered, in_sql
from recon.store.nights.runs import Run
from recon.store.nights.settled_sums import AMOUNTS, BY, STORED, TOLD
from recon.store.schema import settled_sum

LINES_AT_ONCE = 50_000
"""So many are decoded at a time."""
UNREAD = "the lines of settlement files could not be read, so the night goes no further"
PLAIN = pa.schema(
    [
        (name, pa.string() if kind == TEXT else pa.int64())
        for name, kind in SETTLEMENT_COLUMNS.items()
    ]
)
"""SETTLEMENT_COLUMNS as plain texts and numbers."""
ACCOUNT = ("merchant_id", "account_id")
KEYS = ("order_no", "transaction_id", "own_reference")
"""By each of these a line is found."""
Wanted = Mapping[str, pa.Array]
"""Of KEYS: the texts that lines are looked for by; a blank one names nothing."""
NO_TEXTS = pa.array([], pa.string())
_RULE = Path(__file__).with_suffix(".sql")


class Repeats(NamedTuple):
    """Lines of the newest files that do not count: a line counts as often as one file tells it."""

    rows: pa.Table
    """Number of the file, and of the row in it."""
    sums: pa.Table
    """What they come to, as rows of settled_sum: file by file."""

    def of(self, file: StoredFacts) -> Bools:
        """Which lines of a file they are."""
        which = np.zeros(file.row_count, dtype=bool)
        of_file = pc.equal(self.rows["file_id"], file.file_id)
        which[self.rows["row"].filter(of_file).to_numpy()] = True
        return which


NO_REPEATS = Repeats(
    pa.schema([("file_id", pa.int64()), ("row", pa.int64())]).empty_table(),
    pa.schema(
        [("file_id", pa.int64()), *((name, pa.string()) for name in BY)]
        + [(name, pa.int64()) for name in ("is_own", "line_count", *AMOUNTS)]
    ).empty_table(),
)


def repeats_of(
    connection: Connection, run: Run, *, storages: StorageOf, until: int | None = None
) -> Repeats:
    """The repeats in the account's files up to one; nothing is decided when a file arrives.

    Raises:
        ArchiveError: a file cannot be read, or is not the one whose hash the database has.
    """
    files, batches = settled_sums.told_by_several(connection, run, until=until)
    if not files:
        return NO_REPEATS
    having = tuple(facts_rows.of_files(connection, files))

    def ask() -> Repeats:
        with in_sql(having, storages=storages) as (sql, paths):
            sql.register("batches", pa.table({"batch_id": pa.array(sorted(batches))}))
            rule = _RULE.read_text(encoding="utf-8")
            rule = rule.replace("{told}", ", ".join(TOLD)).replace("{by}", ", ".join(BY))
            looking, *asking = rule.split(";")
            sql.execute(looking, {"paths": [*dict.fromkeys(paths)]})
            found = map(sql.table, asking)
            rows, sums = (
                table.select(empty.column_names).cast(empty.schema)
                for table, empty in zip(found, NO_REPEATS, strict=True)
            )
        return Repeats(rows, sums)

    return answered(("settlement", having, frozenset(batches)), ask=ask)


def tables_of(
    file: StoredFacts,
    *,
    storages: StorageOf,
    repeats: Repeats = NO_REPEATS,
    columns: Sequence[str] = (*SETTLEMENT_COLUMNS,),
) -> Iterator[pa.Table]:
    """Columns of SETTLEMENT_COLUMNS of a file's lines as PLAIN has them, in the order of the file.

    Without `repeats`.

    Raises:
        ArchiveError: it cannot be read, or is not the one whose hash the database has.
    """
    counts, at = ~repeats.of(file), 0
    content = whole_facts(storages(file.inbox), file.rows, doing=UNREAD)
    stored = [name for name in columns if name != "source"]
    fields = [PLAIN.field(name) for name in columns]
    for rows in row_batches(
        content,
        name=file.rows.path,
        rows_max=LINES_AT_ONCE,
        schemas={SETTLED_FACTS.name: SETTLED_FACTS},
        columns=stored,
    ):
        cells = [
            pa.repeat(pa.scalar(file.name, pa.string()), rows.num_rows)
            if each.name == "source"
            else rows[each.name].cast(each.type)
            for each in fields
        ]
        table = pa.table(cells, schema=pa.schema(fields))
        yield table.filter(pa.array(counts[at : at + rows.num_rows]))
        at += rows.num_rows


def is_of(table: pa.Table, run: Run) -> pa.ChunkedArray:
    """Which lines are of the account."""
    return pc.and_(
        pc.equal(table["merchant_id"], run.merchant_id),
        pc.equal(table["account_id"], run.account_id),
    )


def settled_since(
    connection: Connection, run: Run, *, since: str, columns: Sequence[str], storages: StorageOf
) -> Iterator[pa.Table]:
    """Columns of the account's lines settled since a day; see `tables_of`."""
    recent = settled_sum.c.settled_on >= since
    files = settled_sums.files_of(connection, run, until=None, where=recent)
    wanted = [*dict.fromkeys((*columns, *ACCOUNT, "settled_on"))]
    for file in facts_rows.of_files(connection, files):
        for table in tables_of(file, storages=storages, columns=wanted):
            rows = pc.and_(is_of(table, run), pc.greater_equal(table["settled_on"], since))
            yield table.filter(rows).select([*columns])


def lines_named(
    connection: Connection,
    run: Run,
    *,
    wanted: Wanted,
    files: Collection[int],
    repeats: Repeats,
    storages: StorageOf,
) -> pa.Table:
    """SETTLEMENT_COLUMNS of the account's lines that some texts name, as they came.

    Args:
        connection: the store.
        run: of the account.
        wanted: the texts.
        files: numbers of those that are looked through.
        repeats: lines that do not count.
        storages: where they lie.

    Raises:
        ArchiveError: a file cannot be read, or is not the one whose hash the database has.
    """
    texts = {name: _given(wanted.get(name, NO_TEXTS)) for name in KEYS}
    if not files or not any(map(len, texts.values())):
        return PLAIN.empty_table()
    having = facts_rows.of_files(connection, files)
    with in_sql(having, storages=storages) as (sql, paths):
        for name, each in texts.items():
            sql.register(f"wanted_{name}", pa.table({"text": each}))
        sql.register("repeated", repeats.rows)
        account = {"merchant": run.merchant_id, "account": run.account_id}
        found = sql.table(_NAMED, {"paths": [*dict.fromkeys(paths)], **account})
        return found.select(PLAIN.names).cast(PLAIN)


_NAMED = """
SELECT *, name AS source
FROM read_parquet($paths, filename = true, file_row_number = true) JOIN arrivals ON path = filename
WHERE merchant_id = $merchant AND account_id = $account AND (
    order_no IN (FROM wanted_order_no)
    OR transaction_id IN (FROM wanted_transaction_id)
    OR own_reference IN (FROM wanted_own_reference))
    AND NOT EXISTS (
        FROM repeated WHERE repeated.file_id = arrivals.file_id AND repeated.row = file_row_number)
ORDER BY file_id, file_row_number
"""


def _given(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    plain = whole.cast(pa.string())
    return plain.filter(pc.not_equal(plain, ""))


def line_problems(
    connection: Connection, files: Sequence[StoredFacts], *, storages: StorageOf
) -> Iterator[str]:
    """Settlement files that say something else than the rows of the database, each as a sentence.

    A file that cannot be read is none of them: `facts_problems` names it.
    """
    settled = [file for file in files if file.kind is SourceKind.SETTLEMENT]
    in_database = settled_sums.digests_beside(connection, of=[file.file_id for file in settled])
    for file in settled:
        try:
            lines = pa.concat_tables(tables_of(file, storages=storages, columns=STORED))
        except (ArchiveError, ConfigurationError):
            continue
        by_file = settled_sums.digests_of(
            settled_sums.sums_of(lines), settled_sums.rows_of_lines(lines).to_pylist()
        )
        if by_file != in_database.get(file.file_id):
            yield (
                f"what the database says of the lines of {file.name} is not what its file of facts "
                f"{file.rows.path} says: they were changed past the journal"
            )
