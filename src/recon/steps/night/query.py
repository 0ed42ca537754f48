"""Steps 2 and 4 of a night: query the gateway, before money moves (baseline) and after.

The baseline queries every order in question, see `orders_in_question`; the second query repeats
every order whose money was touched. A key without a usable answer is `failed`, never "not found".

Orders in question, each source read as a column of order numbers: orders in the window, ledger
references, unfinished instructions and those of files that no night has planned, orders named by
verified notifications or settlement files, what the previous night left open (breaks, pending,
without a usable answer), old orders whose rows came late, and orders that reach an age at which
they are queried again.

The gateway is queried in shards, one after another over the same connections.
"""

import asyncio
import math
from collections.abc import Awaitable, Generator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, closing
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from recon.instructions.queries import KeyAnswers, asking, pace_of
from recon.model.nights import StepSummary
from recon.model.step_progress import WorkProgress
from recon.model.terms import KeyAnswer
from recon.steps.compare.siblings import ask_siblings
from recon.steps.files.lost_facts import reading_lost_facts
from recon.steps.files.store_ledger import store_ledger
from recon.steps.runtime import gateway_answers
from recon.steps.runtime.environment import Environment, seconds_left
from recon.steps.runtime.gateway_answers import (
    GatewayAnswers,
    Moment,
    ReplyRows,
    order_numbers,
    reply_rows,
    this_moment,
)
from recon.steps.runtime.night_folder import StoredLedger, StoredResult, storages_of
from recon.steps.runtime.predecessor import previous_night
from recon.steps.runtime.window import (
    BEFORE_ALL,
    OF_WINDOW,
    in_window,
    ledger_start,
    looked_back,
    opening,
    settled_since,
    window_start,
)
from recon.store import Connection
from recon.store.money import instruction_rows
from recon.store.nights import (
    input_rows,
    journal_rows,
    notification_rows,
    order_rows,
    runs,
)
from recon.store.nights.answer_parts import BASELINE
from recon.store.nights.runs import Run
from recon.store.nights.settlement_rows import Settlements
from recon.store.nights.stored_orders import StoredOrders


class ShardAnswers(NamedTuple):
    """The answers to one shard of keys."""

    keys: Sequence[str]
    moment: Moment
    """Not later than the query: an answer without a payment has no time of its own."""
    answers: KeyAnswers


KEYS_PER_FILE = 10_000
"""Orders whose answers make one file; each file costs a hash in the database and two flushes."""
UNUSED_DISPLAYED_MAX = 3
"""How many unused parts of answers the step's sentence names."""
HELD_MAX = timedelta(seconds=15)
"""The longest that answers wait to be stored with others; a killed night queries those again."""


@reading_lost_facts
def query(run_id: str, *, phase: str, environment: Environment) -> StepSummary:
    """Query every key of the phase that has no final answer yet.

    Raises:
        ArchiveError: an answer cannot be stored; no money is moved on it.
    """
    with environment.store.reading() as connection:
        run = runs.get(connection, run_id)
    unkept = store_ledger(run, environment=environment) if phase == BASELINE else ""
    # Read before the write transaction begins, so that others can write meanwhile.
    if phase == BASELINE:
        keys = orders_in_question(run, environment=environment)
    else:
        with environment.store.reading() as connection:
            keys = order_numbers([instruction_rows.touched(connection, run)])
    waiting = gateway_answers.note_queried(run, phase=phase, keys=keys, environment=environment)
    del keys  # frees the memory while the gateway is queried
    unused = _ask_all(waiting, run=run, phase=phase, environment=environment)
    if phase == BASELINE:
        ask_siblings(run, environment=environment)
    # Before anything is claimed: an answer changed after this is detected and refused.
    gateway_answers.seal(run, environment=environment)
    step = "query" if phase == BASELINE else "query again"
    with environment.store.writing() as connection:
        runs.note_step(connection, run_id, step=step)
    with environment.store.reading() as connection:
        counts, failures = GatewayAnswers(connection, run, environment).failures(phase)
    figures = {name.value: counts.get(name.value, 0) for name in KeyAnswer}
    sentence = _sentence(figures, failures=failures)
    if unused:
        more = ["and more"] * (len(unused) > UNUSED_DISPLAYED_MAX)
        named = "; ".join([*unused[:UNUSED_DISPLAYED_MAX], *more])
        sentence += f" Not used of its answers: {named}."
    return StepSummary(step, sentence + unkept, figures)


def _ask_all(keys: pa.Array, *, run: Run, phase: str, environment: Environment) -> Sequence[str]:
    """Query the keys and store the answers; stops early if the gateway does not respond.

    Returns:
        The first UNUSED_DISPLAYED_MAX + 1 unused parts of answers by the alphabet, each once.
    """
    rows_of = partial(reply_rows, run, phase=phase)
    save = partial(gateway_answers.save, run, environment=environment)
    done, last_reason = 0, ""
    account = run.account
    held: list[ReplyRows] = []
    unused: list[str] = []
    try:
        shards_of = query_in_shards(
            keys,
            account=account,
            environment=environment,
            ends_in_seconds=seconds_left(run, environment=environment),
        )
        with closing(shards_of) as shards:
            for shard in shards:
                held.append(rows_of(shard.answers, sent=shard.moment))
                # As many as are shown, and one more to tell that there are more.
                unused = sorted({*unused, *shard.answers.unused})[: UNUSED_DISPLAYED_MAX + 1]
                done += len(shard.keys)
                is_enough = sum(rows.answered for rows in held) >= KEYS_PER_FILE
                if is_enough or environment.clock() - held[0].sent.at >= HELD_MAX:
                    save(*held)
                    held = []
                if all(answer is KeyAnswer.FAILED for answer, _ in shard.answers.answers.values()):
                    last_reason = shard.answers.answers[shard.keys[-1]][1]
                    break
    finally:
        # Whatever ended the loop: what was answered is not queried again.
        save(*held)
    why = f"not asked any more: {last_reason.removeprefix('not shard any more: ')}"
    for start in range(done, len(keys), KEYS_PER_FILE):
        some = keys[start : start + KEYS_PER_FILE].to_pylist()
        not_queried = KeyAnswers(dict.fromkeys(some, (KeyAnswer.FAILED, why)), ())
        save(rows_of(not_queried, sent=this_moment(environment)))
    return unused


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


