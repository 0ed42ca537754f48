"""Decisions of people in the database: approvals, verdicts, releases, used and wrong codes."""

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from recon.store.database.history import Event, append
from recon.store.schema import approval, release, used_code, verdict, wrong_code

FIRST, COMPLETE, VOID = "first", "complete", "void"
OPEN, AGREED, REPLACED = "open", "agreed", "replaced"
TAKEN_BACK = "taken back"
"""The event of a verdict or a signature that its person took back."""
_COMPLETE = select(
    approval.c.instruction_ids, approval.c.first_by, approval.c.second_by, approval.c.valid_until
).where(approval.c.state == COMPLETE)
_RELEASED = select(release.c.run_id).where(release.c.second_by != "")


@dataclass(frozen=True, slots=True)
class PersonsWord:
    """One person's word."""

    by: str
    authenticated: bool
    at: datetime

    @property
    def in_words(self) -> str:
        """The name, and whether a code proved it."""
        return self.by if self.authenticated else f"{self.by}{NOT_AUTHENTICATED}"


def name_of(in_words: str) -> str:
    """The name in a word as `PersonsWord.in_words` has it."""
    return in_words.removesuffix(NOT_AUTHENTICATED)


@dataclass(frozen=True, slots=True)
class FirstApproval:
    """A list that one person has approved."""

    approval_id: int
    digest: str
    instruction_ids: tuple[str, ...]
    by: str
    authenticated: bool
    valid_until: datetime


@dataclass(frozen=True, slots=True)
class CompleteApproval:
    """A list that two people have approved."""

    instruction_ids: tuple[str, ...]
    people: tuple[str, str]
    """Who spoke first, and who spoke second, by their names in reports."""
    valid_until: datetime


@dataclass(frozen=True, slots=True)
class FirstVerdict:
    """The word of one person about an instruction, while it is not decided."""

    verdict_id: int
    instruction_id: str
    verdict: str
    evidence: str
    given_by: str


@dataclass(frozen=True, slots=True)
class Release:
    """What was said about lifting a run's hold."""

    run_id: str
    first_by: str
    second_by: str
    """"" until a second person agrees."""


NOT_AUTHENTICATED = " (identity not authenticated)"
_SPOKEN = (verdict.c.instruction_id, verdict.c.verdict_id)
_VERDICT = select(*(verdict.c[name] for name in FirstVerdict.__dataclass_fields__))
_RELEASE = select(*(release.c[name] for name in Release.__dataclass_fields__))


def open_approval(connection: Connection, digest: str) -> FirstApproval | None:
    """The first word for a list, if it stands."""
    row = (
        connection.execute(
            select(approval).where(approval.c.digest == digest, approval.c.state == FIRST)
        )
        .mappings()
        .first()
    )
    if row is None:
        return None
    return FirstApproval(
        row["approval_id"],
        row["digest"],
        tuple(json.loads(row["instruction_ids"])),
        row["first_by"],
        row["first_authenticated"],
        row["valid_until"],
    )


def open_approvals(connection: Connection) -> list[FirstApproval]:
    """Every list that waits for its second person."""
    digests = connection.execute(
        select(approval.c.digest).where(approval.c.state == FIRST).order_by(approval.c.first_at)
    ).scalars()
    approvals = [open_approval(connection, digest) for digest in digests.all()]
    return [approval for approval in approvals if approval is not None]


def save_first(
    connection: Connection,
    digest: str,
    *,
    instruction_ids: Sequence[str],
    word: PersonsWord,
    valid_until: datetime,
) -> None:
    """The first of two people approves a list."""
    connection.execute(
        insert(approval).values(
            digest=digest,
            instruction_ids=json.dumps(list(instruction_ids)),
            state=FIRST,
            first_by=word.by,
            first_authenticated=word.authenticated,
            first_at=word.at,
            valid_until=valid_until,
            second_authenticated=False,
        )
    )
    details = {
        "by": word.in_words,
        "instructions": len(instruction_ids),
        "list": list_digest(instruction_ids),
        "valid_until": valid_until.isoformat(),
    }
    append(connection, [Event("approval", digest, FIRST, details)], at=word.at)


