"""What two people accept when they accept a restore, and whether a noted acceptance is theirs.

Their words are about these very links: the ones that the head files have and the database lacks,
after the acceptance before. So old words are good for no other restore, and a line that somebody
wrote into a head file is none.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from recon.desk.endorsement import Kind
from recon.steps.ground.endorsed import endorsed
from recon.steps.ground.environment import Environment
from recon.steps.ground.two_words import ACCEPT_RESTORE
from recon.store import Connection
from recon.store.database import history
from recon.store.database.head_file import ACCEPTED_RESTORE, HeadFile
from recon.store.database.history import Head
from recon.store.database.outside_heads import first_foreign
from recon.store.money.endorsement_rows import Endorsed, override

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
