"""A database that was restored from a backup: noticed before money moves, accepted by two people.

What was sent after the backup is unknown to the restored journal. So nothing is sent until two
people have accepted the restore; then everything that was open waits for people, and what the order
files of those days ask for again is approved by nobody but people.

Words that accept a restore are about these very links: the ones that the head files have and the
database lacks, after the acceptance before. So old words are good for no other restore, and a line
that somebody wrote into a head file is none.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from recon.desk.endorsement import Kind
from recon.model.business_date import BusinessCalendar
from recon.model.errors import HistoryBrokenError
from recon.model.words import InstructionState
from recon.privacy.own_files import make_folder
from recon.steps.ground.endorsed import endorsed
from recon.steps.ground.environment import Environment
from recon.steps.ground.identity import Person
from recon.steps.ground.two_words import ACCEPT_RESTORE, agreed
from recon.store import Connection
from recon.store.database import history
from recon.store.database.bound_tables import INSTRUCTION
from recon.store.database.engine import Store
from recon.store.database.head_file import ACCEPTED_RESTORE, HeadFile
from recon.store.database.history import Event, Head
from recon.store.database.outside_heads import first_foreign, missing, problem_of
from recon.store.database.record import strayed
from recon.store.money import evidence_rows, instruction_rows
from recon.store.money.endorsement_rows import Endorsed, override
from recon.store.money.instruction_rows import move
from recon.store.nights import runs
from recon.store.nights.runs import Run

ENTITY = "database"
ACCEPTED = ACCEPTED_RESTORE
SUBJECT_DIGITS = 32


@dataclass(frozen=True, slots=True)
class Accepts:
    """What one acceptance is about."""

    lost: Mapping[str, str]
    """Account -> the newest noted link that the database lacks; an account that lacks none is not
    in it."""
    after: int
    """The link of the acceptance before; 0: there was none."""

    @property
    def subject(self) -> str:
        """The digest of it."""
        document = json.dumps([dict(self.lost), self.after], sort_keys=True)
        return hashlib.sha256(document.encode()).hexdigest()[:SUBJECT_DIGITS]

    @property
    def says(self) -> dict[str, str]:
        """As a word says it."""
        return {"lost": json.dumps(dict(self.lost), sort_keys=True), "after": str(self.after)}


def noted(head: Head) -> str:
    """A link as a note names it."""
    return f"{head.sequence}:{head.hash}"


def what_is_lost(connection: Connection, *, environment: Environment) -> Accepts:
    """What whoever accepts this database now gives up."""
    lost = {}
    for name, account in sorted(environment.settings.accounts.items()):
        notes = HeadFile(account.reports).standing().notes
        if notes and first_foreign(connection, notes) is not None:
            lost[name] = noted(notes[-1].head)
    return Accepts(lost, max((link for link, _ in _events(connection)), default=0))


def given_up(connection: Connection, *, account: str) -> int:
    """The newest link of an account that was accepted as lost; 0 where none was."""
    lost = (str(data.get("lost", {}).get(account, "0:")) for _, data in _events(connection))
    return max((int(link.partition(":")[0]) for link in lost), default=0)


def unagreed(file: HeadFile, *, account: tuple[str, str], environment: Environment) -> str:
    """Why the acceptance that a head file rests on is nobody's word, in words; "" when it is."""
    accepted = file.accepted()
    if accepted is None:
        return ""
    acceptance, before = accepted
    name = "/".join(account)
    words = endorsed(environment)
    with environment.store.reading() as connection:
        data = dict(_events(connection)).get(acceptance.head.sequence)
        if data is None:
            return f"{file.path} says that a restore was accepted, and the history does not"
        if problem := _unendorsed(connection, words, link=acceptance.head.sequence, data=data):
            return f"{problem}; nothing is sent (`recon db accept-restore`)"
        lacks = before is not None and first_foreign(connection, [before]) is not None
        if lacks and before is not None and data.get("lost", {}).get(name) != noted(before.head):
            return (
                f"{file.path} has link {before.head.sequence} before the restore that was "
                "accepted, and nobody accepted that it is lost (`recon db accept-restore`)"
            )
    return ""


def unendorsed_restores(connection: Connection, words: Endorsed) -> Iterator[str]:
    """Acceptances that two people are said to have given, and did not."""
    for link, data in _events(connection):
        if problem := _unendorsed(connection, words, link=link, data=data):
            yield problem


def _unendorsed(
    connection: Connection, words: Endorsed, *, link: int, data: Mapping[str, Any]
) -> str:
    accepts = Accepts(data.get("lost", {}), int(data.get("after", 0)))
    subject = override(ACCEPT_RESTORE, subject=accepts.subject)
    problem = words.problem(connection, Kind.OVERRIDE, subject=subject)
    return f"the restore of link {link} counts as accepted, but {problem}" if problem else ""


def _events(connection: Connection) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for row in history.of_entity(connection, ENTITY):
        if row["event"] == ACCEPTED:
            yield int(str(row["sequence"])), json.loads(str(row["data"]))


_UNSENT = (InstructionState.PLANNED, InstructionState.APPROVED)
TOLD = "the database was restored: it may have been sent after the backup was made"


