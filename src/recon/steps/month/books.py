"""The journals of a closed month, handed out once each as files that books import.

What two people signed is what leaves: the lines come from the sealed folder of the close. A
proposed journal leaves only while the newest night still proposes exactly it: its entry may have
come since.

A night dates all that it proposes with its own day. What moved in the month before is that month's:
two people sign on which day it is booked, by what is known then, late files with it. So a night
keeps back what may be of the last month that ended, until its close hands it out with its day; or a
person says that it is to be booked on the night's.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from recon.config.rules import JournalExport
from recon.matching.breaks.result import Reconciliation
from recon.model.business_date import BusinessMonth
from recon.model.errors import UsageError
from recon.model.money import parse_minor_units
from recon.model.nights import Mode
from recon.model.words import PERMANENT
from recon.steps.compare.journals import (
    WRITTEN_OFF,
    Handed,
    export_journals,
    newest_run,
    proposing,
    set_aside,
)
from recon.steps.compare.result_files import output_folder, publish, stage
from recon.steps.ground.environment import Environment
from recon.steps.month.book_formats import WantedBooks, book_files
from recon.steps.month.book_lines import BookLine, journals_of
from recon.steps.month.folders import closed_folder
from recon.store import Connection
from recon.store.nights import journal_rows, runs
from recon.store.nights.runs import Run
from recon.store.people import closed_months
from recon.store.people.closed_months import ClosedMonth, MonthJournal

JOURNALS = "journals.csv"
JournalSums = dict[str, dict[tuple[str, str], list[int]]]
"""Journal -> account and currency -> debits and credits, minor units."""
MOVED_ON = (
    "the newest night does not propose it as it was closed: its entry came, or its amount moved"
)


@dataclass(frozen=True, slots=True)
class MonthBooks:
    """Which month's journals are wanted, and how."""

    month: BusinessMonth
    account: tuple[str, str]
    format: str
    out: Path
    again: Sequence[str] = ()
    """Journals whose file was lost, by their ids."""
    currencies: Sequence[str] = ()
    """Journals in these alone; none named: in all."""


@dataclass(frozen=True, slots=True)
class HandedBooks:
    """What was handed out of a close."""

    closed: ClosedMonth
    paths: tuple[Path, ...]
    journals: int
    handed_before: int
    kept_back: Mapping[str, str]
    """Journal -> why it is in no file."""


@dataclass(frozen=True, slots=True)
class _Sealed:
    """A close, its lines, and the night that proposes some of them."""

    closed: ClosedMonth
    lines: list[BookLine]
    newest: Run
    result: Reconciliation


def export_month(wanted: MonthBooks, *, environment: Environment) -> HandedBooks:
    """Write the journals of a closed month, and remember that they left.

    A journal is noted before its file takes its place: after a crash between the two it is missing
    from a file rather than in two, and `again` writes it once more.

    Raises:
        UsageError: the month is not CLOSED, the newest night proves nothing, the format cannot hold
            a line, a journal named again was never handed out, or another file lies there.
        OutputError: the files cannot be written; nothing was handed out.
        ArchiveError: the folder of the close is gone, changed, or cannot be reached.
    """
    with environment.store.reading() as connection:
        closed = _closed(connection, wanted)
        newest = newest_run(connection, wanted.account)
    run, result = proposing(newest, environment=environment)
    lines = sealed_lines(closed, environment=environment)
    currencies = {line.currency for line in lines}
    if strange := {*wanted.currencies} - currencies:
        msg = (
            f"no journal of {wanted.month.name} is in {', '.join(sorted(strange))}; nothing was "
            "handed out: name currencies of its journals, or none for all"
        )
        raise UsageError(msg)
    chosen = {*wanted.currencies} or currencies
    sealed = _Sealed(closed, [line for line in lines if line.currency in chosen], run, result)
    with output_folder(wanted.out):
        with environment.store.writing() as connection:
            if _closed(connection, wanted) != closed:
                msg = f"{closed.month} was closed anew at this moment; nothing was handed out"
                raise UsageError(msg)
            going, before, kept = _choice(connection, sealed, again=wanted.again)
            codes = environment.settings.rules.journal.export or JournalExport()
            parts = ["journals", *closed.account, closed.month, f"close-{closed.number}"]
            parts += [*sorted({*wanted.currencies}), *(["again"] if wanted.again else [])]
            books = WantedBooks("-".join(parts), wanted.format, closed.at, codes)
            files = book_files(going, wanted=books)
            for path, content in ((wanted.out / name, files[name]) for name in files):
                if path.exists() and path.read_bytes() != content:
                    msg = (
                        f"{path} lies there with another content, of an earlier export; nothing "
                        "was handed out: move it away, or name another --out"
                    )
                    raise UsageError(msg)
            staged = stage(wanted.out, files={name: [text] for name, text in files.items()})
            _note(connection, sealed, chosen=going, wanted=wanted, at=environment.clock())
        publish(staged)
    names = {line.journal_id for line in going}
    paths = tuple(wanted.out / name for name in files)
    return HandedBooks(closed, paths, len(names), before, kept)


