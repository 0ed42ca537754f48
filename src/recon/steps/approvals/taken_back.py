"""Taking back one's own word, as long as it waits for somebody else's and so counts for nothing."""

import hashlib
from pathlib import Path

from recon.model.errors import SpillError, UsageError
from recon.steps.approvals import sign_off, verdicts
from recon.steps.money import approve
from recon.steps.runtime import identity
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.identity import SET_ASIDE, Person, agreed
from recon.store.database import history
from recon.store.database.history import Event
from recon.store.money.spill import (
    FOLDER,
    SPILL_BYTES_MAX,
    SUFFIX,
    read,
    refuse_unfit,
    set_aside,
)

ENTITY = "spill file"


def set_file_aside(path: Path, *, person: Person, reason: str) -> Path | None:
    """One person's word that a file is set aside.

    Returns:
        Where it is kept; None when a second person must say the same.

    Raises:
        UsageError: no spill file of ours, one that fits and belongs to the next night, or the word
            does not count (`identity.agreed`).
    """
    environment = person.environment
    path = path.resolve()
    digest = _digest_of(path, environment=environment)
    with environment.store.writing() as connection:
        try:
            refuse_unfit(connection, read(path))
        except SpillError as error:
            why_not = str(error)
        else:
            msg = f"{path} fits this database: the next night reads it; nothing was changed"
            raise UsageError(msg)
        both = agreed(connection, SET_ASIDE, subject=digest, reason=reason, person=person)
        if not both:
            return None
        details = {"file": path.name, "by": both, "reason": reason.strip(), "unfit": why_not}
        history.append(
            connection, [Event(ENTITY, digest, "set aside", details)], at=environment.clock()
        )
    # The history first: a crash between them leaves the file where it stops the night.
    return set_aside(path)


def _digest_of(path: Path, *, environment: Environment) -> str:
    """The SHA-256 of a file that lies where nights look for such files."""
    folders = [account.reports / FOLDER for account in environment.settings.accounts.values()]
    database = environment.store.path
    if database is not None:
        folders.append(database.with_name(f"{database.name}.{FOLDER}"))
    known = {folder.resolve() for folder in folders}
    if path.parent not in known or not path.name.endswith(SUFFIX) or not path.is_file():
        msg = f"{path} is no spill file of a declared account (…/{FOLDER}/*{SUFFIX})"
        raise UsageError(msg)
    with path.open("rb") as file:
        return hashlib.sha256(file.read(SPILL_BYTES_MAX)).hexdigest()


EVERY = (
    approve.take_back,
    verdicts.take_back_verdict,
    sign_off.take_back,
    identity.take_back,
)
"""Each takes back what one person said of a subject; what that was, "" for nothing."""


def decisions_taken_back(subject: str, *, person: Person) -> str:
    """Take back what a person said of a subject; what it was, in words.

    The subject is a list's digest, an instruction, a run, or what was to be allowed.

    Raises:
        UsageError: they said nothing of it, or it counts already.
    """
    person.refuse_unproven()
    with person.environment.store.writing() as connection:
        taken = [
            what for take_back in EVERY if (what := take_back(connection, subject, person=person))
        ]
    if not taken:
        msg = (
            f"{person.declared.name} has no word about {subject} that waits for a second person: "
            "what two people agreed to counts, and nobody takes it back alone; nothing was changed"
        )
        raise UsageError(msg)
    return " and ".join(taken)
