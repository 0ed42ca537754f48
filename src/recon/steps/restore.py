"""A database that was restored from a backup: noticed before money moves, accepted by two people.

What was sent after the backup is unknown to the restored journal. So nothing is sent until two
people have accepted the restore; then everything that was open waits for people, and what the order
files of those days ask for again is approved by nobody but people.
"""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from recon.business_date import BusinessCalendar
from recon.errors import HistoryBrokenError
from recon.model import InstructionState
from recon.steps.agreement import ACCEPT_RESTORE, agreed
from recon.steps.environment import Environment
from recon.steps.identity import Person
from recon.store import evidence_rows, history, instruction_rows, runs
from recon.store.head_file import HeadFile
from recon.store.history import Event
from recon.store.journal import move
from recon.store.runs import Run

HEAD_NOTED_AT = "after claim"
ENTITY = "database"
ACCEPTED = "restore accepted"
_UNSENT = (InstructionState.PLANNED, InstructionState.APPROVED)
TOLD = "the database was restored: it may have been sent after the backup was made"


def restored_since(connection: Any, run: Run, *, environment: Environment) -> str:
    """Why the database is older than it once was, in words; "" when it is not."""
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    return link_missing(connection, reports=account.reports)


def link_missing(connection: Any, *, reports: Path) -> str:
    """What the head file beside the reports knows and this database does not; "" for nothing."""
    side = HeadFile(reports)
    noted = side.newest()
    if noted is None or history.has_link(connection, noted.head):
        return ""
    head = history.head(connection)
    return (
        f"{side.path} noted history {noted.head.sequence} of run {noted.run_id} at {noted.at}, "
        f"this database ends with {head.sequence} and does not have it: it is a backup that was "
        "restored, or another database. What was sent since is not known here: put the newest "
        "database back, or let two people run `recon db accept-restore`"
    )


def note_head(run: Run, *, environment: Environment) -> None:
    """Write the newest link beside the reports, on the disk when this returns.

    A database that lacks the link noted last writes none: its own would vouch for it in the next
    night, and make the newest one look restored when it is put back. Only people accept it.
    """
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    with environment.store.reading() as connection:
        if restored_since(connection, run, environment=environment):
            return
        head = history.head(connection)
    HeadFile(account.reports).note(head, run_id=run.run_id, at=environment.clock())


def noting_marks(run: Run, *, environment: Environment) -> Callable[[str], None]:
    """The sender's marks; the head is noted outside the database before a byte leaves."""

    def mark(at: str) -> None:
        if at == HEAD_NOTED_AT:
            note_head(run, environment=environment)
        environment.mark(at)

    return mark


def accepted_at(connection: Any) -> datetime | None:
    """When the newest restore was accepted; None when there never was one."""
    moments = [
        row["at"]
        for row in history.of_entity(connection, ENTITY)
        if row["event"] == ACCEPTED and isinstance(row["at"], datetime)
    ]
    return max(moments, default=None)


def by_people_only(connection: Any, run: Run, *, calendar: BusinessCalendar) -> bool:
    """Whether the run may find files that the restored database once knew and has forgotten.

    So it is for every business date up to the one that was open when people accepted, and for the
    account's first whole night after that, whatever its date: it reads what lay there by then.
    """
    moment = accepted_at(connection)
    if moment is None:
        return False
    open_then = calendar.business_date_of(moment).isoformat()
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
    now = environment.clock()
    with environment.store.writing() as connection:
        _refuse_broken(connection)
        both = agreed(
            connection,
            ACCEPT_RESTORE,
            subject=ENTITY,
            reason=reason,
            person=person,
            environment=environment,
        )
        if not both:
            return None
        waiting = instruction_rows.in_states(connection, states=_UNSENT)
        events = [
            move(
                connection,
                found,
                to=InstructionState.NEEDS_HUMAN,
                values={"message": TOLD, "hold": "", "in_doubt_since": now},
            )
            for found in waiting
        ]
        waiting_ids = [found.instruction_id for found in waiting]
        evidence_rows.note_clocks(connection, waiting_ids, uptime=environment.uptime(), at=now)
        told = {"by": both, "reason": reason.strip(), "instructions": len(waiting)}
        head = history.append(connection, [*events, Event(ENTITY, ENTITY, ACCEPTED, told)], at=now)
    for account in environment.settings.accounts.values():
        HeadFile(account.reports).note(head, run_id=ACCEPTED, at=now)
    return len(waiting)


def _refuse_broken(connection: Any) -> None:
    """Nobody's word makes a history whole that does not close."""
    _, problem = history.verify(connection)
    if problem := problem or history.strayed_instruction(connection):
        msg = (
            f"{problem}. This database was not only restored: nothing was accepted. Keep it, "
            "restore another backup, and run `recon verify` on that one"
        )
        raise HistoryBrokenError(msg)
