"""The index of a night: every declared account in one line, also those that never ran."""

from dataclasses import dataclass
from datetime import date

from recon.errors import UsageError
from recon.steps.environment import Environment
from recon.steps.people import attention
from recon.steps.sign_off import NEEDS_AN_OWNER, Night, nights
from recon.store import results, runs


@dataclass(frozen=True, slots=True)
class IndexLine:
    """One account's night, and how much of it is open."""

    night: Night
    breaks: int | None
    """Open breaks; None when there is no result."""
    grave_breaks: int | None
    """Those of severity high or above."""
    waiting: int | None
    """Instructions, cases and write-offs that need a person; None when the night never ran."""


def index_of(day: date, *, environment: Environment) -> list[IndexLine]:
    """One line per declared account, in the order of their numbers.

    Raises:
        UsageError: no account is declared.
    """
    found = [_line(night, environment) for night in nights(day, last=day, environment=environment)]
    if not found:
        msg = "merchants.toml declares no account: there is nothing to list"
        raise UsageError(msg)
    return found


def _line(night: Night, environment: Environment) -> IndexLine:
    if not night.run_id:
        return IndexLine(night, None, None, None)
    with environment.store.reading() as connection:
        run = runs.get(connection, night.run_id)
        result = results.load(connection, night.run_id, with_matches=False)
    waiting = len(attention(run, environment=environment))
    if result is None:
        return IndexLine(night, None, None, waiting)
    grave = int(result.breaks["severity"].isin(NEEDS_AN_OWNER).sum())
    return IndexLine(night, len(result.breaks), grave, waiting)
