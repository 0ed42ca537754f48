"""Step 6 of a night: write the workbook and prove that its sheets show the result.

The workbook writer and reader are arguments, since `reports` is a layer above this package. The
workbook is written, read back and compared with sums over the files that the night sealed (T13); if
they differ the night is NOT PROVEN, and the workbook is written again to say so.

Also formats what the gateway reported about a payment's risk, as text for the workbook.
"""

import errno
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.schemas import ANSWERS, SCHEMAS
from recon.archive.step_folder import Document, Sealed
from recon.config.fee_contract import FeeContract
from recon.files.formats.named_bytes import sha256_of
from recon.matching.breaks.movements import with_reopened
from recon.matching.breaks.result import BANKED, COUNTED, Reconciliation
from recon.matching.cash.fees_charged import charged_by_pieces
from recon.matching.cash.result import gateway_holds
from recon.matching.causes.proposed_journals import LACKS, journal_id, not_in_ledger
from recon.matching.frames.sources import (
    GATEWAY_COLUMNS,
    SETTLEMENT_COLUMNS,
    VANISHED_COLUMNS,
    Exported,
    Sources,
    frame_of,
)
from recon.matching.sides.agreed_fees import volumes_of
from recon.matching.sides.settlement_side import of_payments, summed_lines, with_summed
from recon.model.errors import Defect, OutputError
from recon.model.figures import (
    BANK_DAYS_AHEAD,
    MATCHED_BATCH_ROWS,
    OF_RESULT,
    Attention,
    MatchedRows,
    NightFigures,
    TrendPoint,
    UnbookedExport,
    files_named,
)
from recon.model.gateway_holds import ChargedFees
from recon.model.nights import StepSummary
from recon.model.resolutions import Import, StoredAnswer
from recon.model.terms import REVERSAL_SUFFIX, EntryType
from recon.model.uptime import give_back
from recon.privacy.own_files import make_folder
from recon.proof.ledger_bridge import LEDGER_STEPS, LedgerSteps, bridge_of
from recon.proof.night_tables import (
    FRAMES,
    TARIFFS,
    frame_of_table,
    with_tariffs,
)
from recon.proof.totals_in_sql import sql_files
from recon.steps.approvals.people import attention
from recon.steps.approvals.sign_off import notes_on
from recon.steps.compare.inputs import frozen_inputs, vanished_reported
from recon.steps.compare.listed_breaks import severe_breaks
from recon.steps.compare.night_totals import results_at
from recon.steps.compare.result_files import write_claims
from recon.steps.compare.rules_change import MOVED_BY_RULES
from recon.steps.compare.sheets_proven import (
    SheetTotals,
    proof_parts,
    proven_by_sheets,
    rules_document,
)
from recon.steps.compare.stored_sources import small_of_night
from recon.steps.files.arrived_rows import files_reported
from recon.steps.files.incomplete import NO_ORDER_FILE, missing_sources
from recon.steps.files.order_files import nameless_reported
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.gateway_answers import GatewayAnswers
from recon.steps.runtime.night_end import STOP_NEXT, end_of
from recon.steps.runtime.night_folder import (
    DECISIONS,
    PROOF,
    WORKBOOK,
    SealedNight,
    StoredResult,
    Terms,
    before,
    links,
    newest,
    packed_lines,
    record_sealed,
    refuse_changed_result,
    sealed_night,
    storages_of,
    write,
)
from recon.steps.runtime.predecessor import (
    SKIPPED,
    held_nights,
    missing_days,
    named_days,
    previous_night,
)
from recon.store import Connection
from recon.store.database import history
from recon.store.money import sending_rows
from recon.store.nights import input_rows, journal_rows, results, runs, sign_off_rows
from recon.store.nights.input_rows import StoredInputs
from recon.store.nights.runs import Run, Stop
from recon.store.nights.settlement_rows import Settlements
from recon.store.people import resolution_rows

_PLACE = ("merchant_id", "account_id")
_FEES = (EntryType.FEE.value, EntryType.FEE.value + REVERSAL_SUFFIX)
_SETTLEMENT = "settlement"


