import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from recon.model.nights import Mode
from recon.sandbox import SandboxOptions
from tests.recon.steps.conftest import ON_POSTGRESQL, Merchant, opened
from tests.recon.steps.night.test_sealed_proof import entries
from tests.recon.steps.night.test_sealed_settle import capture


@pytest.fixture
def on_postgresql(tmp_path: Path, migrated_postgresql_url: str) -> Iterator[Merchant]:
    """The same merchant on PostgreSQL."""
    folder = tmp_path / "postgresql"
    folder.mkdir()
    options = SandboxOptions(orders=300)
    with opened(folder, options=options, database_url=migrated_postgresql_url) as merchant:
        yield merchant


@pytest.mark.postgresql
@pytest.mark.skipif(ON_POSTGRESQL, reason="compares PostgreSQL with SQLite")
def test_sqlite_and_postgresql_give_folders_of_the_same_content(
    merchant: Merchant, on_postgresql: Merchant
) -> None:
    """The same night on either database says the same in each file, by the digest of its rows."""
    told = []
    for each in (merchant, on_postgresql):
        capture(each)
        each.night(mode=Mode.DRY_RUN)
        beside = each.folder / "reports" / "archive"
        root = beside if beside.is_dir() else Path(each.sqlite_path).parent / "archive"
        folder = next(root.glob("nights/*/*/*/*"))
        told.append({name: entry.content for name, entry in entries(folder).items()})
        shutil.rmtree(root)
    sqlite, postgresql = told

    assert len(sqlite) > 25
    assert {name for name in sqlite if sqlite[name] != postgresql[name]} == set()
