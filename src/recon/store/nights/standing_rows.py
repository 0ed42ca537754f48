"""Which order rows stand: asked of DuckDB over the files of facts of all that arrived.

Nothing is decided when a file arrives. `standing_rows.sql` says the rule, of all arrivals up to a
file together. Of all files only the order numbers are read, and whole only the orders with more
than one row, out of the files that have them.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection

from recon.store.nights import facts_rows, order_facts
from recon.store.nights.facts_rows import Account, StoredFacts
from recon.store.nights.order_facts import FEW_ROWS, Bools, StorageOf
from recon.store.nights.runs import Run

CONTENT = (
    *("currency", "amount", "status", "ordered_at", "transaction_id"),
    *("expected_captured_amount", "refund_amount"),
)
"""Rows of one order with these equal, and since the same instant, say the same."""
_RULE = Path(__file__).with_suffix(".sql")
_OF_ROW = pa.schema(
    [
        ("order_no", pa.string()),
        *((name, pa.int64()) for name in ("file_id", "row")),
        *((name, pa.bool_()) for name in ("stands", "repeats", "replaces")),
    ]
)


class Looked(NamedTuple):
    """What was looked up."""

    rows: pa.Table
    """Every row of the orders that have more than one, and what became of it (see the SQL)."""
    having: frozenset[int]
    """Files with a row of the orders that were looked for."""

    def gone(self, file: StoredFacts) -> Bools:
        """Which rows of a file do not stand."""
        gone = np.zeros(file.row_count, dtype=bool)
        of_file = pc.and_(
            pc.equal(self.rows["file_id"], file.file_id), pc.invert(self.rows["stands"])
        )
        gone[self.rows["row"].filter(of_file).to_numpy()] = True
        return gone


class _Question(NamedTuple):
    """Arrivals, and of which of them, or of which orders, the rows are looked at."""

    arrivals: tuple[StoredFacts, ...]
    of: frozenset[int]
    numbers: tuple[str, ...] | None


def looked_up(
    connection: Connection,
    run: Run,
    *,
    accounts: Sequence[Account],
    storages: StorageOf,
    files: Sequence[StoredFacts],
    numbers: Sequence[str] | None = None,
    until: int | None = None,
) -> tuple[list[StoredFacts], Looked]:
    """The files with rows that are looked at, oldest first, and what became of these rows.

    Args:
        connection: the store.
        run: for whom files count.
        accounts: merchant and account of the rows.
        storages: where files lie.
        files: whose orders are looked at.
        numbers: order numbers that are looked at; None: all.
        until: the last file that counts.

    Raises:
        ArchiveError: a file cannot be read, or is not the one whose hash the database has.
    """
    arrivals = facts_rows.of_account(connection, run, accounts=accounts, until=until)
    if not files or (numbers is not None and not len(numbers)):
        return [], Looked(_OF_ROW.empty_table(), frozenset())
    of = frozenset(file.file_id for file in files)
    texts = None if numbers is None else tuple(sorted({*numbers}))
    if sum(file.row_count for file in arrivals) <= FEW_ROWS:
        # Of so few all are looked up at once, and the next question finds them answered.
        of, texts = frozenset(file.file_id for file in arrivals), None
    asked = _Question(tuple(arrivals), of, texts)
    looked = order_facts.answered(asked, ask=partial(_looked_up, asked, storages=storages))
    return [file for file in files if file.file_id in looked.having], looked


def standing(
    looked: tuple[Sequence[StoredFacts], Looked], *, columns: Sequence[str], storages: StorageOf
) -> Iterator[tuple[StoredFacts, pa.Table, Bools]]:
    """Columns of each file that was looked at, and which of its rows stand.

    Raises:
        ArchiveError: a file cannot be read, or is not the one whose hash the database has.
    """
    files, found = looked
    for file in files:
        table = order_facts.rows_of(file, storages=storages, columns=columns)
        yield file, table, ~found.gone(file)


def _looked_up(asked: _Question, *, storages: StorageOf) -> Looked:
    naming, counting, reading, *rule = _RULE.read_text(encoding="utf-8").split(";")
    with order_facts.in_sql(asked.arrivals, storages=storages) as (sql, paths):
        places = dict(zip((file.file_id for file in asked.arrivals), paths, strict=True))
        if asked.numbers is None:
            of = [*{places[number]: None for number in sorted(asked.of)}]
            sql.execute(
                "CREATE TEMP TABLE asked AS SELECT DISTINCT order_no FROM read_parquet(?)", [of]
            )
        else:
            sql.register("asked", pa.table({"order_no": pa.array(asked.numbers, pa.string())}))
        sql.execute(naming, {"paths": [*dict.fromkeys(paths)]})
        sql.execute(counting)
        having = sql.rows("SELECT DISTINCT file_id FROM named")
        rows = _OF_ROW.empty_table()
        if among := sql.rows(_CROWDED):
            sql.execute(reading, {"paths": [*{places[number]: None for (number,) in among}]})
            *rule, became = (text.replace("{content}", ", ".join(CONTENT)) for text in rule)
            for statement in rule:
                sql.execute(statement)
            rows = sql.table(became).select(_OF_ROW.names).cast(_OF_ROW)
        return Looked(rows, frozenset(number for (number,) in having))


_CROWDED = """
SELECT DISTINCT file_id FROM named WHERE order_no IN (FROM crowded) ORDER BY file_id
"""
