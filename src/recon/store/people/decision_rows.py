"""Decisions of people as the desk signed them, by subject; used and wrong one-time codes."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from filelock import FileLock
from sqlalchemy import ColumnElement, Connection, Row, func, insert, select

from recon.desk.endorsement import (
    NOBODY,
    DecisionState,
    Endorsement,
    Kind,
    Signed,
    opened,
    parsed,
    state_of_decision,
)
from recon.desk.held_keys import NO_KEYS, HeldKeys
from recon.model.errors import ConfigurationError, EndorsementError
from recon.privacy.own_files import OWNER
from recon.store.database.engine import Store, parse_url
from recon.store.database.history import Event, append, first_hash, links_of
from recon.store.schema import endorsement, used_code, wrong_code
from recon.store.schema.columns import among, id_of

ENTITY = "endorsement"
"""Entity under which the history records each endorsement; the entity id is its subject."""


def state_of(
    connection: Connection, kind: Kind, *, subject: str, desk: HeldKeys = NO_KEYS
) -> DecisionState:
    """What people have said about one subject; see `states_of`."""
    found = states_of(connection, kind, endorsement.c.subject == subject, desk=desk)
    return found.get(subject, DecisionState())


def states_of(
    connection: Connection, kind: Kind, *which: ColumnElement[bool], desk: HeldKeys = NO_KEYS
) -> dict[str, DecisionState]:
    """Subject -> what people have said about it, of those that have statements of this kind.

    Only statements with a valid signature count, in a process that has the public key; another one
    displays what is stored. A name under a night stands whatever key signed it (`_of_other_keys`).
    Money moves by `endorsement_rows.Endorsed` alone.
    """
    read = partial(_opened, connection, desk=desk, is_name=kind is Kind.SIGN_OFF)
    by_subject: dict[str, list[Endorsement]] = {}
    rejections: list[Endorsement] = []
    for each in read(endorsement.c.kind == kind, *which):
        by_subject.setdefault(each.subject, []).append(each)
    ends = among(connection, endorsement.c.subject, [*by_subject])
    ends &= endorsement.c.kind == Kind.TAKEN_BACK
    if kind is Kind.APPROVAL:
        ends |= endorsement.c.kind == Kind.REJECTION
    for each in read(ends) if by_subject else ():
        (by_subject[each.subject] if each.kind is Kind.TAKEN_BACK else rejections).append(each)
    must_be_proven = desk.public is not None and desk.must_be_proven
    return {
        subject: state_of_decision(
            [*stated, *rejections], kind, subject=subject, must_be_proven=must_be_proven
        )
        for subject, stated in by_subject.items()
    }


NO_KEY = "this process has no public key of the desk (RECON_DESK_PUBLIC_KEY_FILE)"


def not_agreed(
    connection: Connection,
    kind: Kind,
    *,
    subject: str,
    desk: HeldKeys,
    says: Mapping[str, str] | None = None,
) -> str:
    """Why two people's agreement to a subject, saying this, is not proven; "" when it is."""
    if desk.public is None:
        return NO_KEY
    found = state_of(connection, kind, subject=subject, desk=desk)
    terms = (says or {}).items()
    if found.problem or any(terms <= second.says.items() for _, second in found.pairs):
        return found.problem
    return NOBODY


def money_stated(money: tuple[str, int]) -> dict[str, str]:
    """A currency and its minor units as an endorsed write-off states them."""
    return {"currency": money[0], "minor_units": str(money[1])}


def is_stated(
    connection: Connection, kind: Kind, *, subject: str, says: Mapping[str, str], desk: HeldKeys
) -> bool:
    """Whether one person said exactly this at the approvals service."""
    about = endorsement.c.kind == kind, endorsement.c.subject == subject
    found = _opened(connection, *about, desk=desk) if desk.public else ()
    return any(
        dict(each.says) == dict(says) and (each.proven or not desk.must_be_proven) for each in found
    )


def _opened(
    connection: Connection, *which: ColumnElement[bool], desk: HeldKeys, is_name: bool = False
) -> list[Endorsement]:
    """The endorsements of some rows, oldest first, without those that do not count."""
    rows = connection.execute(
        select(endorsement).where(*which).order_by(endorsement.c.sequence)
    ).all()
    here = first_hash(connection) if rows else ""
    others = _of_other_keys(connection, rows, desk=desk) if rows and is_name else frozenset()
    found = []
    for row in rows:
        is_other = row.sequence in others
        if is_name and not (is_other or desk.public):
            continue
        with suppress(EndorsementError):
            found.append(endorsement_of(row, desk=NO_KEYS if is_other else desk, here=here))
    return found


def _of_other_keys(
    connection: Connection, rows: Iterable[Row[Any]], *, desk: HeldKeys
) -> frozenset[int]:
    """The rows that an earlier key signed: as the history has them, before the desk's own first."""
    links = links_of(connection, {id_of(row.subject) for row in rows}, entity=ENTITY)
    noted = {tuple(link.data.get(name) for name in ("number", "key", "sha256")) for link in links}
    own = select(func.min(endorsement.c.sequence)).where(endorsement.c.key_id == desk.name)
    first = connection.scalar(own)
    return frozenset(
        row.sequence
        for row in rows
        if row.sequence >= 1
        and (first is None or row.sequence < first)
        and (row.sequence, row.key_id, digest_of(row.signature)) in noted
    )


def digest_of(signature: str) -> str:
    """The SHA-256 of a signature, by which a link of the history identifies an endorsement."""
    return hashlib.sha256(signature.encode()).hexdigest()


def endorsement_of(row: Row[Any], *, desk: HeldKeys, here: str) -> Endorsement:
    """The endorsement in a row; without a public key its signature is not verified.

    Raises:
        EndorsementError: The signature is not the desk's, or it was made elsewhere than `here`.
    """
    signed = Signed(row.document, row.signature, row.key_id)
    statement = opened(signed, key=desk.public) if desk.public else parsed(row.document)
    until = statement.ends_at if statement.valid_until else None
    stated = (statement.kind, statement.subject, statement.person, statement.made_at, until)
    if stated != (row.kind, row.subject, row.person, row.at, row.valid_until):
        msg = "its columns are not those of its document"
        raise EndorsementError(msg)
    if statement.sequence != row.sequence:
        msg = f"it is a copy of endorsement {statement.sequence}"
        raise EndorsementError(msg)
    if statement.database != here:
        msg = "it was said in another database"
        raise EndorsementError(msg)
    return statement


def unexpired(at: datetime) -> ColumnElement[bool]:
    """The condition that a statement may still wait for a second person."""
    return endorsement.c.valid_until.is_(None) | (endorsement.c.valid_until >= at)


def endorsed_since(kind: Kind, at: datetime) -> ColumnElement[bool]:
    """The condition that the subject was endorsed at or after an instant."""
    later = endorsement.alias("later")
    subjects = select(later.c.subject).where(later.c.kind == kind, later.c.at >= at)
    return endorsement.c.subject.in_(subjects)


def who_released(
    connection: Connection, run_id: str, *, desk: HeldKeys = NO_KEYS
) -> tuple[str, str] | None:
    """The two people who last lifted a run's hold, in order; None if nobody did."""
    pairs = state_of(connection, Kind.RELEASE, subject=run_id, desk=desk).pairs
    return (pairs[-1][0].name, pairs[-1][1].name) if pairs else None


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
            msg = (
                f"the desk's database of codes {path} cannot be written: {error.strerror or error}"
            )
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
