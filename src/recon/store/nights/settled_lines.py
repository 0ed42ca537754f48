"""Lines of settlement files, some at a time, from the files of facts that have them."""

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection, select

from recon.archive.facts_files import whole_facts
from recon.archive.facts_schemas import SETTLED_FACTS
from recon.archive.rows_file import row_batches
from recon.matching.frames.sources import SETTLEMENT_COLUMNS, TEXT
from recon.model.errors import ArchiveError, ConfigurationError
from recon.model.words import SourceKind
from recon.store.nights import facts_rows, settled_sums
from recon.store.nights.facts_keys import Counting, files_having
from recon.store.nights.facts_rows import StoredFacts
from recon.store.nights.order_facts import Bools, StorageOf
from recon.store.nights.order_keys import Hashes, hashes_of
from recon.store.nights.order_merge import is_among
from recon.store.nights.runs import Run
from recon.store.nights.settled_sums import STORED
from recon.store.schema import order_file, settled_sum

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


def tables_of(
    file: StoredFacts, *, storages: StorageOf, columns: Sequence[str] = (*SETTLEMENT_COLUMNS,)
) -> Iterator[pa.Table]:
    """Columns of SETTLEMENT_COLUMNS of a file's lines as PLAIN has them, in the order of the file.

    Raises:
        ArchiveError: it cannot be read, or is not the one whose hash the database has.
    """
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
        yield pa.table(cells, schema=pa.schema(fields))


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


def keys_of(lines: pa.Table) -> Hashes:
    """The hashes of all texts by which lines (ACCOUNT and KEYS) are found."""
    return np.concatenate([_hashes(lines, name=name)[1] for name in KEYS])


def lines_named(
    connection: Connection, run: Run, *, wanted: Wanted, files: Collection[int], storages: StorageOf
) -> pa.Table:
    """SETTLEMENT_COLUMNS of the account's lines that some texts name, as they came.

    Args:
        connection: the store.
        run: of the account.
        wanted: the texts.
        files: numbers of those that are looked through.
        storages: where they lie.

    Raises:
        ArchiveError: a file cannot be read, or is not the one whose hash the database has.
    """
    given = {name: _given(each) for name, each in wanted.items()}
    texts = {name: each for name, each in given.items() if len(each)}
    hashes = {name: np.unique(_hashes_of_texts(each, run)) for name, each in texts.items()}
    if not hashes or not files:
        return PLAIN.empty_table()
    every = np.unique(np.concatenate([*hashes.values()]))
    account = (run.merchant_id, run.account_id)
    counting = Counting(SourceKind.SETTLEMENT, only=files)
    having, _ = files_having(
        connection, [account], hashes=every, storages=storages, counting=counting
    )
    tables = (table for file in having for table in tables_of(file, storages=storages))
    alike = (table.filter(pa.array(_may_be_named(table, hashes=hashes))) for table in tables)
    named = pa.concat_tables([PLAIN.empty_table(), *alike])
    # A hash may be of another text: of the few lines left, each text is looked at.
    is_named = np.zeros(named.num_rows, dtype=bool)
    for name, each in texts.items():
        is_named |= pc.is_in(named[name], value_set=each).to_numpy()
    chosen = named.filter(pa.array(is_named))
    return chosen.filter(is_of(chosen, run))


def _given(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    plain = whole.cast(pa.string())
    return plain.filter(pc.not_equal(plain, ""))


def _hashes_of_texts(texts: pa.Array, run: Run) -> Hashes:
    places = (pa.repeat(pa.scalar(each), len(texts)) for each in (run.merchant_id, run.account_id))
    return hashes_of(pa.table([*places, texts], names=[*ACCOUNT, "order_no"]))


def _hashes(lines: pa.Table, *, name: str) -> tuple[Bools, Hashes]:
    """Which lines have a text there, and the hash of each."""
    is_given = pc.not_equal(lines[name], "")
    given = lines.select([*ACCOUNT, name]).filter(is_given)
    return is_given.to_numpy(), hashes_of(given.rename_columns([*ACCOUNT, "order_no"]))


def _may_be_named(lines: pa.Table, *, hashes: Mapping[str, Hashes]) -> Bools:
    rows = np.zeros(lines.num_rows, dtype=bool)
    for name, wanted in hashes.items():
        is_given, own = _hashes(lines, name=name)
        rows[np.flatnonzero(is_given)[is_among(own, wanted)]] = True
    return rows


def line_problems(
    connection: Connection, files: Sequence[StoredFacts], *, storages: StorageOf
) -> Iterator[str]:
    """Settlement files that say something else than the rows of the database, each as a sentence.

    A file that cannot be read is none of them: `facts_problems` names it.
    """
    settled = select(order_file.c.file_id).where(
        order_file.c.kind == SourceKind.SETTLEMENT.value,
        order_file.c.file_id.in_([each.file_id for each in files]),
    )
    of_kind = {*connection.execute(settled).scalars()}
    in_database = settled_sums.digests_beside(connection, of=of_kind)
    for file in files:
        if file.file_id not in of_kind:
            continue
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