def orders_in_question(run: Run, *, environment: Environment) -> pa.Array:
    """Return the order numbers to query before money moves, each once.

    Raises:
        ArchiveError: stored data cannot be read.
    """
    before = previous_night(run, environment=environment)
    with environment.store.reading() as connection:
        named = _named(connection, run, before=before, environment=environment)
        every = order_numbers(named)
    return every.filter(pc.not_equal(every, ""))


def _named(
    connection: Connection, run: Run, *, before: Run | None, environment: Environment
) -> "Iterator[pa.Array | pa.ChunkedArray | Iterable[str]]":
    rules = environment.settings.rules
    since = window_start(run, rules=rules)
    storages = storages_of(environment)
    orders = StoredOrders(connection, run, storages)
    yield from orders.numbers(spans=[(since, None)])
    yield from _booked(connection, run, environment=environment)
    unfinished = instruction_rows.find(connection, run, state=instruction_rows.UNFINISHED)
    yield (item.order_no for item in unfinished)
    # Of files that came tonight: planned after this query and evaluated by its answers.
    yield instruction_rows.unplanned_orders(connection, run)
    yield notification_rows.order_nos_reported(connection, run, since=since)
    yield (row.order_no for row in order_rows.outstanding(connection, run))
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    if account.settlement is not None:
        day = settled_since(run, rules=rules)
        named, unnamed = Settlements(connection, run, storages).names(since=day)
        yield named
        # The order of a transaction is known if an earlier answer showed it.
        yield GatewayAnswers(connection, run, environment).orders_of(unnamed)
    spans = list(looked_back(run, before=before))
    ended = [(since, environment.clock()), *spans]
    yield instruction_rows.ended_orders(connection, run, spans=ended)
    # These spans exclude their start and include their end.
    of_age = [(after + datetime.resolution, up_to + datetime.resolution) for after, up_to in spans]
    yield from orders.numbers(spans=of_age)
    yield from _arrived_late(connection, run, before=before, environment=environment)
    if before is not None:
        yield StoredResult(connection, before.run_id, environment).orders_left_open()
        yield GatewayAnswers(connection, before, environment).failed_keys()


def _booked(connection: Connection, run: Run, *, environment: Environment) -> Iterator[pa.Array]:
    """Yield orders in the ledger within the window; older entries name no new ones."""
    if journal_rows.source_of(connection, run.run_id) is None:
        return
    ledger = StoredLedger(connection, run, environment).frames(OF_WINDOW)
    since = ledger_start(run, rules=environment.settings.rules)
    for entries in in_window(ledger, since=since, queried=()):
        yield pa.array(entries["order_no"], pa.string())


def _arrived_late(
    connection: Connection, run: Run, *, before: Run | None, environment: Environment
) -> Iterator[pa.ChunkedArray]:
    """Yield old orders of files no night has read; on a first night they are opening balance."""
    read = None if before is None else input_rows.load(connection, before.run_id)
    if read is None:
        return iter(())
    rules = environment.settings.rules
    first = opening(rules) or BEFORE_ALL
    spans = [(first, window_start(run, rules=rules))]
    orders = StoredOrders(connection, run, storages_of(environment))
    return orders.numbers(spans=spans, behind=read.last_file)


KEYS_PER_SHARD_MAX = 1_000
"""Keys queried between two commits; a restart repeats at most these."""


def query_in_shards(
    keys: pa.Array,
    *,
    account: tuple[str, str],
    environment: Environment,
    ends_in_seconds: float = math.inf,
) -> Generator[ShardAnswers, None, None]:
    """Query the keys in shards of KEYS_PER_SHARD_MAX, only as far as the caller iterates.

    The connections are closed with the iterator. After `ends_in_seconds` nothing more is queried:
    the remaining keys are answered as failed.

    Raises:
        ConfigurationError: the gateway refuses us for a cause that only a person can correct.
    """
    starts = range(0, len(keys), KEYS_PER_SHARD_MAX)
    # The strings of each shard are created only when it is queried.
    shards = (keys[start : start + KEYS_PER_SHARD_MAX].to_pylist() for start in starts)
    progress = WorkProgress("orders asked", of=len(keys))
    pace = pace_of(environment.settings.gateway, ends_in_seconds=ends_in_seconds)
    opening = asking(
        account=account,
        settings=environment.settings,
        clock=environment.clock,
        randomness=environment.randomness,
        pace=pace,
        answered=progress.advance,
    )
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        answers_to = runner.run(stack.enter_async_context(opening))
        try:
            for part in shards:
                moment = this_moment(environment)
                yield ShardAnswers(part, moment, _played(answers_to(part), runner=runner))
        finally:
            runner.run(stack.aclose())


def _played(answers_of: Awaitable[KeyAnswers], *, runner: asyncio.Runner) -> KeyAnswers:
    """Run the query like `runner.run`, but without its costly text of the coroutine's result.

    At its end `runner.run` restores the handler of Ctrl-C, by a call whose reply names the one
    before, and with it the whole result: a tenth of the time for querying ten thousand orders.
    """
    answers: list[KeyAnswers] = []

    async def save() -> None:
        answers.append(await answers_of)

    runner.run(save())
    return answers[0]