def restored_since(run: Run, *, environment: Environment) -> str:
    """Why the database is older than it once was, in words; "" when it is not."""
    account, file = (run.merchant_id, run.account_id), _file_of(run, environment=environment)
    missing_link = link_missing(environment.store, reports=file.path.parent, account=account)
    return missing_link or unagreed(file, account=account, environment=environment)


def resolve_pending(run: Run, *, environment: Environment) -> None:
    """Find out about a note whose process ended between it and the end of its commit.

    Its link is in this database: noted for good, with the newest. It is not: it never happened.
    """
    if _file_of(run, environment=environment).standing().unresolved:
        note_head(run, environment=environment)


def link_missing(store: Store, *, reports: Path, account: tuple[str, str]) -> str:
    """What the head file beside the reports knows and this database does not; "" for nothing."""
    return problem_of(HeadFile(reports), accounts=[account], reading=store.reading)


def note_head(run: Run, *, environment: Environment) -> None:
    """Write the newest link beside the reports, on the disk when this returns.

    Raises:
        HistoryBrokenError: the file has a link that this database lacks. Such a database notes
            nothing: its own link would vouch for it in the next night, and make the newest one look
            restored when it is put back. Only people accept it.
        OutputError: the file cannot be written.
    """
    Notes(run, environment=environment).note()


class Notes:
    """Heads noted while one run sends; what it read of the file before is not read again."""

    def __init__(self, run: Run, *, environment: Environment) -> None:
        self._side = _file_of(run, environment=environment)
        self._run = run
        self._environment = environment
        self._seen = 0

    def note(self) -> None:
        """As `note_head`."""
        foreign = self._side.note(
            self._own_head, of=f"run {self._run.run_id}", at=self._environment.clock()
        )
        if foreign:
            msg = f"{foreign}. This run sends nothing more"
            raise HistoryBrokenError(msg)

    def _own_head(self) -> Head | str:
        """The newest link of the database, or why it must not be noted; nobody else notes now."""
        standing = self._side.standing(after=self._seen)
        account = (self._run.merchant_id, self._run.account_id)
        # Only now: what the file has must be in this snapshot.
        with self._environment.store.reading() as connection:
            if standing.notes or not self._seen:
                problem = missing(connection, self._side, standing=standing, accounts=[account])
                if problem:
                    return problem
            self._seen = standing.end
            return history.head(connection)


def _file_of(run: Run, *, environment: Environment) -> HeadFile:
    return HeadFile(
        environment.settings.account(run.merchant_id, account_id=run.account_id).reports
    )


def accepted_at(connection: Connection) -> datetime | None:
    """When the newest restore was accepted; None when there never was one."""
    moments = [
        row["at"]
        for row in history.of_entity(connection, ENTITY)
        if row["event"] == ACCEPTED and isinstance(row["at"], datetime)
    ]
    return max(moments, default=None)


def by_people_only(connection: Connection, run: Run, *, calendar: BusinessCalendar) -> bool:
    """Whether the run may find files that the restored database once knew and has forgotten.

    So it is for every business date up to the one that was open when people accepted, and for the
    account's first whole night after that, whatever its date: it reads what lay there by then.
    """
    moment = accepted_at(connection)
    if moment is None:
        return False
    open_then = calendar.business_date_of(moment)
    return run.business_date <= open_then or not runs.any_finished_since(
        connection, merchant_id=run.merchant_id, account_id=run.account_id, since=moment
    )


def accept_restore(*, person: Person, reason: str, environment: Environment) -> int | None:
    """One person's word to go on with a restored database.

    Returns:
        How many instructions now wait for people; None when a second person must say the same.

    Raises:
        UsageError: the word does not count (`steps.agreement`).
        HistoryBrokenError: the restored chain itself does not close.
    """
    with environment.store.writing() as connection:
        now = environment.clock()
        _refuse_broken(connection)
        accepts = what_is_lost(connection, environment=environment)
        both = agreed(
            connection,
            ACCEPT_RESTORE,
            subject=accepts.subject,
            reason=reason,
            person=person,
            environment=environment,
            says={"head": noted(history.head(connection)), **accepts.says},
        )
        if not both:
            return None
        waiting = instruction_rows.find(connection, state=_UNSENT)
        events = [
            move(
                connection,
                item,
                to=InstructionState.NEEDS_HUMAN,
                values={"message": TOLD, "hold": "", "in_doubt_since": now},
            )
            for item in waiting
        ]
        waiting_ids = [item.instruction_id for item in waiting]
        evidence_rows.note_clocks(connection, waiting_ids, uptime=environment.uptime(), at=now)
        details = {"by": both, "reason": reason.strip(), "instructions": len(waiting)}
        details |= {"lost": accepts.lost, "after": accepts.after}
        head = history.append(
            connection, [*events, Event(ENTITY, ENTITY, ACCEPTED, details)], at=now
        )
    for account in environment.settings.accounts.values():
        make_folder(account.reports)
        HeadFile(account.reports).note(lambda: head, of=ACCEPTED_RESTORE, at=now)
    return len(waiting)


def _refuse_broken(connection: Connection) -> None:
    """Nobody's word makes a history whole that does not close."""
    _, problem = history.verify(connection)
    if problem := problem or next(strayed(connection, INSTRUCTION), ""):
        msg = (
            f"{problem}. This database was not only restored: nothing was accepted. Keep it, "
            "restore another backup, and run `recon verify` on that one"
        )
        raise HistoryBrokenError(msg)
