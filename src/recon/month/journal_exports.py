"""Export journals, once each, as files for accounting software: of a closed month, or of a night.

The lines of a month come from the sealed folder of the close, since that is what two people signed.
A proposed journal is exported only while the newest night still proposes exactly it: its entry may
have been booked since.

A night dates all its proposals with its own day. What moved in the month before belongs to that
month: two people sign on which day it is booked, by what is known then, late files included. So a
night holds back what may belong to the last month that ended, until its close exports it with its
day, or until a person requests that it is booked on the night's day.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

from recon.config.rules import JournalExport
from recon.matching.breaks.result import Reconciliation
from recon.model.business_date import BusinessMonth
from recon.model.errors import UsageError
from recon.model.money import parse_minor_units
from recon.model.nights import Mode
from recon.model.terms import PERMANENT, Verdict
from recon.month.journal_formats import JournalFiles, JournalLine, journal_files, journals_of
from recon.steps.compare.result_files import output_folder, write_files
from recon.steps.runtime.closed_folders import closed_folder
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.night_folder import StoredResult
from recon.store import Connection
from recon.store.nights import journal_rows, runs
from recon.store.nights.journal_rows import LeftAs
from recon.store.nights.runs import Run
from recon.store.people import closed_months, resolution_rows
from recon.store.people.closed_months import ClosedMonth, MonthJournal

JOURNALS = "journals.csv"
JournalSums = dict[str, dict[tuple[str, str], list[int]]]
"""Journal -> account and currency -> debits and credits, minor units."""
WRITTEN_OFF = "its break is written off, or waits for a second person to agree"
MOVED_ON = (
    "the newest night does not propose it as it was closed: its entry came, or its amount moved"
)


@dataclass(frozen=True, slots=True)
class HandOut:
    """Which journals to export, and how."""

    out: Path
    format: str = journal_rows.OWN_FORMAT
    again: Sequence[str] = ()
    """Ids of journals to export again because their file was lost."""
    currencies: Sequence[str] = ()
    """Export only journals in these currencies; empty means all."""
    is_of_night: bool = False
    """For a night: book all on its own day, whichever month they belong to."""


@dataclass(frozen=True, slots=True)
class ExportedJournals:
    """What was exported of a close or of a night."""

    paths: tuple[Path, ...]
    """Empty if there was nothing to export."""
    journals: int
    exported_before: int
    """How many of its journals were exported earlier; they are in no file."""
    held_back_journals: Mapping[str, str]
    """Journal -> why it is in no file."""
    close: int = 0
    """Number of the close; 0 for a night."""


@dataclass(frozen=True, slots=True)
class _Source:
    """The journals that may be exported: those of a close, or those that a night proposes."""

    what: str
    """The source as text for messages; `name` is the base of its file names."""
    name: str
    lines: Sequence[JournalLine]
    newest: Run
    proposed: Sequence[JournalLine]
    """What the newest night proposes."""
    written_at: datetime
    later: Mapping[str, str] = field(default_factory=dict)
    """Journal -> why it is not exported yet."""
    closed: ClosedMonth | None = None


def export_month(
    month: BusinessMonth, *, account: tuple[str, str], hand_out: HandOut, environment: Environment
) -> ExportedJournals:
    """Export the journals of a closed month, and record that they were exported.

    Raises:
        UsageError: the month is not CLOSED, the newest night proves nothing, or as `_hand_out`.
        OutputError: the files cannot be written; nothing was exported.
        ArchiveError: the folder of the close is missing, changed, or cannot be reached.
    """
    with environment.store.reading() as connection:
        closed = _closed(connection, account, month=month.name)
        newest = _newest_run(connection, account)
    run, result = _proposing(newest, environment=environment)
    source = _Source(
        month.name,
        "-".join(("journals", *closed.account, closed.month, f"close-{closed.number}")),
        sealed_lines(closed, environment=environment),
        run,
        _lines_of(result),
        closed.at,
        closed=closed,
    )
    return _hand_out(source, hand_out=hand_out, environment=environment)


def export_of_night(
    run_id: str, *, hand_out: HandOut, environment: Environment
) -> ExportedJournals:
    """Export and record the newest night's journals that belong to no earlier month.

    Raises:
        UsageError: the run has no result, was a dry run, is NOT PROVEN, or a later one of its
            account replaces its proposals; or as `_hand_out`.
        OutputError: the file cannot be written; nothing was exported.
        ArchiveError: a sealed folder is missing, changed, or cannot be reached.
    """
    run, result = _proposing(run_id, environment=environment)
    later = dict[str, str]()
    if not hand_out.is_of_night:
        later = dict(_of_month(run, result, environment=environment))
    lines = _lines_of(result)
    source = _Source("this run", f"journals-{run_id}", lines, run, lines, run.as_of, later)
    return _hand_out(source, hand_out=hand_out, environment=environment)


def _hand_out(source: _Source, *, hand_out: HandOut, environment: Environment) -> ExportedJournals:
    """Write journals, once each.

    A journal is recorded before its file is published: after a crash between the two it is missing
    from a file rather than in two, and `again` writes it once more.

    Raises:
        UsageError: the format cannot hold a line, a journal named again was never exported, none is
            in a currency that is named, or a file with other content is at the path.
    """
    currencies = {line.currency for line in source.lines}
    if strange := {*hand_out.currencies} - currencies:
        msg = (
            f"no journal of {source.what} is in {', '.join(sorted(strange))}; nothing was handed "
            "out: name currencies of its journals, or none for all"
        )
        raise UsageError(msg)
    chosen = {*hand_out.currencies} or currencies
    source = replace(source, lines=[line for line in source.lines if line.currency in chosen])
    closed = source.closed
    with output_folder(hand_out.out) as place, environment.store.writing() as connection:
        if closed and _closed(connection, closed.account, month=closed.month) != closed:
            msg = f"{closed.month} was closed anew at this moment; nothing was handed out"
            raise UsageError(msg)
        going, before, held_back = _choice(connection, source, again=hand_out.again)
        codes = environment.settings.rules.journal.export or JournalExport()
        names = [source.name, *sorted({*hand_out.currencies}), *["again"] * bool(hand_out.again)]
        layout = JournalFiles("-".join(names), hand_out.format, source.written_at, codes)
        files = journal_files(going, layout=layout)
        for path, content in ((hand_out.out / name, files[name]) for name in files):
            if path.exists() and path.read_bytes() != content:
                msg = (
                    f"{path} lies there with another content, of an earlier export; nothing "
                    "was handed out: move it away, or name another --out"
                )
                raise UsageError(msg)
        write_files(place, {name: [text] for name, text in files.items()})
        _note(connection, source, chosen=going, hand_out=hand_out, at=environment.clock())
    paths = tuple(hand_out.out / name for name in files)
    number = closed.number if closed else 0
    return ExportedJournals(
        paths, len({line.journal_id for line in going}), before, held_back, number
    )


def _lines_of(result: Reconciliation) -> list[JournalLine]:
    journals = result.journals.fillna({"debit": 0, "credit": 0})
    return [
        JournalLine(
            PERMANENT,
            str(row["journal_id"]),
            date.fromisoformat(str(row["date"])),
            str(row["account"]),
            int(row["debit"]),
            int(row["credit"]),
            *(str(row[name]) for name in ("currency", "order_no", "break_id", "text")),
        )
        for row in journals.to_dict("records")
    ]


def sealed_lines(closed: ClosedMonth, *, environment: Environment) -> list[JournalLine]:
    """Return the lines of a close's journals as they were sealed.

    Raises:
        ArchiveError: the file is missing, changed, or cannot be reached.
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
            JournalLine(row["kind"], row["journal_id"], day, row["account"], debit, credit, **named)
        )
    return lines


