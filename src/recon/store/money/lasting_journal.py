"""The journal over a database that may go away at any moment, also in the middle of a commit.

A commit whose connection ended may have happened or not. So nothing is concluded from the error:
the batch is read again by its id. A claim that is not there, or not ours, sends nothing. An answer
that cannot be written is kept in a file (`store.spill`) first and written when the database is
back; where it does not come back in time the night stops, and the next one reads the file.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from recon.gateway_client import BatchReply, PreparedRequest, RawReply
from recon.instructions.eligibility import Cleared
from recon.instructions.masking import masked
from recon.model.errors import StoreError
from recon.store.money.journal import Standing, StoredJournal
from recon.store.money.spill import NOT_SENT, REPLY, Spill, Spilled, remove

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
        self, batch_id: str, rows: Sequence[Cleared], *, request: PreparedRequest, at: datetime
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
                raise StoreError(_told(batch_id, kept=kept, cause=error)) from error
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


def _told(batch_id: str, *, kept: Path | None, cause: StoreError) -> str:
    where = (
        f"it is kept in {kept}, and the next night reads it from there"
        if kept
        else "the next night finds the batch and decides it by evidence"
    )
    return (
        f"what became of batch {batch_id} could not be written ({cause}); {where}. Nothing more "
        "was sent: put the database right, then start the night again"
    )
