"""Step 6: the figures of a night into a workbook, and the proof that the sheets are the result.

The workbook writer and reader are arguments (`reports` stands above this package). The workbook is
written, read back and compared with sums over the files that the night sealed (T13); when they
differ the night is NOT PROVEN and the workbook is written again saying so.

What the gateway said of a payment's risk, in a sentence for the workbook.
"""

import errno
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from recon.config.fee_contract import FeeContract
from recon.files.formats.named_bytes import sha256_of
from recon.matching.breaks.reopened import with_reopened
from recon.matching.breaks.result import Reconciliation
from recon.matching.cash.holdings import gateway_holds
from recon.model.errors import Defect, OutputError
from recon.model.figures import (
    BANK_DAYS_AHEAD,
    MATCHED_BATCH_ROWS,
    Attention,
    ListFile,
    MatchedRows,
    NightFigures,
    TrendPoint,
    files_named,
)
from recon.model.freed_memory import give_back
from recon.model.nights import StepSummary
from recon.model.resolutions import Import
from recon.model.words import ControlTotal
from recon.privacy.own_files import make_folder
from recon.proof.bridge import bridge_of
from recon.proof.second_engine import SHEETS_IN_SQL, second_proof
from recon.steps.compare.fee_claims import write_claims
from recon.steps.compare.grave_breaks import grave_breaks
from recon.steps.compare.inputs import frozen_inputs
from recon.steps.compare.journals import handed_out
from recon.steps.compare.page_notes import page_notes
from recon.steps.compare.second_proof import sheets_proven
from recon.steps.compare.sheets_proven import (
    SheetTotals,
    sheets_table,
    t13,
    with_checks,
    with_files,
    with_t13,
)
from recon.steps.ground import kept_results
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_end import end_of
from recon.steps.ground.night_folder import bind
from recon.steps.ground.sealed_night import sealed_night
from recon.steps.ground.sealed_totals import refuse_changed_result
from recon.steps.ground.shown_answers import risks_shown
from recon.steps.night.sealed_proof import write_proof
from recon.steps.night.shown_sources import ShownSources, shown_sources
from recon.steps.people.people import attention
from recon.store import Connection
from recon.store.database import history
from recon.store.money import instruction_sheet
from recon.store.nights import input_rows, results, rules_rows, runs, sign_off_rows
from recon.store.nights.input_rows import Inputs
from recon.store.nights.runs import Run
from recon.store.people import resolution_rows

STEP = "report"
TREND_NIGHTS = 14
DOUBTFUL_WORDS = ("in flight", "in doubt", "undecided")


@dataclass(frozen=True, slots=True)
class Workbooks:
    """How a workbook is written and read back; `reports` provides both."""

    write: Callable[[NightFigures, Path], Path]
    """Figures and wanted path -> the path that was written."""
    totals: Callable[[Path], SheetTotals]


def report(run_id: str, *, environment: Environment, workbooks: Workbooks) -> StepSummary:
    """Write the night's workbook and prove it against the sealed result.

    Raises:
        OutputError: the reports folder cannot be written; everything else of the night is kept.
    """
    with environment.store.reading() as connection:
        run = runs.get(connection, run_id)
        result = kept_results.load(connection, run_id, environment=environment)
    if result is None:
        msg = f"run {run_id} has no result to report"
        raise Defect(msg)
    with environment.store.reading() as connection:
        sealed = kept_results.section_sums(connection, run_id, environment=environment)
    expected = with_files(sealed, files=_named(run, environment=environment))
    sheets = _Sheets(run, expected=with_checks(expected, verdict=result.verdict))
    proven = with_t13(result, totals=sheets.agreeing())
    figures = figures_of(run, result=proven, environment=environment)
    give_back()
    path = _write(figures, environment=environment, workbooks=workbooks)
    give_back()
    totals = workbooks.totals(path)
    checked = sheets.held_against(totals, environment=environment)
    if not all(total.passed for total in checked):
        proven = with_t13(result, totals=checked)
        figures = figures_of(run, result=proven, environment=environment)
        path = _write(figures, environment=environment, workbooks=workbooks)
    _keep(run, result=proven, path=path, sheets=sheets.table(totals), environment=environment)
    end = end_of(run, environment=environment, verdict=proven.verdict)
    figure_values = {"workbook": str(path), "verdict": proven.verdict.value, **end.figures}
    return StepSummary(STEP, f"{end.sentence} The workbook is at {path}.".strip(), figure_values)


