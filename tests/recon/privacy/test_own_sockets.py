"""Sockets of ours: who may connect, what is cleared and what stays, and asking over one."""

import os
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from recon.privacy.own_servers import (
    OWNER_ONLY,
    PATH_BYTES_MAX,
    WITH_GROUP,
    SocketUnusableError,
    is_heard,
    listening,
)
from recon.privacy.this_machine import is_loopback


def test_a_socket_is_for_its_owner_or_a_group(tmp_path):
    with (
        listening(tmp_path / "a", whose="a test"),
        listening(tmp_path / "b", mode=WITH_GROUP, whose="a test"),
    ):
        modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "ab"]
    assert modes == [0o600, 0o660]


NOBODY = 65534
KNOCK = """
import os, socket, sys
os.setgroups([]), os.setgid(int(sys.argv[2])), os.setuid(int(sys.argv[2]))
try:
    socket.socket(socket.AF_UNIX).connect(sys.argv[1])
except PermissionError:
    sys.exit(13)
"""


@pytest.mark.parametrize("mode", [OWNER_ONLY, WITH_GROUP])
def test_another_user_of_the_machine_does_not_get_in(mode):
    if os.geteuid() != 0:
        pytest.skip("only root can start a program as another user")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s"
        path.parent.chmod(0o755)
        with listening(path, mode=mode, whose="a test"):
            knocks = [[sys.executable, "-c", KNOCK, path, str(user)] for user in (NOBODY, 0)]
            ended = [subprocess.run(knock, check=False).returncode for knock in knocks]
    assert ended == [13, 0]


def test_one_that_answers_stays(tmp_path):
    path = tmp_path / "a"
    with listening(path, whose="a test"):
        assert is_heard(path)
        with pytest.raises(SocketUnusableError, match="another process listens"):
            listening(path, whose="a test")
    assert not is_heard(path)
    with listening(path, whose="a test"):
        assert is_heard(path)


@pytest.mark.parametrize("what", ["file", "link to a socket", "link to nothing"])
def test_what_is_no_socket_stays(tmp_path, what):
    path, other = tmp_path / "a", tmp_path / "b"
    if what == "file":
        path.write_text("mine")
    else:
        path.symlink_to(other)
    with socket.socket(socket.AF_UNIX) as left:
        if what == "link to a socket":
            left.bind(str(other))
        with pytest.raises(SocketUnusableError, match="is no socket"):
            listening(path, whose="a test")
    assert path.is_symlink() or path.read_text() == "mine"


def test_a_long_path_and_an_unknown_group_are_refused(tmp_path):
    with pytest.raises(SocketUnusableError, match="more than"):
        listening(tmp_path / ("x" * PATH_BYTES_MAX), whose="a test")
    with pytest.raises(SocketUnusableError, match="no group no-such"):
        listening(tmp_path / "a", group="no-such", whose="a test")


@pytest.mark.parametrize(
    ("host", "is_here"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", False), ("", False)],
)
def test_only_a_literal_address_is_this_machine(host, *, is_here):
    """A name could be answered by anybody."""
    assert is_loopback(host) is is_here
