"""Step 5: compare orders, gateway and ledger as the tables have them, and keep the result."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from recon.matching.engine import reconcile as compare
from recon.matching.journals import shown_in_the_books
from recon.matching.result import Reconciliation
from recon.matching.sources import Previous, Sources
from recon.model import (
    Answer,
    ControlTotal,
    GatewayState,
    Reject,
    SourceFile,
    SourceKind,
    StepSummary,
    Verdict,
)
from recon.steps.arrivals import WHOLE_FILE
from recon.steps.environment import Environment
from recon.steps.query import previous_night, window_start
from recon.steps.siblings import with_siblings
from recon.store import (
    answers,
    instruction_rows,
    journal_rows,
    ledger_rows,
    order_rows,
    resolution_rows,
    results,
    runs,
)
from recon.store.columns import REASON_CHARACTERS
from recon.store.runs import Run

STEP = "reconcile"
NO_ORDER_FILE = "no order file has arrived for this business date"
WORST_FIRST = tuple(Verdict)


def reconcile(run_id: str, *, environment: Environment) -> StepSummary:
    """Reconcile what the run's tables hold; may be repeated, the same tables give the same."""
    with environment.store.reading() as connection:
        run = runs.get(connection, run_id)
    sources = sources_of(run, environment=environment)
    rules, previous = environment.settings.rules, previous_of(run, environment=environment)
    compared = compare(sources, rules=rules, as_of=run.as_of, previous=previous)
    again = compare(turned(sources), rules=rules, as_of=run.as_of, previous=previous)
    proven = with_same_digest(compared, again=again, run=run)
    result = with_missing_sources(proven, sources=sources)
    with environment.store.writing() as connection:
        results.save(connection, run_id, result=result)
        shown = shown_in_the_books(result.effects, exported=sources.exported)
        journal_rows.note_booked(connection, run, shown=shown)
        runs.note_result(
            connection,
            run_id,
            values={
                "verdict": result.verdict.value,
                "rules_digest": result.rules_digest,
                "result_digest": result.digest,
                "problem": "; ".join(missing_sources(sources))[:REASON_CHARACTERS],
            },
        )
        runs.note_step(connection, run_id, step=STEP)
    figures: dict[str, int | str] = {
        "verdict": result.verdict.value,
        "matched": len(result.matches),
        "breaks": len(result.breaks),
        "pending": len(result.pending),
        "unverified": len(result.unverified),
        "totals_failed": sum(not total.passed for total in result.control_totals),
    }
    return StepSummary(STEP, _sentence(figures), figures)


def sources_of(run: Run, *, environment: Environment) -> Sources:
    """What the engine compares, from the run's tables."""
    rules = environment.settings.rules
    with environment.store.reading() as connection:
        loaded = order_rows.files_of_night(connection, run)
        every_reject = order_rows.rejects_of_night(connection, run)
        files, rejects = _of_this_account(
            [source for source, _ in loaded], every_reject, account_id=run.account_id
        )
        extract = ledger_rows.load(connection, run.run_id)
        own = Sources(
            orders=order_rows.current_orders(connection, run, since=window_start(run, rules=rules)),
            gateway=answers.gateway_frame(connection, run),
            ledger=_of_account(extract, run=run),
            instructions=instruction_rows.engine_frame(connection, run),
            rejects=rejects,
            files=(*files, *((extract[1],) if extract else ())),
            universe=answers.universe(connection, run),
            exported=journal_rows.exported(connection, run),
            agreed_write_offs=resolution_rows.agreed_write_offs(
                connection, (run.merchant_id, run.account_id)
            ),
            merged_rows={source.name: counts for source, counts in loaded},
        )
    return with_siblings(own, run=run, environment=environment)


def previous_of(run: Run, *, environment: Environment) -> Previous | None:
    """What the night before left open."""
    before = previous_night(run, environment=environment)
    if before is None:
        return None
    codes = [
        code
        for code, state in environment.settings.rules.payment_status.items()
        if state == GatewayState.CHARGEBACK.value
    ]
    with environment.store.reading() as connection:
        stored = results.load(connection, before.run_id)
        if stored is None:
            return None
        return Previous(
            as_of=before.as_of,
            breaks=stored.breaks,
            chargebacks=answers.chargeback_keys(connection, run, codes=codes),
        )


def turned(sources: Sources) -> Sources:
    """The same sources with the rows of every frame the other way round."""
    names = ("orders", "gateway", "ledger", "instructions", "settlement", "universe")
    frames = {name: getattr(sources, name) for name in names}
    return replace(
        sources,
        **{
            name: frame.iloc[::-1].reset_index(drop=True)
            for name, frame in frames.items()
            if frame is not None
        },
    )


def with_same_digest(result: Reconciliation, *, again: Reconciliation, run: Run) -> Reconciliation:
    """T14: the same inputs, read in the other order, give the same digest; else NOT PROVEN."""
    name = "the same inputs again, in another order = the same result"
    place = (run.merchant_id, run.account_id, "", "count")
    total = ControlTotal("T14", name, *place, 1, int(result.digest == again.digest))
    verdict = result.verdict if total.passed else Verdict.NOT_PROVEN
    return replace(result, control_totals=(*result.control_totals, total), verdict=verdict)


def with_missing_sources(result: Reconciliation, *, sources: Sources) -> Reconciliation:
    """INCOMPLETE at best when no order file came, or one could not be read at all."""
    missing = missing_sources(sources)
    if not missing:
        return result
    verdict = worse(result.verdict, than=Verdict.INCOMPLETE)
    return replace(result, verdict=verdict, not_covered=(*result.not_covered, *missing))


def missing_sources(sources: Sources) -> tuple[str, ...]:
    """Sources that should have been there, each in one sentence."""
    missing = [
        f"order file {item.source} could not be read: {item.reason}"
        for item in sources.rejects
        if item.column == WHOLE_FILE
    ]
    if not any(file.kind is SourceKind.ORDERS for file in sources.files):
        missing.append(NO_ORDER_FILE)
    answers_given = sources.gateway["answer"]
    if len(answers_given) and (answers_given == Answer.FAILED.value).all():
        missing.append("the gateway gave no usable answer for any order")
    return tuple(missing)


def worse(one: Verdict, *, than: Verdict) -> Verdict:
    """The worse of two verdicts."""
    return min(one, than, key=WORST_FIRST.index)


def _of_this_account(
    files: Sequence[SourceFile], rejects: Sequence[Reject], *, account_id: str
) -> tuple[tuple[SourceFile, ...], tuple[Reject, ...]]:
    """Rejected rows of another account are that account's business: skipped here, not lost."""
    others = Counter(
        item.source for item in rejects if item.account_id and item.account_id != account_id
    )
    own = tuple(item for item in rejects if item.account_id in {"", account_id})
    shared = tuple(
        replace(
            file,
            rows_rejected=file.rows_rejected - others[file.name],
            rows_skipped=file.rows_skipped + others[file.name],
        )
        for file in files
    )
    return shared, own


def _of_account(
    extract: tuple[pd.DataFrame, SourceFile] | None, *, run: Run
) -> pd.DataFrame | None:
    if extract is None:
        return None
    entries = extract[0]
    ours = (entries["merchant_id"] == run.merchant_id) & (entries["account_id"] == run.account_id)
    return entries.loc[ours].reset_index(drop=True)


def _sentence(figures: dict[str, int | str]) -> str:
    return (
        f"{figures['verdict']}: {figures['matched']} matched, {figures['breaks']} breaks, "
        f"{figures['pending']} pending, {figures['unverified']} unverified; "
        f"{figures['totals_failed']} control totals failed."
    )
