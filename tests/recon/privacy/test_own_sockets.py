"""Sockets of ours: who may connect, what is cleared and what stays, and asking over one."""

import socket
import stat
from pathlib import Path

import pytest

from recon.privacy.own_sockets import (
    PATH_BYTES_MAX,
    WITH_GROUP,
    HeardError,
    NoSocketError,
    SocketConnection,
    is_heard,
    listening,
)


def test_a_socket_is_for_its_owner_or_a_group(tmp_path: Path) -> None:
    """Whatever the umask."""
    with listening(tmp_path / "a"), listening(tmp_path / "b", mode=WITH_GROUP):
        modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "ab"]
    assert modes == [0o600, 0o660]


def test_one_that_answers_stays(tmp_path: Path) -> None:
    """A second process is told; one that was left behind is made anew."""
    path = tmp_path / "a"
    with listening(path):
        assert is_heard(path)
        with pytest.raises(HeardError):
            listening(path)
    assert not is_heard(path)
    with listening(path):
        assert is_heard(path)


@pytest.mark.parametrize("what", ["file", "link to a socket", "link to nothing"])
def test_what_is_no_socket_stays(tmp_path: Path, what: str) -> None:
    """Nothing is deleted by a misspelt name, and nobody is led elsewhere by a link."""
    path, other = tmp_path / "a", tmp_path / "b"
    if what == "file":
        path.write_text("mine")
    else:
        path.symlink_to(other)
    with socket.socket(socket.AF_UNIX) as left:
        if what == "link to a socket":
            left.bind(str(other))
        with pytest.raises(NoSocketError, match="is no socket"):
            listening(path)
    assert path.is_symlink() or path.read_text() == "mine"


def test_a_long_path_and_an_unknown_group_are_refused(tmp_path: Path) -> None:
    """Before anything is made."""
    with pytest.raises(OSError, match="more than"):
        listening(tmp_path / ("x" * PATH_BYTES_MAX))
    with pytest.raises(KeyError):
        listening(tmp_path / "a", group="no-such")


def test_nobody_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    """And leaves no socket open."""
    with pytest.raises(FileNotFoundError):
        SocketConnection(tmp_path / "a", name="desk", seconds_max=1).connect()
