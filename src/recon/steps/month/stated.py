"""`recon close` states it: the month of an account from the sealed folders of its nights.

It changes nothing. Every file that is read is held against its manifest, and the manifest against
the history. Nights that are missing or proved nothing are named; the figures are those of the
nights that are there.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import groupby

from recon.archive.schemas import SCHEMAS
from recon.archive.step_folder import entry_of
from recon.config.rules import Rules
from recon.matching.bank.result import covered_to
from recon.model.business_date import BusinessMonth, Grace, midnight
from recon.model.errors import UsageError
from recon.model.nights import Mode
from recon.model.words import SourceKind, Verdict
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import (
    PROOF,
    RESULTS,
    RULES,
    SealedNight,
    folder_of,
    sealed_night,
)
from recon.steps.ground.predecessor import MISSING, standing_without_a_night
from recon.steps.ground.window import ledger_start
from recon.steps.month.in_sql import EARLIER_READ, NEWEST_ONLY, READ, asked_earlier, statement_of
from recon.steps.month.statement import (
    ClosedPeriod,
    MonthFrame,
    MonthNight,
    MonthStatement,
)
from recon.store.nights import runs
from recon.store.nights.runs import Run
from recon.store.people import closed_months
from recon.store.people.closed_months import ClosedMonth

CLOSED_MONTHS_MAX = 24
"""Months before one that are asked whether they are closed; older facts are not told any more."""
NIGHTS_MAX = 400
"""Nights of one statement: those of a month, and all that ran since."""
EARLIER_DAYS = 62
"""Days before the first night of a statement whose nights are asked, where anything is: a reversal
is settled within two months. A payment that comes back after a close is asked about since it was
paid."""
BEFORE_FIRST = "before the first night"


@dataclass(frozen=True, slots=True)
class NightOfMonth:
    """One business date of the month."""

    business_date: date
    run_id: str
    """"" where none ran."""
    standing: str
    """Its verdict; without one why there is none."""
    trouble: str
    """Why the statement cannot lean on it, "" when it can."""


@dataclass(frozen=True, slots=True)
class StatedMonth:
    """A statement with the nights that it rests on."""

    statement: MonthStatement
    nights: Sequence[NightOfMonth]
    known_by: str
    """Business date of the newest night that was read."""
    is_first: bool
    """No night ran before the month: what was open then is only what later nights still show."""
    rules: Mapping[str, str]
    """Digest of the rules -> the first business date that they judged."""
    newest_run: str = ""
    """The run of the newest night that was read."""
    bank_to: str | None = None
    """The day up to which every bank of the account is covered, "" for none; None: no bank."""
    closed: Sequence[ClosedMonth] = ()
    """Months before it that are closed, the oldest first: their figures stay."""
    lacking: Run | None = None
    """Its last night, where that one is INCOMPLETE and no live one since had all and proved it."""

    @property
    def troubles(self) -> list[str]:
        """What stands against the figures, each as a sentence."""
        sentences = []
        there = (night for night in self.nights if night.trouble or night.run_id)
        for trouble, group in groupby(there, key=lambda night: night.trouble):
            days = [night.business_date for night in group]
            if trouble:
                more = f" to {days[-1]} ({len(days)} nights)" if len(days) > 1 else ""
                sentences.append(f"{days[0]}{more}: {trouble}")
        return sentences + [
            f"{each.id} {each.name}, {each.currency}: {each.both_sides} ({each.measure})"
            for each in self.statement.equations
            if not each.holds
        ]

    @property
    def notes(self) -> list[str]:
        """What the figures do not cover, each as a sentence."""
        first = "No night ran before: what was open then is what this month's nights still show."
        bare = "No settlement file was given: fees, reserves and payouts are not covered."
        return [first] * self.is_first + [bare] * (not self.statement.is_settled)

    @property
    def is_proven(self) -> bool:
        """Whether nothing stands against the figures."""
        return not self.troubles


def stated_month(
    month: BusinessMonth, *, account: tuple[str, str], environment: Environment
) -> StatedMonth:
    """The statement of a month of one account, as it is known by now.

    Raises:
        UsageError: no live night of the account says anything of the month.
        ArchiveError: the archive cannot be reached, or a file is not as it was sealed.
        ReconError: DuckDB came to no end: nothing is stated.
    """
    with environment.store.reading() as connection:
        finished = runs.last_finished(connection, account)
        live = {day: run for day, run in finished.items() if run.mode is Mode.LIVE}
        held = {*runs.not_proven(connection, account)}
        read = _read(live, month=month, account=account)
        sealed = [sealed_night(connection, run, environment=environment) for run in read]
        before = closed_months.closed_before(
            connection, account, month=month.name, months=CLOSED_MONTHS_MAX
        )
    days = [*_days(month, live=live, held=held, environment=environment)]
    with ExitStack() as kept:
        seldom = [name for name in READ if name not in NEWEST_ONLY]
        nights = [
            _night(
                number, run, night=night, kept=kept, names=READ if night is sealed[-1] else seldom
            )
            for number, (run, night) in enumerate(zip(read, sealed, strict=True))
        ]
        periods = [ClosedPeriod(BusinessMonth.named(each.month), each.known_by) for each in before]
        frame = _frame(month, account=account, newest=sealed[-1], days=days, closed=periods)
        frame = _with_earlier(frame, live=live, nights=nights, kept=kept, environment=environment)
        statement = statement_of(frame, nights=nights)
    rules: dict[str, str] = {}
    for each in nights:
        rules.setdefault(each.rules_digest, each.business_date)
    return StatedMonth(
        statement=statement,
        nights=days,
        known_by=nights[-1].business_date,
        is_first=read[0].business_date >= month.first,
        rules=rules,
        newest_run=nights[-1].run_id,
        bank_to=_bank_to(sealed[-1], account=account),
        closed=before,
        lacking=_lacking(live, month=month),
    )


def _lacking(live: Mapping[date, Run], *, month: BusinessMonth) -> Run | None:
    """The month's last night, unless it or a later one had all that it needs, and proved it."""
    own = max((day for day in live if day <= month.last), default=None)
    if own is None or live[own].verdict != Verdict.INCOMPLETE:
        return None
    later = {run.verdict for day, run in live.items() if day > month.last}
    return live[own] if later <= {Verdict.INCOMPLETE, Verdict.NOT_PROVEN} else None


