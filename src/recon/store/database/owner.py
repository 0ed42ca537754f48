"""Which process owns a run, so that another one can tell whether it is gone.

A process id alone is used again; together with its start, the machine's boot and the namespace that
counts processes it is not. Whether a process of another machine lives cannot be told from here.
"""

import os
import select
from dataclasses import dataclass
from pathlib import Path
from typing import Self

PROC = Path("/proc")
START_FIELD = 19
"""Of /proc/<pid>/stat, counted from the field behind the name: the start in ticks since boot."""
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Owner:
    """One process, for ever."""

    boot_id: str
    namespace: str
    pid: int
    started_ticks: int

    @classmethod
    def this(cls, *, proc: Path = PROC) -> Self:
        """The process that asks."""
        pid = os.getpid()
        return cls(_boot_id(proc), _namespace(proc), pid, _started_ticks(proc, pid))

    @classmethod
    def parsed(cls, text: str) -> Self | None:
        """As it was written; None when it was not known."""
        try:
            boot_id, namespace, pid, ticks = text.split(" ")
            return cls(boot_id, namespace, int(pid), int(ticks))
        except ValueError:
            return None

    def __str__(self) -> str:
        return f"{self.boot_id} {self.namespace} {self.pid} {self.started_ticks}"

    def is_alive_here(self, *, proc: Path = PROC) -> bool:
        """Whether this very process lives on this machine, also when it is stopped.

        False for the process that asks, and for every process of another machine or namespace.
        Where the system does not say, it lives: a wrong "gone" would let two send.
        """
        here = type(self).this(proc=proc)
        machine = {self.boot_id, self.namespace}
        if self == here or UNKNOWN in machine or machine != {here.boot_id, here.namespace}:
            return False
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        except OSError:
            # An old kernel, a filter of calls, too many open files: no handle, so by /proc alone.
            return self._may_be(proc)
        try:
            # The handle names one process: what is read now is of it, or it has ended.
            return self._may_be(proc) and not _has_ended(descriptor)
        finally:
            os.close(descriptor)

    def _may_be(self, proc: Path) -> bool:
        """Whether the process of this number, if there is one, began when this one did."""
        try:
            return _start_of(proc, self.pid) == self.started_ticks
        except (FileNotFoundError, ProcessLookupError):
            return False
        except OSError:
            return True


def _has_ended(descriptor: int) -> bool:
    """A process that ended and was not waited for yet counts as ended."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


def _started_ticks(proc: Path, pid: int) -> int:
    """-1 when nobody says."""
    try:
        return _start_of(proc, pid)
    except OSError:
        return -1


def _start_of(proc: Path, pid: int) -> int:
    status = (proc / str(pid) / "stat").read_text()
    return int(status.rpartition(")")[2].split()[START_FIELD])


def _boot_id(proc: Path) -> str:
    try:
        return (proc / "sys" / "kernel" / "random" / "boot_id").read_text().strip() or UNKNOWN
    except OSError:
        return UNKNOWN


def _namespace(proc: Path) -> str:
    try:
        return str((proc / "self" / "ns" / "pid").readlink())
    except OSError:
        return UNKNOWN
