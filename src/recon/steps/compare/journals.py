"""Handing proposed journals out: once each, as a file that a ledger can import."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd

from recon.matching.breaks.result import Reconciliation
from recon.matching.causes.proposed_journals import LACKS, journal_id, not_in_the_books
from recon.matching.frames.sources import Exported
from recon.model.business_date import BusinessMonth
from recon.model.errors import UsageError
from recon.model.figures import HandedOut
from recon.model.nights import Mode
from recon.model.words import PERMANENT, Verdict
from recon.steps.compare.result_files import journals_csv, output_folder, publish, stage
from recon.steps.ground import kept_results
from recon.steps.ground.environment import Environment
from recon.store import Connection
from recon.store.nights import journal_rows, runs
from recon.store.nights.input_rows import Inputs
from recon.store.nights.journal_rows import LeftAs
from recon.store.nights.runs import Run
from recon.store.people import closed_months, resolution_rows

WRITTEN_OFF = "its break is written off, or waits for a second person to agree"


@dataclass(frozen=True, slots=True)
class Handed:
    """What was handed out."""

    path: Path | None
    """None: there was nothing to hand out."""
    journals: int
    handed_before: int
    """Of the run's proposals, those that were handed out earlier; they are not in the file."""
    kept_back: Mapping[str, str]
    """Proposal -> why it is in no file."""


@dataclass(frozen=True, slots=True)
class OutJournal:
    """A journal that was handed out and that the books do not show yet."""

    journal_id: str
    merchant_id: str
    account_id: str
    order_no: str
    currency: str
    amount: int
    """Its debits, minor units."""
    handed_out_of: str
    """The run that proposed it, or the month whose close has it."""
    handed_out_at: datetime
    kind: str = PERMANENT
    day: str = ""
    """On which its file books it, "and" between two; "" where nothing tells any more."""
    format: str = journal_rows.OWN_FORMAT


Waits = Callable[[Run, Reconciliation], Mapping[str, str]]
"""Journal -> why it is not to leave yet, of what a run proposes."""


def _none_waits(_run: Run, _result: Reconciliation) -> Mapping[str, str]:
    return {}


def export_journals(
    run_id: str,
    *,
    out: Path,
    environment: Environment,
    again: Sequence[str] = (),
    waits: Waits = _none_waits,
) -> Handed:
    """Write the journals that the newest run of a night proposes, and remember that they left.

    A journal is noted as handed out before its file takes its place: after a crash between the two
    it is missing from a file rather than in two. `again` names journals whose file was lost: they
    are written once more under their ids, and the history says so. `waits` tells which of the
    others are not to leave yet, and why.

    Raises:
        UsageError: the run has no result, was a dry run, is NOT PROVEN, or a later one of its
            account replaces its proposals; or one named again was never handed out of it.
        OutputError: the file cannot be written; nothing was handed out.
    """
    run, result = proposing(run_id, environment=environment)
    later = {} if again else waits(run, result)
    with output_folder(out):
        with environment.store.writing() as connection:
            known = journal_rows.states(connection, result.journals["journal_id"])
            if again:
                chosen, kept = _named(result.journals, again=again, known=known), {}
            else:
                fresh = result.journals[~result.journals["journal_id"].isin(known)]
                kept = _kept_back(fresh, aside=set_aside(connection, run), waits=later)
                chosen = fresh[~fresh["journal_id"].isin(kept)]
            path = out / _file_name(run_id, again=again)
            staged = stage(out, files={path.name: journals_csv(chosen)}) if len(chosen) else {}
            rows = chosen[["journal_id", "break_id", "currency", "date"]].drop_duplicates()
            if len(chosen):
                _note(connection, run, rows=rows, is_again=bool(again), at=environment.clock())
        publish(staged)
    before = 0 if again else len(known)
    return Handed(path if len(chosen) else None, len(rows), before, kept)


def _kept_back(fresh: pd.DataFrame, *, aside: set[str], waits: Mapping[str, str]) -> dict[str, str]:
    """Which do not leave, and why: a break that is written off is never booked."""
    off = {*fresh.loc[fresh["break_id"].isin(aside), "journal_id"]}
    reasons = {**waits, **dict.fromkeys(off, WRITTEN_OFF)}
    return {name: reasons[name] for name in sorted({*fresh["journal_id"]} & {*reasons})}


def proposing(run_id: str, *, environment: Environment) -> tuple[Run, Reconciliation]:
    """The run and its result, when its proposals may leave.

    Raises:
        UsageError: it has no result, was a dry run, is NOT PROVEN, or is not the newest.
    """
    with environment.store.reading() as connection:
        run = runs.get(connection, run_id)
        result = kept_results.load(connection, run_id, environment=environment)
        newest = newest_run(connection, (run.merchant_id, run.account_id))
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


