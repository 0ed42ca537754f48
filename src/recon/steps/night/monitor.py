"""The state of each account's nights: whether they run, and what a person must do now.

Used by `recon status`, `nights`, `doctor` and external monitors. Nothing here needs a running
night: a night that never started cannot report that itself.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from recon.config.rules import Rules
from recon.model.errors import ReconError, UsageError
from recon.model.nights import Mode, NightRequest
from recon.model.terms import SEVERE, End
from recon.steps.approvals.people import attention, is_held, status_of
from recon.steps.approvals.sign_off import Night, nights
from recon.steps.runtime.environment import Environment, account_of
from recon.steps.runtime.night_end import NightEnd, end_of
from recon.steps.runtime.night_folder import StoredResult
from recon.steps.runtime.predecessor import (
    MISSING,
    held_nights,
    missed_without_a_run,
    named_days,
)
from recon.store.nights import runs
from recon.store.nights.runs import Run

ACCOUNTS_MIN = 2
"""With fewer accounts there is no index over all accounts: the one workbook is enough."""


@dataclass(frozen=True, slots=True)
class IndexLine:
    """One account's night, and how much of it is open."""

    night: Night
    breaks: int | None
    """Open breaks; None when there is no result."""
    severe_breaks: int | None
    """Open breaks of severity high or above."""
    waiting: int | None
    """Instructions, cases and write-offs that need a person; None if the night never ran."""


def index_of(day: date, *, environment: Environment) -> list[IndexLine]:
    """Return one line per declared account, ordered by account number.

    Raises:
        UsageError: no account is declared.
    """
    line = [_line(night, environment) for night in nights(day, last=day, environment=environment)]
    if not line:
        msg = "merchants.toml declares no account: there is nothing to list"
        raise UsageError(msg)
    return line


class WriteIndex(Protocol):
    """The function that writes the index; `reports` provides it."""

    def __call__(self, lines: Sequence[IndexLine], *, day: date, folder: Path) -> Path:
        """Write the lines of a business date into the folder; return the path written."""
        ...


def index_after(
    request: NightRequest,
    *,
    environment: Environment,
    write: WriteIndex,
    echo: Callable[[str], None],
) -> None:
    """Write the index next to the workbook of an ended live night; never fails the night."""
    accounts = environment.settings.accounts
    if request.mode is not Mode.LIVE or len(accounts) < ACCOUNTS_MIN:
        return
    day = request.business_date
    try:
        folder = accounts[f"{request.merchant_id}/{request.account_id}"].reports
        path = write(index_of(day, environment=environment), day=day, folder=folder)
    except Exception as error:  # noqa: BLE001 - the night is whole without its index
        problem = str(error) if isinstance(error, ReconError) else type(error).__name__
        echo(
            f"The index over all accounts was not written ({problem}). The night and its workbook "
            f"are kept: write it with `recon workbook {day} --index FOLDER`."
        )
        return
    echo(f"All accounts: {path}")


def breaks_of(run: Run, *, environment: Environment) -> dict[str, int] | None:
    """Return counts of breaks, `open` and `high_or_critical`; None without a result."""
    with environment.store.reading() as connection:
        breaks = StoredResult(connection, run.run_id, environment).open_breaks()
    if breaks is None:
        return None
    return {"open": len(breaks), "high_or_critical": int(breaks["severity"].isin(SEVERE).sum())}


def _line(night: Night, environment: Environment) -> IndexLine:
    if not night.run_id:
        return IndexLine(night, None, None, None)
    with environment.store.reading() as connection:
        run = runs.get(connection, night.run_id)
    waiting = len(attention(run, environment=environment))
    found = breaks_of(run, environment=environment)
    if found is None:
        return IndexLine(night, None, None, waiting)
    return IndexLine(night, found["open"], found["high_or_critical"], waiting)


MISSED_AFTER = timedelta(hours=12)
"""A night that has not finished this long after its day closed counts as missed."""
LOOKED_BACK_DAYS = 10
"""`recon nights` reports older gaps; an account that stopped is missing on all of these days."""
UNFINISHED_EXIT_CODE = 4


