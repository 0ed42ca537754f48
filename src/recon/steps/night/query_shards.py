"""The gateway's query in shards, one after another over the same connections."""

import asyncio
import math
from collections.abc import Awaitable, Generator, Sequence
from contextlib import AsyncExitStack
from typing import NamedTuple

from recon.gateway.queries import KeyAnswers, asking, pace_of
from recon.model.headway import Way
from recon.steps.ground.answer_rows import Moment, this_moment
from recon.steps.ground.environment import Environment

KEYS_PER_SHARD_MAX = 1_000
"""Keys asked for between two commits; a restart asks at most these again."""


class Asked(NamedTuple):
    """What came of some keys."""

    keys: Sequence[str]
    moment: Moment
    """Not later than they were asked: an answer without a payment has no time of its own."""
    answers: KeyAnswers


def asked_in_shards(
    keys: Sequence[str],
    *,
    account: tuple[str, str],
    environment: Environment,
    ends_in_seconds: float = math.inf,
) -> Generator[Asked, None, None]:
    """Ask about the keys, KEYS_PER_SHARD_MAX at a time, no further than is wanted.

    The connections are closed with the iterator. After `ends_in_seconds` nothing more is asked:
    what is left has failed.

    Raises:
        ConfigurationError: the gateway refuses us for a cause that only a person can cure.
    """
    starts = range(0, len(keys), KEYS_PER_SHARD_MAX)
    # Keys may be a column: each part's texts are made when it is asked about.
    parts = (keys[start : start + KEYS_PER_SHARD_MAX] for start in starts)
    way = Way("orders asked", of=len(keys))
    pace = pace_of(environment.settings.gateway, ends_in_seconds=ends_in_seconds)
    opening = asking(
        account=account,
        settings=environment.settings,
        clock=environment.clock,
        randomness=environment.randomness,
        pace=pace,
        answered=way.more,
    )
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        answers_to = runner.run(stack.enter_async_context(opening))
        try:
            for part in parts:
                moment = this_moment(environment)
                yield Asked(part, moment, _played(answers_to(part), runner=runner))
        finally:
            runner.run(stack.aclose())


def _played(asked: Awaitable[KeyAnswers], *, runner: asyncio.Runner) -> KeyAnswers:
    """As `runner.run`, which at its end writes what a coroutine returned as a text for nobody.

    It puts the handler of Ctrl-C back by a call whose reply names the one before, and with it the
    whole result: a tenth of the time of asking about ten thousand orders.
    """
    answers: list[KeyAnswers] = []

    async def keep() -> None:
        answers.append(await asked)

    runner.run(keep())
    return answers[0]
