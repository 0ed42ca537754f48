"""Decisions of people: on lists and overrides, verdicts; used and wrong one-time codes."""

import json
import os
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from filelock import FileLock
from sqlalchemy import ColumnElement, Connection, Row, func, insert, select

from recon.model.errors import ConfigurationError
from recon.privacy.own_files import OWNER
from recon.store.database.bulk_rows import read
from recon.store.database.engine import Store, parse_url
from recon.store.database.history import Event, append
from recon.store.database.record import AGREEMENT, VERDICT, record
from recon.store.schema import agreement, used_code, verdict, wrong_code
from recon.store.schema.columns import REASON_CHARACTERS

NOT_AUTHENTICATED = " (identity not authenticated)"
APPROVE = "approve"
"""Decision on a list of instructions, whose subject is its digest. All others are overrides."""
RELEASE = "release night"
"""Decision on a run that is NOT PROVEN: it no longer holds refunds."""
FIRST, COMPLETE, VOID = "first", "complete", "void"


@dataclass(frozen=True, slots=True)
class PersonsDecision:
    """One person's decision."""

    by: str
    authenticated: bool
    at: datetime

    @property
    def as_text(self) -> str:
        """The name, and whether a one-time code proved it."""
        return self.by if self.authenticated else f"{self.by}{NOT_AUTHENTICATED}"


@dataclass(frozen=True, slots=True)
class FirstDecision:
    """The request of one person, while the second is missing."""

    agreement_id: int
    what: str
    subject: str
    reason: str
    by: PersonsDecision
    valid_until: datetime
    instruction_ids: tuple[str, ...] = ()
    """Instructions of a list."""


@dataclass(frozen=True, slots=True)
class CompleteApproval:
    """A list that two people have approved."""

    instruction_ids: tuple[str, ...]
    people: tuple[str, str]
    """The first and the second person, by their names in reports."""
    valid_until: datetime


def open_decisions(connection: Connection) -> list[FirstDecision]:
    """First decisions on overrides, oldest first, including those that have expired."""
    return [*map(_first_of, _rows(connection, FIRST, agreement.c.what != APPROVE))]


def open_approvals(connection: Connection) -> list[FirstDecision]:
    """Every list that waits for its second person, oldest first."""
    return [*map(_first_of, _rows(connection, FIRST, agreement.c.what == APPROVE))]


def open_decision(connection: Connection, what: str, *, subject: str) -> FirstDecision | None:
    """The open first decision on one subject, if any."""
    about = agreement.c.what == what, agreement.c.subject == subject
    return next(map(_first_of, _rows(connection, FIRST, *about)), None)


def complete(connection: Connection) -> list[tuple[str, str]]:
    """Override and subject of every one that two people agreed to, oldest first."""
    rows = _rows(connection, COMPLETE, agreement.c.what != APPROVE)
    return [(row.what, row.subject) for row in rows]


def released(connection: Connection) -> frozenset[str]:
    """Runs whose hold two people have lifted."""
    return frozenset(subject for what, subject in complete(connection) if what == RELEASE)


def who_released(connection: Connection, run_id: str) -> tuple[str, str] | None:
    """The two people who last lifted a run's hold, in order; None if nobody did."""
    about = agreement.c.what == RELEASE, agreement.c.subject == run_id
    both = [(row.first_by, row.second_by) for row in _rows(connection, COMPLETE, *about)]
    return both[-1] if both else None


def complete_approvals(
    connection: Connection, *, instruction_ids: Collection[str]
) -> list[CompleteApproval]:
    """Every list that two people approved and that contains some of these instructions."""
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


def _first_of(row: Row[tuple[object, ...]]) -> FirstDecision:
    return FirstDecision(
        row.agreement_id,
        row.what,
        row.subject,
        row.reason,
        PersonsDecision(row.first_by, authenticated=row.first_authenticated, at=row.first_at),
        row.valid_until,
        tuple(json.loads(row.instruction_ids)),
    )


