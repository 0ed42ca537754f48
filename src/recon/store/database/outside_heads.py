"""Head files: events that restrict money are noted outside the database as well, in any process.

`Store.writing` calls this: a transaction with a restricting event (a withdrawal, a rejection, a
stop of sending, a verdict, a NOT PROVEN night) notes its newest link in the reports folder of every
account, as pending before the commit and as final after it. The sender's own events are excluded:
it notes its claims itself before it sends anything (`steps.money.gate`).
"""

import errno
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from sqlalchemy import Connection

from recon.model.durable import flush_folder
from recon.model.errors import OutputError
from recon.model.nights import Account
from recon.privacy.own_files import open_unlinked
from recon.store.database import history
from recon.store.database.history import Head

FILE_NAME = "history-head.jsonl"
ACCEPTED_RESTORE = "restore accepted"
"""Label of the note by which two people accept a restored backup; earlier notes then expire."""
SHARED = 0o660
"""Mode of the file: the approvals service and nights, in one group, both write it."""
TAIL_BYTES = 65_536
"""How much of the end of the file is read: some hundreds of notes."""
LINE_BYTES_MAX = 1_000
LOCK_WAIT_SECONDS = 5.0
"""How long a writer waits for another, which needs the lock only for one note."""
LOCK_LOOK_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class NotedHead:
    """One note: a link that was in the database at that moment."""

    head: Head
    of: str
    """The run that noted it, or the event."""
    at: str
    pending: bool = False


@dataclass(frozen=True, slots=True)
class HeadNotes:
    """The notes whose links a database must contain, oldest first."""

    notes: tuple[NotedHead, ...]
    unresolved: bool = False
    """The newest note is pending, so it is unknown whether its commit happened."""


