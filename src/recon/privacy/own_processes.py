"""Processes of ours that answer over a socket; no key, password or address goes with them."""

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from multiprocessing.connection import Connection

from recon.privacy.own_files import WITHOUT_PLUGINS, program_variables

END_SECONDS = 5


class OwnProcess:
    """A second Python of ours; it sees the end of its socket when nobody asks it any more."""

    def __init__(self, code: str, *, variables: Mapping[str, str], is_quiet: bool = False) -> None:
        """Start it.

        Args:
            code: What it runs; the number of its socket is its first argument.
            variables: Of its environment, beside those that every interpreter needs.
            is_quiet: Nothing that it prints is seen.

        Raises:
            OSError: the system starts no process.
        """
        path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        printed = subprocess.DEVNULL if is_quiet else None
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self.process = subprocess.Popen(  # noqa: S603 - this very Python, our own module
                    [sys.executable, "-P", "-c", code, str(theirs.fileno())],
                    pass_fds=(theirs.fileno(),),
                    env=program_variables(os.environ) | WITHOUT_PLUGINS | dict(variables) | path,
                    stdin=subprocess.DEVNULL,
                    stdout=printed,
                    stderr=printed,
                    start_new_session=True,
                )
            except BaseException:
                ours.close()
                raise
        self.door = Connection(ours.detach())

    def end(self) -> int:
        """Close its socket and wait until it has ended; how it did."""
        self.door.close()
        try:
            return self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