@dataclass(frozen=True, slots=True)
class WorkbookSources:
    """The sources of a night, reduced to what a workbook shows."""

    sources: Sources
    """Complete except for its frames: orders whose key occurs twice; ledger entries of that kind
    and, with settlement lines, fees; one answer row per kind; summed settlement lines; no
    universe."""
    ledger_sums: LedgerSteps
    vanished: pd.DataFrame
    """With the columns VANISHED_COLUMNS."""
    night: SealedNight
    """The sealed night, with all rows of the frames."""

    def fees(self, contract: FeeContract | None) -> ChargedFees | None:
        """Return the charged and the agreed fees; None without a settlement or a contract.

        Raises:
            ArchiveError: the night's folder cannot be reached, or is not as it was sealed.
        """
        sources = self.sources
        if contract is None or sources.settlement is None:
            return None
        pieces = _with_brands(self.night)
        return charged_by_pieces(pieces, contract=contract, volumes=volumes_of(sources))


def workbook_sources(night: SealedNight) -> WorkbookSources:
    """Return what a workbook shows of the sealed inputs of a night.

    Raises:
        ArchiveError: the night's folder cannot be reached, or is not as it was sealed.
    """
    small, previous = small_of_night(night)
    ledger, lines = small.ledger, small.settlement
    if ledger is not None:
        fees = () if lines is None else _FEES
        ledger = _rows_of_shared_keys(night, "ledger", key="entry_id", types=fees)
    answers = [{"answer": each, "line": 0} for each in _answer_texts(night)]
    shown = replace(
        small,
        orders=_rows_of_shared_keys(night, "orders", key="order_no"),
        ledger=ledger,
        gateway=frame_of(answers, columns=GATEWAY_COLUMNS),
        settlement=None if lines is None else _summed(night, of=lines),
    )
    vanished = frame_of((), columns=VANISHED_COLUMNS) if previous is None else previous.vanished
    return WorkbookSources(shown, _ledger_steps(night.table("steps")), vanished, night)


def _with_brands(night: SealedNight) -> Iterator[pd.DataFrame]:
    """Yield all lines (SETTLEMENT_COLUMNS) in batches, or in one frame if there are tariffs."""
    if night.has(TARIFFS) and len(tariffs := night.table(TARIFFS)):
        lines = frame_of_table(night.table(_SETTLEMENT))
        yield with_tariffs(lines, table=tariffs)[[*SETTLEMENT_COLUMNS]]
        return
    yield frame_of((), columns=SETTLEMENT_COLUMNS)
    for lines in _settled(night):
        yield with_tariffs(lines, table=None)[[*SETTLEMENT_COLUMNS]]


def _settled(night: SealedNight) -> Iterator[pd.DataFrame]:
    """Yield the settlement lines of a night in batches, without the tariff columns."""
    columns = SCHEMAS[_SETTLEMENT].columns
    for rows in night.batches(_SETTLEMENT, columns=columns.names):
        yield frame_of_table(rows.cast(columns))


def _summed(night: SealedNight, *, of: pd.DataFrame) -> pd.DataFrame:
    """Return the lines that belong to no payment, with the sums of those that do.

    `of` is a frame with the columns of both.
    """
    others, sums = [of.iloc[:0]], []
    for lines in _settled(night) if night.has(_SETTLEMENT) else ():
        of_sets = of_payments(lines)
        sums.append(summed_lines(lines[of_sets]))
        others.append(lines[~of_sets])
    return with_summed(pd.concat(others, ignore_index=True), summed=sums)


def _rows_of_shared_keys(
    night: SealedNight, name: str, *, key: str, types: Sequence[str] = ()
) -> pd.DataFrame:
    """Return the rows whose key another row shares, or whose entry type is one of `types`."""
    table = night.table(name)
    is_needed = table.select([*_PLACE, key]).to_pandas().duplicated(keep=False)
    if types:
        is_needed |= table["entry_type"].to_pandas().isin(types)
    chosen = table.filter(pa.array(is_needed)).cast(SCHEMAS[name].columns)
    return frame_of_table(chosen)[[*FRAMES[name][1]]]


