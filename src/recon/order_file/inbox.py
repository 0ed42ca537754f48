"""Which files of an inbox are order files, in an order that never changes."""

import stat
from dataclasses import dataclass
from pathlib import Path

from recon.errors import SourceMissingError, SourceUnreadableError
from recon.foreign_bytes.raw_reader import SUFFIXES

FILES_MAX = 1_000
"""Files of one inbox."""

TEMPORARY_PREFIXES = (".", "~")
TEMPORARY_SUFFIXES = (".tmp", ".part", ".partial", ".filepart", ".crdownload", ".swp", ".bak")


@dataclass(frozen=True, slots=True)
class Inbox:
    """The files of an inbox folder, sorted by name."""

    files: tuple[Path, ...]
    skipped: tuple[tuple[str, str], ...]
    """(name, why) of everything else in the folder."""


def inbox(folder: Path) -> Inbox:
    """The order files that wait in a folder.

    Raises:
        SourceMissingError: there is no such folder.
        SourceUnreadableError: it cannot be listed, or holds more files than are read.
    """
    try:
        entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        msg = f"the inbox {folder} is not a folder that exists; create it or correct its path"
        raise SourceMissingError(msg) from None
    except OSError as error:
        msg = f"the inbox {folder} cannot be listed: {error.strerror}"
        raise SourceUnreadableError(msg) from error
    reasons = [(entry, _unfit(entry)) for entry in entries]
    files = tuple(entry for entry, reason in reasons if not reason)
    if len(files) > FILES_MAX:
        msg = f"the inbox {folder} holds {len(files)} files; at most {FILES_MAX} are read"
        raise SourceUnreadableError(msg)
    return Inbox(files, tuple((entry.name, reason) for entry, reason in reasons if reason))


def _unfit(entry: Path) -> str:
    """Why an entry is not an order file; "" when it is one."""
    name = entry.name.lower()
    if name.startswith(TEMPORARY_PREFIXES) or name.endswith(TEMPORARY_SUFFIXES):
        return "hidden or temporary"
    if not name.endswith(SUFFIXES):
        return f"does not end in {', '.join(SUFFIXES)}"
    try:
        regular = stat.S_ISREG(entry.lstat().st_mode)
    except OSError:
        return "gone while the folder was listed"
    return "" if regular else "not a regular file"
