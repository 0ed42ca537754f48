import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from recon.model.errors import NightHeldError
from recon.store.database.engine import Store
from recon.store.database.night_lock import Process, account_lock, lock_stands

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
    with _holding(store):
        with pytest.raises(NightHeldError), account_lock(store, ("m", "a")):
            pytest.fail("two held the account")
        with account_lock(store, ("m", "b")):
            pass


@pytest.mark.process
def test_a_killed_holder_frees_the_account_at_once(store: Store) -> None:
    with _holding(store) as holder:
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()

    with account_lock(store, ("m", "a")):
        held = True
    assert held


def test_the_lock_is_free_after_an_error(store: Store, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), account_lock(store, ("m", "a")):
        raise ZeroDivisionError
    with account_lock(store, ("m", "a")):
        assert tmp_path.exists()


@pytest.mark.parametrize("account_id", ["a", "b", "c", "d"])
def test_a_lock_that_the_server_dropped_no_longer_stands(store: Store, account_id: str) -> None:
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


@pytest.fixture
def child() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def owner_of(process: "subprocess.Popen[bytes]") -> Process:
    ticks = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]
    return replace(Process.this(), pid=process.pid, started_ticks=int(ticks))


def test_an_owner_lives_until_it_is_gone(child: "subprocess.Popen[bytes]") -> None:
    """Also while it is stopped; not any more once it was killed, waited for or not."""
    owner = owner_of(child)
    alive = owner.is_alive_here()
    os.kill(child.pid, signal.SIGSTOP)
    stopped = owner.is_alive_here()
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    killed = owner.is_alive_here()
    child.wait()

    assert (alive, stopped, killed, owner.is_alive_here()) == (True, True, False, False)


def test_a_process_id_that_is_used_again_is_another_owner(
    child: "subprocess.Popen[bytes]",
) -> None:
    """Another start, another boot, another namespace: not that process."""
    owner = owner_of(child)
    others = (
        replace(owner, started_ticks=owner.started_ticks - 1),
        replace(owner, boot_id="another"),
        replace(owner, namespace="pid:[1]"),
        replace(owner, boot_id="unknown"),
    )

    assert [one.is_alive_here() for one in others] == [False] * 4


def test_the_process_that_asks_is_not_another_owner() -> None:
    """A night may follow another one in the same process."""
    assert not Process.this().is_alive_here()


def test_an_owner_is_read_as_it_was_written() -> None:
    owner = Process.this()

    assert Process.parsed(str(owner)) == owner
    assert Process.parsed("") is None
    assert Process.parsed("process 12 on host, started") is None


def test_a_process_of_which_nothing_can_be_read_is_not_called_gone(
    child: "subprocess.Popen[bytes]", tmp_path: Path
) -> None:
    """Too many open files keep /proc from being read as well: who cannot be seen may live."""
    (tmp_path / "sys/kernel/random").mkdir(parents=True)
    (tmp_path / "sys/kernel/random/boot_id").write_text(owner_of(child).boot_id)
    (tmp_path / "self/ns").mkdir(parents=True)
    (tmp_path / "self/ns/pid").symlink_to(Path("/proc/self/ns/pid").readlink())
    (tmp_path / f"{child.pid}/stat").mkdir(parents=True)

    assert owner_of(child).is_alive_here(proc=tmp_path)