def _answer_texts(night: SealedNight) -> list[str]:
    """Return the kinds of answers compared."""
    columns = (rows["answer"] for rows in night.batches(ANSWERS, columns=["answer"]))
    return sorted({text for each in columns for text in pc.unique(each).to_pylist()})


def _ledger_steps(steps: pa.Table) -> LedgerSteps:
    """Return every step of the ledger's sums by currency, as the comparison sealed them."""
    rows = [row for row in steps.to_pylist() if row["way"] == "ledger"]
    ledger_sums: dict[str, dict[str, int]] = {row["currency"]: {} for row in rows}
    for row in sorted(rows, key=lambda row: LEDGER_STEPS.index(row["step"])):
        ledger_sums[row["currency"]][row["step"]] = row["number"]
    return dict(sorted(ledger_sums.items()))


def skipped_nights(run: Run, *, environment: Environment) -> list[str]:
    """Return a sentence on the business days without a run since the previous night."""
    before = previous_night(run, environment=environment)
    if before is None:
        return []
    calendar = environment.settings.rules.business_calendar
    missing = missing_days(before.business_date, day=run.business_date, calendar=calendar)
    if not missing:
        return []
    why = run.predecessor.removeprefix(SKIPPED)
    reason = f" ({why})" if why != run.predecessor else ""
    days = "this day" if len(missing) == 1 else "these days"
    return [
        f"No night ran for {named_days(missing)}{reason}: what came in on {days} is compared now."
    ]


def _opening_reported(run: Run, *, sources: Sources) -> Iterator[str]:
    """Yield a sentence on what is older than the window."""
    counts = Counter[str]()
    for balance in sources.opening_balance:
        counts[balance.what] += balance.count
    if counts:
        left_out = " and ".join(f"{count:,} {what}" for what, count in counts.items())
        yield (
            f"Opening balance, not compared: {left_out} from before the window "
            f"(`recon breaks {run.run_id} --opening` lists them)."
        )


UNREAD_REPORTED_MAX = 3


def _unread_lines(run: Run, *, inputs: StoredInputs, environment: Environment) -> Iterator[str]:
    """Yield a sentence if settlement lines of this or an earlier night could not be read."""
    with environment.store.reading() as connection:
        settled = Settlements(connection, run, storages_of(environment), inputs.last_file)
        lines = settled.unread_lines(siblings=inputs.siblings)
    spans = [
        f"line {line} of {file} ({column})" for file, line, column in lines[:UNREAD_REPORTED_MAX]
    ]
    spans += ["…"] if len(lines) > UNREAD_REPORTED_MAX else []
    if lines:
        yield (
            f"{len(lines):,} settlement lines could not be read ({', '.join(spans)}): their "
            "batches, and the fees and reserves in the currencies that they can be of, are not "
            "verified until the file is sent again, corrected, under its name."
        )


def page_notes(
    run: Run,
    *,
    result: Reconciliation,
    inputs: StoredInputs,
    sources: Sources,
    of_files: Sequence[str],
    vanished: pd.DataFrame,
    stop: Stop,
    environment: Environment,
) -> tuple[str, ...]:
    """Return all notes of the workbook's first page, those to act on first at the top."""
    with environment.store.reading() as connection:
        moved = runs.result_data(connection, run.run_id).get(MOVED_BY_RULES, ())
    notes = [
        *([f"{stop} {STOP_NEXT}"] if stop else []),
        *nameless_reported(sources.quarantined, breaks=result.breaks),
        *moved,
        *of_files,
        *_unread_lines(run, inputs=inputs, environment=environment),
    ]
    gateway = environment.settings.gateway
    if gateway.reply_signatures != "enforce":
        notes.append(
            f"Reply signatures are not enforced ({gateway.reply_signatures}): answers are not "
            "proven to be the gateway's."
        )
    missing = missing_sources(sources)
    notes += [f"Missing: {sentence}." for sentence in missing]
    if NO_ORDER_FILE in missing:
        notes.append(
            "Without its order files a payment looks like one that no order explains: find the "
            "files before anything below is answered."
        )
    notes += vanished_reported(vanished)
    notes += _opening_reported(run, sources=sources)
    notes += skipped_nights(run, environment=environment)
    if run.mode.value != "live":
        notes.append("Dry run: nothing was sent to the gateway.")
    with environment.store.reading() as connection:
        account = run.account
        unproven = held_nights(connection, account, environment=environment)
        stopped = sending_rows.stopped(connection)
        notes += notes_on(run.run_id, connection=connection, desk=environment.desk)
    if stopped and not stop:
        notes.append(f"No money moves: {stopped}.")
    held = [day for day in unproven if day != run.business_date]  # this run replaces that night
    if held:
        notes.append(f"Refunds are held: the night of {', '.join(map(str, held))} is NOT PROVEN.")
    return tuple(notes)


