"""Steps 2 and 4: ask the gateway what it knows, before money moves and after.

The baseline asks for the whole universe: orders in the window, ledger references, unfinished
instructions and those of files that no night has planned, orders that verified notifications or
settlement files named, what the night before left open (breaks, pending, without a usable answer),
old orders whose rows came late, and orders that come of an age at which they are asked about again.
Afterwards every order whose money was touched is asked again. A key without a usable answer is
`failed`, never "not found".
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial

from recon.gateway.queries import KeyAnswers
from recon.model.nights import StepSummary
from recon.model.words import KeyAnswer
from recon.proof.night_tables import frame_of_table
from recon.steps.compare.siblings import ask_siblings
from recon.steps.files.keep_ledger import keep_ledger
from recon.steps.ground import kept_answers, kept_results, shown_answers
from recon.steps.ground.answer_rows import Replies, ReplyRows, reply_rows
from recon.steps.ground.environment import Environment
from recon.steps.ground.kept_books import entry_batches
from recon.steps.ground.night_folder import storages_of
from recon.steps.ground.predecessor import previous_night
from recon.steps.ground.window import (
    BEFORE_ALL,
    OF_WINDOW,
    in_window_by_parts,
    ledger_start,
    looked_back,
    opening,
    window_start,
)
from recon.steps.money.settled import settled_since
from recon.steps.night.query_shards import Asked, asked_in_shards
from recon.store import Connection
from recon.store.money import instruction_rows, planning_rows
from recon.store.nights import (
    input_rows,
    ledger_rows,
    notification_rows,
    quarantine_rows,
    runs,
    settlement_rows,
    stored_orders,
)
from recon.store.nights.answer_parts import BASELINE
from recon.store.nights.runs import Run

KEYS_PER_FILE = 10_000
"""Orders whose answers make a file: each costs a hash in the database and two flushes."""
UNUSED_SHOWN_MAX = 3
"""So many oddities of answers are named one by one."""
HELD_MAX = timedelta(seconds=15)
"""So long at most answers wait for others; what waits is asked again by a night that was killed."""


def query(run_id: str, *, phase: str, environment: Environment) -> StepSummary:
    """Ask for every key of the phase that has no final answer yet.

    Raises:
        ArchiveError: an answer cannot be kept; no money is moved by it.
    """
    with environment.store.reading() as connection:
        run = runs.get(connection, run_id)
    unkept = keep_ledger(run, environment=environment) if phase == BASELINE else ""
    # Read before the turn of a writer begins: others write meanwhile. Nobody holds them while the
    # gateway is asked.
    waiting = kept_answers.note_asked(
        run,
        phase=phase,
        keys=_keys_of(run, phase=phase, environment=environment),
        environment=environment,
    )
    unused = _ask_all(waiting, run=run, phase=phase, environment=environment)
    if phase == BASELINE:
        ask_siblings(run, environment=environment)
    # Before anything is claimed: who changes an answer from here on is refused.
    kept_answers.seal(run, environment=environment)
    step = "query" if phase == BASELINE else "query again"
    with environment.store.writing() as connection:
        runs.note_step(connection, run_id, step=step)
    with environment.store.reading() as connection:
        counts, failures = shown_answers.failures(
            connection, run, phase=phase, environment=environment
        )
    figures = {name.value: counts.get(name.value, 0) for name in KeyAnswer}
    sentence = _sentence(figures, failures=failures) + _of_unused(unused)
    return StepSummary(step, sentence + unkept, figures)


def _keys_of(run: Run, *, phase: str, environment: Environment) -> Iterable[str]:
    if phase == BASELINE:
        return _universe(run, environment=environment)
    with environment.store.reading() as connection:
        return instruction_rows.touched(connection, run)


def _universe(run: Run, *, environment: Environment) -> Iterable[str]:
    rules = environment.settings.rules
    since = window_start(run, rules=rules)
    before = previous_night(run, environment=environment)
    keys: set[str] = set()
    storages = storages_of(environment)
    with environment.store.reading() as connection:
        keys.update(stored_orders.ordered_since(connection, run, since=since, storages=storages))
        keys.update(_booked(connection, run, environment=environment))
        unfinished = instruction_rows.of_account(
            connection, run, states=instruction_rows.UNFINISHED
        )
        keys.update(item.order_no for item in unfinished)
        # Of files that came tonight: they are planned after this, and judged by these answers.
        keys.update(planning_rows.unplanned_orders(connection, run))
        notified = notification_rows.order_nos_told(
            connection, merchant_id=run.merchant_id, account_id=run.account_id, since=since
        )
        keys.update(notified)
        keys.update(row.order_no for row in quarantine_rows.outstanding(connection, run))
        account = environment.settings.account(run.merchant_id, account_id=run.account_id)
        if account.settlement is not None:
            day = settled_since(run, rules=rules)
            keys.update(settlement_rows.order_nos_told(connection, run, since=day))
            # Which order a transaction has is known where an earlier answer showed it.
            unnamed = settlement_rows.unnamed_transactions(connection, run, since=day)
            keys.update(
                shown_answers.orders_of_transactions(
                    connection, run, transactions=unnamed, environment=environment
                )
            )
        spans = list(looked_back(run, before=before))
        ended = [(since, environment.clock()), *spans]
        keys.update(planning_rows.ended_orders(connection, run, spans=ended))
        keys.update(stored_orders.ordered_between(connection, run, spans=spans, storages=storages))
        keys.update(_came_late(connection, run, before=before, environment=environment))
        if before is not None:
            keys.update(_left_open(connection, before, environment=environment))
    # A copy would hold every key twice.
    keys.discard("")
    return keys


def _booked(connection: Connection, run: Run, *, environment: Environment) -> Iterator[str]:
    """Orders that the account's books name in the window; older entries name none that is new."""
    if ledger_rows.source_of(connection, run.run_id) is None:
        return
    batches = entry_batches(connection, run, columns=OF_WINDOW, environment=environment)
    since = ledger_start(run, rules=environment.settings.rules)
    for entries in in_window_by_parts(map(frame_of_table, batches), since=since, asked=()):
        ours = entries["merchant_id"].eq(run.merchant_id) & entries["account_id"].eq(run.account_id)
        # An array of objects: a column of text gives one cell after another in four times as long.
        yield from entries.loc[ours, "order_no"].to_numpy()


