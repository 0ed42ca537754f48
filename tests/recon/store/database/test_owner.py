import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from recon.store.database.night_lock import Process


@pytest.fixture
def child() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that waits for its input to end."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def owner_of(process: "subprocess.Popen[bytes]") -> Process:
    """The owner that the child would name."""
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
    """What names no process is nobody that could be looked for."""
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