def _bank_to(night: SealedNight, *, account: tuple[str, str]) -> str | None:
    """Up to which day statements that prove each other cover every bank of the payouts."""
    if not night.has("counted"):
        return None
    terms, counted = night.frame("terms"), night.frame("counted")
    own = terms["name"].eq("bank_of") & terms["key"].str.startswith("\x1f".join(account) + "\x1f")
    banks = sorted({*terms.loc[own, "word"]})
    days = covered_to(counted)
    return min((days.get(bank, "") for bank in banks), default=None)


def _read(live: Mapping[date, Run], *, month: BusinessMonth, account: tuple[str, str]) -> list[Run]:
    """The last night before the month, and all since; the oldest first."""
    before = [day for day in sorted(live) if day < month.first][-1:]
    since = [day for day in sorted(live) if day >= month.first]
    if not since:
        which = "/".join(account)
        msg = f"no live night of {which} tells of {month.name}: run `recon nightly` first"
        raise UsageError(msg)
    return [live[day] for day in (*before, *since)][:NIGHTS_MAX]


def _days(
    month: BusinessMonth,
    *,
    live: Mapping[date, Run],
    held: set[date],
    environment: Environment,
) -> Iterator[NightOfMonth]:
    """Every business date of the month: its night, or why there is none."""
    rules, now = environment.settings.rules, environment.clock()
    first = min(live)
    for number in range(month.last.day):
        day = month.first + timedelta(days=number)
        run = live.get(day)
        if run is None:
            standing = standing_without_a_night(day, nights=live, rules=rules, now=now)
            standing = BEFORE_FIRST if day < first else standing
            trouble = "no night ran" if standing == MISSING else ""
            yield NightOfMonth(day, "", standing, trouble)
            continue
        is_held = run.verdict == Verdict.NOT_PROVEN.value and day in held
        trouble = "the night is NOT PROVEN and nobody released it" if is_held else ""
        yield NightOfMonth(day, run.run_id, run.verdict, trouble)