def list_digest(instruction_ids: Sequence[str]) -> str:
    """What tells one list of instructions from another."""
    return hashlib.sha256("\x1f".join(instruction_ids).encode()).hexdigest()


def save_second(connection: Connection, first: FirstApproval, *, word: PersonsWord) -> None:
    """The second person approves the same list."""
    connection.execute(
        update(approval)
        .where(approval.c.approval_id == first.approval_id, approval.c.state == FIRST)
        .values(
            state=COMPLETE,
            second_by=word.by,
            second_authenticated=word.authenticated,
            second_at=word.at,
        )
    )
    details = {"by": word.in_words, "first": first.by}
    append(connection, [Event("approval", first.digest, COMPLETE, details)], at=word.at)


def void(connection: Connection, first: FirstApproval, *, why: str, at: datetime) -> None:
    """A first word that no longer counts."""
    connection.execute(
        update(approval)
        .where(approval.c.approval_id == first.approval_id)
        .values(state=VOID, why=why[:400])
    )
    append(connection, [Event("approval", first.digest, VOID, {"why": why})], at=at)


def complete_approvals(
    connection: Connection, *, instruction_ids: Collection[str]
) -> list[CompleteApproval]:
    """Every list that two people approved and that has some of these instructions."""
    every = (
        CompleteApproval(
            tuple(json.loads(row.instruction_ids)), (row.first_by, row.second_by), row.valid_until
        )
        for row in connection.execute(_COMPLETE)
    )
    wanted = {*instruction_ids}
    return [each for each in every if not wanted.isdisjoint(each.instruction_ids)]


def open_verdicts_of(connection: Connection, instruction_id: str) -> list[FirstVerdict]:
    """What people say of an instruction that is not decided, one word of each, oldest first."""
    own = verdict.c.instruction_id == instruction_id, verdict.c.state == OPEN
    rows = connection.execute(_VERDICT.where(*own).order_by(verdict.c.verdict_id))
    return [FirstVerdict(*row) for row in rows]


def open_verdicts(connection: Connection) -> dict[str, list[FirstVerdict]]:
    """Instruction id -> as `open_verdicts_of`."""
    found: dict[str, list[FirstVerdict]] = {}
    for row in connection.execute(_VERDICT.where(verdict.c.state == OPEN).order_by(*_SPOKEN)):
        word = FirstVerdict(*row)
        found.setdefault(word.instruction_id, []).append(word)
    return found


def save_verdict(
    connection: Connection,
    instruction_id: str,
    *,
    decision: str,
    evidence: str,
    word: PersonsWord,
    ends: Sequence[FirstVerdict] = (),
) -> None:
    """One person's verdict; `ends` are earlier words that it takes the place of."""
    _end_verdicts(connection, ends, state=REPLACED)
    connection.execute(
        insert(verdict).values(
            instruction_id=instruction_id,
            verdict=decision,
            evidence=evidence[:1000],
            given_by=word.by,
            authenticated=word.authenticated,
            given_at=word.at,
            state=OPEN,
        )
    )
    ended = [each.given_by for each in ends]
    spoken = {"by": word.in_words, "verdict": decision, "evidence": evidence}
    details = {**spoken, "ends": ended}
    append(connection, [Event("verdict", instruction_id, "proposed", details)], at=word.at)


def end_verdicts(
    connection: Connection, instruction_id: str, *, ends: Sequence[FirstVerdict], word: PersonsWord
) -> None:
    """A person takes their verdict back."""
    _end_verdicts(connection, ends, state=REPLACED)
    details = {"by": word.in_words, "ends": [each.given_by for each in ends]}
    append(connection, [Event("verdict", instruction_id, TAKEN_BACK, details)], at=word.at)


def _end_verdicts(connection: Connection, ends: Sequence[FirstVerdict], *, state: str) -> None:
    ids = [each.verdict_id for each in ends]
    connection.execute(update(verdict).where(verdict.c.verdict_id.in_(ids)).values(state=state))


def close_verdicts(connection: Connection, words: Sequence[FirstVerdict], *, decided: str) -> None:
    """Two people agreed: nothing that was said of it is open any more."""
    _end_verdicts(connection, [each for each in words if each.verdict == decided], state=AGREED)
    _end_verdicts(connection, [each for each in words if each.verdict != decided], state=REPLACED)


