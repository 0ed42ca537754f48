"""What a run compares, from the tables as it found them: the same tonight and a year later.

Before money moves, a run stores how far it has read. Files are then read up to that point and no
further, so that files of later nights do not change it.
"""

from dataclasses import replace
from itertools import chain, islice

import pandas as pd

from recon import __version__
from recon.config.rules import Rules
from recon.desk.endorsement import Kind
from recon.matching.breaks.movements import left_open
from recon.matching.breaks.write_offs import TYPES, booked_write_offs
from recon.matching.frames.coding import is_among
from recon.matching.frames.sources import (
    INSTANT,
    VANISHED_COLUMNS,
    AgreedWriteOffs,
    Previous,
    frame_of,
)
from recon.model.errors import NightPurgedError
from recon.model.money import format_minor_units
from recon.model.terms import (
    DOUBTFUL_STATES,
    InstructionKind,
)
from recon.privacy.displayed_text import redacted
from recon.proof.night_tables import PREVIOUS, previous_of_tables
from recon.steps.compare.siblings import siblings_of
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.gateway_answers import GatewayAnswers
from recon.steps.runtime.night_folder import COMPARED, StoredLedger, sealed_night
from recon.steps.runtime.predecessor import previous_night
from recon.steps.runtime.window import ledger_start
from recon.store import Connection
from recon.store.money import instruction_rows
from recon.store.nights import (
    answer_parts,
    input_rows,
    journal_rows,
    order_rows,
    results,
    runs,
)
from recon.store.nights.input_rows import Inputs, StoredInputs
from recon.store.nights.runs import Run
from recon.store.people import resolution_rows
from recon.store.people.decision_rows import money_stated, not_agreed

EARLIER_NIGHTS_MAX = 31
"""Number of earlier nights searched for the newest one whose ledger was read whole."""
REPORTED_MAX = 3
"""Number of entries named on page one; of any others only the count is given."""


def vanished_entries(
    connection: Connection, run: Run, *, before: Run, rules: Rules, environment: Environment
) -> pd.DataFrame:
    """Ledger entries that an earlier night read and that are gone tonight (VANISHED_COLUMNS).

    Empty where a row of tonight's ledger was rejected, which may be one of them, or where the
    earlier night was purged.

    Args:
        connection: The store.
        run: This night.
        before: The night whose result is carried forward.
        rules: Give the window of the ledger.
        environment: Gives the archive.

    Raises:
        ArchiveError: the ledger entries of one of both nights cannot be read.
    """
    nothing = frame_of((), columns=VANISHED_COLUMNS)
    # The newest night from `before` backwards whose ledger was read whole.
    nights = islice(input_rows.nights_before(connection, before), EARLIER_NIGHTS_MAX)
    whole = next((each for each in nights if journal_rows.is_read_whole(connection, each)), None)
    earlier = None if whole is None else runs.get(connection, whole)
    if earlier is None or not journal_rows.is_read_whole(connection, run.run_id):
        return nothing
    names = ("entry_id", "reverses_entry_id")
    ledger = StoredLedger(connection, run, environment).frames(names)
    here = pd.concat([nothing["entry_id"], *(frame[name] for frame in ledger for name in names)])
    then = StoredLedger(connection, earlier, environment)
    try:
        vanished = [
            frame[~is_among(frame["entry_id"], here)]
            for frame in then.frames((*VANISHED_COLUMNS, "booked_at"))
        ]
    except NightPurgedError:
        return nothing
    rows = pd.concat(
        [nothing.assign(booked_at=pd.Series(dtype=INSTANT)), *vanished], ignore_index=True
    )
    is_recent = rows["booked_at"].ge(ledger_start(run, rules=rules))
    if not is_recent.all():
        numbers = GatewayAnswers(connection, run, environment).queried_keys().to_pylist()
        rows = rows[is_recent | is_among(rows["order_no"], numbers)]
    # Where two entries with one id differ, neither counts.
    every = rows[[*VANISHED_COLUMNS]].drop_duplicates()
    return every.drop_duplicates("entry_id", keep=False, ignore_index=True)


def vanished_reported(entries: pd.DataFrame) -> list[str]:
    """A sentence for page one where ledger entries have vanished (VANISHED_COLUMNS)."""
    if entries.empty:
        return []
    named = [
        f"{redacted(row['entry_id'])} ({redacted(row['order_no']) or 'no order'}, "
        f"{format_minor_units(row['amount'], currency=row['currency'])} {row['currency']})"
        for row in entries.sort_values("entry_id").head(REPORTED_MAX).to_dict("records")
    ]
    more = f" and {len(entries) - REPORTED_MAX:,} more" if len(entries) > REPORTED_MAX else ""
    sentence = (
        "Ledger entries that an earlier night counted are no longer there, and nothing reverses "
        f"them: {', '.join(named)}{more}. Book a reversal where an entry was wrong; what is "
        "deleted is taken back in the month by tonight's date."
    )
    return [sentence]


