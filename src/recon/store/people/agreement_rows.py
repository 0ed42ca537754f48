"""Overrides that two people agree to: the first word waits here for the second."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Row, insert, select, update

from recon.store.database.history import Event, append
from recon.store.people.approval_rows import COMPLETE, FIRST, VOID, PersonsWord
from recon.store.schema import agreement

ENTITY = "agreement"
"""Entity of these words in the history; its key is what they are about."""


@dataclass(frozen=True, slots=True)
class FirstWord:
    """What one person asked for, while the second is missing."""

    agreement_id: int
    what: str
    subject: str
    reason: str
    by: PersonsWord
    valid_until: datetime


def open_words(connection: Connection) -> list[FirstWord]:
    """Every first word that stands, oldest first; those that ran out are among them."""
    rows = connection.execute(
        select(agreement).where(agreement.c.state == FIRST).order_by(agreement.c.agreement_id)
    )
    return [_first_of(row) for row in rows]


def complete(connection: Connection) -> list[tuple[str, str]]:
    """What two people agreed to, and about what; oldest first."""
    rows = connection.execute(
        select(agreement.c.what, agreement.c.subject)
        .where(agreement.c.state == COMPLETE)
        .order_by(agreement.c.agreement_id)
    )
    return [(row.what, row.subject) for row in rows]


def open_word(connection: Connection, what: str, *, subject: str) -> FirstWord | None:
    """The first word about one thing, if it stands."""
    words = open_words(connection)
    return next((word for word in words if (word.what, word.subject) == (what, subject)), None)


def save_first(
    connection: Connection,
    what: str,
    *,
    subject: str,
    reason: str,
    word: PersonsWord,
    valid_until: datetime,
) -> None:
    """The first of two people asks for it."""
    connection.execute(
        insert(agreement).values(
            what=what,
            subject=subject,
            reason=reason,
            state=FIRST,
            first_by=word.by,
            first_authenticated=word.authenticated,
            first_at=word.at,
            valid_until=valid_until,
            second_authenticated=False,
        )
    )
    until = valid_until.isoformat()
    details = {"by": word.in_words, "what": what, "reason": reason, "valid_until": until}
    append(connection, [Event(ENTITY, subject, FIRST, details)], at=word.at)


def save_second(
    connection: Connection, first: FirstWord, *, reason: str, word: PersonsWord
) -> None:
    """The second person says the same."""
    connection.execute(
        update(agreement)
        .where(agreement.c.agreement_id == first.agreement_id, agreement.c.state == FIRST)
        .values(
            state=COMPLETE,
            second_by=word.by,
            second_authenticated=word.authenticated,
            second_at=word.at,
        )
    )
    details = {
        "by": word.in_words,
        "first": first.by.in_words,
        "what": first.what,
        "reason": reason,
    }
    append(connection, [Event(ENTITY, first.subject, COMPLETE, details)], at=word.at)


def void(connection: Connection, first: FirstWord, *, why: str, at: datetime) -> None:
    """A first word that no longer counts."""
    connection.execute(
        update(agreement).where(agreement.c.agreement_id == first.agreement_id).values(state=VOID)
    )
    details = {"what": first.what, "why": why}
    append(connection, [Event(ENTITY, first.subject, VOID, details)], at=at)


def _first_of(row: Row[tuple[object, ...]]) -> FirstWord:
    word = PersonsWord(row.first_by, authenticated=row.first_authenticated, at=row.first_at)
    return FirstWord(
        row.agreement_id, row.what, row.subject, row.reason, word, valid_until=row.valid_until
    )
