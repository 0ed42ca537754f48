"""Migrations: `upgrade` brings a database to the newest tables; work on others is refused."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect
from sqlalchemy.exc import OperationalError

from recon.errors import ConfigurationError, StoreError
from recon.store.engine import Store, parse_url

MIGRATIONS = Path(__file__).parent / "migrations"


def upgrade(database_url: str) -> str:
    """Create or migrate the tables; returns the revision that the database is at now."""
    url = parse_url(database_url)
    if url.get_backend_name() == "sqlite" and url.database:
        folder = Path(url.database).parent
        if not folder.is_dir():
            msg = f"the folder {folder} for the database does not exist; create it first"
            raise ConfigurationError(msg)
    store = Store(url)
    try:
        configuration = _configuration()
        with store.writing() as connection:
            _refuse_foreign(connection)
        with store.writer.connect() as connection:
            configuration.attributes["connection"] = connection
            command.upgrade(configuration, "head")
            connection.commit()
    except OperationalError as error:
        cause = str(error.orig).strip().splitlines()[0]
        msg = f"the database cannot be migrated: {cause}"
        raise StoreError(msg) from error
    finally:
        store.close()
    return newest_revision()


def _refuse_foreign(connection: Connection) -> None:
    """A database that has tables but none of ours belongs to somebody else."""
    tables = set(inspect(connection).get_table_names())
    if tables and "alembic_version" not in tables:
        msg = (
            f"the database has other tables ({', '.join(sorted(tables)[:3])}) and is not one of "
            "recon's; nothing was changed: name a database of its own"
        )
        raise StoreError(msg)


def check_revision(store: Store) -> None:
    """Refuse to work on tables of another version.

    Raises:
        StoreError: with the command that puts it right.
    """
    with store.reading() as connection:
        found = MigrationContext.configure(connection).get_current_revision()
    expected = newest_revision()
    if found != expected:
        msg = (
            f"the database is at version {found or 'none'}, this program needs {expected}: "
            "run `recon db upgrade`"
        )
        raise StoreError(msg)


def newest_revision() -> str:
    """The revision this program was written for."""
    return ScriptDirectory.from_config(_configuration()).get_current_head() or ""


def _configuration() -> Config:
    configuration = Config()
    configuration.set_main_option("script_location", str(MIGRATIONS))
    return configuration