def _left_open(connection: Connection, run: Run, *, environment: Environment) -> Iterator[str]:
    """Orders that the night before could not end, whatever their age."""
    yield from kept_results.orders_left_open(connection, run.run_id, environment=environment)
    yield from shown_answers.failed_keys(connection, run, environment=environment)


def _came_late(
    connection: Connection, run: Run, *, before: Run | None, environment: Environment
) -> set[str]:
    """Old orders of files that no night has read; those of a first night are opening balance."""
    read = None if before is None else input_rows.load(connection, before.run_id)
    if read is None:
        return set()
    rules = environment.settings.rules
    first = opening(rules) or BEFORE_ALL
    span = (first, window_start(run, rules=rules))
    return stored_orders.came_after(
        connection,
        run,
        last_file=read.last_file,
        span=span,
        storages=storages_of(environment),
    )


def _ask_all(
    keys: Sequence[str], *, run: Run, phase: str, environment: Environment
) -> Sequence[str]:
    """Ask about the keys and store the answers; a silent gateway is asked no further.

    Returns:
        What the gateway told beside answers, in words, each once, the first by the alphabet.
    """
    rows_of = partial(_rows, run=run, phase=phase)
    save = partial(kept_answers.keep, run, environment=environment)
    done = 0
    account = (run.merchant_id, run.account_id)
    held: list[ReplyRows] = []
    unused: list[str] = []
    try:
        with closing(asked_in_shards(keys, account=account, environment=environment)) as shards:
            for asked in shards:
                held.append(rows_of(asked))
                # So many as are shown, and one that says that there are more.
                unused = sorted({*unused, *asked.answers.unused})[: UNUSED_SHOWN_MAX + 1]
                done += len(asked.keys)
                if _is_enough(held, now=environment.clock()):
                    save(*held)
                    held = []
                if all(answer is KeyAnswer.FAILED for answer, _ in asked.answers.answers.values()):
                    break
    finally:
        # Whatever ended the asking: what was answered is not asked again.
        save(*held)
    for start in range(done, len(keys), KEYS_PER_FILE):
        some = keys[start : start + KEYS_PER_FILE]
        save(rows_of(Asked(some, environment.clock(), _not_asked(some, asked=done))))
    return unused


def _is_enough(held: Sequence[ReplyRows], *, now: datetime) -> bool:
    """Whether answers wait long enough, or are enough, to be written."""
    if sum(rows.answered for rows in held) >= KEYS_PER_FILE:
        return True
    return now - held[0].at >= HELD_MAX


def _rows(asked: Asked, *, run: Run, phase: str) -> ReplyRows:
    answers, payments = asked.answers.answers, asked.answers.observations
    return reply_rows(run, Replies(phase, run.account_id, answers, payments, asked.at))


def _not_asked(keys: Sequence[str], *, asked: int) -> KeyAnswers:
    reason = f"not asked: the gateway answered none of the {asked} keys before"
    return KeyAnswers(dict.fromkeys(keys, (KeyAnswer.FAILED, reason)), ())


def _sentence(figures: dict[str, int], *, failures: Sequence[str]) -> str:
    total = sum(figures.values())
    failed = figures[KeyAnswer.FAILED]
    sentence = (
        f"Asked the gateway for {total} orders: {figures[KeyAnswer.FOUND]} found, "
        f"{figures[KeyAnswer.NOT_FOUND]} not known to it, {failed} without a usable answer"
    )
    if failures:
        sentence += f" ({failures[0]})"
    unmapped = figures[KeyAnswer.UNMAPPED]
    return f"{sentence}, {unmapped} with an unmapped code." if unmapped else f"{sentence}."


def _of_unused(unused: Sequence[str]) -> str:
    if not unused:
        return ""
    more = ["and more"] * (len(unused) > UNUSED_SHOWN_MAX)
    return f" Not used of its answers: {'; '.join([*unused[:UNUSED_SHOWN_MAX], *more])}."
