"""The newest link of the history, kept outside the database: what a restored backup cannot know.

One JSON line per note in an append-only file, flushed to the disk before anything is sent. A
database whose chain lacks a noted link is older than what once was, or another one.
"""

import errno
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from recon.durable import flush_folder
from recon.errors import OutputError
from recon.store.history import Head

FILE_NAME = "history-head.jsonl"
TAIL_BYTES = 65_536
"""How much of the file's end is looked at for its newest whole line."""
LINE_BYTES_MAX = 1_000


@dataclass(frozen=True, slots=True)
class NotedHead:
    """One note: a link that stood in the database at that moment."""

    head: Head
    run_id: str
    at: str


class HeadFile:
    """The side file of one account, in its reports folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME

    def note(self, head: Head, *, run_id: str, at: datetime) -> None:
        """Add the newest link; on the disk when this returns.

        Raises:
            OutputError: the file cannot be written.
        """
        told = {"sequence": head.sequence, "hash": head.hash, "run": run_id, "at": at.isoformat()}
        line = json.dumps(told, separators=(",", ":")).encode() + b"\n"
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o640)
            try:
                is_new = _drop_half_note(descriptor) == 0
                if os.write(descriptor, line) != len(line):
                    # A disk that is nearly full takes a part, and calls that no error.
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if is_new:
                flush_folder(self.path.parent)
        except OSError as error:
            msg = (
                f"{self.path} cannot be written ({error.strerror}): without it a restored database "
                "would go unnoticed; nothing more is sent until it can"
            )
            raise OutputError(msg) from error

    def newest(self) -> NotedHead | None:
        """The newest note; None when there never was one.

        Raises:
            OutputError: the file is there but cannot be read, or its end is no note.
        """
        try:
            lines = self._tail().split(b"\n")
        except FileNotFoundError:
            return None
        except OSError as error:
            msg = f"{self.path} cannot be read ({error.strerror})"
            raise OutputError(msg) from error
        # A note that was cut off by a crash has no end of line: the one before it counts.
        whole = [line for line in lines[:-1] if line]
        if not whole:
            return None
        return self._read(whole[-1])

    def _tail(self) -> bytes:
        with self.path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            return file.read()

    def _read(self, line: bytes) -> NotedHead:
        try:
            told: Mapping[str, object] = dict(json.loads(line[:LINE_BYTES_MAX]))
            head = Head(int(str(told["sequence"])), str(told["hash"]))
            return NotedHead(head, str(told["run"]), str(told["at"]))
        except (ValueError, KeyError, TypeError) as error:
            msg = (
                f"the last line of {self.path} is not a note of the history's head: keep the file, "
                "find out who changed it, and call the people who look after recon"
            )
            raise OutputError(msg) from error


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
