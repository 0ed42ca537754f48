"""Read a file's bytes: regular files only, limited in size, unchanged while being read."""

import errno
import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from recon.files.formats.format_limits import FILE_BYTES_MAX
from recon.model.errors import SourceMissingError, SourceUnreadableError
from recon.privacy.displayed_text import displayed_name, name_problem

CHANGED = "changed while it was read; wait until it is complete and run again"


@dataclass(frozen=True, slots=True)
class FileBytes:
    """Content and SHA-256 of a file at one moment."""

    path: Path
    content: bytes
    sha256: str


def read_bytes(path: Path, *, bytes_max: int = FILE_BYTES_MAX) -> FileBytes:
    """Read the whole content of a regular file.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: not a regular file, too large, or changed while it was read.
    """
    descriptor = _open(path)
    try:
        before = os.fstat(descriptor)
        mode, size = before.st_mode, before.st_size
        if not stat.S_ISREG(mode):
            kinds = {"a folder": stat.S_ISDIR, "a pipe": stat.S_ISFIFO, "a socket": stat.S_ISSOCK}
            kind = next((name for name, fits in kinds.items() if fits(mode)), "a device")
            _refuse(path, f"is not a regular file but {kind}")
        if size > bytes_max:
            _refuse(path, f"has {size} bytes; at most {bytes_max} are read: split it")
        content = os.read(descriptor, size + 1)  # one more, to see growth; one read, one copy
        if _version(before) != _version(os.fstat(descriptor)) or len(content) != size:
            _refuse(path, CHANGED)
    except OSError as error:
        _refuse(path, f"cannot be read: {error.strerror}")
    finally:
        os.close(descriptor)
    try:
        is_same = _version(path.lstat()) == _version(before)
    except OSError:
        is_same = False
    if not is_same:
        _refuse(path, "was replaced while it was read; run again")
    return FileBytes(path, content, hashlib.sha256(content).hexdigest())


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a regular file's content, in hexadecimal.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: not a regular file, too large, or changed while it was read.
    """
    return read_bytes(path).sha256


def _open(path: Path) -> int:
    if "\0" not in path.name and (why := name_problem(path.name)):
        _refuse(path, why)
    # Without O_NONBLOCK, opening a FIFO would wait for a writer that never comes.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        msg = f"{displayed_name(str(path))} does not exist"
        raise SourceMissingError(msg) from None
    except ValueError as error:
        msg = f"{str(path)!r} is not a file name: {error}"
        raise SourceMissingError(msg) from None
    except OSError as error:
        if error.errno == errno.ELOOP:  # O_NOFOLLOW met a link
            _refuse(path, "is a symbolic link; name the file itself")
        _refuse(path, f"cannot be opened: {error.strerror}")


def _version(status: os.stat_result) -> tuple[int, int, int, int]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _refuse(path: Path, problem: str) -> NoReturn:
    msg = f"{displayed_name(str(path))} {problem}"
    raise SourceUnreadableError(msg)