def sealed_lines(closed: ClosedMonth, *, environment: Environment) -> list[BookLine]:
    """The journals of a close as they were sealed.

    Raises:
        ArchiveError: the file is gone, changed, or cannot be reached.
    """
    text = closed_folder(closed, environment=environment).file(JOURNALS).decode()
    lines = []
    for row in csv.DictReader(io.StringIO(text, newline="")):
        debit, credit = (
            parse_minor_units(row[side], currency=row["currency"]) for side in ("debit", "credit")
        )
        day = date.fromisoformat(row["date"])
        named = {name: row[name] for name in ("currency", "order_no", "break_id", "text")}
        lines.append(
            BookLine(row["kind"], row["journal_id"], day, row["account"], debit, credit, **named)
        )
    return lines


def _closed(connection: Connection, wanted: MonthBooks) -> ClosedMonth:
    month, account = wanted.month.name, wanted.account
    closed = closed_months.state_of(connection, account, month=month).closed
    if closed is None:
        msg = (
            f"{month} of {'/'.join(account)} is not CLOSED, so its journals may still change; "
            f"nothing was handed out: `recon close {month}` shows them, two people close it "
            "(--sign), then export"
        )
        raise UsageError(msg)
    return closed


def _choice(
    connection: Connection, sealed: _Sealed, *, again: Sequence[str]
) -> tuple[list[BookLine], int, Mapping[str, str]]:
    """Which lines leave, how many journals left before, and which are kept back and why."""
    lines, closed = sealed.lines, sealed.closed
    breaks = {line.journal_id: line.break_id for line in lines if line.kind == PERMANENT}
    others = {line.journal_id for line in lines} - {*breaks}
    known = journal_rows.states(connection, {*breaks})
    out = closed_months.handed_out_of_closes(connection, closed.account, others)
    if again:
        if strange := [name for name in again if name not in {*known, *out}]:
            msg = (
                f"{', '.join(strange)} was never handed out of this month; nothing was written: "
                "without --again what was not handed out is"
            )
            raise UsageError(msg)
        return [line for line in lines if line.journal_id in again], 0, {}
    kept: dict[str, str] = {}
    aside = set_aside(connection, sealed.newest)
    now, then = sums_by_journal(sealed.result.journals), sums_by_journal(lines)
    for name, break_id in breaks.items():
        if name in known:
            continue
        if break_id in aside:
            kept[name] = WRITTEN_OFF
        elif now.get(name) != then[name]:
            kept[name] = MOVED_ON
    for name, each in out.items():
        if each.number != closed.number:
            kept[name] = (
                f"close {each.number} handed it out: take that out of the books, then --again"
            )
    before = {*known, *out} - {*kept}
    chosen = [line for line in lines if line.journal_id not in {*before, *kept}]
    return chosen, len(before), kept


def sums_by_journal(lines: pd.DataFrame | Sequence[BookLine]) -> JournalSums:
    """Journal -> what it debits and credits by account and currency, on whatever days.

    `lines`: proposed by a night, or of a close; minor units.
    """
    columns = ("journal_id", "account", "currency", "debit", "credit")
    rows: Iterable[Sequence[Any]]
    if isinstance(lines, pd.DataFrame):
        whole = lines.fillna({"debit": 0, "credit": 0})
        whole = whole.astype({"debit": "int64", "credit": "int64"})
        rows = whole[[*columns]].itertuples(index=False, name=None)
    else:
        rows = (tuple(getattr(line, name) for name in columns) for line in lines)
    sums: JournalSums = {}
    for name, account, currency, debit, credit in rows:
        both = sums.setdefault(name, {}).setdefault((account, currency), [0, 0])
        both[0] += debit
        both[1] += credit
    return sums


