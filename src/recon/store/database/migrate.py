"""Migrations: `upgrade` brings tables to the newest revision; other revisions are refused."""

import os
from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import OperationalError

from recon.model.errors import ConfigurationError, StoreError
from recon.store.database.engine import Store, parse_url

DATABASE_MODE = 0o600
MIGRATIONS = Path(__file__).parent / "migrations"
VERSION_TABLE = "alembic_version"
NEWER = (
    "the database is newer than this program: it is at version {}, and this program knows "
    "versions up to {}; nothing was changed: start the recon that upgraded it, or "
    "install that version here"
)


def upgrade(database_url: str) -> str:
    """Create the tables or bring them to the newest revision, which is returned.

    Raises:
        ConfigurationError: The folder of a SQLite database does not exist.
        StoreError: The database cannot be migrated; it remains at its revision.
    """
    # Imported here: it is as slow as SQLAlchemy, and every command imports this module.
    from alembic import command
    from alembic.config import Config

    url = parse_url(database_url)
    if url.get_backend_name() == "sqlite" and url.database:
        folder = Path(url.database).parent
        if not folder.is_dir():
            msg = f"the folder {folder} for the database does not exist; create it first"
            raise ConfigurationError(msg)
        # Readable by its owner only; SQLite gives its companion files the same mode.
        with suppress(FileExistsError):
            os.close(os.open(url.database, os.O_CREAT | os.O_EXCL | os.O_WRONLY, DATABASE_MODE))
    store = Store(url)
    try:
        configuration = Config()
        configuration.set_main_option("script_location", str(MIGRATIONS))
        with store.writing() as connection:
            _refuse_foreign(connection)
            _refuse_unknown(connection)
        with store.engine.connect() as connection:
            if store.is_sqlite:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
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
    """Refuse a database that has tables, but none of ours: it belongs to another program."""
    tables = set(inspect(connection).get_table_names())
    if tables and VERSION_TABLE not in tables:
        msg = (
            f"the database has other tables ({', '.join(sorted(tables)[:3])}) and is not one of "
            "recon's; nothing was changed: name a database of its own"
        )
        raise StoreError(msg)


def _refuse_unknown(connection: Connection) -> None:
    """Refuse a database of an unknown or a newer revision, unchanged."""
    known = _known_revisions()
    revision = _revision(connection)
    if _is_newer(revision, than=known[-1]):
        raise StoreError(NEWER.format(revision, known[-1]))
    if revision and revision not in known:
        msg = (
            f"the database is at version {revision}, this program knows {known[0]} to {known[-1]} "
            "only; nothing was changed: upgrade it with the version of recon that made it"
        )
        raise StoreError(msg)


def check_revision(store: Store) -> None:
    """Refuse to work on tables of another revision.

    Raises:
        StoreError: It names the command that corrects this.
    """
    with store.reading() as connection:
        revision = _revision(connection)
    expected = newest_revision()
    if _is_newer(revision, than=expected):
        raise StoreError(NEWER.format(revision, expected))
    if revision != expected:
        msg = (
            f"the database is at version {revision or 'none'}, this program needs {expected}: "
            "run `recon db upgrade`"
        )
        raise StoreError(msg)


def _is_newer(revision: str, *, than: str) -> bool:
    """Return whether a later program made these tables; revisions are increasing numbers."""
    return revision.isdigit() and int(revision) > int(than)


def _revision(connection: Connection) -> str:
    if not inspect(connection).has_table(VERSION_TABLE):
        return ""
    return connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}")) or ""  # noqa: S608


def newest_revision() -> str:
    """Return the revision that this program was written for."""
    return _known_revisions()[-1]


def _known_revisions() -> tuple[str, ...]:
    """Return the known revisions, oldest first; a migration's file name begins with its own."""
    files = (MIGRATIONS / "versions").glob("[0-9]*.py")
    return tuple(sorted(file.name.partition("_")[0] for file in files))
