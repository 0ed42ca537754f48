"""Endorsements as the desk adds them, and what it looks up to give each its number."""

from datetime import datetime

from sqlalchemy import Connection, func, insert, select

from recon.desk.endorsement import Endorsement, Signed
from recon.store.schema import endorsement, history

_NEWEST = select(func.max(endorsement.c.sequence))


def save(connection: Connection, signed: Signed, *, word: Endorsement, at: datetime) -> None:
    """Add one; the columns beside the document only help to find it."""
    connection.execute(
        insert(endorsement).values(
            sequence=word.sequence,
            kind=word.kind.value,
            subject=word.subject,
            person=word.person,
            at=at,
            valid_until=datetime.fromisoformat(word.valid_until) if word.valid_until else None,
            document=signed.document,
            signature=signed.signature,
            key_id=signed.key,
        )
    )


def next_sequence(connection: Connection) -> int:
    """The number of the next one, within the caller's turn to write."""
    newest: int | None = connection.execute(_NEWEST).scalar_one()
    return (newest or 0) + 1


def signature_of(connection: Connection, sequence: int) -> str:
    """The signature under one word; "" where the database has none of that number."""
    found = connection.execute(
        select(endorsement.c.signature).where(endorsement.c.sequence == sequence)
    ).scalar_one_or_none()
    return found or ""


def introduced(connection: Connection) -> int:
    """The link of the history at which a database of an earlier release got to know the desk."""
    found = connection.execute(
        select(func.min(history.c.sequence)).where(
            history.c.entity == "desk", history.c.event == "introduced"
        )
    ).scalar_one()
    return int(found or 0)
