"""Two desks at one database, each with a copy of the key: real processes on real sockets."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import pyotp
import pytest

from recon.desk.held_keys import make_keys

RECON = str(Path(sys.executable).with_name("recon"))
SECRET = pyotp.random_base32()
HEARD_ALREADY = "a desk takes decisions for this database already"
START_SECONDS = 120


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def database_url(request):
    name = "sqlite_url" if request.param == "sqlite" else "migrated_postgresql_url"
    return str(request.getfixturevalue(name))


class TwoPlaces:
    """Folders of two desks with one key, one database and one declared person."""

    def __init__(self, folder, *, database_url):
        self.folder = folder
        self.database_url = database_url
        (folder / "config").mkdir()
        (folder / "config" / "approvers.toml").write_text(
            '[approvers.jo]\nname = "Jo Ahn"\ncode_secret_env = "JO_SECRET"\n'
        )
        for name in ("first", "second"):
            (folder / name).mkdir()
        make_keys(folder / "first" / "desk.key", public=folder / "first" / "desk.pub")
        for name in ("desk.key", "desk.pub"):
            shutil.copy(folder / "first" / name, folder / "second" / name)
        self._variables = {
            "PATH": os.environ["PATH"],
            "RECON_DATABASE_URL": database_url,
            "RECON_CONFIG_DIR": str(folder / "config"),
            "RECON_GATEWAY_BASE_URL": "https://gateway.example",
            "JO_SECRET": SECRET,
        }

    def command(self, name, *words):
        """A command of the product that has the key of one of the two."""
        key = str(self.folder / name / "desk.key")
        return subprocess.Popen(
            [RECON, *words],
            env=self._variables | {"RECON_DESK_KEY_FILE": key},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def socket(self, name):
        return self.folder / name / "s"

    @contextmanager
    def desk(self, name):
        process = self.command(name, "serve", "desk", "--socket", str(self.socket(name)))
        try:
            assert is_ready(process)
            yield process
        finally:
            process.kill()
            process.communicate(timeout=START_SECONDS)

    def guess(self, name):
        """What a desk says to a wrong code."""
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(self.socket(name)))) as client:
            body = {"person": "jo", "code": "000000", "instruction_ids": ["i"], "reason": "x"}
            reply = client.post("http://desk/reject", json=body, timeout=START_SECONDS)
        return str(reply.json()["error"])


def is_ready(process):
    """Whether a desk listens, once it says anything of it."""
    return any("takes decisions at" in line for line in iter(process.stdout.readline, ""))


@pytest.fixture
def places(database_url):
    """In a folder whose path leaves room for a socket's name."""
    with tempfile.TemporaryDirectory(prefix="desks-") as folder:
        yield TwoPlaces(Path(folder), database_url=database_url)


def end_sessions(url):
    """End whoever holds a lock at a PostgreSQL server, as its restart does; False at SQLite."""
    if url.startswith("sqlite:"):
        return False
    with psycopg.connect(url, autocommit=True) as connection:
        holders = connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
        )
        assert holders.fetchall() == [(True,)]
    return True


def refused(process, *, typed=""):
    """What a command says that does nothing."""
    try:
        _, complaint = process.communicate(typed, timeout=START_SECONDS)
    finally:
        process.kill()
    assert process.returncode == 2, complaint
    return complaint


def test_of_two_desks_at_one_database_one_hears_people(places):
    """Each would count wrong codes in a file of its own: twice as many guesses as are allowed."""
    with places.desk("first") as first:
        second = places.command("second", "serve", "desk", "--socket", str(places.socket("second")))
        assert HEARD_ALREADY in refused(second)
        assert not places.socket("second").exists()
        guesses = [places.guess("first") for _ in range(6)]
        assert ["is not right" in guess for guess in guesses] == [True] * 5 + [False]
        alone = places.command(
            "second", "reject", "i", "--reason", "x", "--as", "jo", "--code", "-"
        )
        assert HEARD_ALREADY in refused(alone, typed="000000\n")
        if end_sessions(places.database_url):
            assert "this desk lost its connection to the database" in places.guess("first")
        first.send_signal(signal.SIGKILL)
        first.wait(START_SECONDS)
    with places.desk("second"):
        assert "is not right" in places.guess("second")
