"""What a run compares, from the tables as it found them: the same tonight and a year later.

Before it compares, a run keeps how far it read. Everything is then read up to there and no further,
so that files, answers and instructions of later nights leave the night as it was.
"""

from datetime import datetime

import pandas as pd

from recon import __version__
from recon.config.rules import Rules
from recon.matching.breaks.reopened import split_ends
from recon.matching.breaks.write_offs import TYPES, booked_write_offs
from recon.matching.frames.sources import (
    AgreedWriteOffs,
    Previous,
)
from recon.model.words import (
    DOUBTFUL_STATES,
    InstructionKind,
)
from recon.steps.compare.siblings import siblings_of
from recon.steps.compare.vanished_entries import vanished_entries
from recon.steps.ground import kept_results, shown_answers
from recon.steps.ground.answer_rows import chargeback_codes
from recon.steps.ground.endorsed import endorsed
from recon.steps.ground.environment import Environment
from recon.steps.ground.kept_books import entries_of_types
from recon.steps.ground.night_folder import COMPARED
from recon.steps.ground.predecessor import previous_night
from recon.steps.ground.sealed_night import SealedNight, sealed_night
from recon.store import Connection
from recon.store.money import instruction_rows
from recon.store.money.endorsement_rows import Endorsed
from recon.store.nights import (
    break_rows,
    input_rows,
    journal_rows,
    quarantine_rows,
    rules_rows,
    runs,
)
from recon.store.nights.input_rows import Inputs
from recon.store.nights.runs import Run
from recon.store.people import resolution_rows


def frozen_inputs(run: Run, *, environment: Environment) -> Inputs:
    """How far the run reads, and what it is told beside the tables; its rules are kept."""
    rules = environment.settings.rules
    before = previous_night(run, environment=environment)
    with environment.store.writing() as connection:
        rules_rows.keep(connection, rules, at=environment.clock())
        last_file, last_observation = input_rows.last_rows(connection)
        return Inputs(
            rules_digest=rules.digest,
            previous_run_id="" if before is None else before.run_id,
            last_file=last_file,
            last_observation=last_observation,
            product_version=__version__,
            siblings=siblings_of(run, environment=environment),
            settlement=_has_settlement(run, environment=environment),
            last_reject_end=quarantine_rows.last_end(connection),
            exported=journal_rows.exported(connection, run),
            agreed_write_offs=_agreed_write_offs(
                connection, run, words=endorsed(environment), environment=environment
            ),
        )


def instructions_of(
    connection: Connection, run: Run, *, inputs: Inputs, environment: Environment
) -> pd.DataFrame:
    """Every instruction of the account as it stands now, INSTRUCTION_COLUMNS.

    Of a capture in doubt `outcome_at` is when answers first showed it as taken: as the night before
    sealed it, else as this run's answers show it.

    Raises:
        ArchiveError: the folder of the night before cannot be reached, or is not as it was sealed.
    """
    doubtful = instruction_rows.find(connection, run, state=DOUBTFUL_STATES)
    captures = [item for item in doubtful if item.kind is InstructionKind.CAPTURE]
    taken = shown_answers.first_taken(
        connection,
        run,
        transactions={item.transaction_id for item in captures},
        rules=environment.settings.rules,
        environment=environment,
    )
    shown = {
        item.instruction_id: taken[item.transaction_id]
        for item in captures
        if item.transaction_id in taken
    }
    if captures and inputs.previous_run_id:
        before = runs.get(connection, inputs.previous_run_id)
        shown |= _doubts_shown(sealed_night(connection, before, environment=environment))
    return input_rows.instruction_frame(connection, run, shown=shown)


def _doubts_shown(night: SealedNight) -> dict[str, datetime]:
    """Instruction in doubt -> when answers first showed it as done, as a night sealed it."""
    if COMPARED not in night.steps or not night.has("instructions"):
        return {}
    rows = night.table("instructions").to_pylist()
    doubtful = (row for row in rows if row["state"] in DOUBTFUL_STATES)
    return {row["instruction_id"]: row["outcome_at"] for row in doubtful if row["outcome_at"]}


def _agreed_write_offs(
    connection: Connection, run: Run, *, words: Endorsed, environment: Environment
) -> AgreedWriteOffs:
    """What people agreed to, and what the books had before anybody could agree to it here."""
    entries = input_rows.first_write_offs(connection, run)
    books = None
    if entries is None:
        books = entries_of_types(connection, run, types=TYPES, environment=environment)
    if books is not None:
        write_offs = booked_write_offs(books)
        write_offs = write_offs[
            write_offs["merchant_id"].eq(run.merchant_id)
            & write_offs["account_id"].eq(run.account_id)
        ]
        columns = (write_offs[name].tolist() for name in ("entry_id", "currency", "amount"))
        entries = {entry: (money, amount) for entry, money, amount in zip(*columns, strict=True)}
    agreed = resolution_rows.agreed_write_offs(connection, (run.merchant_id, run.account_id))
    return AgreedWriteOffs(
        {
            break_id: money
            for break_id, money in agreed.items()
            if not words.write_off_problem(connection, break_id, money=money)
        },
        entries,
    )


def _has_settlement(run: Run, *, environment: Environment) -> bool:
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    return account.settlement is not None


def previous_of(
    run: Run, *, inputs: Inputs, rules: Rules, environment: Environment
) -> Previous | None:
    """What the night before left open, when this run compared."""
    if not inputs.previous_run_id:
        return None
    with environment.store.reading() as connection:
        before = runs.get(connection, inputs.previous_run_id)
        left_open = kept_results.open_breaks(connection, before.run_id, environment=environment)
        if left_open is None:
            return None
        closed, away = split_ends(break_rows.ends_until(connection, before), breaks=left_open)
        return Previous(
            as_of=before.as_of,
            breaks=left_open,
            closed=closed,
            away=away,
            chargebacks=shown_answers.chargeback_keys(
                connection,
                run,
                codes=chargeback_codes(rules),
                until=inputs.last_observation,
                environment=environment,
            ),
            vanished=vanished_entries(
                connection, run, before=before, rules=rules, environment=environment
            ),
        )
