"""SQLite's dialect as the store uses it."""

import shutil
from datetime import UTC, date, datetime
from pathlib import Path

from sqlalchemy import func, select

from recon.model.nights import Mode, NightRequest
from recon.store.database.engine import COMPILED, Store, parse_url
from recon.store.nights import runs
from recon.store.schema import run as run_table

NOW = datetime(2026, 11, 21, 2, tzinfo=UTC)
NIGHT = NightRequest("100042", "100042001", date(2026, 11, 20), Mode.LIVE)


def _rows(url: str) -> int:
    """How many runs a database has, by a reader and by a writer of a store of its own."""
    query = select(func.count()).select_from(run_table).where(run_table.c.run_id != "nobody")
    store = Store(parse_url(url))
    with store.writing() as writer, store.reading() as reader:
        counts = {connection.execute(query).scalar_one() for connection in (writer, reader)}
    store.close()
    (count,) = counts
    return int(count)


def test_a_statement_is_compiled_once_for_all_databases(migrated: Path, tmp_path: Path) -> None:
    """Another engine and another database take what the first compiled, and answer for itself."""
    empty, other = (
        f"sqlite:///{shutil.copy(migrated, tmp_path / name)}" for name in ("empty", "other")
    )
    store = Store(parse_url(other))
    with store.writing() as connection:
        runs.start(connection, NIGHT, run_id="night-1", as_of=NOW, now=NOW)
    store.close()
    first = _rows(empty)
    compiled = len(COMPILED)
    second = _rows(other)

    assert (first, second) == (0, 1)
    assert len(COMPILED) == compiled > 0