def _closed(connection: Connection, account: tuple[str, str], *, month: str) -> ClosedMonth:
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
    connection: Connection, source: _Source, *, again: Sequence[str]
) -> tuple[list[JournalLine], int, Mapping[str, str]]:
    """Return the lines to export, how many journals went before, and those held back with why."""
    lines, closed = source.lines, source.closed
    breaks = {line.journal_id: line.break_id for line in lines if line.kind == PERMANENT}
    others = {line.journal_id for line in lines} - {*breaks}
    known = journal_rows.states(connection, {*breaks})
    out = {}
    if closed is not None:
        out = closed_months.exported_of_closes(connection, closed.account, others)
    if again:
        if strange := [name for name in again if name not in {*known, *out}]:
            msg = (
                f"{', '.join(strange)} was never handed out of {source.what}; nothing was written: "
                "without --again what was not handed out is, and `recon journals` lists what was"
            )
            raise UsageError(msg)
        return [line for line in lines if line.journal_id in again], 0, {}
    written_off = _written_off_since(connection, source.newest)
    now, then = sums_by_journal(source.proposed), sums_by_journal(lines)
    held_back: dict[str, str] = {}
    for name in sorted({*breaks} - {*known}):
        if breaks[name] in written_off:
            held_back[name] = WRITTEN_OFF
        elif name in source.later:
            held_back[name] = source.later[name]
        elif now.get(name) != then[name]:
            held_back[name] = MOVED_ON
    for name, each in out.items():
        if closed is not None and each.number != closed.number:
            held_back[name] = (
                f"close {each.number} handed it out: take that out of the ledger, then --again"
            )
    before = {*known, *out} - {*held_back}
    chosen = [line for line in lines if line.journal_id not in {*before, *held_back}]
    return chosen, len(before), held_back


