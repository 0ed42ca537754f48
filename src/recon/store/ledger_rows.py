"""The ledger as a run read it: kept, so that the night can be rebuilt and compared again."""

import pandas as pd
from sqlalchemy import Connection, delete, insert, select

from recon.matching.sources import LEDGER_COLUMNS
from recon.model import SourceFile, SourceKind
from recon.store.frames import frame_of_select, rows_of
from recon.store.schema import ledger_entry, reject, run_source


def save(connection: Connection, run_id: str, *, entries: pd.DataFrame, source: SourceFile) -> None:
    """Keep the extract of one run in place of an earlier attempt's."""
    connection.execute(delete(ledger_entry).where(ledger_entry.c.run_id == run_id))
    connection.execute(delete(run_source).where(run_source.c.run_id == run_id))
    connection.execute(
        delete(reject).where(reject.c.run_id == run_id, reject.c.kind == source.kind.value)
    )
    rows = [
        {**row, "run_id": run_id, "position": position}
        for position, row in enumerate(rows_of(entries))
    ]
    if rows:
        connection.execute(insert(ledger_entry), rows)
    names = tuple(name for name in SourceFile.__dataclass_fields__ if name != "kind")
    cells = {name: getattr(source, name) for name in names}
    connection.execute(insert(run_source).values(run_id=run_id, kind=source.kind.value, **cells))


def load(connection: Connection, run_id: str) -> tuple[pd.DataFrame, SourceFile] | None:
    """The extract of a run (LEDGER_COLUMNS) and where it came from; None when none was read."""
    found = (
        connection.execute(
            select(run_source).where(
                run_source.c.run_id == run_id, run_source.c.kind == SourceKind.LEDGER.value
            )
        )
        .mappings()
        .one_or_none()
    )
    if found is None:
        return None
    names = tuple(name for name in SourceFile.__dataclass_fields__ if name != "kind")
    source = SourceFile(kind=SourceKind.LEDGER, **{name: found[name] for name in names})
    query = (
        select(*(ledger_entry.c[name] for name in LEDGER_COLUMNS))
        .where(ledger_entry.c.run_id == run_id)
        .order_by(ledger_entry.c.position)
    )
    return frame_of_select(connection, query, columns=LEDGER_COLUMNS), source
