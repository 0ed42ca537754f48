"""Starts and ends night processes that were forked warm, by their process id."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

SCRIPT = Path(__file__).with_name("night_process.py")
STOPPED_SECONDS_MAX = 120
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
"""A process that forks must not have threads of a numerical library."""


@dataclass(frozen=True)
class Nursery:
    """The process that forks nights."""

    process: "subprocess.Popen[str]"

    @classmethod
    @contextmanager
    def opened(cls) -> Iterator[Self]:
        """Started, its imports done with the first order; ended at the end of the block."""
        with subprocess.Popen(
            [sys.executable, str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | ONE_THREAD,
        ) as process:
            yield cls(process)
            process.stdin.close()

    def warm(self, order: Mapping[str, Any]) -> int:
        """A night in the forking process itself, so that every child has what a night loads."""
        return self._asked({"warm": order})

    def start(self, order: Mapping[str, Any]) -> int:
        """Fork a night; returns its process id at once."""
        return self._asked({"start": order})

    def wait(self, pid: int) -> int:
        """How a night ended: its exit code, or minus the signal."""
        return self._asked({"wait": pid})

    def kill(self, pid: int) -> None:
        """SIGKILL, now; the night may have ended before."""
        os.kill(pid, signal.SIGKILL)

    def await_stopped(self, pid: int) -> None:
        """Return when a night that stops itself stands still."""
        until = time.monotonic() + STOPPED_SECONDS_MAX
        while _state(pid) != "T":
            assert _state(pid) not in {"Z", ""}, "the night ended before it stopped"
            assert time.monotonic() < until, "the night did not stop"
            time.sleep(0.01)

    def go_on(self, pid: int) -> None:
        """SIGCONT."""
        os.kill(pid, signal.SIGCONT)

    def _asked(self, order: Mapping[str, Any]) -> int:
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return int(json.loads(self.process.stdout.readline()))


def _state(pid: int) -> str:
    """The letter of a process's state; "" when it is gone."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return told.rpartition(")")[2].split()[0]