@dataclass(frozen=True, slots=True)
class _Sheets:
    """What the sheets of a run's workbook must come to, in two engines."""

    run: Run
    expected: SheetTotals

    @property
    def account(self) -> tuple[str, str]:
        """Merchant and account."""
        return self.run.merchant_id, self.run.account_id

    def agreeing(self) -> tuple[ControlTotal, ...]:
        """T13, and T14 of it, where everything agrees: what the workbook says until it is read."""
        totals = t13(account=self.account, expected=self.expected, totals=self.expected)
        second = second_proof(totals, by_sql=totals, account=self.account, name=SHEETS_IN_SQL)
        return (*totals, *second)

    def held_against(
        self, totals: SheetTotals, *, environment: Environment
    ) -> tuple[ControlTotal, ...]:
        """The same of the sheets as they were read back."""
        checked = t13(account=self.account, expected=self.expected, totals=totals)
        sheets = self.table(totals)
        return (
            *checked,
            *sheets_proven(self.run, sheets=sheets, totals=checked, environment=environment),
        )

    def table(self, totals: SheetTotals) -> pa.Table:
        """What was read back, as it is sealed."""
        return sheets_table(totals, expected=self.expected, account=self.account)


def figures_of(run: Run, *, result: Reconciliation, environment: Environment) -> NightFigures:
    """Everything the workbook shows, from the tables."""
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    inputs, shown = _compared_by(run, environment=environment)
    sources = shown.sources
    with environment.store.reading() as connection:
        stop = runs.stop_of(connection, run.run_id)
    return NightFigures(
        **_of_tables(run, before=inputs.previous_run_id, environment=environment),
        **_lists(run, environment=environment),
        merchant_id=run.merchant_id,
        account_id=run.account_id,
        merchant_name=account.name,
        business_date=run.business_date,
        run_id=run.run_id,
        mode=run.mode.value,
        as_of=run.as_of,
        generated_at=run.started_at,
        timezone=environment.settings.rules.calendar.timezone,
        bank_until=environment.settings.rules.bank_calendar.business_day_after(
            run.business_date, days=BANK_DAYS_AHEAD
        ),
        verdict=result.verdict,
        breaks=_with_risk(with_reopened(result), run=run, environment=environment),
        effects=result.effects,
        matches=_matched(run, environment=environment),
        pending=result.pending,
        unverified=result.unverified,
        sides=result.sides,
        movements=result.movements,
        journals=result.journals,
        bank=result.bank,
        gateway_holds=gateway_holds(result.held, sources=sources),
        fees=shown.fees(_contract_of(result, environment=environment)),
        handed_out=handed_out(result, inputs=inputs, environment=environment),
        control_totals=result.control_totals,
        files=sources.files,
        rejects=sources.rejects,
        quarantined=sources.quarantined,
        bridge=bridge_of(sources),
        books=shown.books,
        attention=_needs_a_person(run, result=result, environment=environment),
        not_covered=result.not_covered,
        unmapped_codes=result.unmapped_codes,
        scope_of_assurance=result.scope_of_assurance,
        rules_digest=result.rules_digest,
        ledger_covered=sources.ledger is not None,
        stopped=str(stop),
        notes=page_notes(
            run,
            result=result,
            inputs=inputs,
            sources=sources,
            vanished=shown.vanished,
            stop=stop,
            environment=environment,
        ),
    )


def _lists(run: Run, *, environment: Environment) -> dict[str, Any]:
    """The files of the lists that may be long, and how many of their rows a sheet has."""
    workbook = environment.settings.account(run.merchant_id, account_id=run.account_id).workbook
    with environment.store.reading() as connection:
        files = kept_results.list_files(connection, run.run_id, environment=environment)
    return {
        "list_files": files,
        "matched_rows_max": workbook.matched_rows_max,
        "matched_rows_shown": workbook.matched_rows_shown,
        "open_rows_max": workbook.open_rows_max,
        "open_rows_shown": workbook.open_rows_shown,
    }


def _named(run: Run, *, environment: Environment) -> dict[str, ListFile]:
    """The files that the workbook of a run must name."""
    lists = _lists(run, environment=environment)
    return files_named(
        lists["list_files"],
        matched_rows_max=lists["matched_rows_max"],
        open_rows_max=lists["open_rows_max"],
    )


