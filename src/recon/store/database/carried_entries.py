"""Books that an earlier version kept as rows, for the upgrade that writes them to folders."""

from typing import Any

import pandas as pd
from sqlalchemy import Connection, Select, column, inspect, select, table, union

from recon.matching.frames.sources import INSTANT, LEDGER_COLUMNS
from recon.model.words import SourceKind
from recon.store.database.frames import frame_of_select
from recon.store.schema.columns import Instant

LAST_WITH_ENTRIES = "0031"
"""The newest revision of a database that has such rows."""
BOOKED = "booked"
"""Under this name the migration is told which runs have their books in a folder: names of runs."""
_ENTRIES = table("ledger_entry")


def runs_with_entries(connection: Connection) -> list[str]:
    """Runs that read their books, also those that found no entry in them, sorted."""
    if not inspect(connection).has_table(_ENTRIES.name):
        return []
    read: Select[Any] = select(column("run_id")).select_from(table("run_source"))
    every: Select[Any] = select(column("run_id")).select_from(_ENTRIES)
    both = union(read.where(column("kind") == SourceKind.LEDGER.value), every).subquery()
    return sorted(connection.execute(select(both.c.run_id)).scalars())


def entries_of(connection: Connection, run_id: str) -> pd.DataFrame:
    """LEDGER_COLUMNS as a run read them."""
    names = (
        column(name, Instant) if kind == INSTANT else column(name)
        for name, kind in LEDGER_COLUMNS.items()
    )
    query = select(*names).select_from(_ENTRIES).where(column("run_id") == run_id)
    return frame_of_select(connection, query.order_by(column("position")), columns=LEDGER_COLUMNS)
