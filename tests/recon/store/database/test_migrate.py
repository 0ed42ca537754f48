import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from recon.model.errors import StoreError
from recon.store.database import migrate
from recon.store.database.engine import Store, open_store
from recon.store.database.migrate import check_revision, newest_revision, upgrade
from recon.store.schema import run


def test_migrations_make_exactly_the_tables_of_the_schema(store: Store) -> None:
    with store.reading() as connection:
        difference = compare_metadata(MigrationContext.configure(connection), run.metadata)

        written = MigrationContext.configure(connection).get_current_revision()

    assert difference == []
    assert written == newest_revision()


def test_upgrade_twice_changes_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'r.sqlite'}"

    assert [upgrade(url), upgrade(url)] == [newest_revision()] * 2


def test_a_database_without_tables_is_refused_with_the_command(tmp_path: Path) -> None:
    (tmp_path / "r.sqlite").touch()
    store = open_store(f"sqlite:///{tmp_path / 'r.sqlite'}")

    with pytest.raises(StoreError, match="recon db upgrade"):
        check_revision(store)
    store.close()


@pytest.fixture
def sqlite_path(migrated: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(migrated, tmp_path / "recon.sqlite"))


NEXT = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "9999", "{newest}"


def upgrade():
    with op.batch_alter_table("order_file") as table:
        table.add_column(sa.Column("colour", sa.Text))
"""


@pytest.fixture
def next_release(sqlite_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database of today and a program of one migration more, which builds a table anew."""
    folder = tmp_path / "migrations"
    shutil.copytree(migrate.MIGRATIONS, folder)
    text = NEXT.format(newest=newest_revision())
    (folder / "versions" / "9999_next.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(migrate, "MIGRATIONS", folder)
    return sqlite_path


INSERT_REJECT = (
    "INSERT INTO reject (file_id, run_id, kind, source, line, [column]) VALUES"
    " (7, 'r', 'orders', 'o.csv', 2, 'amount')"
)


def test_files_and_their_rows_outlive_a_table_that_is_built_anew(next_release: Path) -> None:
    """A database of an earlier version keeps its rows, and its foreign keys hold afterwards."""
    with closing(sqlite3.connect(next_release)) as earlier, earlier:
        earlier.execute(
            "INSERT INTO order_file (file_id, merchant_id, account_id, business_date, run_id, name,"
            " version, sha256, size_bytes, read_at) VALUES"
            " (7, 'm', 'a', '2026-11-20', 'r', 'o.csv', 1, 'x', 1, '')"
        )
        earlier.execute(INSERT_REJECT)
    assert upgrade(f"sqlite:///{next_release}") == "9999"

    with closing(sqlite3.connect(next_release)) as now:
        now.execute("PRAGMA foreign_keys = ON")
        joined = "SELECT f.sha256, r.line, colour FROM reject r JOIN order_file f USING (file_id)"
        assert now.execute(joined).fetchall() == [("x", 2, None)]
        with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
            now.execute("UPDATE reject SET file_id = 8")


def test_rows_that_refer_to_nothing_stop_the_upgrade(next_release: Path) -> None:
    """A damaged database is not migrated silently: the sentence names both tables."""
    with closing(sqlite3.connect(next_release)) as earlier, earlier:
        before = earlier.execute("SELECT version_num FROM alembic_version").fetchall()
        earlier.execute(INSERT_REJECT)

    with pytest.raises(StoreError, match="a row of reject refers to no row of order_file"):
        upgrade(f"sqlite:///{next_release}")
    with closing(sqlite3.connect(next_release)) as now:
        assert now.execute("SELECT version_num FROM alembic_version").fetchall() == before


@pytest.mark.parametrize(
    ("revision", "sentence"),
    [
        ("unknown", "is at version unknown, this program knows 0001"),
        ("0099", "is newer than this program: it is at version 0099, and this program knows"),
    ],
)
def test_a_database_of_a_version_that_is_not_known_is_left_as_it_is(
    sqlite_path: Path, revision: str, sentence: str
) -> None:
    with closing(sqlite3.connect(sqlite_path)) as other, other:
        other.execute("UPDATE alembic_version SET version_num = ?", (revision,))

    with pytest.raises(StoreError, match=sentence):
        upgrade(f"sqlite:///{sqlite_path}")
    with closing(sqlite3.connect(sqlite_path)) as now:
        assert now.execute("SELECT version_num FROM alembic_version").fetchall() == [(revision,)]


def test_a_night_calls_a_newer_database_newer(sqlite_path: Path) -> None:
    with closing(sqlite3.connect(sqlite_path)) as other, other:
        other.execute("UPDATE alembic_version SET version_num = '0099'")

    with (
        closing(open_store(f"sqlite:///{sqlite_path}")) as store,
        pytest.raises(StoreError, match="is newer than this program") as refused,
    ):
        check_revision(store)
    assert "db upgrade" not in str(refused.value)


def test_a_new_database_is_its_owners_alone(tmp_path: Path) -> None:
    """Orders and amounts rest in it: nobody else on the machine reads them, whatever the umask."""
    path = tmp_path / "recon.sqlite"
    upgrade(f"sqlite:///{path}")

    assert path.stat().st_mode & 0o777 == 0o600
