"""Bytes of a named file: regular files only, bounded, unchanged while they were read."""

import errno
import hashlib
import os
import stat
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from recon.files.formats.format_limits import FILE_BYTES_MAX
from recon.model.errors import SourceMissingError, SourceUnreadableError
from recon.privacy.shown_text import name_problem, shown_name

CHANGED = "changed while it was read; wait until it is complete and run again"
_READ_BYTES = 4 * 1024 * 1024
PIECE_BYTES = 2 * 1024 * 1024
"""Of a file that is never in memory as a whole."""


@dataclass(frozen=True, slots=True)
class FileBytes:
    """A file as it was at one moment."""

    path: Path
    content: bytes
    sha256: str


def read_bytes(path: Path, *, bytes_max: int = FILE_BYTES_MAX) -> FileBytes:
    """The whole content of a regular file.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: not a regular file, too large, or changed while it was read.
    """
    descriptor = _open(path)
    try:
        before = os.fstat(descriptor)
        _refuse_unfit(path, status=before, bytes_max=bytes_max)
        content = _read(descriptor, bytes_max=bytes_max)
        if _marks(before) != _marks(os.fstat(descriptor)) or len(content) != before.st_size:
            _refuse(path, CHANGED)
    except OSError as error:
        _refuse(path, f"cannot be read: {error.strerror}")
    finally:
        os.close(descriptor)
    _refuse_replaced(path, status=before)
    return FileBytes(path, content, hashlib.sha256(content).hexdigest())


@dataclass(slots=True)
class ReadSoFar:
    """What has been read of a file so far."""

    size_bytes: int = 0
    digest: Any = field(default_factory=hashlib.sha256)

    @property
    def sha256(self) -> str:
        """Of what was read."""
        return str(self.digest.hexdigest())


def read_pieces(
    path: Path, *, seen: ReadSoFar, piece_bytes: int, bytes_max: int = FILE_BYTES_MAX
) -> Iterator[bytes]:
    """The content of a regular file, a piece at a time; it is proven only behind the last one.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: not a regular file, too large, or changed while it was read.
    """
    descriptor = _open(path)
    try:
        before = os.fstat(descriptor)
        _refuse_unfit(path, status=before, bytes_max=bytes_max)
        while piece := _read_piece(path, descriptor, size=piece_bytes):
            seen.digest.update(piece)
            seen.size_bytes += len(piece)
            if seen.size_bytes > before.st_size:
                break
            yield piece
        if _marks(before) != _marks(os.fstat(descriptor)) or seen.size_bytes != before.st_size:
            _refuse(path, CHANGED)
    finally:
        os.close(descriptor)
    _refuse_replaced(path, status=before)


def sha256_of(path: Path) -> str:
    """Of the content of a regular file, which is never in memory as a whole.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: not a regular file, too large, or changed while it was read.
    """
    seen = ReadSoFar()
    deque(read_pieces(path, seen=seen, piece_bytes=_READ_BYTES), maxlen=0)
    return seen.sha256


@dataclass(frozen=True, slots=True)
class FilePieces:
    """A file that may be read more than once, a piece at a time, always with one content."""

    path: Path
    size_bytes: int
    sha256: str
    pieces: Callable[[], Iterator[bytes]]

    def whole(self) -> FileBytes:
        """For a reader that needs all of it."""
        return FileBytes(self.path, b"".join(self.pieces()), self.sha256)


def open_pieces(path: Path, *, piece_bytes: int = PIECE_BYTES) -> FilePieces:
    """A regular file whose content is held to one digest each time it is read.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: not a regular file, too large, or changed while it was read.
    """
    first = ReadSoFar()
    deque(read_pieces(path, seen=first, piece_bytes=_READ_BYTES), maxlen=0)
    sha256 = first.sha256

    def again() -> Iterator[bytes]:
        seen = ReadSoFar()
        yield from read_pieces(path, seen=seen, piece_bytes=piece_bytes)
        if seen.sha256 != sha256:
            _refuse(path, CHANGED)

    return FilePieces(path, first.size_bytes, sha256, again)


def pieces_of(file: FileBytes, *, piece_bytes: int = PIECE_BYTES) -> FilePieces:
    """A content that is in memory, as one that is not."""
    content = file.content

    def pieces() -> Iterator[bytes]:
        for start in range(0, len(content), piece_bytes):
            yield content[start : start + piece_bytes]

    return FilePieces(file.path, len(content), file.sha256, pieces)


def _read_piece(path: Path, descriptor: int, *, size: int) -> bytes:
    try:
        return os.read(descriptor, size)
    except OSError as error:
        _refuse(path, f"cannot be read: {error.strerror}")


def _open(path: Path) -> int:
    if "\0" not in path.name and (why := name_problem(path.name)):
        _refuse(path, why)
    # Without O_NONBLOCK, opening a FIFO would wait for a writer that never comes.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        msg = f"{shown_name(str(path))} does not exist"
        raise SourceMissingError(msg) from None
    except ValueError as error:
        msg = f"{str(path)!r} is not a file name: {error}"
        raise SourceMissingError(msg) from None
    except OSError as error:
        if error.errno == errno.ELOOP:  # O_NOFOLLOW met a link
            _refuse(path, "is a symbolic link; name the file itself")
        _refuse(path, f"cannot be opened: {error.strerror}")


def _refuse_unfit(path: Path, *, status: os.stat_result, bytes_max: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        _refuse(path, f"is not a regular file but {_kind_of(status.st_mode)}")
    if status.st_size > bytes_max:
        _refuse(path, f"has {status.st_size} bytes; at most {bytes_max} are read: split it")


def _read(descriptor: int, *, bytes_max: int) -> bytes:
    parts: list[bytes] = []
    total = 0
    while part := os.read(descriptor, _READ_BYTES):
        parts.append(part)
        total += len(part)
        if total > bytes_max:
            break
    return b"".join(parts)


def _refuse_replaced(path: Path, *, status: os.stat_result) -> None:
    try:
        same = _marks(path.lstat()) == _marks(status)
    except OSError:
        same = False
    if not same:
        _refuse(path, "was replaced while it was read; run again")


def _marks(status: os.stat_result) -> tuple[int, int, int, int]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _kind_of(mode: int) -> str:
    tests = {"a folder": stat.S_ISDIR, "a pipe": stat.S_ISFIFO, "a socket": stat.S_ISSOCK}
    return next((name for name, fits in tests.items() if fits(mode)), "a device")


def _refuse(path: Path, problem: str) -> NoReturn:
    msg = f"{shown_name(str(path))} {problem}"
    raise SourceUnreadableError(msg)
