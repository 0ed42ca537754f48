"""Files for gateway answers that the database did not accept; the next night writes them back."""

import base64
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, select, update

from recon.gateway_client import RawReply
from recon.model.durable import flush_folder
from recon.model.errors import OutputError, SpillError
from recon.privacy.own_files import make_folder
from recon.store.database.history import Event, append
from recon.store.schema import batch

FOLDER = "spill"
REPLY, NOT_SENT = "reply", "not sent"
SUFFIX = ".answer.json"
EXCLUDED = ".excluded"
RESERVE = ".room-for-one-answer"
"""Prefix of the reserved file; each account has its own, even in a shared folder."""
SPILL_BYTES_MAX = 4 * 1024 * 1024
"""Room for the largest accepted reply in base64, with its envelope."""
FILES_MAX = 1_000
"""Maximum number of files read per folder; a night never leaves as many."""


@dataclass(frozen=True, slots=True)
class Spilled:
    """The answer to one batch, or that it was not sent, as known to the sending process."""

    kind: str
    """`reply`, or `not sent` if the request was certainly not sent."""
    batch_id: str
    run_id: str
    merchant_id: str
    account_id: str
    body_sha256: str
    """Hash of the request."""
    at: datetime
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    reply: bytes = field(default=b"", repr=False)
    """Masked, as the database would store it."""
    reply_sha256: str = ""
    """Hash of the bytes as received."""
    reason: str = ""


class Spill:
    """Spill files of one account; the folders `folders` are tried in order and may be shared."""

    def __init__(self, folders: Sequence[Path], *, account: str = "") -> None:
        self.folders = tuple(folders)
        self._room = f"{RESERVE}.{hashlib.sha256(account.encode()).hexdigest()[:16]}"

    def reserve(self) -> None:
        """Reserve disk space for one answer before anything is sent.

        Raises:
            OutputError: There is no space, or the folder cannot be written.
        """
        folder = self.folders[0]
        try:
            make_folder(folder, mode=0o700)
            descriptor = os.open(folder / self._room, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, SPILL_BYTES_MAX)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            msg = (
                f"{folder} has no room for a reply that the database might not take "
                f"({error.strerror}); nothing was sent: free {SPILL_BYTES_MAX // 1024**2} MiB "
                "there, or make it writable"
            )
            raise OutputError(msg) from error

    def free(self) -> None:
        """Release the reserved space; saved answers remain."""
        (self.folders[0] / self._room).unlink(missing_ok=True)

    def save(self, spilled: Spilled) -> Path:
        """Write one answer durably and return its path.

        Raises:
            OutputError: No folder can be written: the answer is lost with this process.
        """
        document = _document(spilled)
        problems = []
        for folder in self.folders:
            try:
                _write(folder / self._room, document=document)
                # The final name is set only when the file is complete.
                saved = (folder / self._room).replace(folder / f"{spilled.batch_id}{SUFFIX}")
                flush_folder(folder)
            except OSError as error:
                problems.append(f"{folder}: {error.strerror}")
            else:
                return saved
        msg = (
            f"the answer to batch {spilled.batch_id} could be written neither to the database nor "
            f"beside it ({'; '.join(problems)}); its rows will count as in doubt: the next nights "
            "ask the gateway, nothing is sent again: look at database and disk, start again"
        )
        raise OutputError(msg)

    def stored_files(self) -> Iterator[tuple[Path, Spilled]]:
        """Yield each saved answer with its path, folder by folder, sorted by name.

        Raises:
            SpillError: A file is incomplete, or cannot be read.
        """
        for folder in self.folders:
            for path in sorted(folder.glob(f"*{SUFFIX}"))[:FILES_MAX]:
                yield path, read(path)


