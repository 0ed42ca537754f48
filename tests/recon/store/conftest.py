from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from recon.archive.storage import LocalStorage
from recon.model.nights import Mode, NightRequest
from recon.store.database.engine import Store, open_store
from recon.store.database.night_lock import account_lock
from recon.store.nights import runs
from recon.store.nights.facts_rows import StorageOf
from recon.store.nights.runs import Run
from tests.recon.store.stored_files import archive_of

NOW = datetime(2026, 11, 21, 1, 30, tzinfo=UTC)
AS_OF = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """An empty, migrated database of each kind."""
    if request.param == "sqlite":
        url = request.getfixturevalue("sqlite_url")
    else:
        url = request.getfixturevalue("migrated_postgresql_url")
    opened = open_store(url)
    yield opened
    opened.close()


@pytest.fixture
def storages(tmp_path: Path) -> StorageOf:
    return archive_of(LocalStorage(tmp_path / "archive"))


@pytest.fixture
def run(store: Store) -> Iterator[Run]:
    request = NightRequest("100042", "100042001", date(2026, 11, 20), Mode.LIVE)
    with store.writing() as connection:
        runs.start(connection, request, run_id="r1", as_of=AS_OF, now=NOW)
    with store.reading() as connection:
        found = runs.get(connection, "r1")
    with account_lock(store, found):
        yield found