class HeadFile:
    """The head file of an account, in its reports folder."""

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
        """Append a link durably.

        `head` is called while the file is locked, so that of two databases with one file only one
        can be first. If it returns text instead of a link, nothing is noted and that text is
        returned; otherwise "".

        Raises:
            OutputError: The file cannot be written.
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
                "would go unnoticed, so nothing more is sent: make it writable"
            )
            raise OutputError(msg) from error
        return ""

    def current(self) -> HeadNotes:
        """Return the notes in force: those since the last accepted restore, not pending ones.

        Raises:
            OutputError: The file exists but cannot be read, or a line of it is not a note.
        """
        notes = self._notes()
        accepted = [index for index, note in enumerate(notes) if note.of == ACCEPTED_RESTORE]
        binding = notes[accepted[-1] :] if accepted else notes
        unresolved = bool(notes) and notes[-1].pending
        return HeadNotes(tuple(note for note in binding if not note.pending), unresolved)

    def accepted(self) -> tuple[NotedHead, NotedHead | None] | None:
        """Return the note of the last accepted restore and the note before it, or None.

        Raises:
            OutputError: The file exists but cannot be read, or a line of it is not a note.
        """
        notes = [note for note in self._notes() if not note.pending]
        indexes = [index for index, note in enumerate(notes) if note.of == ACCEPTED_RESTORE]
        if not indexes:
            return None
        newest = indexes[-1]
        return notes[newest], notes[newest - 1] if newest else None

    @contextmanager
    def _locked(self) -> Iterator[int]:
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
            # A nearly full disk writes a part without raising an error.
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(descriptor)
        if is_new:
            flush_folder(self.path.parent)

    def _notes(self) -> list[NotedHead]:
        try:
            with os.fdopen(open_unlinked(self.path, os.O_RDONLY), "rb") as file:
                begin = max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES)
                file.seek(begin)
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return []
        except OSError as error:
            msg = f"{self.path} cannot be read ({error.strerror}): make it readable"
            raise OutputError(msg) from error
        # A note cut off by a crash has no end of line; the tail may begin in the middle of one.
        return [self._read(line) for line in lines[bool(begin) : -1] if line]

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
    """Wait for the lock, up to LOCK_WAIT_SECONDS in case its holder is suspended."""
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
    """Remove an incomplete last line left by a crash; return the number of bytes that remain.

    A note appended to an incomplete line would be unreadable and stop every later night.
    """
    size = os.fstat(descriptor).st_size
    begin = max(0, size - TAIL_BYTES)
    tail = os.pread(descriptor, TAIL_BYTES, begin)
    whole = begin + tail.rfind(b"\n") + 1
    if whole < size:
        os.ftruncate(descriptor, whole)
    return whole


Reading = Callable[[], AbstractContextManager[Connection]]
"""Opens a snapshot of the database."""


class OutsideHeads:
    """The head files of all accounts of one database."""

    def __init__(self, files: Mapping[Account, HeadFile]) -> None:
        self._accounts: dict[HeadFile, list[Account]] = {}
        by_path = {file.path: file for file in files.values()}
        for account, file in files.items():
            self._accounts.setdefault(by_path[file.path], []).append(account)

    def pending(self, connection: Connection) -> Callable[[], None]:
        """Note the pending commit of this transaction; return a function to call after the commit.

        That function raises OutputError if the change is committed but missing from a file.
        """
        grown = history.grown(connection)
        noted: list[HeadFile] = []
        problems: list[str] = []
        if grown is None or not grown.what:
            return lambda: None
        what, head = grown.what, grown.head
        for file, accounts in self._accounts.items():
            if not file.path.parent.is_dir():
                continue
            own_head = partial(_own_head, connection, file, accounts)
            try:
                # Nothing is noted in a file with a link that this database lacks.
                if not file.note(own_head, of=what, at=grown.at, pending=True):
                    noted.append(file)
            except OutputError as error:
                # A restriction is never refused because a head file cannot be written.
                problems.append(str(error))

        def confirm() -> None:
            for file in noted:
                try:
                    file.note(lambda: head, of=what, at=grown.at)
                except OutputError as error:
                    problems.append(str(error))
            if problems:
                msg = (
                    f"{what}: that stands in the database, but a backup restored from before it "
                    f"would not know: {problems[0]}"
                )
                raise OutputError(msg)

        return confirm


def _own_head(connection: Connection, file: HeadFile, accounts: Sequence[Account]) -> Head | str:
    foreign = missing(connection, file, current=file.current(), accounts=accounts)
    return foreign or history.head(connection)


def problem_of(file: HeadFile, *, accounts: Iterable[Account], reading: Reading) -> str:
    """Return what the head file has and the database lacks, as text; "" for nothing.

    The file is read before the snapshot is taken, which therefore must contain all its links.

    Raises:
        OutputError: The file cannot be read.
    """
    current = file.current()
    with reading() as connection:
        return missing(connection, file, current=current, accounts=accounts)


def missing(
    connection: Connection, file: HeadFile, *, current: HeadNotes, accounts: Iterable[Account]
) -> str:
    """Return how the notes of a head file contradict this database, as text; "" if they do not."""
    if not current.notes:
        return _without_notes(connection, file, accounts=accounts)
    foreign = first_foreign(connection, current.notes)
    if foreign is None:
        return ""
    head = history.head(connection)
    return (
        f"{file.path} noted history {foreign.head.sequence} of {foreign.of} at {foreign.at}, "
        f"this database ends with {head.sequence} and does not have it: it is a backup that was "
        "restored, a copy beside the one that works, or another database. What was sent since is "
        "not known here: put the newest database back, or let two people run `recon "
        "approve --hold restore`"
    )


def first_foreign(connection: Connection, notes: Sequence[NotedHead]) -> NotedHead | None:
    """Return the oldest note whose link this database lacks; None if it has all."""
    hashes = history.hashes_of(connection, [note.head.sequence for note in notes])
    for note in notes:
        if not note.head.hash or hashes.get(note.head.sequence) != note.head.hash:
            return note
    return None


def _without_notes(connection: Connection, file: HeadFile, *, accounts: Iterable[Account]) -> str:
    for account in accounts:
        noted = history.last_noted(connection, account)
        if noted is not None:
            entity, at = noted
            did = "sent a batch" if entity == "batch" else "reported a night"
            return (
                f"{file.path} is not there or empty, but this database {did} of account "
                f"{'/'.join(account)} at {at:%Y-%m-%d %H:%M} UTC and noted it there: without that "
                "file nobody can know whether this is the newest database. Put the file back, also "
                "where the reports folder was moved without it; if it is lost, let two people run "
                "`recon approve --hold restore`"
            )
    return ""