def read(path: Path) -> Spilled:
    """Read one file and verify its hash.

    Raises:
        SpillError: The file was altered, or cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            return _spilled(json.loads(file.read(SPILL_BYTES_MAX)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        msg = (
            f"{path} should hold an answer of the gateway, but is not what was written "
            f"({type(error).__name__}); nothing was changed: find out who changed it, then two "
            "people set it aside (`recon approve --hold FILE`)"
        )
        raise SpillError(msg) from error


def remove(path: Path) -> None:
    """Delete a file whose answer is in the database."""
    path.unlink(missing_ok=True)
    flush_folder(path.parent)


def exclude(path: Path) -> Path:
    """Rename a file so that no night reads it, and return its new path."""
    saved = path.with_name(f"{path.name}{EXCLUDED}")
    path.replace(saved)
    flush_folder(path.parent)
    return saved


def _document(spilled: Spilled) -> bytes:
    document = asdict(spilled)
    document |= {"at": spilled.at.isoformat(), "reply": base64.b64encode(spilled.reply).decode()}
    document["sha256"] = _digest(document)
    return json.dumps(document, sort_keys=True).encode() + b"\n"


def _spilled(document: dict[str, Any]) -> Spilled:
    """Decode a document; raises ValueError if its hash does not match."""
    digest = document.pop("sha256")
    if digest != _digest(document):
        raise ValueError(digest)
    reply = base64.b64decode(document.pop("reply"), validate=True)
    return Spilled(**document | {"reply": reply, "at": datetime.fromisoformat(document["at"])})


def _digest(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _write(room: Path, *, document: bytes) -> None:
    """Write durably into the reserved file, or a new one."""
    make_folder(room.parent, mode=0o700)
    descriptor = os.open(room, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        left = memoryview(document)
        while left:
            left = left[os.write(descriptor, left) :]
        os.ftruncate(descriptor, len(document))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replied(reply: RawReply, *, sha256: str) -> dict[str, Any]:
    """Return the columns of a batch that was answered, without the body of the reply."""
    return {
        "replied_at": reply.received_at,
        "http_status": reply.status,
        "reply_headers": json.dumps(dict(reply.headers), sort_keys=True),
        "reply_sha256": sha256,
    }


def put_reply(connection: Connection, spilled: Spilled, *, at: datetime) -> None:
    """Write the reply of a batch that is still claimed; a stored reply is not replaced.

    Raises:
        SpillError: The database has no such batch, or its row contradicts the file.
    """
    if _is_stored(connection, spilled):
        return
    reply = RawReply(spilled.status, spilled.headers, spilled.reply, spilled.at)
    connection.execute(
        update(batch)
        .where(batch.c.batch_id == spilled.batch_id, batch.c.state == "claimed")
        .values(**replied(reply, sha256=spilled.reply_sha256), reply=reply.body, state="replied")
    )
    details = {"reply_sha256": spilled.reply_sha256}
    append(connection, [Event("batch", spilled.batch_id, "reply from file", details)], at=at)


def is_to_release(connection: Connection, spilled: Spilled) -> bool:
    """Return whether a batch that was certainly not sent is still claimed.

    Raises:
        SpillError: The database has a reply to it, or another batch with that id.
    """
    row = _batch_of(connection, spilled)
    if row is not None and row.reply_sha256:
        raise SpillError(_unfit(spilled, state="answered"))
    # A claim that was never committed, or was closed since, needs no release.
    return row is not None and row.state == "claimed"


def refuse_unfit(connection: Connection, spilled: Spilled) -> None:
    """Check without writing that a file fits the database.

    Raises:
        SpillError: The database has no such batch, or its row contradicts the file.
    """
    (is_to_release if spilled.kind == NOT_SENT else _is_stored)(connection, spilled)


def _is_stored(connection: Connection, spilled: Spilled) -> bool:
    """Return whether this reply is stored; raises SpillError if it can no longer be written."""
    row = _batch_of(connection, spilled)
    if row is not None and row.reply_sha256 == spilled.reply_sha256:
        return True
    if row is None or row.state != "claimed":
        raise SpillError(_unfit(spilled, state=row.state if row else ""))
    return False


def _batch_of(connection: Connection, spilled: Spilled) -> Row[tuple[str, str]] | None:
    row = connection.execute(select(batch).where(batch.c.batch_id == spilled.batch_id)).first()
    if row is None:
        return None
    names = ("run_id", "merchant_id", "account_id", "body_sha256")
    if any(getattr(row, name) != getattr(spilled, name) for name in names):
        raise SpillError(_unfit(spilled, state="another batch"))
    return row


def _unfit(spilled: Spilled, *, state: str) -> str:
    what = "says that nothing left" if spilled.kind == NOT_SENT else "holds a reply"
    why = {
        "": "this database does not know the batch: it is another one, or a backup",
        "closed": "the batch was closed without it, and its rows are with people or evidence",
        "answered": "the database has a reply to it",
        "another batch": "the batch of that id in this database has other rows",
    }.get(state, f"the batch is {state}")
    return (
        f"the spill file of batch {spilled.batch_id} ({spilled.at:%Y-%m-%d %H:%M} UTC) {what}, but "
        f"{why}. Nothing was sent or changed: put the right database back; if it is lost, two "
        "people set the file aside (`recon approve --hold FILE`)"
    )