def sums_by_journal(lines: Iterable[JournalLine]) -> JournalSums:
    """Map journal -> its debits and credits by account and currency, over all days."""
    sums: JournalSums = {}
    for line in lines:
        key = line.account, line.currency
        both = sums.setdefault(line.journal_id, {}).setdefault(key, [0, 0])
        both[0] += line.debit
        both[1] += line.credit
    return sums


def _note(
    connection: Connection,
    source: _Source,
    *,
    chosen: Sequence[JournalLine],
    hand_out: HandOut,
    at: datetime,
) -> None:
    """Record what is exported: proposals of the night, and accruals and reversals of the close."""
    proposed = [line for line in chosen if line.kind == PERMANENT]
    journals = dict.fromkeys((line.journal_id, line.break_id, line.currency) for line in proposed)
    days: dict[str, list[str]] = {name: [] for name, _, _ in journals}
    for day, name in sorted({(line.day, line.journal_id) for line in proposed}):
        days[name].append(f"{day}")
    how: dict[str, Any] = {"days": days, "written_as": hand_out.format, "at": at}
    how |= {"journals": [*journals], "is_again": bool(hand_out.again)}
    if proposed:
        journal_rows.note_exported(connection, source.newest, **how)
    if source.closed is None:
        return
    own = sorted((line for line in chosen if line.kind != PERMANENT), key=lambda line: line.journal)
    closed_months.note_close_exported(
        connection,
        source.closed,
        journals=[
            MonthJournal(name, rows[0].kind, day, currency, sum(row.debit for row in rows))
            for (day, name, currency), rows in journals_of(own)
        ],
        written_as=hand_out.format,
        is_again=bool(hand_out.again),
        at=at,
    )


OF_FEES = "FEE_"
"""Code prefix of breaks whose journals a close leaves on their own day, since fees are accrued."""


def _proposing(run_id: str, *, environment: Environment) -> tuple[Run, Reconciliation]:
    """Return the run and its result, if its proposals may be exported.

    Raises:
        UsageError: it has no result, was a dry run, is NOT PROVEN, or is not the newest.
    """
    with environment.store.reading() as connection:
        run = runs.get(connection, run_id)
        result = StoredResult(connection, run_id, environment).whole()
        newest = _newest_run(connection, run.account)
    if result is None or newest != run_id:
        because = "has no result" if result is None else f"is not the newest: run {newest} is"
        msg = f"run {run_id} {because}; journals are handed out of the newest finished run only"
        raise UsageError(msg)
    if run.mode is not Mode.LIVE:
        msg = f"run {run_id} was a dry run; journals are handed out of live nights only"
        raise UsageError(msg)
    if run.verdict == Verdict.NOT_PROVEN:
        msg = (
            f"run {run_id} is NOT PROVEN: its amounts are not safe to book; find what its Control "
            "totals say, run the night again, then export"
        )
        raise UsageError(msg)
    return run, result


def _newest_run(connection: Connection, account: tuple[str, str]) -> str:
    nights = runs.last_finished(connection, account)
    return nights[max(nights)].run_id if nights else ""


def _written_off_since(connection: Connection, run: Run) -> set[str]:
    """Return breaks written off since the night, or waiting for a second person to agree to it."""
    account = run.account
    waiting = resolution_rows.waiting_write_offs(connection)
    waiting_ids = {
        each.break_id for each in waiting if (each.merchant_id, each.account_id) == account
    }
    return {*resolution_rows.agreed_write_offs(connection, account)} | waiting_ids