def _contract_of(result: Reconciliation, *, environment: Environment) -> FeeContract | None:
    """The fee contract that the result was judged by, whatever is declared now.

    Raises:
        StoreError: the rules that judged were changed past the code.
    """
    declared = environment.settings.rules
    if declared.digest == result.rules_digest:
        return declared.fee_contract
    with environment.store.reading() as connection:
        rules = rules_rows.load(connection, result.rules_digest)
    return (rules or declared).fee_contract


def _of_tables(run: Run, *, before: str, environment: Environment) -> dict[str, Any]:
    """What stands in the tables as it is shown; `before` is the run that was carried forward."""
    with environment.store.reading() as connection:
        head = history.head(connection)
        opening = results.open_breaks(connection, before) if before else None
        return {
            "history_head": f"{head.sequence}:{head.hash}",
            "instructions": instruction_sheet.shown_frame(connection, run),
            "batches": instruction_sheet.batch_frame(connection, run),
            "answers": resolution_rows.kept_answers(connection, (run.merchant_id, run.account_id)),
            "trend": tuple(_trend(connection, run)[-TREND_NIGHTS:]),
            "opening_breaks": opening,
        }


def _compared_by(run: Run, *, environment: Environment) -> tuple[Inputs, ShownSources]:
    """What the run read, and what of the compared is shown."""
    with environment.store.reading() as connection:
        inputs = input_rows.load(connection, run.run_id)
        night = sealed_night(connection, run, environment=environment)
    shown = shown_sources(night)
    # The tables that these frames were made of are gone only now.
    give_back()
    return inputs or frozen_inputs(run, environment=environment), shown


def _trend(connection: Connection, run: Run) -> list[TrendPoint]:
    """Open breaks of every earlier night, the newest last."""
    trend = results.open_breaks_by_night(
        connection,
        merchant_id=run.merchant_id,
        account_id=run.account_id,
        before=run.business_date,
    )
    return [TrendPoint(day, count) for day, count in trend.items()]


def _matched(run: Run, *, environment: Environment) -> MatchedRows:
    """The matches of a run, read in parts."""

    def batches() -> Iterator[pd.DataFrame]:
        with environment.store.reading() as connection:
            yield from kept_results.match_batches(
                connection, run.run_id, rows_max=MATCHED_BATCH_ROWS, environment=environment
            )

    with environment.store.reading() as connection:
        summary = results.load_summary(connection, run.run_id)
    return MatchedRows(summary.rows["match"] if summary else 0, batches)


def _with_risk(breaks: pd.DataFrame, *, run: Run, environment: Environment) -> pd.DataFrame:
    """The breaks, each with what the gateway said of its payment's risk."""
    with environment.store.reading() as connection:
        payments = set(breaks["transaction_id"]) - {""}
        risk = risk_told(
            risks_shown(connection, run, transactions=payments, environment=environment)
        )
    return breaks.assign(
        risk=[risk.get(transaction_id, "") for transaction_id in breaks["transaction_id"]]
    )


def _needs_a_person(
    run: Run, *, result: Reconciliation, environment: Environment
) -> tuple[Attention, ...]:
    """What lapses, money in doubt, breaks that are critical or high, then what only waits."""
    listed = attention(run, environment=environment)
    first = {entry for entry in listed if entry.lapses or entry.what.endswith(DOUBTFUL_WORDS)}
    doubtful = tuple(replace(entry, is_urgent=True) for entry in listed if entry in first)
    account = (run.merchant_id, run.account_id)
    with environment.store.reading() as connection:
        answers = resolution_rows.kept_answers(connection, account)
    calendar = environment.settings.rules.business_calendar
    breaks = grave_breaks(result.breaks, answers=answers, calendar=calendar)
    return (*doubtful, *breaks, *(entry for entry in listed if entry not in first))


def rebuild(run_id: str, *, environment: Environment, workbooks: Workbooks) -> Path:
    """Write the workbook of a finished run again, from its folder and the tables.

    Raises:
        ArchiveError: the database has other control totals or words of the result than the run
            bound, or its folder is not as it was sealed: they would be sealed again as its own.
        OutputError: see `report`.
    """
    with environment.store.reading() as connection:
        run = runs.get(connection, run_id)
        refuse_changed_result(connection, run, environment=environment)
    summary = report(run_id, environment=environment, workbooks=workbooks)
    return Path(str(summary.figures["workbook"]))


