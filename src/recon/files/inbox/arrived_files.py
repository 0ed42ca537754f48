"""List the order files of an inbox in a stable order, and find those that are still growing.

A file that was cut off between two rows looks complete. Unless a `.done` file next to it marks it
complete, it is read only after it has not changed for a while.
"""

import stat
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

from recon.config.file_layouts import MENDED_PREFIX, FileLayout, layout_of
from recon.files.formats.raw_reader import SUFFIXES
from recon.model.errors import SourceMissingError, SourceUnreadableError
from recon.privacy.displayed_text import displayed_name

FILES_MAX = 1_000
"""Maximum number of files in one inbox."""

WAITS_FOR = "not complete yet: waits for"
"""Beginning of the reason why a file is left for later."""
HIDDEN = "hidden or temporary"
COMPANION = "stands beside an order file"
NOT_REPORTED = (HIDDEN, COMPANION)
"""What everybody leaves in an inbox; of the rest a night says that it read nothing."""

TEMPORARY_PREFIXES = (".", "~")
TEMPORARY_SUFFIXES = (".tmp", ".part", ".partial", ".filepart", ".crdownload", ".swp", ".bak")


@dataclass(frozen=True, slots=True)
class Inbox:
    """Files of an inbox sorted by name; files of corrected rows come after all others."""

    files: tuple[Path, ...]
    skipped: tuple[tuple[str, str], ...]
    """(displayed name, reason) of everything else in the folder."""


def inbox(
    folder: Path, *, layouts: tuple[FileLayout, ...] = (), endings: tuple[str, ...] = SUFFIXES
) -> Inbox:
    """List the files waiting in a folder; layouts may add formats and companion files.

    Raises:
        SourceMissingError: there is no such folder.
        SourceUnreadableError: it cannot be listed, or holds more than FILES_MAX files.
    """
    try:
        entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        msg = f"the inbox {folder} is not a folder that exists; create it or correct its path"
        raise SourceMissingError(msg) from None
    except OSError as error:
        msg = f"the inbox {folder} cannot be listed: {error.strerror}"
        raise SourceUnreadableError(msg) from error
    names = frozenset(entry.name for entry in entries)
    unfit = partial(_unfit, names=names, layouts=layouts, endings=endings)
    reasons = [(entry, unfit(entry)) for entry in entries]
    taken = (entry for entry, reason in reasons if not reason)
    files = tuple(sorted(taken, key=lambda entry: entry.name.startswith(MENDED_PREFIX)))
    if len(files) > FILES_MAX:
        msg = f"the inbox {folder} holds {len(files)} files; at most {FILES_MAX} are read"
        raise SourceUnreadableError(msg)
    return Inbox(files, tuple((displayed_name(entry.name), why) for entry, why in reasons if why))


def not_taken(path: Path, *, layouts: tuple[FileLayout, ...]) -> str:
    """Return why a run would leave this file in its inbox; "" if it would take it."""
    try:
        names = frozenset(entry.name for entry in path.parent.iterdir())
    except OSError:
        names = frozenset({path.name})
    return _unfit(path, names=names, layouts=layouts, endings=SUFFIXES)


def partners_of(*layouts: FileLayout) -> tuple[str, ...]:
    """Return the name endings of companion files: control files and `.done` files."""
    endings = (ending for each in layouts for ending in (each.control_file, each.done_file))
    return tuple(filter(None, endings))


def _unfit(
    entry: Path,
    *,
    names: frozenset[str],
    layouts: tuple[FileLayout, ...],
    endings: tuple[str, ...],
) -> str:
    """Return why an entry is not a file for this inbox; "" if it is one."""
    layout = layout_of(entry.name, layouts=layouts)
    name = entry.name.lower()
    if name.startswith(TEMPORARY_PREFIXES) or name.endswith(TEMPORARY_SUFFIXES):
        return HIDDEN
    if entry.name.endswith(partners_of(*layouts)):
        return COMPANION
    if not name.endswith(endings) and not layout.format:
        return f"does not end in {', '.join(endings)}"
    try:
        regular = stat.S_ISREG(entry.lstat().st_mode)
    except OSError:
        return "gone while the folder was listed"
    if not regular:
        return "not a regular file"
    partner = f"{entry.name}{layout.done_file}"
    return "" if partner in names else f"{WAITS_FOR} {displayed_name(partner)}"


LOOKS_MAX = 12
"""Checks before a file that keeps changing is left; they are one settle time apart."""

_Version = tuple[int, int, int]
Name = TypeVar("Name", bound=Hashable)
Version = TypeVar("Version")


def unsettled(
    paths: Iterable[Path],
    *,
    settle: timedelta,
    clock: Callable[[], datetime],
    pause: Callable[[timedelta], None],
) -> tuple[Path, ...]:
    """Wait until files have been unchanged for `settle`; return those that kept changing.

    A file last changed before that, by the clock, is accepted at once. A missing file counts as
    settled: reading it will report the error.
    """
    old = clock() - settle
    seen = {path: _version_of(path) for path in paths if settle}
    young: dict[Path, _Version | None] = {
        path: version
        for path, version in seen.items()
        if version is not None and datetime.fromtimestamp(version[2] / 1e9, tz=UTC) > old
    }
    return tuple(still_moving(young, look=_version_of, wait=partial(pause, settle)))


def still_moving(
    seen: dict[Name, Version], *, look: Callable[[Name], Version], wait: Callable[[], None]
) -> list[Name]:
    """Wait until each item is gone (None) or unchanged since the last check; return the others.

    `seen` holds the version of each item as the caller saw it, and is updated to the last one.
    """
    moving = [*seen]
    for _ in range(LOOKS_MAX):
        if not moving:
            break
        wait()
        now = {name: look(name) for name in moving}
        moving = [name for name in moving if now[name] not in (None, seen[name])]
        seen |= now
    return moving


def _version_of(path: Path) -> _Version | None:
    """Return what changes whenever the file does; None if the file is gone."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return (status.st_ino, status.st_size, status.st_mtime_ns)