def _of_month(
    run: Run, result: Reconciliation, *, environment: Environment
) -> Iterator[tuple[str, str]]:
    """Yield journals that belong to the month before the night's, and how to export them."""
    month = BusinessMonth.named(f"{run.business_date:%Y-%m}").month_before
    account = run.account
    with environment.store.reading() as connection:
        closed = closed_months.state_of(connection, account, month=month.name).closed
        nights = runs.live_nights(connection, account)
    is_played = any(month.first <= day <= month.last for day in nights)
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
    """Return journals of breaks as old as the month's last day, or shown by then.

    Days off after it share its age: their journals wait as well, and keep their day at the close.
    """
    breaks = result.breaks
    is_old = breaks["age_days"].fillna(0).ge(age) | breaks["first_seen"].astype("str").le(last)
    old = breaks.loc[is_old & ~breaks["code"].astype("str").str.startswith(OF_FEES), "break_id"]
    journals = result.journals
    return sorted({*journals.loc[journals["break_id"].isin(old), "journal_id"].astype("str")})


def _sealed(
    closed: ClosedMonth, *, result: Reconciliation, month: BusinessMonth, environment: Environment
) -> list[str]:
    """Return journals equal in night and close, of which the close has lines in the month."""
    lines = [
        line for line in sealed_lines(closed, environment=environment) if line.kind == PERMANENT
    ]
    dated = {line.journal_id for line in lines if line.day <= month.last}
    then, now = sums_by_journal(lines), sums_by_journal(_lines_of(result))
    return sorted(name for name in dated if now.get(name) == then[name])


@dataclass(frozen=True, slots=True)
class OutJournal:
    """A journal that was exported and is not yet in the ledger."""

    journal_id: str
    merchant_id: str
    account_id: str
    order_no: str
    currency: str
    amount: int
    """The sum of its debits, minor units."""
    exported_of: str
    """The run that proposed it, or the month whose close has it."""
    exported_at: datetime
    kind: str = PERMANENT
    day: str = ""
    """The day on which its file books it, "and" between two; "" if no longer known."""
    format: str = journal_rows.OWN_FORMAT


def journals_out(environment: Environment) -> list[OutJournal]:
    """Return every journal that was exported and not yet seen in the ledger, the oldest first.

    No night sees an accrual or its reversal in the ledger: they are listed until the month after
    theirs is closed.
    """
    with environment.store.reading() as connection:
        exports = journal_rows.not_seen_in_ledger(connection)
        left_as = journal_rows.left_as(connection, [export.journal_id for export in exports])
        of_closes = [*_of_closes(connection)]
        proposals = {
            run_id: StoredResult(connection, run_id, environment).whole()
            for run_id in {export.run_id for export in exports}
        }
    proposed = _with_amounts(exports, proposals=proposals, left_as=left_as)
    return sorted([*proposed, *of_closes], key=lambda out: (out.exported_at, out.journal_id))


def _of_closes(connection: Connection) -> Iterator[OutJournal]:
    for out in closed_months.out_of_closes(connection):
        after = BusinessMonth.named(out.month).after.name
        if closed_months.state_of(connection, out.account, month=after).closed is None:
            yield OutJournal(
                journal_id=out.journal.journal,
                merchant_id=out.account[0],
                account_id=out.account[1],
                order_no="",
                currency=out.journal.currency,
                amount=out.journal.amount,
                exported_of=out.month,
                exported_at=out.at,
                kind=out.journal.kind,
                day=out.journal.day.isoformat(),
                format=out.format,
            )


def _with_amounts(
    exports: Iterable[journal_rows.Out],
    *,
    proposals: Mapping[str, Reconciliation | None],
    left_as: Mapping[str, LeftAs],
) -> Iterator[OutJournal]:
    for export in exports:
        result, out = proposals[export.run_id], left_as[export.journal_id]
        lines: list[dict[Any, Any]] = []
        if result is not None:
            mine = result.journals["journal_id"].eq(export.journal_id)
            lines = result.journals[mine].to_dict("records")
        yield OutJournal(
            journal_id=export.journal_id,
            merchant_id=export.merchant_id,
            account_id=export.account_id,
            order_no=str(lines[0]["order_no"]) if lines else "",
            currency=export.currency,
            amount=sum(int(line["debit"]) for line in lines),
            exported_of=export.run_id,
            exported_at=export.exported_at,
            day=" and ".join(out.days) or (str(lines[0]["date"]) if lines else ""),
            format=out.format,
        )