def rebuild_answered(done: Import, *, environment: Environment, workbooks: Workbooks) -> str:
    """Where answers were saved into the delivered workbook itself, write it again with them.

    What was saved stays where it is; a signature binds what the run wrote, so the new one.

    Returns:
        What was done, as a sentence; "" where the workbook lies as it was written.

    Raises:
        OutputError: see `report`.
    """
    with environment.store.reading() as connection:
        known = {run.run_id: run for run in runs.finished(connection)}
        names = sign_off_rows.signatures(connection, done.run_id).values()
    run = known[done.run_id]
    path = Path(run.workbook)
    lies_there = sha256_of(path) if path.is_file() else ""
    if lies_there != done.sha256 or lies_there == run.workbook_sha256:
        return ""
    if names:
        who = " and ".join(name.by for name in names)
        return (
            f"{path} is not the file that {who} signed any more: put that one back, or, while one "
            f"name is missing, {who} takes it back (`recon take-back {run.run_id}`); then bring "
            "this file in again"
        )
    again = rebuild(run.run_id, environment=environment, workbooks=workbooks)
    return (
        f"{path} stays as it was saved; with its answers the night's workbook is {again}: sign it"
    )


def workbook_path(run: Run, *, environment: Environment) -> Path:
    """Where a night's workbook belongs."""
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    name = f"reconciliation-{run.merchant_id}-{run.account_id}-{run.business_date}.xlsx"
    return account.reports / name


def _write(figures: NightFigures, *, environment: Environment, workbooks: Workbooks) -> Path:
    with environment.store.reading() as connection:
        run = runs.get(connection, figures.run_id)
    wanted = workbook_path(run, environment=environment)
    try:
        make_folder(wanted.parent)
        name = wanted.with_suffix(".csv").name.replace("reconciliation", "fee-claims", 1)
        write_claims(figures.fees, folder=wanted.parent, name=name)
        return workbooks.write(figures, wanted)
    except OSError as error:
        again = f"recon workbook {run.run_id}"
        if run.status == "active":
            options = f"--merchant {run.merchant_id} --account {run.account_id}"
            again = f"recon nightly --only finish {options} --business-date {run.business_date}"
        is_full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        cure = "make room on its disk" if is_full else "make the folder writable"
        msg = (
            f"the workbook cannot be written to {wanted.parent} ({error.strerror}); money and "
            f"result of the night are kept: {cure}, then run `{again}`"
        )
        raise OutputError(msg) from error


def _keep(
    run: Run, *, result: Reconciliation, path: Path, sheets: pa.Table, environment: Environment
) -> None:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    sealed = write_proof(run, result=result, workbook=path, sheets=sheets, environment=environment)
    with environment.store.writing() as connection:
        bind(connection, run, sealed=[sealed], environment=environment)
        values = {"verdict": result.verdict.value}
        # Names stand under the workbook that was signed, never under one that was written later.
        if not sign_off_rows.signatures(connection, run.run_id):
            values |= {"workbook": str(path), "workbook_sha256": digest}
        details = {"workbook_sha256": digest}
        event = runs.result_event(
            run.run_id, values=values, event=history.REPORTED, details=details
        )
        head = history.append(connection, [event], at=environment.clock())
        results.save_totals(connection, run.run_id, totals=result.control_totals)
        values |= {"history_head": f"{head.sequence}:{head.hash}"}
        runs.note_result(connection, run.run_id, values=values)
        runs.note_step(connection, run.run_id, step=STEP)


PLAIN = (
    ("risk_action", "action"),
    ("risk_score", "score"),
    ("is3ds", "3-D Secure"),
    ("antifraud_provider", "provider"),
)
LISTS = (("risk_reasons", "name", "reasons"), ("fraud_checks", "check_items", "checks"))


def risk_told(observations: Iterable[Mapping[Any, Any]]) -> dict[str, str]:
    """Transaction id -> what its answers said of risk; the newest word stands.

    Args:
        observations: Payments that answers showed.
    """
    words: dict[str, str] = {}
    for row in sorted(observations, key=lambda row: row["queried_at"]):
        if sentence := _sentence(json.loads(row["detail"]).get("risk", {})):
            words[row["transaction_id"]] = sentence
    return words


def _sentence(risk: Mapping[str, Any]) -> str:
    parts = [f"{word} {risk[name]}" for name, word in PLAIN if risk.get(name)]
    for name, key, word in LISTS:
        if rows := risk.get(name):
            parts.append(f"{word} {', '.join(_with_status(row[key], row) for row in rows)}")
    return "; ".join(parts)


def _with_status(text: str, row: Mapping[str, str]) -> str:
    return f"{text} ({row['status']})" if row.get("status") else text