def agreed_verdicts(connection: Connection) -> list[tuple[str, str]]:
    """Instruction and verdict of every decision that two people agreed to, oldest first."""
    rows = connection.execute(
        select(verdict.c.instruction_id, verdict.c.verdict)
        .where(verdict.c.state == AGREED)
        .order_by(verdict.c.verdict_id)
    )
    return [(row.instruction_id, row.verdict) for row in rows]


def release_of(connection: Connection, run_id: str) -> Release | None:
    """What was said about lifting a run's hold."""
    given = release.c.run_id == run_id, release.c.first_by != ""
    row = connection.execute(_RELEASE.where(*given)).first()
    return None if row is None else Release(*row)


def released(connection: Connection) -> frozenset[str]:
    """Runs whose hold two people lifted."""
    return frozenset(connection.execute(_RELEASED).scalars())


def save_release(
    connection: Connection, run_id: str, *, reason: str, word: PersonsWord, ended: str = ""
) -> None:
    """The first, then the second person lifts the hold of a NOT PROVEN run.

    `ended` says why what was said before counts no more: this word is the first then.
    """
    before = release_of(connection, run_id)
    own = update(release).where(release.c.run_id == run_id)
    first = {
        "reason": reason[:400],
        "first_by": word.by,
        "first_authenticated": word.authenticated,
        "first_at": word.at,
        "second_by": "",
        "second_authenticated": False,
        "second_at": None,
    }
    if before is None or ended:
        if not connection.execute(own.values(**first)).rowcount:
            connection.execute(insert(release).values(run_id=run_id, **first))
        if ended:
            append(connection, [Event("release", run_id, VOID, {"why": ended})], at=word.at)
    else:
        connection.execute(
            own.values(
                second_by=word.by, second_authenticated=word.authenticated, second_at=word.at
            )
        )
    details = {"by": word.in_words, "reason": reason}
    append(connection, [Event("release", run_id, "released by", details)], at=word.at)


def take_back_release(connection: Connection, run_id: str, *, word: PersonsWord) -> None:
    """The first person takes back the release of a run; the row stays, with nobody in it."""
    nobody = {"first_by": "", "first_authenticated": False}
    connection.execute(update(release).where(release.c.run_id == run_id).values(**nobody))
    details = {"why": f"{word.in_words} took it back"}
    append(connection, [Event("release", run_id, VOID, details)], at=word.at)


def use_code(connection: Connection, person: str, *, time_step: int, at: datetime) -> bool:
    """Take a code; False when this person used it before."""
    known = connection.execute(
        select(func.count()).where(used_code.c.person == person, used_code.c.time_step >= time_step)
    ).scalar_one()
    if known:
        return False
    connection.execute(insert(used_code).values(person=person, time_step=time_step, used_at=at))
    return True


def note_wrong_code(connection: Connection, person: str, *, origin: str, at: datetime) -> None:
    """Remember a wrong code and whose login gave it."""
    connection.execute(insert(wrong_code).values(person=person, origin=origin, at=at))


def tell_wrong_code(connection: Connection, person: str, *, origin: str, at: datetime) -> None:
    """Say in the history that somebody gave a wrong code."""
    append(connection, [Event("person", person, "wrong code", {"origin": origin})], at=at)


def wrong_codes(
    connection: Connection, person: str, *, origin: str, since: datetime
) -> list[datetime]:
    """When wrong codes for a person came from one login, oldest first."""
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


def wrong_since_last_word(connection: Connection, person: str) -> dict[str, int]:
    """Login -> how many wrong codes came from it since a right one of that person."""
    last = select(func.max(used_code.c.used_at)).where(used_code.c.person == person)
    since = connection.execute(last).scalar_one()
    query = select(wrong_code.c.origin, func.count()).where(wrong_code.c.person == person)
    if since is not None:
        query = query.where(wrong_code.c.at > since)
    return dict(connection.execute(query.group_by(wrong_code.c.origin)).tuples().all())


def ids_of(items: Iterable[Any]) -> list[str]:
    """The instruction ids of a list."""
    return [item.instruction_id for item in items]
