"""Files of a folder elsewhere, brought into the inbox: whole and proven unchanged, or not at all.

A file is fetched under a hidden name, compared with what the server says of it before and after,
and renamed into the inbox last; its `.done` and control files come before it. Nothing elsewhere is
moved, changed or deleted. A file whose size and time are those of the one in the inbox is known.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol

from recon.file_layouts import FileLayout, layout_of
from recon.foreign_bytes import scrubbed
from recon.foreign_bytes.limits import FILE_BYTES_MAX
from recon.order_file.inbox import WAITS_FOR

NAMES_MAX = 10_000
"""Entries of one folder elsewhere."""

NAME_CHARACTERS_MAX = 200
FETCHED_MODE = 0o600
PART_PREFIX = ".fetch-"
_ODD_CHARACTERS = frozenset('/\\:*?"<>|')


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One entry of a folder elsewhere, as its server tells it."""

    name: str
    size_bytes: int
    changed_at: datetime
    mark: str
    """What changes when the content does."""
    regular: bool = True


class RemoteFolder(Protocol):
    """A folder elsewhere."""

    def entries(self) -> Sequence[RemoteFile]:
        """What is in it."""

    def again(self, name: str) -> RemoteFile | None:
        """One entry as it is now; nothing when it is gone."""

    def parts(self, name: str) -> Iterator[bytes]:
        """The content of a file, piece by piece."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one visit brought."""

    names: tuple[str, ...]
    """New in the inbox."""
    left: tuple[tuple[str, str], ...]
    """(name, why) of files that were wanted and not brought."""


def fetch(
    folder: RemoteFolder,
    *,
    inbox: Path,
    patterns: Sequence[str],
    layouts: tuple[FileLayout, ...] = (),
    mark: Callable[[str], None] = lambda _: None,
) -> Fetched:
    """Bring what is new in a folder elsewhere into the inbox.

    Raises:
        OSError: the inbox cannot be written, or the folder elsewhere cannot be reached.
    """
    there = {entry.name: entry for entry in sorted(folder.entries(), key=lambda e: e.name)}
    partners = tuple(
        ending for each in layouts for ending in (each.control_file, each.done_file) if ending
    )
    names: list[str] = []
    left: list[tuple[str, str]] = []
    for entry in there.values():
        wanted = any(fnmatchcase(entry.name, pattern) for pattern in patterns)
        if not wanted or (partners and entry.name.endswith(partners)):
            continue
        layout = layout_of(entry.name, layouts=layouts)
        endings = [ending for ending in (layout.control_file, layout.done_file) if ending]
        why = _unfit(entry)
        missing = [
            f"{entry.name}{ending}" for ending in endings if entry.name + ending not in there
        ]
        if not why and missing:
            why = f"{WAITS_FOR} {missing[0]}"
        for name in () if why else [*(entry.name + ending for ending in endings), entry.name]:
            if not why and not _is_known(there[name], inbox=inbox):
                why = _unfit(there[name]) or _bring(folder, there[name], inbox=inbox, mark=mark)
                names += [] if why or name != entry.name else [name]
        if why:
            left.append((scrubbed(entry.name), why))
    return Fetched(tuple(names), tuple(left))


def _unfit(entry: RemoteFile) -> str:
    """Why an entry is not taken; "" when it is."""
    name = entry.name
    odd = _ODD_CHARACTERS.intersection(name) or not name.isprintable() or name.startswith(".")
    if odd or not name or len(name) > NAME_CHARACTERS_MAX:
        return "has a name that is not taken: hidden, too long, or with a path or odd characters"
    if not entry.regular:
        return "is not a regular file"
    if entry.size_bytes > FILE_BYTES_MAX:
        return f"has {entry.size_bytes} bytes; at most {FILE_BYTES_MAX} are read: split it"
    return ""


def _is_known(entry: RemoteFile, *, inbox: Path) -> bool:
    try:
        here = (inbox / entry.name).lstat()
    except OSError:
        return False
    return (here.st_size, int(here.st_mtime)) == (entry.size_bytes, _seconds(entry))


def _bring(
    folder: RemoteFolder, entry: RemoteFile, *, inbox: Path, mark: Callable[[str], None]
) -> str:
    """Put one file into the inbox, or say why not."""
    part = inbox / f"{PART_PREFIX}{entry.name}.part"
    part.unlink(missing_ok=True)
    try:
        size = _write(folder, entry, part=part)
        after = folder.again(entry.name)
        if size != entry.size_bytes or after is None or after.mark != entry.mark:
            return "changed while it was fetched; it is fetched again next time"
        os.utime(part, (_seconds(entry), _seconds(entry)))
        mark("fetched")
        part.replace(inbox / entry.name)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return ""


def _write(folder: RemoteFolder, entry: RemoteFile, *, part: Path) -> int:
    """Bytes written; never more than one piece above what was announced."""
    size = 0
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, FETCHED_MODE)
    with os.fdopen(descriptor, "wb") as file:
        for piece in folder.parts(entry.name):
            size += len(piece)
            if size > entry.size_bytes:
                break
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    return size


def _seconds(entry: RemoteFile) -> int:
    return int(entry.changed_at.timestamp())
