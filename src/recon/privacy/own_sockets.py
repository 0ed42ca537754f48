"""Unix sockets of ours: made for their owner and at most a group, and asked over HTTP.

Twin of `own_files`: nobody else of the machine connects, under any umask, and what an earlier
process left behind is cleared, but nothing else that lies there.
"""

import grp
import os
import socket
import stat
from http.client import HTTPConnection
from pathlib import Path

OWNER_ONLY = 0o600
WITH_GROUP = 0o660
BACKLOG = 512
PATH_BYTES_MAX = 100
"""What every system takes; Linux takes 107."""
_ALL = 0o777


class NoSocketError(Exception):
    """Something else lies there; the message names it."""


class HeardError(Exception):
    """Another process listens there."""


def listening(path: Path, *, mode: int = OWNER_ONLY, group: str = "") -> socket.socket:
    """A listening Unix socket; one that an earlier process left behind is made anew.

    Args:
        path: Where it is made.
        mode: Who may connect, also while it is being made.
        group: Whose group it becomes, under `WITH_GROUP`; "" leaves it as it is.

    Raises:
        NoSocketError: something that is no socket lies there; it stays.
        HeardError: somebody listens there.
        OSError: it cannot be made.
        KeyError: there is no such group.
    """
    if len(os.fsencode(path)) > PATH_BYTES_MAX:
        raise OSError(0, f"its path has more than {PATH_BYTES_MAX} bytes")
    _clear(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Nobody gets in between the socket's making and its group's.
        before = os.umask(_ALL & ~mode)
        try:
            listener.bind(str(path))
        finally:
            os.umask(before)
        if group:
            os.chown(path, -1, grp.getgrnam(group).gr_gid)
            path.chmod(WITH_GROUP)
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def is_heard(path: Path) -> bool:
    """Whether somebody listens at a path."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def _clear(path: Path) -> None:
    """Remove a socket that an earlier process left behind, and nothing else."""
    try:
        kind = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(kind):
        msg = f"{path} is there and is no socket"
        raise NoSocketError(msg)
    if is_heard(path):
        raise HeardError(str(path))
    path.unlink()


class SocketConnection(HTTPConnection):
    """HTTP over a Unix socket: one way to ask for desk and signer.

    The name of the host is said and never looked up: the path decides who answers. Not httpx, whose
    transport for such sockets leaves one open when nobody answers.
    """

    def __init__(self, path: Path, *, name: str, seconds_max: float) -> None:
        super().__init__(name, timeout=seconds_max)
        self._path = path

    def connect(self) -> None:
        """Connect to the path."""
        connecting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connecting.settimeout(self.timeout)
            connecting.connect(str(self._path))
        except BaseException:
            connecting.close()
            raise
        self.sock = connecting