def _note(
    connection: Connection,
    sealed: _Sealed,
    *,
    chosen: Sequence[BookLine],
    wanted: MonthBooks,
    at: datetime,
) -> None:
    """Remember what left: proposals of the night, and accruals and reversals of the close."""
    proposed = [line for line in chosen if line.kind == PERMANENT]
    journals = dict.fromkeys((line.journal_id, line.break_id, line.currency) for line in proposed)
    days: dict[str, list[str]] = {name: [] for name, _, _ in journals}
    for day, name in sorted({(line.day, line.journal_id) for line in proposed}):
        days[name].append(f"{day}")
    how: dict[str, Any] = {"days": days, "written_as": wanted.format, "at": at}
    if proposed and wanted.again:
        journal_rows.note_again(connection, sealed.newest, **how)
    elif proposed:
        journal_rows.note_exported(connection, sealed.newest, journals=[*journals], **how)
    own = sorted((line for line in chosen if line.kind != PERMANENT), key=lambda line: line.journal)
    closed_months.note_handed_out(
        connection,
        sealed.closed,
        journals=[
            MonthJournal(name, rows[0].kind, day, currency, sum(row.debit for row in rows))
            for (day, name, currency), rows in journals_of(own)
        ],
        written_as=wanted.format,
        is_again=bool(wanted.again),
        at=at,
    )


OF_FEES = "FEE_"
"""How codes of breaks begin whose journals a close leaves on their own day: fees are accrued."""


def export_of_night(
    run_id: str,
    *,
    out: Path,
    environment: Environment,
    again: Sequence[str] = (),
    is_of_night: bool = False,
) -> Handed:
    """Write the journals of a night that are of no earlier month, and remember that they left.

    Args:
        run_id: the newest run of a night.
        out: folder of the file.
        environment: what the step works with.
        again: journals whose file was lost, by their ids.
        is_of_night: book all on the night's own day, whatever month it is of.

    Raises:
        UsageError: see `export_journals`.
        OutputError: the file cannot be written; nothing was handed out.
        ArchiveError: a sealed folder is gone, changed, or cannot be reached.
    """

    def waits(run: Run, result: Reconciliation) -> Mapping[str, str]:
        return {} if is_of_night else dict(_of_month(run, result, environment=environment))

    return export_journals(run_id, out=out, environment=environment, again=again, waits=waits)


def _of_month(
    run: Run, result: Reconciliation, *, environment: Environment
) -> Iterator[tuple[str, str]]:
    """Journals that are of the month before the night's, and what hands them out."""
    month = BusinessMonth.named(f"{run.business_date:%Y-%m}").month_before
    account = (run.merchant_id, run.account_id)
    with environment.store.reading() as connection:
        closed = closed_months.state_of(connection, account, month=month.name).closed
        nights = runs.last_finished(connection, account)
    is_played = any(
        month.first <= day <= month.last and night.mode is Mode.LIVE
        for day, night in nights.items()
    )
    by_period = f"`recon journals --period {month.name}`"
    if closed is not None:
        for name in _sealed(closed, result=result, month=month, environment=environment):
            yield name, f"two people signed it with its day in {month.name}: {by_period}"
    elif is_played:
        age = environment.settings.rules.business_calendar.business_days_between(
            month.last, end=run.business_date
        )
        for name in _may_be_of(result, age=age, last=month.last.isoformat()):
            why = (
                f"it may be of {month.name}, which nobody closed: the close hands it out with its "
                f"day ({by_period}), --day-of-night books it on {run.business_date}"
            )
            yield name, why


def _may_be_of(result: Reconciliation, *, age: int, last: str) -> list[str]:
    """Journals of breaks as old as a month's last day, or shown by then.

    Days off after it share its age: what is of them waits as well, and keeps its day at the close.
    """
    breaks = result.breaks
    is_old = breaks["age_days"].fillna(0).ge(age) | breaks["first_seen"].astype("str").le(last)
    old = breaks.loc[is_old & ~breaks["code"].astype("str").str.startswith(OF_FEES), "break_id"]
    journals = result.journals
    return sorted({*journals.loc[journals["break_id"].isin(old), "journal_id"].astype("str")})


def _sealed(
    closed: ClosedMonth, *, result: Reconciliation, month: BusinessMonth, environment: Environment
) -> list[str]:
    """Journals that the night proposes as the close has them, on a day of the month in part."""
    lines = [
        line for line in sealed_lines(closed, environment=environment) if line.kind == PERMANENT
    ]
    dated = {line.journal_id for line in lines if line.day <= month.last}
    then, now = sums_by_journal(lines), sums_by_journal(result.journals)
    return sorted(name for name in dated if now.get(name) == then[name])
