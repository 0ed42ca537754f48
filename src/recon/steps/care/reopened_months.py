"""`recon reopen`: two people open a closed month again. Its folder stays; closing makes another."""

from dataclasses import dataclass

from recon.model.errors import UsageError
from recon.period.business_month import BusinessMonth
from recon.steps.ground.environment import Environment
from recon.steps.ground.identity import Person
from recon.steps.ground.two_words import agreed
from recon.store import Connection
from recon.store.people import closed_months
from recon.store.people.closed_months import REOPEN, ClosedMonth, ReopenedMonth


@dataclass(frozen=True, slots=True)
class ReopenWord:
    """What became of one person's word that a month is opened again."""

    closed: ClosedMonth
    """The close that it is about."""
    reopened: bool
    """Whether it was the second."""


def reopen_month(
    month: BusinessMonth,
    *,
    account: tuple[str, str],
    reason: str,
    person: Person,
    environment: Environment,
) -> ReopenWord:
    """One person's word that a month is open again.

    Raises:
        UsageError: it is not closed, a later one is, or the word does not count (`two_words`).
    """
    with environment.store.writing() as connection:
        closed = _closed(connection, month, account=account, environment=environment)
        both = agreed(
            connection,
            REOPEN,
            subject=closed.manifest,
            reason=reason,
            person=person,
            environment=environment,
            says={"month": month.name, "folder": closed.folder},
        )
        if both:
            word = ReopenedMonth(both, person.word.at, reason.strip())
            closed_months.note_reopened(connection, closed, word=word)
    return ReopenWord(closed, bool(both))


def _closed(
    connection: Connection,
    month: BusinessMonth,
    *,
    account: tuple[str, str],
    environment: Environment,
) -> ClosedMonth:
    closed = closed_months.state_of(connection, account, month=month.name).closed
    if closed is None:
        msg = f"{month.name} of {'/'.join(account)} is not closed; nothing was changed"
        raise UsageError(msg)
    later = closed_months.closed_since(
        connection, account, month=month.after.name, until=environment.clock().date()
    )
    if later is not None:
        msg = (
            f"{later.month} was closed after {month.name} and begins with its figures; nothing "
            f"was changed: reopen {later.month} first"
        )
        raise UsageError(msg)
    return closed
