"""Answers from spill files, written to the database where they belong: once, or not at all."""

from datetime import datetime

from sqlalchemy import Connection, Row, select, update

from recon.model.errors import SpillError
from recon.store.database.history import Event, append
from recon.store.money.spill import NOT_SENT, Spilled
from recon.store.schema import batch


def put_reply(connection: Connection, spilled: Spilled, *, at: datetime) -> None:
    """Write the reply of a batch that is still claimed; a reply that is there stays as it is.

    Raises:
        SpillError: the database has no such batch, or what it has speaks against the file.
    """
    if _is_kept(connection, spilled):
        return
    connection.execute(
        update(batch)
        .where(batch.c.batch_id == spilled.batch_id, batch.c.state == "claimed")
        .values(
            state="replied",
            replied_at=spilled.at,
            http_status=spilled.status,
            reply=spilled.reply,
            reply_sha256=spilled.reply_sha256,
        )
    )
    details = {"reply_sha256": spilled.reply_sha256}
    append(connection, [Event("batch", spilled.batch_id, "reply from file", details)], at=at)


def is_to_release(connection: Connection, spilled: Spilled) -> bool:
    """Whether a batch that surely did not leave still stands as claimed.

    Raises:
        SpillError: the database has a reply to it, or another batch of that id.
    """
    batch = _batch_of(connection, spilled)
    if batch is not None and batch.reply_sha256:
        raise SpillError(_unfit(spilled, state="answered"))
    # A claim that never arrived, or was closed since, asks for nothing.
    return batch is not None and batch.state == "claimed"


def refuse_unfit(connection: Connection, spilled: Spilled) -> None:
    """Only look whether the file fits.

    Raises:
        SpillError: the database has no such batch, or what it has speaks against the file.
    """
    (is_to_release if spilled.kind == NOT_SENT else _is_kept)(connection, spilled)


def _is_kept(connection: Connection, spilled: Spilled) -> bool:
    """Whether this very reply is there; raises SpillError where it can neither be nor come."""
    batch = _batch_of(connection, spilled)
    if batch is not None and batch.reply_sha256 == spilled.reply_sha256:
        return True
    if batch is None or batch.state != "claimed":
        raise SpillError(_unfit(spilled, state=batch.state if batch else ""))
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
        "people set the file aside (`recon release --spill-file`)"
    )