def _named(
    journals: pd.DataFrame, *, again: Sequence[str], known: Mapping[str, str]
) -> pd.DataFrame:
    strange = [line for line in again if line not in known]
    if strange:
        msg = (
            f"{', '.join(strange)} was never handed out of this run; `recon journals` tells "
            "which were"
        )
        raise UsageError(msg)
    return journals[journals["journal_id"].isin([*again])]


def set_aside(connection: Connection, run: Run) -> set[str]:
    """Breaks that were written off since the night, or will be once a second person agrees."""
    account = (run.merchant_id, run.account_id)
    waiting = resolution_rows.waiting_write_offs(connection)
    asked = {each.break_id for each in waiting if (each.merchant_id, each.account_id) == account}
    return {*resolution_rows.agreed_write_offs(connection, account)} | asked


def _note(
    connection: Connection, run: Run, *, rows: pd.DataFrame, is_again: bool, at: datetime
) -> None:
    days = {
        str(name): [str(day)] for name, day in zip(rows["journal_id"], rows["date"], strict=True)
    }
    if is_again:
        journal_rows.note_again(connection, run, days=days, at=at)
        return
    journals = [*rows.drop(columns="date").itertuples(index=False, name=None)]
    journal_rows.note_exported(connection, run, journals=journals, days=days, at=at)


def _file_name(run_id: str, *, again: Sequence[str]) -> str:
    return f"journals-{run_id}-again.csv" if again else f"journals-{run_id}.csv"


def journals_out(environment: Environment) -> list[OutJournal]:
    """Every journal that was handed out and is not yet seen in the books, the oldest first.

    No night sees an accrual or its reversal in the books: they are listed until the month after
    theirs is closed.
    """
    with environment.store.reading() as connection:
        exports = journal_rows.not_seen_in_the_books(connection)
        left_as = journal_rows.left_as(connection, [export.journal_id for export in exports])
        of_closes = [*_of_closes(connection)]
        proposals = {
            run_id: kept_results.load(connection, run_id, environment=environment)
            for run_id in {export.run_id for export in exports}
        }
    proposed = _with_amounts(exports, proposals=proposals, left_as=left_as)
    return sorted([*proposed, *of_closes], key=lambda out: (out.handed_out_at, out.journal_id))


def _of_closes(connection: Connection) -> Iterator[OutJournal]:
    for out in closed_months.out_of_closes(connection):
        month = BusinessMonth.named(out.month)
        after = f"{month.last + timedelta(days=1):%Y-%m}"
        if closed_months.state_of(connection, out.account, month=after).closed is None:
            yield OutJournal(
                journal_id=out.journal.journal,
                merchant_id=out.account[0],
                account_id=out.account[1],
                order_no="",
                currency=out.journal.currency,
                amount=out.journal.amount,
                handed_out_of=out.month,
                handed_out_at=out.at,
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
            handed_out_of=export.run_id,
            handed_out_at=export.exported_at,
            day=" and ".join(out.days) or (str(lines[0]["date"]) if lines else ""),
            format=out.format,
        )


def handed_out(
    result: Reconciliation, *, inputs: Inputs, environment: Environment
) -> tuple[HandedOut, ...]:
    """What had been handed out when the run read, and what its ledger does not show."""
    waiting = not_in_the_books(result.effects, exported=inputs.exported)
    names = {
        journal_id(export.break_id, export.currency, version=export.version): export
        for export in waiting
    }
    with environment.store.reading() as connection:
        out = journal_rows.handed_out(connection, names)
    rows = [
        HandedOut(
            journal_id=name,
            break_id=line.break_id,
            currency=line.currency,
            **_of_break(result, line),
            run_id=out[name].run_id,
            handed_out_at=out[name].exported_at,
        )
        for name, line in names.items()
    ]
    return tuple(sorted(rows, key=lambda export: (export.handed_out_at, export.journal_id)))


def _of_break(result: Reconciliation, exported: Exported) -> dict[str, Any]:
    """The order and payment of a journal's break, and what the books still lack."""
    breaks, effects = result.breaks, result.effects
    mine = breaks[breaks["break_id"].eq(exported.break_id)].iloc[0]
    lacks = effects["break_id"].eq(exported.break_id) & effects["currency"].eq(exported.currency)
    lacks &= effects["leg"].isin(LACKS)
    return {
        "order_no": str(mine["order_no"]),
        "transaction_id": str(mine["transaction_id"]),
        "amount": int(effects.loc[lacks, "amount"].sum()),
    }


def newest_run(connection: Connection, account: tuple[str, str]) -> str:
    """The finished run of the account's newest night; "" before the first."""
    nights = runs.last_finished(connection, account)
    return nights[max(nights)].run_id if nights else ""