def save_first(
    connection: Connection,
    what: str,
    *,
    subject: str,
    person: PersonsDecision,
    valid_until: datetime,
    reason: str = "",
    instruction_ids: Sequence[str] = (),
) -> None:
    """Store the first person's decision."""
    values = {
        "what": what,
        "subject": subject,
        "reason": reason,
        "instruction_ids": json.dumps(list(instruction_ids)),
        "state": FIRST,
        "first_by": person.by,
        "first_authenticated": person.authenticated,
        "first_at": person.at,
        "valid_until": valid_until,
        "second_authenticated": False,
    }
    by = {"by": person.as_text}
    record(connection, AGREEMENT, values, event=FIRST, at=person.at, details=by)


def save_second(
    connection: Connection, first: FirstDecision, *, person: PersonsDecision, reason: str = ""
) -> None:
    """Store the second person's agreement."""
    both = {"by": person.as_text, "first": first.by.as_text}
    details = {**both, "what": first.what, "reason": reason}
    values = {
        "state": COMPLETE,
        "second_by": person.by,
        "second_authenticated": person.authenticated,
        "second_at": person.at,
    }
    of = _of(first)
    record(connection, AGREEMENT, values, of=of, event=COMPLETE, at=person.at, details=details)


def void(connection: Connection, first: FirstDecision, *, why: str, at: datetime) -> None:
    """Mark a first decision as no longer valid."""
    values = {"state": VOID, "why": why[:REASON_CHARACTERS]}
    details = {"what": first.what, "why": why}
    record(connection, AGREEMENT, values, of=_of(first), event=VOID, at=at, details=details)


def _of(first: FirstDecision) -> dict[str, Any]:
    return {"subject": first.subject, "agreement_id": first.agreement_id}


OPEN, AGREED, REPLACED = "open", "agreed", "replaced"
TAKEN_BACK = "taken back"
"""Event of a verdict or signature that was withdrawn by its person."""


@dataclass(frozen=True, slots=True)
class FirstVerdict:
    """One person's verdict on an instruction that is not decided."""

    verdict_id: int
    instruction_id: str
    verdict: str
    evidence: str
    given_by: str


_DECIDED = ("instruction_id", "verdict_id")


def open_verdicts_of(connection: Connection, instruction_id: str) -> list[FirstVerdict]:
    """Open verdicts on an undecided instruction, one per person, oldest first."""
    return open_verdicts(connection, verdict.c.instruction_id == instruction_id)[instruction_id]


def open_verdicts(
    connection: Connection, *which: ColumnElement[bool]
) -> dict[str, list[FirstVerdict]]:
    """Instruction id -> its open verdicts, as in `open_verdicts_of`."""
    order = (verdict.c[name] for name in _DECIDED)
    found = defaultdict[str, list[FirstVerdict]](list)
    for statement in read(
        connection, FirstVerdict, verdict, *which, verdict.c.state == OPEN, order=order
    ):
        found[statement.instruction_id].append(statement)
    return found


def save_verdict(
    connection: Connection,
    instruction_id: str,
    *,
    decision: str,
    evidence: str,
    person: PersonsDecision,
    ends: Sequence[FirstVerdict] = (),
) -> None:
    """Store one person's verdict; `ends` are the earlier verdicts that it replaces."""
    end_verdicts(connection, ends, person=person)
    decided = {
        "instruction_id": instruction_id,
        "verdict": decision,
        "evidence": evidence[:1000],
        "given_by": person.by,
        "authenticated": person.authenticated,
        "given_at": person.at,
        "state": OPEN,
    }
    by = {"by": person.as_text}
    record(connection, VERDICT, decided, event="proposed", at=person.at, details=by)


def end_verdicts(
    connection: Connection,
    ends: Sequence[FirstVerdict],
    *,
    person: PersonsDecision,
    event: str = REPLACED,
) -> None:
    """Close verdicts because a person replaced or withdrew them."""
    for each in ends:
        values = {"state": REPLACED if event == TAKEN_BACK else event}
        of, by = {name: getattr(each, name) for name in _DECIDED}, {"by": person.as_text}
        record(connection, VERDICT, values, of=of, event=event, at=person.at, details=by)


