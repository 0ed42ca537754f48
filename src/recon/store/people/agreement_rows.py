"""Overrides that two people agree to: the first word waits here for the second."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, select

from recon.store.database.record import AGREEMENT, record
from recon.store.people.approval_rows import (
    COMPLETE,
    FIRST,
    VOID,
    PersonsWord,
    first_word,
    second_word,
)
from recon.store.schema import agreement


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
    asked = {"what": what, "subject": subject, "reason": reason, **first_word(word, valid_until)}
    by = {"by": word.in_words}
    record(connection, AGREEMENT, asked, event=FIRST, at=word.at, details=by)


def save_second(
    connection: Connection, first: FirstWord, *, reason: str, word: PersonsWord
) -> None:
    """The second person says the same."""
    both = {"by": word.in_words, "first": first.by.in_words}
    details = {**both, "what": first.what, "reason": reason}
    values, of = second_word(word), _of(first)
    record(connection, AGREEMENT, values, of=of, event=COMPLETE, at=word.at, details=details)


def void(connection: Connection, first: FirstWord, *, why: str, at: datetime) -> None:
    """A first word that no longer counts."""
    details = {"what": first.what, "why": why}
    values, of = {"state": VOID}, _of(first)
    record(connection, AGREEMENT, values, of=of, event=VOID, at=at, details=details)


def _of(first: FirstWord) -> dict[str, Any]:
    return {"subject": first.subject, "agreement_id": first.agreement_id}


def _first_of(row: Row[tuple[object, ...]]) -> FirstWord:
    word = PersonsWord(row.first_by, authenticated=row.first_authenticated, at=row.first_at)
    return FirstWord(
        row.agreement_id, row.what, row.subject, row.reason, word, valid_until=row.valid_until
    )
