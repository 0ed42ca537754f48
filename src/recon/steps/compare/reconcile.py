"""Step 5: compare the stored orders, gateway answers and ledger entries, and save the result."""

from dataclasses import dataclass, replace
from itertools import chain

from recon.archive.step_folder import Sealed, rows_of
from recon.matching.breaks.result import Reconciliation
from recon.matching.causes.proposed_journals import booked_since
from recon.matching.frames.sources import AgreedWriteOffs, Exported, Sources
from recon.model.nights import StepSummary
from recon.model.step_progress import WorkProgress
from recon.model.terms import SetState, Verdict
from recon.model.uptime import give_back
from recon.proof.buckets import BucketFigures
from recon.proof.engine import reconcile as compare
from recon.proof.ledger_bridge import ledger_steps, steps_of
from recon.proof.night_tables import STEPS, result_tables, steps_table
from recon.proof.verdict import allowance
from recon.steps.compare.in_buckets import compared_in_buckets, cut_night, remove_files
from recon.steps.compare.night_totals import with_sql
from recon.steps.compare.rules_change import MOVED_BY_RULES, moved_since_signed
from recon.steps.compare.sealed_inputs import write_compared
from recon.steps.compare.stored_sources import small_of_night, sources_of_night
from recon.steps.files.incomplete import (
    NO_ANSWER,
    missing_sources,
    why_incomplete,
)
from recon.steps.files.lost_facts import reading_lost_facts
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.gateway_answers import GatewayAnswers
from recon.steps.runtime.night_end import not_verified
from recon.steps.runtime.night_folder import RESULTS, before, record_sealed, write
from recon.store import Connection
from recon.store.database import history
from recon.store.database.record import SUMMARY
from recon.store.nights import input_rows, journal_rows, results, runs
from recon.store.nights.runs import Run, Stop
from recon.store.schema.columns import REASON_CHARACTERS

STEP = "reconcile"
PHASES = 5
"""Parts of the work, each reported when done: loaded, compared, rules, written, in SQL."""


@dataclass(frozen=True, slots=True)
class _Compared:
    """The outcome of a comparison, once its rows are in the night's folder."""

    result: Reconciliation
    """Without its rows (see `Reconciliation.without_rows`)."""
    sealed: tuple[Sealed, Sealed]
    previous_run: str
    """The run whose open breaks were carried forward."""
    lacking: tuple[str, ...]
    """What is missing, where the result is INCOMPLETE."""
    moved: tuple[str, ...]
    """See `moved_since_signed`."""
    exported: tuple[Exported, ...]
    agreed: AgreedWriteOffs | None


@reading_lost_facts
def reconcile(run_id: str, *, environment: Environment) -> StepSummary:
    """Reconcile what is stored for a run; if repeated, the same tables give the same result."""
    with environment.store.reading() as connection:
        run, stop = runs.get(connection, run_id), runs.stop_of(connection, run_id)
    progress = WorkProgress("parts of the comparison done", of=PHASES)
    compared = _compared(run, progress=progress, environment=environment)
    progress.advance()
    # The rows are freed by now: SQL reads them from disk and has the memory to itself.
    give_back()
    result = with_sql(compared.result, run=run, sealed=compared.sealed, environment=environment)
    result = with_stopped_sending(result, stop=stop)
    progress.advance()
    with environment.store.writing() as connection:
        at = environment.clock()
        saved = _save(connection, run, replace(compared, result=result))
        history.append(connection, [saved], at=at)
        record_sealed(connection, run, sealed=compared.sealed, environment=environment)
    figures: dict[str, int | str] = {
        "verdict": result.verdict.value,
        "matched": result.matched,
        "breaks": len(result.breaks),
        "pending": result.rows_of("pending"),
        "unverified": result.rows_of("unverified"),
        "totals_failed": sum(not total.passed for total in result.control_totals),
    }
    sentence = (
        f"{figures['verdict']}: {figures['matched']} matched, {figures['breaks']} breaks, "
        f"{figures['pending']} pending, {figures['unverified']} unverified; "
        f"{figures['totals_failed']} control totals failed."
    )
    # What the gateway holds and took, as on page one; nothing without a settlement.
    holds = () if result.gateway_holds is None else result.gateway_holds.sentences()
    return StepSummary(STEP, "\n".join((sentence, *(f"{each}." for each in holds))), figures)


