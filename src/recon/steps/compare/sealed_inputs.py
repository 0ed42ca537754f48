"""Sealing a night's inputs in its folder: before money moves, and again before it is compared.

What is compared was selected before money moved. Once it has moved, answers and states of
instructions are sealed as they are then, with what the night before left open.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from recon.archive.schemas import ANSWERS, SCHEMAS
from recon.archive.step_folder import About, Sealed, rows_of
from recon.config.rules import Rules
from recon.matching.frames.arrays import text_column
from recon.matching.frames.sources import KEY_COLUMNS
from recon.model.errors import UsageError
from recon.model.terms import ControlTotal
from recon.privacy.own_files import folder_for_now, make_folder
from recon.proof.night_tables import (
    PREVIOUS,
    absent_of,
    compared_tables,
    stored_table,
    table_of,
)
from recon.proof.totals_in_sql import JOURNAL, totals_before_money
from recon.steps.compare.inputs import frozen_inputs, instructions_of, previous_of
from recon.steps.compare.selection import RunReading, Selected, selected_inputs
from recon.steps.compare.stored_sources import small_of_night
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.gateway_answers import ANSWER_COLUMNS, GatewayAnswers, as_compared
from recon.steps.runtime.night_folder import (
    COMPARED,
    INPUTS,
    LEDGER_STEP,
    SealedNight,
    Terms,
    answer_steps,
    before,
    links,
    newest,
    record_sealed,
    recorded_step,
    sealed_night,
    storage_of,
    storages_of,
    write,
)
from recon.steps.runtime.window import in_question
from recon.store import Connection
from recon.store.money import sending_rows
from recon.store.nights import facts_rows, input_rows, results
from recon.store.nights.input_rows import Inputs, StoredInputs
from recon.store.nights.runs import Run


def seal_inputs(run: Run, *, environment: Environment) -> tuple[ControlTotal, ...]:
    """Write what the run has read so far, and record it in the history before anything is sent.

    Returns:
        T0 to T3 and T9, computed in SQL over what was written and what is stored.

    Raises:
        ArchiveError: the archive cannot be written; nothing was sent.
        HistoryBrokenError: the rows of an order file differ from those recorded in the history.
    """
    rules, inputs = environment.settings.rules, frozen_inputs(run, environment=environment)
    chosen = selected_inputs(run, inputs=inputs, environment=environment)
    with environment.store.reading() as connection:
        recorded = newest(links(connection, run.run_id))
    sealed = write(
        run,
        INPUTS,
        files=rows_of(chosen.tables(rules=rules)),
        terms=Terms(inputs.previous_run_id, rules.digest, chosen.absent),
        after={LEDGER_STEP: recorded[LEDGER_STEP]}
        if chosen.entries and chosen.entries.are_all
        else {},
        environment=environment,
    )
    with environment.store.writing() as connection:
        read = {input_rows.READ: input_rows.document(inputs)}
        record_sealed(connection, run, sealed=[sealed], environment=environment, details=read)
    return _totals(run, chosen, inputs=inputs, environment=environment)


def _totals(
    run: Run, chosen: Selected, *, inputs: Inputs, environment: Environment
) -> tuple[ControlTotal, ...]:
    """T0 to T3 and T9 of sealed inputs, with the figures that only the database has."""
    with environment.store.reading() as connection:
        # Files are opened only after their records were checked against the history.
        facts_rows.refuse_changed(connection)
        night = sealed_night(connection, run, environment=environment)
        files = facts_rows.of_night(connection, run)
        in_facts = facts_rows.stored_rows(files, storages=storages_of(environment))
        stored = sending_rows.stored_of_files(connection, run, in_facts=in_facts)
        reading = RunReading(connection, run, inputs, environment)
        supplementary = {
            SCHEMAS["steps"].path: stored_table(stored),
            SCHEMAS[ANSWERS].path: reading.answered_keys(chosen),
            JOURNAL: pa.Table.from_pandas(sending_rows.moved_of_payments(connection, run)),
        }
    with folder_for_now("recon-before-money-") as place:
        for name in ("files", "rejects", "universe"):
            content = night.as_sealed(SCHEMAS[name].path)
            supplementary[SCHEMAS[name].path] = pq.read_table(pa.BufferReader(content))
        for file, table in supplementary.items():
            make_folder((place / file).parent)
            pq.write_table(table, place / file)
        return totals_before_money(place, account=run.account)


@dataclass(frozen=True, slots=True)
class ComparedNight:
    """The night with its step `compared`, and what the next step records of it."""

    night: SealedNight
    """The night as it is compared, with all its inputs; no link covers its step `compared` yet."""
    inputs: StoredInputs
    terms: Terms
    recorded: Mapping[str, str]
    """Hashes of the manifests that precede the results, by step."""

    @property
    def step(self) -> Sealed:
        """The step `compared`."""
        return self.night.steps[COMPARED]


def write_compared(run: Run, *, environment: Environment) -> ComparedNight:
    """Write what is compared and was not sealed before money; saving the result links it.

    Raises:
        ArchiveError: the archive cannot be written, or has lost what was sealed before money; the
            night's money and answers are kept.
        UsageError: the rules changed since.
        HistoryBrokenError: the rows of a file differ from those recorded in the history.
    """
    with environment.store.reading() as connection:
        facts_rows.refuse_changed(connection)
        night = sealed_night(connection, run, environment=environment)
        inputs = input_rows.load(connection, run.run_id)
        recorded_links = links(connection, run.run_id)
    if inputs is None:
        seal_inputs(run, environment=environment)
        return write_compared(run, environment=environment)
    storage = storage_of(run, environment=environment)
    sealed_before = [link for link in recorded_links if link.step == INPUTS]
    chosen = recorded_step(storage, sealed_before[-1], doing=NOT_COMPARED).manifest.about
    _refuse_other_rules(chosen, rules=environment.settings.rules)
    arrived_before = {LEDGER_STEP, INPUTS, *answer_steps(night.steps)}
    steps = {step: sealed for step, sealed in night.steps.items() if step in arrived_before}
    night, rules = replace(night, steps=steps), environment.settings.rules
    small, _ = small_of_night(night)
    previous = previous_of(run, inputs=inputs, rules=rules, environment=environment)
    carried: tuple[int, Mapping[str, int]] | None = None
    if inputs.previous_run_id:
        with environment.store.reading() as connection:
            stored = results.load_summary(connection, inputs.previous_run_id)
        carried = (stored.rows["break"], stored.exposure) if stored else (0, {})
    tables = compared_tables(
        small,
        rules=rules,
        previous=previous,
        ledger_sums={},
        account=run.account,
        carried=carried,
    )
    recorded = newest(recorded_links)
    with environment.store.reading() as connection:
        changed = _changed(connection, run, night=night, inputs=inputs, environment=environment)
    changed |= {name: tables[name] for name in PREVIOUS}
    terms = Terms(inputs.previous_run_id, rules.digest, absent_of(small))
    sealed = write(
        run,
        COMPARED,
        files=rows_of(changed.items()),
        terms=terms,
        after={
            **before(COMPARED, recorded=recorded),
            **{s: recorded[s] for s in answer_steps(recorded)},
        },
        environment=environment,
    )
    as_compared = replace(night, steps={**steps, COMPARED: sealed})
    return ComparedNight(as_compared, inputs, terms, {**recorded, COMPARED: sealed.sha256})


NOT_COMPARED = (
    "nothing was compared; answers and money of the night are kept as they are; once that is put "
    "right, `recon nightly --only finish --merchant M --account A --business-date D` brings it to "
    "its end"
)


def _refuse_other_rules(chosen: About, *, rules: Rules) -> None:
    """Money was sent on what was sealed: other rules would have made another selection."""
    if chosen.rules_digest != rules.digest:
        msg = (
            f"the rules changed since run {chosen.run_id} chose what it compares "
            f"({chosen.rules_digest[:12]} then, {rules.digest[:12]} now): start the whole night "
            f"again, or put the rules back: {NOT_COMPARED}"
        )
        raise UsageError(msg)


def _changed(
    connection: Connection,
    run: Run,
    *,
    night: SealedNight,
    inputs: StoredInputs,
    environment: Environment,
) -> dict[str, pa.Table]:
    """Current answers and instructions of the keys that were sealed before money moved.

    Answers stay as columns: frames would hold each text of a large night twice more.
    """
    universe, stored = night.table("universe"), GatewayAnswers(connection, run, environment)
    is_own = pc.equal(universe["account_id"].cast(pa.string()), run.account_id)
    own, others = universe["order_no"].filter(is_own), universe.filter(pc.invert(is_own))
    newest_answers, queried = stored.newest(ANSWER_COLUMNS.names), stored.queried_keys()
    if len(queried) > len(own):
        # Orders of the opening balance are not compared.
        left = queried.filter(pc.invert(pc.is_in(queried, value_set=own)))
        is_left = pc.is_in(newest_answers["order_no"], value_set=left)
        newest_answers = newest_answers.filter(pc.invert(is_left))
    answers = [as_compared(newest_answers)]
    if len(others):
        siblings, keys = stored.sibling_frame(), others.to_pandas().astype("str")
        named = siblings.merge(keys, on=[*KEY_COLUMNS])
        answers.append(table_of(named, name=ANSWERS))
    moves = in_question(
        instructions_of(connection, run, inputs=inputs, environment=environment),
        queried=text_column(own.cast(pa.large_string())),
    )
    return {
        ANSWERS: pa.concat_tables(answers).unify_dictionaries(),
        "instructions": table_of(moves, name="instructions"),
    }
