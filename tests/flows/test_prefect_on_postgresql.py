"""Prefect's own server on Debian's PostgreSQL, as in production: campaign `prefect-postgresql`."""

import os
import shutil
import subprocess
import tempfile
from datetime import date
from pathlib import Path

import psycopg
import pytest

from flows.serve import free_port
from recon.model.nights import Mode, NightRequest
from recon.model.terms import End
from tests.flows.flow_in_process import run_nightly
from tests.flows.prefect_api import prefect_server

REQUEST = NightRequest("100042", "100042001", date(2026, 11, 20), Mode.LIVE)
PROGRAMS = Path("/usr/lib/postgresql")
OWNER = "postgres"
"""The system's user; PostgreSQL does not run as root."""
QUICK = "-c fsync=off -c synchronous_commit=off -c listen_addresses=127.0.0.1"
PROGRAM_SECONDS_MAX = 120


def run(*command):
    """One of PostgreSQL's programs, as its user where we are root."""
    words = [str(word) for word in command]
    if os.geteuid() == 0:
        words = ["runuser", "-u", OWNER, "--", *words]
    subprocess.run(
        words, check=True, stdout=subprocess.DEVNULL, timeout=PROGRAM_SECONDS_MAX, cwd="/"
    )


@pytest.fixture
def database():
    """A cluster of our own with an empty database for Prefect; its port."""
    versions = sorted(PROGRAMS.glob("*/bin"), key=lambda path: float(path.parent.name))
    if not versions:
        pytest.skip(f"no PostgreSQL in {PROGRAMS} (apt-get install postgresql)")
    folder, port = Path(tempfile.mkdtemp(prefix="recon-prefect-")), free_port()
    if os.geteuid() == 0:
        shutil.chown(folder, OWNER)
    data, control = folder / "data", versions[-1] / "pg_ctl"
    run(versions[-1] / "initdb", "-D", data, "-U", OWNER, "--auth=trust", "--no-sync")
    started = ("-w", "-l", folder / "log", "-o", f"{QUICK} -p {port} -k {folder}")
    run(control, "-D", data, *started, "start")
    try:
        with connected(port, "postgres") as connection:
            connection.execute("CREATE DATABASE prefect")
        with connected(port, "prefect") as connection:
            connection.execute("CREATE EXTENSION pg_trgm")
        yield port
    finally:
        run(control, "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def connected(port, name):
    """A connection that commits each statement."""
    return psycopg.connect(f"postgresql://{OWNER}@127.0.0.1:{port}/{name}", autocommit=True)


@pytest.mark.flow
@pytest.mark.postgresql
def test_a_night_runs_while_prefect_keeps_its_state_on_postgresql(database, tmp_path, night):
    url = f"postgresql+asyncpg://{OWNER}@127.0.0.1:{database}/prefect"
    variables = {"PREFECT_API_DATABASE_CONNECTION_URL": url}
    night.verdict = "BREAKS OPEN"
    with prefect_server(tmp_path / "prefect", variables=variables) as server:
        verdict = run_nightly(REQUEST, server=server)
        with connected(database, "prefect") as connection:
            runs = connection.execute("SELECT name, state_type FROM flow_run").fetchall()
            keys = connection.execute("SELECT DISTINCT key FROM artifact").fetchall()
            states = connection.execute("SELECT count(*) FROM task_run").fetchone()

    assert verdict is End.BREAKS_OPEN
    assert runs == [("nightly 100042/100042001 2026-11-20 live · BREAKS OPEN", "COMPLETED")]
    assert {"summary-100042001", "workbook-100042001"} <= {key for (key,) in keys}
    assert states == (len(night.done),)
    assert list((tmp_path / "prefect").glob("*.db")) == []