def close_verdicts(
    connection: Connection,
    statements: Sequence[FirstVerdict],
    *,
    decided: str,
    person: PersonsDecision,
) -> None:
    """Close all verdicts on an instruction, because two people agreed."""
    for each in statements:
        event = AGREED if each.verdict == decided else REPLACED
        end_verdicts(connection, [each], person=person, event=event)


def agreed_verdicts(connection: Connection) -> list[tuple[str, str]]:
    """Instruction and verdict of every decision that two people agreed to, oldest first."""
    rows = connection.execute(
        select(verdict.c.instruction_id, verdict.c.verdict)
        .where(verdict.c.state == AGREED)
        .order_by(verdict.c.verdict_id)
    )
    return [(row.instruction_id, row.verdict) for row in rows]


_CODES = (used_code, wrong_code)
"""Tables of one-time codes. Where the approvals service alone writes, they are in a file next to
its key: in the runs' database, anyone with its login could delete rows, and guess again or reuse a
code they saw. The sandbox's service has no such file and uses the database."""

TURN_SECONDS = 10
"""Longest wait for another process that uses that file."""


@contextmanager
def code_turn(path: Path | None, *, store: Store) -> Iterator[Connection]:
    """Open one exclusive transaction over the tables of codes.

    Raises:
        ConfigurationError: the file cannot be created.
    """
    if path is None:
        with store.writing() as connection:
            yield connection
        return
    with ExitStack() as turn:
        try:
            path.parent.stat()  # the lock would create the folder
            # SQLite does not wait when two processes create a file or its log at the same time, and
            # closing the file once releases the locks of others in this process.
            turn.enter_context(FileLock(f"{path}.lock", mode=OWNER).acquire(timeout=TURN_SECONDS))
            # Readable by its owner only, and so will be its log.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, OWNER))
        except OSError as error:  # or the lock was not acquired in time
            msg = f"the desk's book of codes {path} cannot be written: {error.strerror or error}"
            raise ConfigurationError(msg) from error
        book = turn.enter_context(closing(Store(parse_url(f"sqlite:///{path}"))))
        connection = turn.enter_context(book.writing())
        used_code.metadata.create_all(connection, tables=_CODES)
        yield connection


def use_code(connection: Connection, person: str, *, time_step: int, at: datetime) -> bool:
    """Mark a code as used; False when the person already used it or a later one."""
    known = connection.execute(
        select(func.count()).where(used_code.c.person == person, used_code.c.time_step >= time_step)
    ).scalar_one()
    if known:
        return False
    connection.execute(insert(used_code).values(person=person, time_step=time_step, used_at=at))
    return True


def note_wrong_code(connection: Connection, person: str, *, origin: str, at: datetime) -> None:
    """Store a wrong code and the login that it came from."""
    connection.execute(insert(wrong_code).values(person=person, origin=origin, at=at))


def notify_wrong_code(connection: Connection, person: str, *, origin: str, at: datetime) -> None:
    """Record in the history that a wrong code was given."""
    append(connection, [Event("person", person, "wrong code", {"origin": origin})], at=at)


def wrong_codes(
    connection: Connection, person: str, *, origin: str, since: datetime
) -> list[datetime]:
    """Times of wrong codes for a person from one login, oldest first."""
    rows = connection.execute(
        select(wrong_code.c.at)
        .where(
            wrong_code.c.person == person,
            wrong_code.c.origin == origin,
            wrong_code.c.at >= since,
        )
        .order_by(wrong_code.c.at)
    )
    return list(rows.scalars())


def wrong_since_last_decision(connection: Connection, person: str) -> dict[str, int]:
    """Login -> number of wrong codes since the person's last correct one."""
    last = select(func.max(used_code.c.used_at)).where(used_code.c.person == person)
    since = connection.execute(last).scalar_one()
    query = select(wrong_code.c.origin, func.count()).where(wrong_code.c.person == person)
    if since is not None:
        query = query.where(wrong_code.c.at > since)
    return dict(connection.execute(query.group_by(wrong_code.c.origin)).tuples().all())
