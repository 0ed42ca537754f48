import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text

from recon.model.errors import NightHeldError
from recon.store.database.engine import Store
from recon.store.database.night_lock import account_lock, lock_stands

HOLDING = """
import sys
from recon.store.database.engine import Store, parse_url
from recon.store.database.night_lock import account_lock
store = Store(parse_url(sys.argv[1]))
with account_lock(store, ("m", "a")):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def _holding(store: Store) -> Iterator["subprocess.Popen[bytes]"]:
    url = store.url.render_as_string(hide_password=False)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield holder
        holder.kill()


@pytest.mark.process
def test_a_second_process_does_not_get_the_account(store: Store) -> None:
    """While one process holds an account, another is refused; a different account is free."""
    with _holding(store):
        with pytest.raises(NightHeldError), account_lock(store, ("m", "a")):
            pytest.fail("two held the account")
        with account_lock(store, ("m", "b")):
            pass


@pytest.mark.process
def test_a_killed_holder_frees_the_account_at_once(store: Store) -> None:
    """A lock dies with its process; no time-out is waited for."""
    with _holding(store) as holder:
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()

    with account_lock(store, ("m", "a")):
        held = True
    assert held


def test_the_lock_is_free_after_an_error(store: Store, tmp_path: Path) -> None:
    """An error inside the block gives the account back."""
    with pytest.raises(ZeroDivisionError), account_lock(store, ("m", "a")):
        raise ZeroDivisionError
    with account_lock(store, ("m", "a")):
        assert tmp_path.exists()


@pytest.mark.parametrize("account_id", ["a", "b", "c", "d"])
def test_a_lock_that_the_server_dropped_no_longer_stands(store: Store, account_id: str) -> None:
    """Ended from outside, the connection is gone and with it the lock; a file lock stays."""
    place = ("m", account_id)
    with account_lock(store, place):
        with store.reading() as connection:
            held = lock_stands(connection, place)
        if not store.is_sqlite:
            _end_lock_holders(store)
        with store.reading() as connection:
            still = lock_stands(connection, place)

    assert (held, still) == (True, store.is_sqlite)


def _end_lock_holders(store: Store) -> None:
    # With a time-out the call waits until the backend is gone; without, it only sends a signal.
    ended = (
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory' "
        "AND pid <> pg_backend_pid()"
    )
    with store.writing() as connection:
        connection.execute(text(ended))
