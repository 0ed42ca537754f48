"""Endorsements as the desk adds them, and what it looks up to give each its number.

Each is a link of the history, too: who takes one away, the newest as well, leaves its link.
"""

import hashlib
from datetime import datetime

from sqlalchemy import Connection, func, insert, select

from recon.desk.endorsement import Endorsement, Signed
from recon.store.database.history import Event, append, first_hash
from recon.store.money.endorsement_links import ENTITY, SAID, WORDS, newest_said
from recon.store.schema import endorsement

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
    details = {"number": word.sequence, "key": signed.key, "sha256": digest_of(signed.signature)}
    append(connection, [Event(ENTITY, WORDS, SAID, details)], at=at)


def digest_of(signature: str) -> str:
    """By which a link names a word."""
    return hashlib.sha256(signature.encode()).hexdigest()


def named_database(connection: Connection, *, chance: str, at: datetime) -> str:
    """What tells this database from every other; an empty chain begins by chance."""
    if not first_hash(connection):
        append(connection, [Event("desk", "desk", "opened", {"chance": chance})], at=at)
    return first_hash(connection)


def next_sequence(connection: Connection) -> int:
    """The number of the next one, within the caller's turn to write.

    One that was given is never given again, also where its word was taken away.
    """
    newest: int | None = connection.execute(_NEWEST).scalar_one()
    return max(newest or 0, newest_said(connection)) + 1


def signature_of(connection: Connection, sequence: int) -> str:
    """The signature under one word; "" where the database has none of that number."""
    signature = connection.execute(
        select(endorsement.c.signature).where(endorsement.c.sequence == sequence)
    ).scalar_one_or_none()
    return signature or ""