STEP = "report"
TREND_NIGHTS = 14
DOUBTFUL_LABELS = ("in flight", "in doubt", "undecided")


@dataclass(frozen=True, slots=True)
class Workbooks:
    """The functions that write a workbook and read it back; `reports` provides both."""

    write: Callable[[NightFigures, Path], Path]
    """Takes the figures and the requested path; returns the path written."""
    totals: Callable[[Path], SheetTotals]


def report(run_id: str, *, environment: Environment, workbooks: Workbooks) -> StepSummary:
    """Write the night's workbook and prove it against the sealed result.

    Raises:
        OutputError: the reports folder cannot be written; everything else of the night is stored.
    """
    with environment.store.reading() as connection:
        run = runs.get(connection, run_id)
        result = StoredResult(connection, run_id, environment).whole()
    if result is None:
        msg = f"run {run_id} has no result to report"
        raise Defect(msg)
    lists = _lists(run, environment=environment)
    named = files_named(
        lists["list_files"],
        matched_rows_max=lists["matched_rows_max"],
        open_rows_max=lists["open_rows_max"],
    )

    def drawn(shown: Reconciliation) -> Path:
        figures = figures_of(run, result=shown, environment=environment)
        give_back()
        return _write(figures, environment=environment, workbooks=workbooks)

    with results_at(run, environment=environment) as results:
        proven, path, sheets = proven_by_sheets(
            result,
            results=results,
            files=named,
            account=run.account,
            draw=drawn,
            read=workbooks.totals,
        )
    _save(run, result=proven, path=path, sheets=sheets, environment=environment)
    end = end_of(run, environment=environment, verdict=proven.verdict)
    figure_values = {"workbook": str(path), "verdict": proven.verdict.value, **end.figures}
    return StepSummary(STEP, f"{end.sentence} The workbook is at {path}.".strip(), figure_values)


def figures_of(run: Run, *, result: Reconciliation, environment: Environment) -> NightFigures:
    """Return everything the workbook shows, from the tables."""
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    rules = environment.settings.rules
    with environment.store.reading() as connection:
        inputs = input_rows.load(connection, run.run_id)
        night = sealed_night(connection, run, environment=environment)
    displayed = workbook_sources(night)
    # Only now are the tables behind these frames released.
    give_back()
    inputs, sources = inputs or frozen_inputs(run, environment=environment), displayed.sources
    with environment.store.reading() as connection:
        stop = runs.stop_of(connection, run.run_id)
    of_tables = _of_tables(run, before=inputs.previous_run_id, environment=environment)
    answers = of_tables["answers"]
    of_files, uncovered = files_reported(run, until=inputs.last_file, environment=environment)
    return NightFigures(
        **{name: getattr(result, name) for name in OF_RESULT},
        **of_tables,
        **_lists(run, environment=environment),
        merchant_id=run.merchant_id,
        account_id=run.account_id,
        merchant_name=account.name,
        business_date=run.business_date,
        run_id=run.run_id,
        mode=run.mode.value,
        generated_at=run.started_at,
        timezone=rules.calendar.timezone,
        bank_until=rules.bank_calendar.business_day_after(run.business_date, days=BANK_DAYS_AHEAD),
        breaks=_with_risk(with_reopened(result), run=run, environment=environment),
        gateway_holds=gateway_holds(result.held, sources=sources),
        fees=displayed.fees(_contract_of(result, environment=environment)),
        handed_out=_exported(result, sources=sources, environment=environment),
        files=sources.files,
        rejects=sources.rejects,
        quarantined=sources.quarantined,
        bridge=bridge_of(sources),
        ledger_sums=displayed.ledger_sums,
        attention=_needs_a_person(run, result=result, answers=answers, environment=environment),
        not_covered=(*result.not_covered, *uncovered),
        ledger_covered=sources.ledger is not None,
        stopped=str(stop),
        notes=page_notes(
            run,
            result=result,
            inputs=inputs,
            sources=sources,
            of_files=of_files,
            vanished=displayed.vanished,
            stop=stop,
            environment=environment,
        ),
    )


