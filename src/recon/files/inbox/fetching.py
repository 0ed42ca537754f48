"""Fetch files from a remote folder into the inbox: complete and verified unchanged, or not at all.

A file is downloaded under a hidden name, compared with what the server reports before and after,
and renamed into the inbox last; its `.done` and control files come first. Nothing in the remote
folder is moved, changed or deleted. A file with the size and time of the one in the inbox is not
fetched again. New files are fetched only after they have been unchanged for a while: a partial copy
would never change in the inbox, and would look complete.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol

from recon.config.file_layouts import FileLayout, layout_of
from recon.files.formats.format_limits import FILE_BYTES_MAX
from recon.files.inbox.arrived_files import WAITS_FOR, partners_of, still_moving
from recon.privacy.displayed_text import name_problem, redacted

NAMES_MAX = 10_000
"""Maximum number of entries in a remote folder."""

NAME_CHARACTERS_MAX = 200
FETCHED_MODE = 0o600
PART_PREFIX = ".fetch-"
GROWS = "is still being written; it is fetched when it stands still"
CHANGED = "changed while it was fetched; it is fetched again next time"
_ODD_CHARACTERS = frozenset('/\\:*?"<>|')


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One entry of a remote folder, as its server reports it."""

    name: str
    size_bytes: int
    changed_at: datetime
    etag: str
    """Changes whenever the content does."""
    regular: bool = True


class RemoteFolder(Protocol):
    """A folder on a remote server."""

    def entries(self) -> Sequence[RemoteFile]:
        """List the entries of the folder."""

    def again(self, name: str) -> RemoteFile | None:
        """Return the current state of one entry; None if it is gone."""

    def parts(self, name: str) -> Iterator[bytes]:
        """Yield the content of a file in chunks."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """Result of one fetch."""

    names: tuple[str, ...]
    """Names of files new in the inbox."""
    left: tuple[tuple[str, str], ...]
    """(name, reason) of files that were wanted but not fetched."""
    unfinished: tuple[str, ...] = ()
    """Names of those that were being written."""
    misnamed: Mapping[str, str] = field(default_factory=dict)
    """Name -> reason for those with an unacceptable name: the run lacks their content."""


def fetch(
    folder: RemoteFolder,
    *,
    inbox: Path,
    patterns: Sequence[str],
    layouts: tuple[FileLayout, ...] = (),
    crash_point: Callable[[str], None] = lambda _: None,
    settle: Callable[[], None] | None = None,
) -> Fetched:
    """Fetch the new files of a remote folder into the inbox.

    A file without a `done_file` must not change on the server while `settle` waits. No clock is
    used, as ours and the server's may differ. With `settle=None` files are fetched at once.

    Raises:
        OSError: the inbox cannot be written, or the remote folder cannot be reached.
    """
    there = {entry.name: entry for entry in sorted(folder.entries(), key=lambda e: e.name)}
    partners = partners_of(*layouts)  # companions are fetched with their files
    fresh_files = [
        name
        for name in there
        if any(fnmatchcase(name, pattern) for pattern in patterns) and not name.endswith(partners)
    ]
    alone = [name for name in fresh_files if not layout_of(name, layouts=layouts).done_file]
    fresh = [
        name
        for name in alone
        if not _unfit(there[name]) and not _is_known(there[name], inbox=inbox)
    ]
    growing: dict[str, str] = {}
    if settle:
        there_before: dict[str, RemoteFile | None] = {name: there[name] for name in fresh}
        growing = dict.fromkeys(still_moving(there_before, look=folder.again, wait=settle), GROWS)
        growing |= {name: "is gone again" for name, now in there_before.items() if now is None}
        there |= {name: now for name, now in there_before.items() if now is not None}
    names: list[str] = []
    left: list[tuple[str, str]] = []
    for name in fresh_files:
        companions = [name + each for each in partners_of(layout_of(name, layouts=layouts))]
        why = _unfit(there[name]) or growing.get(name, "")
        missing = [each for each in companions if each not in there]
        if not why and missing:
            why = f"{WAITS_FOR} {missing[0]}"
        for each in () if why else [*companions, name]:
            if not why and not _is_known(there[each], inbox=inbox):
                why = _unfit(there[each]) or _bring(
                    folder, there[each], inbox=inbox, crash_point=crash_point
                )
                names += [] if why or each != name else [each]
        if why:
            left.append((redacted(name), why))
    unfinished = tuple(name for name, why in left if why in {GROWS, CHANGED})
    misnamed = {redacted(name): why for name in fresh_files if (why := name_problem(name))}
    return Fetched(tuple(names), tuple(left), unfinished, misnamed)


def _unfit(entry: RemoteFile) -> str:
    """Return why an entry is not fetched; "" if it is acceptable."""
    name = entry.name
    if why := name_problem(name):
        return why
    odd = _ODD_CHARACTERS.intersection(name) or name.startswith(".")
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
    folder: RemoteFolder, entry: RemoteFile, *, inbox: Path, crash_point: Callable[[str], None]
) -> str:
    """Download one file into the inbox; return the problem, or ""."""
    part = inbox / f"{PART_PREFIX}{entry.name}.part"
    part.unlink(missing_ok=True)
    try:
        size = _write(folder, entry, part=part)
        after = folder.again(entry.name)
        if size != entry.size_bytes or after is None or after.etag != entry.etag:
            return CHANGED
        os.utime(part, (_seconds(entry), _seconds(entry)))
        crash_point("fetched")
        part.replace(inbox / entry.name)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return ""


def _write(folder: RemoteFolder, entry: RemoteFile, *, part: Path) -> int:
    """Write the content to `part`; return its size, at most a chunk above the announced one."""
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
