"""The index of a night: every declared account in one line, also those that never ran."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Protocol

from recon.model.errors import ReconError, UsageError
from recon.model.nights import Mode, NightRequest
from recon.model.words import GRAVE
from recon.steps.ground import kept_results
from recon.steps.ground.environment import Environment
from recon.steps.people.people import attention
from recon.steps.people.sign_off import Night, nights
from recon.store.nights import runs

ACCOUNTS_MIN = 2
"""Fewer need no page over all accounts: their one workbook is it."""


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
    line = [_line(night, environment) for night in nights(day, last=day, environment=environment)]
    if not line:
        msg = "merchants.toml declares no account: there is nothing to list"
        raise UsageError(msg)
    return line


class WriteIndex(Protocol):
    """How the index is written; `reports` provides it."""

    def __call__(self, lines: Sequence[IndexLine], *, day: date, folder: Path) -> Path:
        """Write the lines of a night into the folder; the path that was written."""
        ...


def index_after(
    request: NightRequest,
    *,
    environment: Environment,
    write: WriteIndex,
    say: Callable[[str], None],
) -> None:
    """Write the index beside the workbook of a live night that ended; never fails the night."""
    accounts = environment.settings.accounts
    if request.mode is not Mode.LIVE or len(accounts) < ACCOUNTS_MIN:
        return
    day = request.business_date
    try:
        folder = accounts[f"{request.merchant_id}/{request.account_id}"].reports
        path = write(index_of(day, environment=environment), day=day, folder=folder)
    except Exception as error:  # noqa: BLE001 - the night is whole without its index
        problem = str(error) if isinstance(error, ReconError) else type(error).__name__
        say(
            f"The index over all accounts was not written ({problem}). The night and its workbook "
            f"are kept: write it with `recon workbook {day} --index FOLDER`."
        )
        return
    say(f"All accounts: {path}")


def _line(night: Night, environment: Environment) -> IndexLine:
    if not night.run_id:
        return IndexLine(night, None, None, None)
    with environment.store.reading() as connection:
        run = runs.get(connection, night.run_id)
        breaks = kept_results.open_breaks(connection, night.run_id, environment=environment)
    waiting = len(attention(run, environment=environment))
    if breaks is None:
        return IndexLine(night, None, None, waiting)
    grave = int(breaks["severity"].isin(GRAVE).sum())
    return IndexLine(night, len(breaks), grave, waiting)