def _exported(
    result: Reconciliation, *, sources: Sources, environment: Environment
) -> tuple[UnbookedExport, ...]:
    """Journals exported before the run read its inputs that its ledger does not show yet."""
    waiting = not_in_ledger(result.effects, exported=sources.exported)
    names = {
        journal_id(export.break_id, export.currency, version=export.version): export
        for export in waiting
    }
    with environment.store.reading() as connection:
        out = journal_rows.handed_out(connection, names)
    rows = [
        UnbookedExport(
            journal_id=name,
            break_id=line.break_id,
            currency=line.currency,
            **_lacking(result, line),
            run_id=out[name].run_id,
            exported_at=out[name].exported_at,
        )
        for name, line in names.items()
    ]
    return tuple(sorted(rows, key=lambda export: (export.exported_at, export.journal_id)))


def _lacking(result: Reconciliation, exported: Exported) -> dict[str, Any]:
    """Order and payment of a journal's break, and the amount that the ledger still lacks."""
    breaks, effects = result.breaks, result.effects
    mine = breaks[breaks["break_id"].eq(exported.break_id)].iloc[0]
    lacks = effects["break_id"].eq(exported.break_id) & effects["currency"].eq(exported.currency)
    lacks &= effects["leg"].isin(LACKS)
    return {
        "order_no": str(mine["order_no"]),
        "transaction_id": str(mine["transaction_id"]),
        "amount": int(effects.loc[lacks, "amount"].sum()),
    }


def _of_tables(run: Run, *, before: str, environment: Environment) -> dict[str, Any]:
    """Return the figures read from tables; `before` is the run carried forward."""

    def batches() -> Iterator[pd.DataFrame]:
        """Yield the matches of the run in batches."""
        with environment.store.reading() as connection:
            saved = StoredResult(connection, run.run_id, environment)
            yield from saved.match_batches(rows_max=MATCHED_BATCH_ROWS)

    with environment.store.reading() as connection:
        head = history.head(connection)
        summary = results.load_summary(connection, run.run_id)
        # Open breaks of every earlier night, the newest last.
        trend = results.open_breaks_by_night(
            connection,
            run,
            before=run.business_date,
        )
        return {
            "history_head": f"{head.sequence}:{head.hash}",
            "instructions": sending_rows.sheet_frame(connection, run, for_people=True),
            "batches": sending_rows.batch_frame(connection, run),
            "answers": resolution_rows.stored_answers(connection, run.account),
            "trend": tuple(TrendPoint(*point) for point in [*trend.items()][-TREND_NIGHTS:]),
            "opening_breaks": results.open_breaks(connection, before) if before else None,
            "matches": MatchedRows(summary.rows["match"] if summary else 0, batches),
        }


def _lists(run: Run, *, environment: Environment) -> dict[str, Any]:
    """Return the files of the long lists, and how many of their rows a sheet shows."""
    workbook = environment.settings.account(run.merchant_id, account_id=run.account_id).workbook
    with environment.store.reading() as connection:
        files = StoredResult(connection, run.run_id, environment).list_files()
    return {
        "list_files": files,
        "matched_rows_max": workbook.matched_rows_max,
        "matched_rows_shown": workbook.matched_rows_shown,
        "open_rows_max": workbook.open_rows_max,
        "open_rows_shown": workbook.open_rows_shown,
    }


def _contract_of(result: Reconciliation, *, environment: Environment) -> FeeContract | None:
    """Return the fee contract that the result was computed with, whatever is declared now.

    Raises:
        StoreError: the stored rules were changed outside this program.
    """
    declared = environment.settings.rules
    if declared.digest == result.rules_digest:
        return declared.fee_contract
    with environment.store.reading() as connection:
        rules = runs.load(connection, result.rules_digest)
    return (rules or declared).fee_contract


