"""Child processes that answer over a socket; they inherit no key, password or address."""

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from multiprocessing.connection import Connection

from recon.privacy.own_files import WITHOUT_PLUGINS, program_variables

END_SECONDS = 5


class OwnProcess:
    """A child Python process; its socket reaches end-of-file when the parent is gone."""

    def __init__(self, code: str, *, variables: Mapping[str, str], is_quiet: bool = False) -> None:
        """Start the process.

        Args:
            code: The Python code it runs; its first argument is the number of its socket.
            variables: Environment variables in addition to those every interpreter needs.
            is_quiet: Discard its output.

        Raises:
            OSError: the process cannot be started.
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
        self.pipe = Connection(ours.detach())

    def end(self) -> int:
        """Close the socket and wait for the end of the process; return its exit code."""
        self.pipe.close()
        try:
            return self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