def _with_earlier(
    frame: MonthFrame,
    *,
    live: Mapping[date, Run],
    nights: Sequence[MonthNight],
    kept: ExitStack,
    environment: Environment,
) -> MonthFrame:
    """The frame with the nights before, where anything is asked of them.

    A night whose folder was let go is not among them; the others are numbered up to -1.
    """
    first = date.fromisoformat(nights[0].business_date)
    if min(live) >= first or not (asked := asked_earlier(frame, nights=nights)).payments:
        return frame
    paid_on = None if asked.since is None else frame.calendar.business_date_of(asked.since)
    days = earlier_days(live, first=first, paid_on=paid_on, nights_max=NIGHTS_MAX - len(nights))
    before = [live[day] for day in days]
    with environment.store.reading() as connection:
        sealed = [(run, sealed_night(connection, run, environment=environment)) for run in before]
    there = [(run, night) for run, night in sealed if night.let_go is None]
    earlier = [
        _night(number, run, night=night, kept=kept, names=EARLIER_READ)
        for number, (run, night) in enumerate(there, start=-len(there))
    ]
    return replace(frame, earlier=earlier)


def earlier_days(
    days: Iterable[date], *, first: date, paid_on: date | None, nights_max: int
) -> list[date]:
    """Which nights before the first one that is read are asked, the newest of too many.

    Args:
        days: of all nights.
        first: of the first night that is read.
        paid_on: when the oldest payment that comes back was paid; None: none does.
        nights_max: how many may be asked, 0 or more.
    """
    since = first - timedelta(days=EARLIER_DAYS)
    since = since if paid_on is None else min(since, paid_on)
    asked = sorted(day for day in days if since <= day < first)
    return asked[max(len(asked) - nights_max, 0) :]


def _night(
    number: int, run: Run, *, night: SealedNight, kept: ExitStack, names: Sequence[str]
) -> MonthNight:
    """The files of a night on this machine, each as it was sealed."""
    folder = kept.enter_context(night.storage.local(folder_of(run)))
    moved = night.moved
    files = {}
    for name in names:
        if not night.has(name):
            continue
        night.content(name)
        path = SCHEMAS[name].path
        files[name] = folder / moved.get(path, path)
    about = night.steps[RESULTS].manifest.about
    since = _books_since(run, night=night)
    return MonthNight(
        number,
        run.run_id,
        run.business_date.isoformat(),
        about.rules_digest,
        files,
        about.predecessor,
        since,
    )


def _books_since(run: Run, *, night: SealedNight) -> tuple[datetime, datetime] | None:
    """Since when the books of a night are whole (`MonthNight.books_since`).

    In the first days that were ever settled payouts may be of batches from before: none is missed.
    """
    terms, rejects = night.frame("terms"), night.frame("rejects")
    given = terms["name"].eq("given") & terms["key"].eq("ledger")
    if not given.any() or rejects["kind"].eq(SourceKind.LEDGER.value).any():
        return None
    if PROOF not in night.steps or entry_of(night.steps[PROOF], name=RULES) is None:
        return None
    rules = _rules(night)
    since, calendar = ledger_start(run, rules=rules), rules.business_calendar
    settled = terms["name"].eq("settled_days") & terms["key"].eq("first")
    days = [date.fromisoformat(str(day)) for day in terms.loc[settled, "word"]]
    grace = Grace.parse(rules.grace.gateway_to_ledger)
    begins = [calendar.due_at(midnight(day, zone=calendar.zone), grace=grace) for day in days]
    return since, begins[0] if begins else since


def _frame(
    month: BusinessMonth,
    *,
    account: tuple[str, str],
    newest: SealedNight,
    days: Sequence[NightOfMonth],
    closed: Sequence[ClosedPeriod],
) -> MonthFrame:
    """The month with zone, cut-off and accounts of the rules that judged the newest night."""
    rules = _rules(newest)
    return MonthFrame(
        month=month,
        account=account,
        calendar=rules.business_calendar,
        due=[day.business_date.isoformat() for day in days if day.run_id or day.trouble],
        accounts=rules.journal.accounts,
        closed=closed,
    )


def _rules(night: SealedNight) -> Rules:
    """The rules that judged a night, as its folder has them."""
    return Rules.model_validate(json.loads(night.as_sealed(f"{PROOF}/{RULES}")))
