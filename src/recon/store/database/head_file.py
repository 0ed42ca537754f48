"""The newest links of the history, kept outside the database: what a restored backup cannot know.

One JSON line per note in an append-only file, flushed to the disk before anything is sent and with
everything that restricts money. A database whose chain lacks a noted link is older than what once
was, or another one. A *pending* note was made before its commit: it vouches for nothing, for the
commit may never have happened.
"""

import errno
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from recon.model.durable import flush_folder
from recon.model.errors import OutputError
from recon.privacy.own_files import open_unlinked
from recon.store.database.history import Head

FILE_NAME = "history-head.jsonl"
ACCEPTED_RESTORE = "restore accepted"
"""Of a note that two people made: what was noted before it binds no longer."""
SHARED = 0o660
"""Of the file: desk and nights, of one group, both note in it."""
TAIL_BYTES = 65_536
"""How much of the file's end is looked at: some hundreds of notes."""
LINE_BYTES_MAX = 1_000
LOCK_WAIT_SECONDS = 5.0
"""How long a writer waits for another, who only needs the time of one note."""
LOCK_LOOK_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class NotedHead:
    """One note: a link that stood in the database at that moment."""

    head: Head
    of: str
    """The run that noted it, or what was done."""
    at: str
    pending: bool = False


@dataclass(frozen=True, slots=True)
class HeadNotes:
    """The notes that a database must have, oldest first."""

    notes: tuple[NotedHead, ...]
    end: int
    """Bytes that were read: the next look begins there."""
    unresolved: bool = False
    """The newest note is pending: whether its commit happened is for a start to find out."""


class HeadFile:
    """The side file of one account, in its reports folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME

    def note(
        self,
        head: Callable[[], Head | str],
        *,
        of: str,
        at: datetime,
        pending: bool = False,
    ) -> str:
        """Add a link; on the disk when this returns.

        `head` is asked while nobody else notes anything, so that of two databases with one file
        only one can come first; where it answers with a sentence nothing is noted, and that
        sentence comes back ("" when the link was noted).

        Raises:
            OutputError: the file cannot be written.
        """
        try:
            with self._locked() as descriptor:
                newest = head()
                if isinstance(newest, str):
                    return newest
                self._append(descriptor, NotedHead(newest, of, at.isoformat(), pending))
        except OSError as error:
            msg = (
                f"{self.path} cannot be written ({error.strerror}): without it a restored database "
                "would go unnoticed; nothing more is sent until it can"
            )
            raise OutputError(msg) from error
        return ""

    def standing(self, *, after: int = 0) -> HeadNotes:
        """The notes that bind: those since people last accepted a restore, without pending ones.

        `after` is where an earlier look ended; only what came since is read then.

        Raises:
            OutputError: the file is there but cannot be read, or a line of it is no note.
        """
        lines, end = self._lines(after)
        notes = [self._read(line) for line in lines]
        accepted = [index for index, note in enumerate(notes) if note.of == ACCEPTED_RESTORE]
        binding = notes[accepted[-1] :] if accepted else notes
        unresolved = bool(notes) and notes[-1].pending
        return HeadNotes(tuple(note for note in binding if not note.pending), end, unresolved)

    def accepted(self) -> tuple[NotedHead, NotedHead | None] | None:
        """The note with which people last accepted a restore, and the one that it ended.

        Raises:
            OutputError: the file is there but cannot be read, or a line of it is no note.
        """
        notes = [line for line in map(self._read, self._lines(0)[0]) if not line.pending]
        places = [index for index, note in enumerate(notes) if note.of == ACCEPTED_RESTORE]
        if not places:
            return None
        newest = places[-1]
        return notes[newest], notes[newest - 1] if newest else None

    def newest(self) -> NotedHead | None:
        """The newest note; None when there never was one.

        Raises:
            OutputError: the file is there but cannot be read, or a line of it is no note.
        """
        return next(reversed(self.standing().notes), None)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The open file, which nobody else writes meanwhile."""
        descriptor = open_unlinked(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, mode=SHARED)
        try:
            _lock(descriptor)
            yield descriptor
        finally:
            os.close(descriptor)

    def _append(self, descriptor: int, noted: NotedHead) -> None:
        document: dict[str, object] = {
            "sequence": noted.head.sequence,
            "hash": noted.head.hash,
            "run": noted.of,
            "at": noted.at,
        }
        if noted.pending:
            document["pending"] = True
        line = json.dumps(document, separators=(",", ":")).encode() + b"\n"
        is_new = _drop_half_note(descriptor) == 0
        if os.write(descriptor, line) != len(line):
            # A disk that is nearly full takes a part, and calls that no error.
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(descriptor)
        if is_new:
            flush_folder(self.path.parent)

    def _lines(self, after: int) -> tuple[Sequence[bytes], int]:
        try:
            with os.fdopen(open_unlinked(self.path, os.O_RDONLY), "rb") as file:
                size = file.seek(0, os.SEEK_END)
                after = after if after <= size else 0
                begin = max(after, size - TAIL_BYTES)
                file.seek(begin)
                read = file.read(size - begin)
        except FileNotFoundError:
            return [], 0
        except OSError as error:
            msg = f"{self.path} cannot be read ({error.strerror})"
            raise OutputError(msg) from error
        # A note that was cut off by a crash has no end of line: it does not count.
        *whole, rest = read.split(b"\n")
        if begin > after:
            whole = whole[1:]  # the tail may begin within a line
        return [line for line in whole if line], size - len(rest)

    def _read(self, line: bytes) -> NotedHead:
        try:
            document: Mapping[str, object] = dict(json.loads(line[:LINE_BYTES_MAX]))
            head = Head(int(str(document["sequence"])), str(document["hash"]))
            pending = bool(document.get("pending"))
            return NotedHead(head, str(document["run"]), str(document["at"]), pending)
        except (ValueError, KeyError, TypeError) as error:
            msg = (
                f"a line of {self.path} is not a note of the history's head: keep the file, "
                "find out who changed it, and call the people who look after recon"
            )
            raise OutputError(msg) from error


def _lock(descriptor: int) -> None:
    """Wait for whoever writes; a writer that was stopped in the middle is not waited for long."""
    until = time.monotonic() + LOCK_WAIT_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise
            time.sleep(LOCK_LOOK_SECONDS)
        else:
            return


def _drop_half_note(descriptor: int) -> int:
    """Cut off what a crash left behind the last whole line; returns the bytes that stay.

    A note written behind half a one would make a line that is none, and stop every later night.
    """
    size = os.fstat(descriptor).st_size
    begin = max(0, size - TAIL_BYTES)
    tail = os.pread(descriptor, TAIL_BYTES, begin)
    whole = begin + tail.rfind(b"\n") + 1
    if whole < size:
        os.ftruncate(descriptor, whole)
    return whole