def _compared(run: Run, *, progress: WorkProgress, environment: Environment) -> _Compared:
    """Compare what is stored for a run; write inputs and result to the night's folder."""
    rules = environment.settings.rules
    # An earlier attempt may have ended before all its parts were compared.
    remove_files(run, environment=environment)
    written = write_compared(run, environment=environment)
    give_back()
    night = written.night
    sources, previous = small_of_night(night)
    cut = cut_night(run, night, small=sources, previous=previous, environment=environment)
    progress.advance()
    figures: list[BucketFigures] = []
    moved: tuple[str, ...] = ()
    if cut is None:
        sources, previous = sources_of_night(night)
        compared = compare(sources, rules=rules, as_of=run.as_of, previous=previous)
        moved = moved_since_signed(
            run, result=compared, sources=sources, previous=previous, environment=environment
        )
    else:
        compared, figures, sources = compared_in_buckets(
            run, night, cut, small=sources, previous=previous, environment=environment
        )
    give_back()
    progress.advance()
    pieces = [steps_of(sources, rules=rules), *(each.steps for each in figures)]
    steps = steps_table(sources, ledger_sums=ledger_steps(sources, rules=rules, pieces=pieces))
    give_back()
    progress.advance()
    result = with_missing_sources(compared, sources=sources)
    if moved:  # never RECONCILED under rules that changed since the last signed night
        result = at_best(result, Verdict.BREAKS_OPEN)
    del compared
    if unverified_items := not_verified(run, environment=environment):
        # Nor with a money reply that could not be verified; each of those counts as one item.
        unverified = result.sides["state"].eq(SetState.UNVERIFIED.value)
        items = int(result.sides.loc[unverified, "count"].sum()) + len(unverified_items)
        is_too_much = items + len(sources.rejects) > allowance(sources, rules=rules)
        result = at_best(result, Verdict.INCOMPLETE if is_too_much else Verdict.BREAKS_OPEN)
    lacking = _lacking(result, sources=sources, run=run, environment=environment)
    exported, agreed = sources.exported, sources.agreed_write_offs
    # From here on only what is still needed of the sources stays in memory.
    del sources
    give_back()
    tables = rows_of(chain([(STEPS, steps)], result_tables(result)))
    results = write(
        run,
        RESULTS,
        files=tables,
        terms=written.terms,
        after=before(RESULTS, recorded=written.recorded),
        environment=environment,
    )
    if cut is not None:
        remove_files(run, environment=environment)
    sealed = (written.step, results)
    previous_run, bare = written.inputs.previous_run_id, result.without_rows()
    return _Compared(bare, sealed, previous_run, lacking, moved, exported, agreed)


def _lacking(
    result: Reconciliation,
    *,
    sources: Sources,
    run: Run,
    environment: Environment,
) -> tuple[str, ...]:
    """Why the result is incomplete; where no order got an answer, with the most frequent cause."""
    rules = environment.settings.rules
    lacking = why_incomplete(result, sources=sources, rules=rules)
    if NO_ANSWER not in lacking:
        return lacking
    with environment.store.reading() as connection:
        _, causes = GatewayAnswers(connection, run, environment).failures()
    caused = " ".join([NO_ANSWER, *(f"({cause})" for cause in causes[:1])])
    return tuple(caused if sentence == NO_ANSWER else sentence for sentence in lacking)


def _save(connection: Connection, run: Run, compared: _Compared) -> history.Event:
    """Save the result, with what an INCOMPLETE one lacks; return the event for the history."""
    result = compared.result
    summary = results.save(connection, run.run_id, result=result)
    booked = booked_since(result.effects, exported=compared.exported)
    journal_rows.note_booked(connection, run, booked=booked)
    lacking = compared.lacking if result.verdict is Verdict.INCOMPLETE else ()
    values = {
        "verdict": result.verdict.value,
        "rules_digest": result.rules_digest,
        "result_digest": result.digest,
        "problem": "; ".join(lacking)[:REASON_CHARACTERS],
    }
    runs.note_result(connection, run.run_id, values=values)
    runs.note_step(connection, run.run_id, step=STEP)
    details = {
        "previous_run": compared.previous_run,
        SUMMARY.under: summary,
        MOVED_BY_RULES: [*compared.moved],
        **input_rows.found_written_off(connection, run, agreed=compared.agreed),
    }
    return runs.result_event(run.run_id, values=values, event=runs.RECONCILED, details=details)


def with_missing_sources(result: Reconciliation, *, sources: Sources) -> Reconciliation:
    """The result, INCOMPLETE at best where an order file is missing or could not be read at all."""
    missing = missing_sources(sources)
    if not missing:
        return result
    lacking = replace(result, not_covered=(*result.not_covered, *missing))
    return at_best(lacking, Verdict.INCOMPLETE)


def with_stopped_sending(result: Reconciliation, *, stop: Stop) -> Reconciliation:
    """The result, INCOMPLETE at best where the night did not send all its instructions."""
    return at_best(result, Verdict.INCOMPLETE) if stop else result


def at_best(result: Reconciliation, verdict: Verdict) -> Reconciliation:
    """The result with the worse of its own verdict and the given one."""
    worst = min(result.verdict, verdict, key=tuple(Verdict).index)
    return replace(result, verdict=worst)