def frozen_inputs(run: Run, *, environment: Environment) -> Inputs:
    """How far the run reads and which facts outside the tables it uses; also saves its rules."""
    rules = environment.settings.rules
    before = previous_night(run, environment=environment)
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    with environment.store.writing() as connection:
        runs.save(connection, rules, at=environment.clock())
        agreed = _agreed_write_offs(connection, run, environment=environment)
        return Inputs(
            rules_digest=rules.digest,
            previous_run_id="" if before is None else before.run_id,
            last_file=input_rows.last_file(connection),
            product_version=__version__,
            siblings=siblings_of(run, environment=environment),
            settlement=account.settlement is not None,
            last_reject_end=order_rows.last_end(connection),
            exported=journal_rows.exported(connection, run),
            agreed_write_offs=agreed,
        )


def instructions_of(
    connection: Connection, run: Run, *, inputs: StoredInputs, environment: Environment
) -> pd.DataFrame:
    """Every instruction of the account in its current state (INSTRUCTION_COLUMNS).

    For a capture in doubt, `outcome_at` is when answers first showed it as taken: as the night
    before sealed it, else as this run's answers show it.

    Raises:
        ArchiveError: the previous night's folder cannot be reached, or differs from its seal.
    """
    doubtful = instruction_rows.find(connection, run, state=DOUBTFUL_STATES)
    captures = [item for item in doubtful if item.kind is InstructionKind.CAPTURE]
    taken = GatewayAnswers(connection, run, environment).first_taken(
        {item.transaction_id for item in captures}
    )
    journals = {
        item.instruction_id: taken[item.transaction_id]
        for item in captures
        if item.transaction_id in taken
    }
    if captures and inputs.previous_run_id:
        before = runs.get(connection, inputs.previous_run_id)
        night = sealed_night(connection, before, environment=environment)
        is_sealed = COMPARED in night.steps and night.has("instructions")
        rows = night.table("instructions").to_pylist() if is_sealed else []
        journals |= {
            row["instruction_id"]: row["outcome_at"]
            for row in rows
            if row["state"] in DOUBTFUL_STATES and row["outcome_at"]
        }
    return input_rows.instruction_frame(connection, run, journals=journals)


def _agreed_write_offs(
    connection: Connection, run: Run, *, environment: Environment
) -> AgreedWriteOffs:
    """Write-offs people agreed to, and those booked before anybody could agree to one here."""
    entries = input_rows.taken_over(connection, run)
    ledger = None
    if entries is None:
        ledger = StoredLedger(connection, run, environment).of_types(TYPES)
    if ledger is not None:
        write_offs = booked_write_offs(ledger)
        write_offs = write_offs[
            write_offs["merchant_id"].eq(run.merchant_id)
            & write_offs["account_id"].eq(run.account_id)
        ]
        columns = (write_offs[name].tolist() for name in ("entry_id", "currency", "amount"))
        entries = {entry: (money, amount) for entry, money, amount in zip(*columns, strict=True)}
    agreed = resolution_rows.agreed_write_offs(connection, run.account)
    return AgreedWriteOffs(
        {
            break_id: money
            for break_id, money in agreed.items()
            if not not_agreed(
                connection,
                Kind.WRITE_OFF,
                subject=break_id,
                says=money_stated(money),
                desk=environment.desk,
            )
        },
        entries,
    )


def previous_of(
    run: Run, *, inputs: StoredInputs, rules: Rules, environment: Environment
) -> Previous | None:
    """What the night before left open, as it sealed it when this run compared.

    Raises:
        ArchiveError: its folder cannot be reached, or differs from what was sealed.
    """
    if not inputs.previous_run_id:
        return None
    with environment.store.reading() as connection:
        before = runs.get(connection, inputs.previous_run_id)
        if results.load_summary(connection, before.run_id) is None:
            return None
        night = sealed_night(connection, before, environment=environment)
        left = left_open(
            night.frame("breaks"),
            moved=night.frame("movements"),
            matched=chain.from_iterable(
                table["match_id"].to_pylist()
                for table in night.batches("matches", columns=["match_id"])
            ),
            as_of=before.as_of,
            previous=previous_of_tables({name: night.table(name) for name in PREVIOUS}),
            chargebacks=GatewayAnswers(connection, run, environment).chargeback_keys(
                rules, until=answer_parts.newest(connection)
            ),
        )
        vanished = vanished_entries(
            connection, run, before=before, rules=rules, environment=environment
        )
    return replace(left, vanished=vanished)
