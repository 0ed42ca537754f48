from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from recon.errors import StoreError
from recon.store.engine import Store, open_store
from recon.store.migrate import check_revision, newest_revision, upgrade
from recon.store.schema import run


def test_migrations_make_exactly_the_tables_of_the_schema(store: Store) -> None:
    """What the migrations build is what the code expects, on both databases."""
    with store.reading() as connection:
        difference = compare_metadata(MigrationContext.configure(connection), run.metadata)

    assert difference == []


def test_upgrade_twice_changes_nothing(tmp_path: Path) -> None:
    """An upgraded database is upgraded again without an error."""
    url = f"sqlite:///{tmp_path / 'r.sqlite'}"

    assert [upgrade(url), upgrade(url)] == [newest_revision()] * 2


def test_a_database_without_tables_is_refused_with_the_command(tmp_path: Path) -> None:
    """A database that was never upgraded names the command that does it."""
    (tmp_path / "r.sqlite").touch()
    store = open_store(f"sqlite:///{tmp_path / 'r.sqlite'}")

    with pytest.raises(StoreError, match="recon db upgrade"):
        check_revision(store)
    store.close()
