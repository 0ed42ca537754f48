"""Steps 2 and 4: ask the gateway what it knows, before money moves and after.

The baseline asks for the whole universe, see `orders_in_question`.
Afterwards every order whose money was touched is asked again. A key without a usable answer is
`failed`, never "not found".
"""

from collections.abc import Sequence
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial

from recon.gateway.queries import KeyAnswers
from recon.model.nights import StepSummary
from recon.model.words import KeyAnswer
from recon.steps.compare.siblings import ask_siblings
from recon.steps.files.keep_ledger import keep_ledger
from recon.steps.files.lost_facts import reading_lost_facts
from recon.steps.ground import kept_answers, shown_answers
from recon.steps.ground.answer_rows import Replies, ReplyRows, reply_rows, this_moment
from recon.steps.ground.ending import seconds_left
from recon.steps.ground.environment import Environment
from recon.steps.ground.order_numbers import OrderNumbers, order_numbers
from recon.steps.night.orders_in_question import orders_in_question
from recon.steps.night.query_shards import Asked, asked_in_shards
from recon.store.money import instruction_rows
from recon.store.nights import runs
from recon.store.nights.answer_parts import BASELINE
from recon.store.nights.runs import Run

KEYS_PER_FILE = 10_000
"""Orders whose answers make a file: each costs a hash in the database and two flushes."""
UNUSED_SHOWN_MAX = 3
"""So many oddities of answers are named one by one."""
HELD_MAX = timedelta(seconds=15)
"""So long at most answers wait for others; what waits is asked again by a night that was killed."""


@reading_lost_facts
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


def _keys_of(run: Run, *, phase: str, environment: Environment) -> OrderNumbers:
    if phase == BASELINE:
        return orders_in_question(run, environment=environment)
    with environment.store.reading() as connection:
        return order_numbers([instruction_rows.touched(connection, run)])


def _ask_all(
    keys: Sequence[str], *, run: Run, phase: str, environment: Environment
) -> Sequence[str]:
    """Ask about the keys and store the answers; a silent gateway is asked no further.

    Returns:
        What the gateway told beside answers, in words, each once, the first by the alphabet.
    """
    rows_of = partial(_rows, run=run, phase=phase)
    save = partial(kept_answers.keep, run, environment=environment)
    done, last_reason = 0, ""
    account = (run.merchant_id, run.account_id)
    held: list[ReplyRows] = []
    unused: list[str] = []
    try:
        shards_of = asked_in_shards(
            keys,
            account=account,
            environment=environment,
            ends_in_seconds=seconds_left(run, environment=environment),
        )
        with closing(shards_of) as shards:
            for asked in shards:
                held.append(rows_of(asked))
                # So many as are shown, and one that says that there are more.
                unused = sorted({*unused, *asked.answers.unused})[: UNUSED_SHOWN_MAX + 1]
                done += len(asked.keys)
                if _is_enough(held, now=environment.clock()):
                    save(*held)
                    held = []
                if all(answer is KeyAnswer.FAILED for answer, _ in asked.answers.answers.values()):
                    last_reason = asked.answers.answers[asked.keys[-1]][1]
                    break
    finally:
        # Whatever ended the asking: what was answered is not asked again.
        save(*held)
    for start in range(done, len(keys), KEYS_PER_FILE):
        some = keys[start : start + KEYS_PER_FILE]
        save(rows_of(Asked(some, this_moment(environment), _not_asked(some, why=last_reason))))
    return unused


def _is_enough(held: Sequence[ReplyRows], *, now: datetime) -> bool:
    """Whether answers wait long enough, or are enough, to be written."""
    if sum(rows.answered for rows in held) >= KEYS_PER_FILE:
        return True
    return now - held[0].asked.at >= HELD_MAX


def _rows(asked: Asked, *, run: Run, phase: str) -> ReplyRows:
    got = asked.answers
    replies = Replies(
        phase, run.account_id, got.answers, got.observations, asked.moment, got.gateway_at
    )
    return reply_rows(run, replies)


def _not_asked(keys: Sequence[str], *, why: str) -> KeyAnswers:
    reason = f"not asked any more: {why.removeprefix('not asked any more: ')}"
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