@dataclass(frozen=True, slots=True)
class Watched:
    """The state of one account, as a monitor sees it."""

    merchant_id: str
    account_id: str
    newest: Run | None
    """The live night that started last; None before the first one."""
    end: NightEnd | None
    """How it ended; None while it has not."""
    stalled: str
    """Why it will never end by itself, as text; "" while it works or once it has ended."""
    missed: tuple[date, ...]
    """Business days whose night was due and has not finished, oldest first."""
    unproven: tuple[date, ...]
    """Business dates that are NOT PROVEN and hold refunds."""

    @property
    def account(self) -> str:
        """Merchant and account, such as `100042/100042001`."""
        return f"{self.merchant_id}/{self.account_id}"

    @property
    def exit_code(self) -> int:
        """The worst exit code of this account, in the exit codes of a night."""
        ended = self.end.kind.exit_code if self.end else 0
        undone = bool(self.missed or self.stalled or self.unproven)
        return max(ended, UNFINISHED_EXIT_CODE * undone)

    @property
    def only_incomplete(self) -> bool:
        """Whether the worst that needs attention is a missing source."""
        incomplete = self.end is not None and self.end.kind is End.INCOMPLETE
        return incomplete and not (self.missed or self.stalled or self.unproven)

    @property
    def troubles(self) -> tuple[str, ...]:
        """What a person must handle before the morning, one sentence each; () for nothing."""
        newest, end, sentences, held = self.newest, self.end, [], [*self.unproven]
        if newest and end and end.kind.exit_code >= UNFINISHED_EXIT_CODE:
            sentences.append(
                f"The night of {newest.business_date} ended {end.kind}. {end.sentence}".rstrip()
            )
            if end.kind is End.NOT_PROVEN:
                held = [day for day in held if day != newest.business_date]
        if newest and self.stalled:
            sentences.append(f"The night of {newest.business_date} {self.stalled}.")
        if self.missed:
            sentences.append(missed_text(self))
        if held:
            days = ", ".join(map(str, held))
            sentences.append(f"The night of {days} is NOT PROVEN and holds refunds and payouts.")
        return tuple(sentences)


def watched(environment: Environment) -> tuple[Watched, ...]:
    """Return the state of every declared account, ordered by account number."""
    return tuple(
        _watched(*account_of(name), environment=environment)
        for name in sorted(environment.settings.accounts)
    )


def missed_text(account: Watched) -> str:
    """Return a sentence on the days without a night, and what to do."""
    return (
        f"No night ran for {named_days(account.missed)}: run what is missing, oldest first, or "
        "start the next one with --skip REASON."
    )


def missed_reported(accounts: Sequence[Watched]) -> list[str]:
    """Return a sentence for each account that has missed nights."""
    return [f"{account.account}: {missed_text(account)}" for account in accounts if account.missed]


def _watched(merchant_id: str, account_id: str, *, environment: Environment) -> Watched:
    account = (merchant_id, account_id)
    with environment.store.reading() as connection:
        newest = runs.newest_live(connection, account)
        nights = runs.live_nights(connection, account)
        unproven = held_nights(connection, account, environment=environment)
    rules, now = environment.settings.rules, environment.clock()
    end, stalled = None, ""
    if newest and newest.status == "finished":
        end = end_of(newest, environment=environment)
    elif newest and not (newest.status == "active" and is_held(newest, environment=environment)):
        stalled = status_of(newest, environment=environment)
    return Watched(
        merchant_id=merchant_id,
        account_id=account_id,
        newest=newest,
        end=end,
        stalled=stalled,
        missed=tuple(_missed(nights, rules=rules, now=now)) if newest else (),
        unproven=tuple(unproven),
    )


def _missed(nights: Mapping[date, Run], *, rules: Rules, now: datetime) -> Iterator[date]:
    """Yield days that are due without a finished live night; none is due before the first one."""
    calendar = rules.business_calendar
    today = calendar.local_date(now)
    for back in range(LOOKED_BACK_DAYS, -1, -1):
        day = today - timedelta(days=back)
        if not nights or day in nights or day < min(nights):
            continue
        status = missed_without_a_run(day, nights=nights, rules=rules, now=now)
        if status == MISSING and calendar.closes_at(day) + MISSED_AFTER <= now:
            yield day


def worst(accounts: Sequence[Watched]) -> int:
    """Return the worst exit code of the accounts; 0 for none."""
    return max((account.exit_code for account in accounts), default=0)


def counted(accounts: Sequence[Watched]) -> dict[str, Any]:
    """Return the counts over all accounts that a monitor plots over time."""
    undone = [account.end.undone for account in accounts if account.end]
    return {
        "in_doubt": sum(instruction.doubtful.count for instruction in undone),
        "not_sent": sum(instruction.unsent.count for instruction in undone if instruction.stopped),
        "missed": sum(len(account.missed) for account in accounts),
    }
