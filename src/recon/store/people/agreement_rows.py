"""What two people agree to, lists and overrides: the first word waits here for the second."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, select

from recon.store.database.record import AGREEMENT, record
from recon.store.people.approval_rows import VOID, PersonsWord
from recon.store.schema import agreement
from recon.store.schema.columns import REASON_CHARACTERS

APPROVE = "approve"
"""What people say of a list of instructions; its digest is the subject. All else is an override."""
FIRST, COMPLETE = "first", "complete"


@dataclass(frozen=True, slots=True)
class FirstWord:
    """What one person asked for, while the second is missing."""

    agreement_id: int
    what: str
    subject: str
    reason: str
    by: PersonsWord
    valid_until: datetime
    instruction_ids: tuple[str, ...] = ()
    """Of a list."""


@dataclass(frozen=True, slots=True)
class CompleteApproval:
    """A list that two people have approved."""

    instruction_ids: tuple[str, ...]
    people: tuple[str, str]
    """Who spoke first, and who spoke second, by their names in reports."""
    valid_until: datetime


def open_words(connection: Connection) -> list[FirstWord]:
    """First words for overrides that stand, oldest first; those that ran out are among them."""
    return [*map(_first_of, _rows(connection, FIRST, agreement.c.what != APPROVE))]


def open_approvals(connection: Connection) -> list[FirstWord]:
    """Every list that waits for its second person, oldest first."""
    return [*map(_first_of, _rows(connection, FIRST, agreement.c.what == APPROVE))]


def open_word(connection: Connection, what: str, *, subject: str) -> FirstWord | None:
    """The first word about one thing, if it stands."""
    about = agreement.c.what == what, agreement.c.subject == subject
    return next(map(_first_of, _rows(connection, FIRST, *about)), None)


def complete(connection: Connection) -> list[tuple[str, str]]:
    """Overrides that two people agreed to, and about what; oldest first."""
    rows = _rows(connection, COMPLETE, agreement.c.what != APPROVE)
    return [(row.what, row.subject) for row in rows]


def complete_approvals(
    connection: Connection, *, instruction_ids: Collection[str]
) -> list[CompleteApproval]:
    """Every list that two people approved and that has some of these instructions."""
    every = (
        CompleteApproval(
            tuple(json.loads(row.instruction_ids)), (row.first_by, row.second_by), row.valid_until
        )
        for row in _rows(connection, COMPLETE, agreement.c.what == APPROVE)
    )
    wanted = {*instruction_ids}
    return [each for each in every if not wanted.isdisjoint(each.instruction_ids)]


def _rows(
    connection: Connection, state: str, *which: ColumnElement[bool]
) -> Sequence[Row[tuple[object, ...]]]:
    query = select(agreement).where(agreement.c.state == state, *which)
    return connection.execute(query.order_by(agreement.c.agreement_id)).all()


def _first_of(row: Row[tuple[object, ...]]) -> FirstWord:
    return FirstWord(
        row.agreement_id,
        row.what,
        row.subject,
        row.reason,
        PersonsWord(row.first_by, authenticated=row.first_authenticated, at=row.first_at),
        row.valid_until,
        tuple(json.loads(row.instruction_ids)),
    )


def save_first(
    connection: Connection,
    what: str,
    *,
    subject: str,
    word: PersonsWord,
    valid_until: datetime,
    reason: str = "",
    instruction_ids: Sequence[str] = (),
) -> None:
    """The first of two people asks for it."""
    values = {
        "what": what,
        "subject": subject,
        "reason": reason,
        "instruction_ids": json.dumps(list(instruction_ids)),
        "state": FIRST,
        "first_by": word.by,
        "first_authenticated": word.authenticated,
        "first_at": word.at,
        "valid_until": valid_until,
        "second_authenticated": False,
    }
    by = {"by": word.in_words}
    record(connection, AGREEMENT, values, event=FIRST, at=word.at, details=by)


def save_second(
    connection: Connection, first: FirstWord, *, word: PersonsWord, reason: str = ""
) -> None:
    """The second person says the same."""
    both = {"by": word.in_words, "first": first.by.in_words}
    details = {**both, "what": first.what, "reason": reason}
    values = {
        "state": COMPLETE,
        "second_by": word.by,
        "second_authenticated": word.authenticated,
        "second_at": word.at,
    }
    of = _of(first)
    record(connection, AGREEMENT, values, of=of, event=COMPLETE, at=word.at, details=details)


def void(connection: Connection, first: FirstWord, *, why: str, at: datetime) -> None:
    """A first word that no longer counts."""
    values = {"state": VOID, "why": why[:REASON_CHARACTERS]}
    details = {"what": first.what, "why": why}
    record(connection, AGREEMENT, values, of=_of(first), event=VOID, at=at, details=details)


def _of(first: FirstWord) -> dict[str, Any]:
    return {"subject": first.subject, "agreement_id": first.agreement_id}
