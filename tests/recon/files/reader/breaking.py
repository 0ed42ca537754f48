"""What a file might do to its reader, done on purpose: each is a task of the fork."""

import ctypes
import errno
import os
import signal
import time
from pathlib import Path
from typing import IO

from recon.files import reader_process
from recon.model.errors import SourceUnreadableError


class PanicException(BaseException):
    """What a panic of a library in Rust is for Python: no Exception."""


def counted(rows: IO[bytes], *, path: Path) -> int:
    """The file's bytes: nothing breaks."""
    rows.write(b"x")
    return len(path.read_bytes())


def slowly_counted(rows: IO[bytes], *, path: Path) -> int:
    """The file's bytes, and time that is spent on them."""
    count = counted(rows, path=path)
    time.sleep(2)
    return count


def refused(rows: IO[bytes], *, path: Path) -> int:  # noqa: ARG001 - a task
    """A refusal in order."""
    msg = f"{path.name} is empty"
    raise SourceUnreadableError(msg)


def panics(rows: IO[bytes], *, path: Path) -> int:  # noqa: ARG001 - a task
    """A panic, with words that quote the file."""
    raise PanicException(path.read_text())


def unexpected(rows: IO[bytes], *, path: Path) -> int:  # noqa: ARG001 - a task
    """A mistake of ours, with words that quote the file."""
    return int({}[path.read_text()])


def no_memory(rows: IO[bytes], *, path: Path) -> int:  # noqa: ARG001 - a task
    """More memory than any file may take, by Python."""
    return len(bytearray(2**30))


def no_memory_below(rows: IO[bytes], *, path: Path) -> int:  # noqa: ARG001 - a task
    """More memory than any file may take, by Arrow."""
    import pyarrow as pa

    return int(pa.allocate_buffer(2**30).size)


def segfault(rows: IO[bytes], *, path: Path) -> int:  # noqa: ARG001 - a task
    """A library that reads where nothing is."""
    return int(ctypes.string_at(0)[0])


def killed(rows: IO[bytes], *, path: Path) -> int:  # noqa: ARG001 - a task
    """As the system ends a process where memory ends."""
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def endless(rows: IO[bytes], *, path: Path) -> int:  # noqa: ARG001 - a task
    """Work without an end."""
    while True:
        pass


def asleep(rows: IO[bytes], *, path: Path) -> int:  # noqa: ARG001 - a task
    """A folder that does not answer."""
    time.sleep(600)
    return 0


def full_disk(rows: IO[bytes], *, path: Path) -> int:  # noqa: ARG001 - a task
    """A disk without room, as every write to it says."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def no_room_in_memory(rows: IO[bytes], *, path: Path) -> int:  # noqa: ARG001 - a task
    """The system's own word for it, as a mapping of a file says it."""
    raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))


def everything_written(rows: IO[bytes], *, path: Path) -> int:  # noqa: ARG001 - a task
    """More rows than a file of this size can have."""
    while True:
        rows.write(b"x" * 2**20)


def nonsense(rows: IO[bytes], *, path: Path) -> int:  # noqa: ARG001 - a task
    """Facts that no reader writes."""
    return str(path)  # type: ignore[return-value] - on purpose


def no_rows(rows: IO[bytes], *, path: Path) -> int:  # noqa: ARG001 - a task
    """Rows that no reader writes."""
    rows.write(b"no Arrow at all")
    return 1


def secrets(rows: IO[bytes], *, path: Path) -> list[str]:  # noqa: ARG001 - a task
    """The names of all variables that the fork has."""
    return sorted(os.environ)


def reads_frame(rows: IO[bytes]) -> int:
    """What the caller does with rows."""
    return len(reader_process.read_frame(rows))
