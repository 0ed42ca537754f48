"""The journal over a database that may go away at any moment, also in the middle of a commit.

A commit whose connection ended may have happened or not. So nothing is concluded from the error:
the batch is read again by its id. A claim that is not there, or not ours, sends nothing. An answer
that cannot be written is kept in a file (`Spill`) first and written when the database is
back; where it does not come back in time the night stops, and the next one reads the file.
"""

import base64
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, select, update

from recon.gateway_client import BatchReply, PreparedRequest, RawReply
from recon.instructions.eligibility import Eligible
from recon.instructions.masking import masked
from recon.model.durable import flush_folder
from recon.model.errors import OutputError, SpillError, StoreError
from recon.privacy.own_files import make_folder
from recon.store.database.history import Event, append
from recon.store.money.journal import Standing, StoredJournal, replied
from recon.store.schema import batch

FOLDER = "spill"
REPLY, NOT_SENT = "reply", "not sent"
SUFFIX = ".answer.json"
ASIDE = ".set-aside"
RESERVE = ".room-for-one-answer"
"""How the names of such files begin; each account has its own, also where folders are shared."""
SPILL_BYTES_MAX = 4 * 1024 * 1024
"""Room for the largest reply that is read, in base64, and what stands around it."""
FILES_MAX = 1_000
"""More than that is not what a night leaves behind."""


@dataclass(frozen=True, slots=True)
class Spilled:
    """What became of one batch, as the process that sent it knows it."""

    kind: str
    """`reply`, or `not sent`: the request surely did not leave."""
    batch_id: str
    run_id: str
    merchant_id: str
    account_id: str
    body_sha256: str
    """Of the request."""
    at: datetime
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    reply: bytes = field(default=b"", repr=False)
    """Masked, as the database would hold it."""
    reply_sha256: str = ""
    """Of the bytes as received."""
    reason: str = ""


class Spill:
    """The files of one account; `places` are tried in order, other accounts may use them too."""

    def __init__(self, places: Sequence[Path], *, account: str = "") -> None:
        self.places = tuple(places)
        self._room = f"{RESERVE}.{hashlib.sha256(account.encode()).hexdigest()[:16]}"

    def reserve(self) -> None:
        """Take the room for one answer before anything is sent.

        Raises:
            OutputError: there is no room, or the folder cannot be written.
        """
        folder = self.places[0]
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
        """Give the room back; what is kept stays."""
        (self.places[0] / self._room).unlink(missing_ok=True)

    def keep(self, spilled: Spilled) -> Path:
        """Write one answer; on the disk when this returns.

        Raises:
            OutputError: none of the places can be written: the answer is lost with this process.
        """
        document = _document(spilled)
        problems = []
        for folder in self.places:
            try:
                _write(folder / self._room, document=document)
                # Under its final name, which half a file never has.
                kept = (folder / self._room).replace(folder / f"{spilled.batch_id}{SUFFIX}")
                flush_folder(folder)
            except OSError as error:
                problems.append(f"{folder}: {error.strerror}")
            else:
                return kept
        msg = (
            f"the answer to batch {spilled.batch_id} could be written neither to the database nor "
            f"beside it ({'; '.join(problems)}); its rows will count as in doubt: the next nights "
            "ask the gateway, nothing is sent again: look at database and disk, start again"
        )
        raise OutputError(msg)

    def stored_files(self) -> Iterator[tuple[Path, Spilled]]:
        """Every answer that waits here, oldest name first.

        Raises:
            SpillError: a file is not whole, or cannot be read.
        """
        for folder in self.places:
            for path in sorted(folder.glob(f"*{SUFFIX}"))[:FILES_MAX]:
                yield path, read(path)