def _with_risk(breaks: pd.DataFrame, *, run: Run, environment: Environment) -> pd.DataFrame:
    with environment.store.reading() as connection:
        payments = set(breaks["transaction_id"]) - {""}
        risk = risk_reported(GatewayAnswers(connection, run, environment).risks_reported(payments))
    return breaks.assign(
        risk=[risk.get(transaction_id, "") for transaction_id in breaks["transaction_id"]]
    )


def _needs_a_person(
    run: Run,
    *,
    result: Reconciliation,
    answers: Mapping[str, StoredAnswer],
    environment: Environment,
) -> tuple[Attention, ...]:
    """Return what lapses or is in doubt, then severe breaks, then what only waits."""
    listed = attention(run, environment=environment)
    first = {entry for entry in listed if entry.lapses or entry.what.endswith(DOUBTFUL_LABELS)}
    doubtful = tuple(replace(entry, is_urgent=True) for entry in listed if entry in first)
    calendar = environment.settings.rules.business_calendar
    breaks = severe_breaks(
        result.breaks, answers=answers, calendar=calendar, began_at=run.started_at
    )
    return (*doubtful, *breaks, *(entry for entry in listed if entry not in first))


def rebuild(run_id: str, *, environment: Environment, workbooks: Workbooks) -> Path:
    """Write the workbook of a finished run again, from its folder and the tables.

    Raises:
        ArchiveError: the database has other control totals or labels of the result than the run
            attested, or its folder is not as it was sealed; both would be sealed again as its own.
        OutputError: see `report`.
    """
    with environment.store.reading() as connection:
        run = runs.get(connection, run_id)
        refuse_changed_result(connection, run, environment=environment)
    summary = report(run_id, environment=environment, workbooks=workbooks)
    return Path(str(summary.figures["workbook"]))


def rebuild_answered(done: Import, *, environment: Environment, workbooks: Workbooks) -> str:
    """Write the workbook again if answers were saved into the delivered file itself.

    The saved file stays in place; a signature covers what the run wrote, so the new workbook is
    signed.

    Returns:
        What was done, as a sentence; "" if the workbook is unchanged since it was written.

    Raises:
        OutputError: see `report`.
    """
    with environment.store.reading() as connection:
        known = {run.run_id: run for run in runs.finished(connection)}
        names = sign_off_rows.signatures(connection, done.run_id, desk=environment.desk).values()
    run = known[done.run_id]
    path = Path(run.workbook)
    lies_there = sha256_of(path) if path.is_file() else ""
    if lies_there != done.sha256 or lies_there == run.workbook_sha256:
        return ""
    if names:
        who = " and ".join(name.by for name in names)
        return (
            f"{path} is not the file that {who} signed any more: put that one back, or, while one "
            f"name is missing, {who} takes it back (`recon sign-off {run.run_id} "
            "--take-back`); then bring this file in again"
        )
    again = rebuild(run.run_id, environment=environment, workbooks=workbooks)
    return (
        f"{path} stays as it was saved; with its answers the night's workbook is {again}: sign it"
    )


def _write(figures: NightFigures, *, environment: Environment, workbooks: Workbooks) -> Path:
    with environment.store.reading() as connection:
        run = runs.get(connection, figures.run_id)
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    name = f"{run.merchant_id}-{run.account_id}-{run.business_date}"
    path = account.reports / f"reconciliation-{name}.xlsx"
    try:
        make_folder(path.parent)
        write_claims(figures.fees, folder=path.parent, name=f"fee-claims-{name}.csv")
        return workbooks.write(figures, path)
    except OSError as error:
        again = f"recon workbook {run.run_id}"
        if run.status == "active":
            options = f"--merchant {run.merchant_id} --account {run.account_id}"
            again = f"recon nightly --only finish {options} --business-date {run.business_date}"
        is_full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        cure = "make room on its disk" if is_full else "make the folder writable"
        msg = (
            f"the workbook cannot be written to {path.parent} ({error.strerror}); money and "
            f"result of the night are kept: {cure}, then run `{again}`"
        )
        raise OutputError(msg) from error


