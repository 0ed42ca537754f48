"""Answers that an earlier night could keep only in a file: written to the database before anything.

A reply goes where it would have gone, and is judged like every kept reply; a batch that surely did
not leave is approved again. A file that does not fit ends the night, for a guess would cost money.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from recon.steps.ground.environment import Environment
from recon.steps.money.restore import Notes
from recon.store.money import spilled_rows
from recon.store.money.journal import StoredJournal
from recon.store.money.lasting_journal import LastingJournal
from recon.store.money.spill import FOLDER, REPLY, Spill, Spilled, remove
from recon.store.nights.runs import Run


def spill_of(run: Run, *, environment: Environment) -> Spill:
    """The spill files of a run's account: beside its reports, else beside the database."""
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    database = environment.store.path
    beside = () if database is None else (database.with_name(f"{database.name}.{FOLDER}"),)
    places = (account.reports / FOLDER, *beside)
    return Spill(places, account=f"{run.merchant_id}/{run.account_id}")


@contextmanager
def lasting(
    journal: StoredJournal, *, run: Run, environment: Environment
) -> Iterator[LastingJournal]:
    """The journal to send by, with room for an answer that the database might not take.

    All that was written is on the disk afterwards.

    Raises:
        OutputError: there is no such room; nothing was sent.
        StoreError: the disk refuses.
    """
    spill = spill_of(run, environment=environment)
    spill.reserve()
    try:
        yield LastingJournal(
            journal,
            spill=spill,
            pause=environment.pause,
            note_outside=Notes(run, environment=environment).note,
        )
    finally:
        spill.free()
        environment.store.flush()


def put_back(run: Run, *, journal: StoredJournal, environment: Environment) -> int:
    """Write every answer of the account's files to the database; returns how many there were.

    Raises:
        SpillError: a file is not whole, or does not fit the database; nothing was changed by it.
    """
    count = 0
    for path, spilled in spill_of(run, environment=environment).kept_files():
        if (spilled.merchant_id, spilled.account_id) != (run.merchant_id, run.account_id):
            continue
        _put_back(spilled, journal=journal, environment=environment)
        remove(path)
        count += 1
    return count


def _put_back(spilled: Spilled, *, journal: StoredJournal, environment: Environment) -> None:
    if spilled.kind == REPLY:
        with environment.store.writing() as connection:
            spilled_rows.put_reply(connection, spilled, at=environment.clock())
        return
    with environment.store.reading() as connection:
        claimed = spilled_rows.is_to_release(connection, spilled)
    if claimed:
        journal.release(spilled.batch_id, reason=spilled.reason, at=environment.clock())