def read(path: Path) -> Spilled:
    """One file, whole or not at all.

    Raises:
        SpillError: it is not what was written, or cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            return _spilled(json.loads(file.read(SPILL_BYTES_MAX)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        msg = (
            f"{path} should hold an answer of the gateway, but is not what was written "
            f"({type(error).__name__}); nothing was changed: find out who changed it, then two "
            "people set it aside (`recon release FILE`)"
        )
        raise SpillError(msg) from error


def remove(path: Path) -> None:
    """Take away a file whose answer is in the database."""
    path.unlink(missing_ok=True)
    flush_folder(path.parent)


def set_aside(path: Path) -> Path:
    """Keep a file under a name that no night reads; where it is now."""
    kept = path.with_name(f"{path.name}{ASIDE}")
    path.replace(kept)
    flush_folder(path.parent)
    return kept


def _document(spilled: Spilled) -> bytes:
    document = asdict(spilled)
    document |= {
        "at": spilled.at.isoformat(),
        "reply": base64.b64encode(spilled.reply).decode(),
    }
    document["sha256"] = _digest(document)
    return json.dumps(document, sort_keys=True).encode() + b"\n"


def _spilled(document: dict[str, Any]) -> Spilled:
    """Raises ValueError when the hash inside does not hold."""
    digest = document.pop("sha256")
    if digest != _digest(document):
        raise ValueError(digest)
    reply = base64.b64decode(document.pop("reply"), validate=True)
    return Spilled(**document | {"reply": reply, "at": datetime.fromisoformat(document["at"])})


def _digest(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _write(room: Path, *, document: bytes) -> None:
    """Into the room that was taken, where there is one; on the disk when this returns."""
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


def put_reply(connection: Connection, spilled: Spilled, *, at: datetime) -> None:
    """Write the reply of a batch that is still claimed; a reply that is there stays as it is.

    Raises:
        SpillError: the database has no such batch, or what it has speaks against the file.
    """
    if _is_kept(connection, spilled):
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
    """Whether a batch that surely did not leave still stands as claimed.

    Raises:
        SpillError: the database has a reply to it, or another batch of that id.
    """
    row = _batch_of(connection, spilled)
    if row is not None and row.reply_sha256:
        raise SpillError(_unfit(spilled, state="answered"))
    # A claim that never arrived, or was closed since, asks for nothing.
    return row is not None and row.state == "claimed"


def refuse_unfit(connection: Connection, spilled: Spilled) -> None:
    """Only look whether the file fits.

    Raises:
        SpillError: the database has no such batch, or what it has speaks against the file.
    """
    (is_to_release if spilled.kind == NOT_SENT else _is_kept)(connection, spilled)


def _is_kept(connection: Connection, spilled: Spilled) -> bool:
    """Whether this very reply is there; raises SpillError where it can neither be nor come."""
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
        "people set the file aside (`recon release FILE`)"
    )


BACK_AFTER = (timedelta(0), timedelta(seconds=1), timedelta(seconds=2), timedelta(seconds=4))
"""Pauses before the database is tried again; a PostgreSQL that was killed needs about five."""


class LastingJournal:
    """Implements `instructions.sender.Journal`.

    `pause` lets time pass; `note_outside` notes the newest link of the history in the head file.
    """

    def __init__(
        self,
        journal: StoredJournal,
        *,
        spill: Spill,
        pause: Callable[[timedelta], None],
        note_outside: Callable[[], None],
    ) -> None:
        self._journal = journal
        self._spill = spill
        self._note_outside = note_outside
        self._pause = pause
        self._requests: dict[str, PreparedRequest] = {}
        """Batches that were claimed here and are not closed yet."""

    def halted(self) -> str:
        """Why nothing more may be sent by anybody; "" when money may move."""
        return self._journal.halted()

    def claim(
        self, batch_id: str, rows: Sequence[Eligible], *, request: PreparedRequest, at: datetime
    ) -> Mapping[str, str]:
        """T1; returns only when the claim is in the database and this run's own, or was refused."""
        self._requests[batch_id] = request
        try:
            left_out = self._journal.claim(batch_id, rows, request=request, at=at)
        except StoreError:
            if self._is_claimed(batch_id, request, at=at):
                return {}
            # The commit may still arrive: whoever finds the claim then must know.
            reason = "the database ended the claim with an error, so nothing was sent"
            self._spill.keep(self._spilled(NOT_SENT, batch_id, at=at, reason=reason))
            raise
        if left_out:
            del self._requests[batch_id]
        return left_out

    def note_outside(self) -> None:
        """The newest link of the history stands in the head file, or nothing may leave."""
        self._note_outside()

    def release(self, batch_id: str, *, reason: str, at: datetime) -> None:
        """The request surely did not leave."""
        self._write(
            batch_id,
            lambda: self._journal.release(batch_id, reason=reason, at=at),
            is_done=_is_closed,
            spilled=lambda: self._spilled(NOT_SENT, batch_id, at=at, reason=reason),
        )

    def doubt(self, batch_id: str, *, reason: str, at: datetime) -> None:
        """Nothing usable came back; the next night doubts what is found in flight by itself."""
        self._write(
            batch_id,
            lambda: self._journal.doubt(batch_id, reason=reason, at=at),
            is_done=_is_closed,
        )

    def keep_reply(self, batch_id: str, reply: RawReply, *, kept: bytes) -> None:
        """T2a; returns only when the database has the reply."""
        digest = hashlib.sha256(reply.body).hexdigest()

        def spilled() -> Spilled:
            request = self._requests[batch_id]
            return self._spilled(
                REPLY,
                batch_id,
                at=reply.received_at,
                status=reply.status,
                headers=dict(reply.headers),
                reply=masked(kept, known=request.masked(request.body)),
                reply_sha256=digest,
            )

        self._write(
            batch_id,
            lambda: self._journal.keep_reply(batch_id, reply, kept=kept),
            is_done=lambda standing: standing.reply_sha256 == digest,
            spilled=spilled,
        )

    def record(self, batch_id: str, reply: BatchReply, *, at: datetime) -> None:
        """T2b; the reply is in the database, where the next night can judge it as well."""
        self._write(
            batch_id,
            lambda: self._journal.record(batch_id, reply, at=at),
            is_done=_is_closed,
        )
        self._requests.pop(batch_id, None)

    def _is_claimed(self, batch_id: str, request: PreparedRequest, *, at: datetime) -> bool:
        """Read again by id what a commit with an unknown outcome left; it may be a moment late."""
        for wait in BACK_AFTER:
            self._pause(wait)
            try:
                standing = self._journal.standing(batch_id)
            except StoreError:
                continue
            if standing is not None:
                run_id = self._journal.keys["run_id"]
                own = Standing("claimed", run_id, request.body_sha256, "", claimed_at=at)
                return standing == own
        return False

    def _write(
        self,
        batch_id: str,
        write: Callable[[], None],
        *,
        is_done: Callable[[Standing], bool],
        spilled: Callable[[], Spilled] | None = None,
    ) -> None:
        """One transaction, until it is known to be in the database."""
        kept: Path | None = None
        try:
            write()
        except StoreError as error:
            kept = self._spill.keep(spilled()) if spilled else None
            if not self._was_written(batch_id, write, is_done=is_done):
                raise StoreError(_reported(batch_id, kept=kept, cause=error)) from error
        if kept is not None:
            remove(kept)

    def _was_written(
        self, batch_id: str, write: Callable[[], None], *, is_done: Callable[[Standing], bool]
    ) -> bool:
        for wait in BACK_AFTER:
            self._pause(wait)
            try:
                standing = self._journal.standing(batch_id)
                if standing is None or not is_done(standing):
                    write()
            except StoreError:
                continue
            return True
        return False

    def _spilled(self, kind: str, batch_id: str, *, at: datetime, **fields: object) -> Spilled:
        values: dict[str, object] = {
            **self._journal.keys,
            "kind": kind,
            "batch_id": batch_id,
            "body_sha256": self._requests[batch_id].body_sha256,
            "at": at,
        }
        return Spilled(**values | fields)  # type: ignore[arg-type]  # named values of one dataclass


def _is_closed(standing: Standing) -> bool:
    return standing.state == "closed"


def _reported(batch_id: str, *, kept: Path | None, cause: StoreError) -> str:
    where = (
        f"it is kept in {kept}, and the next night reads it from there"
        if kept
        else "the next night finds the batch and decides it by evidence"
    )
    return (
        f"what became of batch {batch_id} could not be written ({cause}); {where}. Nothing more "
        "was sent: put the database right, then start the night again"
    )