def _save(
    run: Run, *, result: Reconciliation, path: Path, sheets: pa.Table, environment: Environment
) -> None:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    sealed = write_proof(run, result=result, workbook=path, sheets=sheets, environment=environment)
    with environment.store.writing() as connection:
        record_sealed(connection, run, sealed=[sealed], environment=environment)
        values = {"verdict": result.verdict.value}
        # Signatures belong to the workbook that was signed, never to one written later.
        if not sign_off_rows.signatures(connection, run.run_id, desk=environment.desk):
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


APPROVED = ("instruction_id", "kind", "order_no", "currency", "amount", "state", "approved_by")


def write_proof(
    run: Run,
    *,
    result: Reconciliation,
    workbook: Path,
    sheets: pa.Table,
    environment: Environment,
) -> Sealed:
    """Write the step `proof`, which the caller attests; `sheets` were read back from the workbook.

    Raises:
        ArchiveError: the archive cannot be written; money, result and workbook are stored.
    """
    with environment.store.reading() as connection:
        recorded = newest(links(connection, run.run_id))
        inputs = input_rows.load(connection, run.run_id)
        decided = decisions_of(connection, run)
        decisions = [json.dumps(each, sort_keys=True, default=str) + "\n" for each in decided]
        night = sealed_night(connection, run, environment=environment)
        saved = runs.text_of(connection, result.rules_digest)
    # The rules that were applied, whatever is declared now; none if they are no longer stored.
    declared, documents = environment.settings.rules, list[Document]()
    if declared.digest == result.rules_digest:
        documents.append(rules_document(declared.document))
    elif runs.digest_of_text(saved) == result.rules_digest:
        documents.append(rules_document(json.loads(saved)))
    documents.append(Document(DECISIONS, packed_lines("".join(decisions))))
    documents.append(Document(WORKBOOK, workbook.read_bytes()))
    # The SQL statements that prove the night name the files at their places in its folder.
    texts = sql_files(moved=night.moved, banks=night.has(COUNTED), bank_booked=night.has(BANKED))
    files = proof_parts(result, sheets=sheets, documents=documents, statements=texts)
    return write(
        run,
        PROOF,
        files=files,
        terms=Terms(inputs.previous_run_id if inputs else "", result.rules_digest),
        after=before(PROOF, recorded=recorded),
        environment=environment,
    )


def decisions_of(connection: Connection, run: Run) -> Iterator[Mapping[str, object]]:
    """Yield the decisions of people that this night shows, each with its kind."""
    if run.predecessor:
        yield {"decision": "night before", "word": run.predecessor}
    for row in sending_rows.sheet_frame(connection, run).to_dict("records"):
        if row["approved_by"]:
            yield {"decision": "approval", **{str(name): row[name] for name in APPROVED}}
    answers = resolution_rows.stored_answers(connection, (run.merchant_id, run.account_id))
    for break_id, saved in sorted(answers.items()):
        yield {"decision": "answer", "break_id": break_id, **asdict(saved)}


PLAIN = (
    ("risk_action", "action"),
    ("risk_score", "score"),
    ("is3ds", "3-D Secure"),
    ("antifraud_provider", "provider"),
)
LISTS = (("risk_reasons", "name", "reasons"), ("fraud_checks", "check_items", "checks"))


def risk_reported(observations: Iterable[Mapping[Any, Any]]) -> dict[str, str]:
    """Map transaction id -> what its newest answer with risk data reported, as text.

    Args:
        observations: Payments that answers showed.
    """
    sentences: dict[str, str] = {}
    for row in sorted(observations, key=lambda row: row["queried_at"]):
        if sentence := _sentence(json.loads(row["detail"]).get("risk", {})):
            sentences[row["transaction_id"]] = sentence
    return sentences


def _sentence(risk: Mapping[str, Any]) -> str:
    reported = [f"{term} {risk[name]}" for name, term in PLAIN if risk.get(name)]
    for name, key, term in LISTS:
        if rows := risk.get(name):
            named = (
                row[key] + (f" ({row['status']})" if row.get("status") else "") for row in rows
            )
            reported.append(f"{term} {', '.join(named)}")
    return "; ".join(reported)
