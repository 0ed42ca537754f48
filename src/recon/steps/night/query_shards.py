"""The gateway's query in shards: by this process one after another, or by workers side by side.

Workers ask and give back; one writer stores. Beside the order numbers a shard carries no word of
the configuration: a worker has its own, key and certificates included, and is refused when it is
another than the night's. Each calls in a lane of its own of the account's pace, so that all
together are no quicker than one, and a Retry-After that one of them is given holds all of them.
Their clocks do not count for what is stored: the night's clock goes on where the shard was handed
out.
"""

import asyncio
import hashlib
import math
import os
import time
from collections.abc import Awaitable, Generator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from random import Random
from typing import NamedTuple

from recon.config.settings import GatewaySettings, Settings, load_settings
from recon.gateway.queries import KeyAnswers, ask, asking, pace_of
from recon.gateway_client.query.lanes import Lane
from recon.gateway_client.query.pace import AccountPace, HoldNotice
from recon.model.errors import ConfigurationError
from recon.model.headway import Way
from recon.steps.ground.answer_rows import Moment, this_moment
from recon.steps.ground.environment import Environment, system_clock

KEYS_PER_SHARD_MAX = 1_000
"""Keys asked for between two commits; a restart asks at most these again, for each worker."""
NO_DATABASE = {"RECON_DATABASE_URL": "sqlite:////nonexistent"}
"""What a worker knows of the database, whatever its environment says."""
SEED_BITS = 64
_OF_A_MACHINE = {"ca_file", "proxy", "client_certificate_file", "client_key_file"}
"""Where a machine has its files, and its way out: these may differ."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Some keys for a worker."""

    keys: tuple[str, ...]
    account: tuple[str, str]
    """Merchant and account."""
    at: datetime
    """When it was handed out, by the night's clock."""
    seed: int
    """Of the waits between attempts."""
    sharers: int
    """How many shards are asked at the same time."""
    number: int
    """Of these, from 0: its lane."""
    notice: HoldNotice | None
    """Where they tell each other of a Retry-After."""
    configuration: str
    """See configuration_of."""
    ends_in_seconds: float = math.inf
    """After so long its worker asks no more."""


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

    After `ends_in_seconds` nothing more is asked: what is left has failed.

    Raises:
        ConfigurationError: the gateway refuses us for a cause that only a person can cure, or a
            worker is configured otherwise than the night.
        ClusterError: the workers are gone.
    """
    starts = range(0, len(keys), KEYS_PER_SHARD_MAX)
    # Keys may be a column: each part's texts are made when it is asked about.
    parts = (keys[start : start + KEYS_PER_SHARD_MAX] for start in starts)
    way = Way("orders asked", of=len(keys))
    if not environment.workers.elsewhere:
        pace = pace_of(environment.settings.gateway, ends_in_seconds=ends_in_seconds)
        if starts:
            yield from _asked_here(
                parts, account=account, environment=environment, pace=pace, way=way
            )
        return
    workers = environment.workers
    configuration = configuration_of(environment.settings)
    name = f"recon hold {account[0]}/{account[1]}"
    notice = workers.notice(name, clock=system_clock) if starts else None
    # A round at a time: a shard may only call in its lane while the others have theirs. There are
    # never more at once than calls may be in flight, of which each shard has one at least.
    began = time.monotonic()
    at_once = min(workers.partitions, environment.settings.gateway.queries_in_flight)
    while some := [*islice(parts, at_once)]:
        moment = this_moment(environment)
        shards = [
            Shard(
                keys=tuple(part),
                account=account,
                at=moment.at,
                seed=environment.randomness.getrandbits(SEED_BITS),
                sharers=len(some),
                number=number,
                notice=notice,
                ends_in_seconds=ends_in_seconds - (time.monotonic() - began),
                configuration=configuration,
            )
            for number, part in enumerate(some)
        ]
        for shard, answers in zip(shards, workers.each(ask_shard, shards), strict=True):
            way.more(len(shard.keys))
            yield Asked(shard.keys, moment, answers)


def _asked_here(
    parts: Iterable[Sequence[str]],
    *,
    account: tuple[str, str],
    environment: Environment,
    pace: AccountPace,
    way: Way,
) -> Generator[Asked, None, None]:
    """One part after another over the same connections, which are closed with the iterator."""
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


def ask_shard(shard: Shard) -> KeyAnswers:
    """What a worker does: ask with the key and the configuration of its own environment.

    Raises:
        ConfigurationError: as `asked_in_shards`.
    """
    return ask_with(shard, variables=os.environ)


def ask_with(shard: Shard, *, variables: Mapping[str, str]) -> KeyAnswers:
    """As `ask_shard`, with an environment that is passed in."""
    settings = load_settings({**variables, **NO_DATABASE})
    if configuration_of(settings) != shard.configuration:
        msg = (
            "a worker has another configuration than the night: RECON_GATEWAY_BASE_URL and the "
            "files of RECON_CONFIG_DIR must be the same on all workers; nothing was asked by it"
        )
        raise ConfigurationError(msg)
    began = time.monotonic()
    gateway = shared(settings.gateway, shard.sharers)
    lane = Lane.taken_over(
        shard.number, of=shard.sharers, calls_per_second=gateway.calls_per_second
    )
    asked = ask(
        shard.keys,
        account=shard.account,
        settings=settings.model_copy(update={"gateway": gateway}),
        pace=pace_of(
            gateway, ends_in_seconds=shard.ends_in_seconds, notice=shard.notice, lane=lane
        ),
        clock=lambda: shard.at + timedelta(seconds=time.monotonic() - began),
        randomness=Random(shard.seed),
    )
    with asyncio.Runner() as runner:
        return _played(asked, runner=runner)


def shared(gateway: GatewaySettings, sharers: int, /) -> GatewaySettings:
    """One shard's part of the calls that the account may have in flight."""
    in_flight = max(1, gateway.queries_in_flight // sharers)
    return gateway.model_copy(update={"queries_in_flight": in_flight})


def configuration_of(settings: Settings) -> str:
    """SHA-256 of what decides how the gateway is asked and its answers are read; of no secret."""
    settings_parts = (
        settings.rules.digest,
        settings.gateway_base_url,
        settings.gateway.model_dump_json(exclude=_OF_A_MACHINE),
        repr(sorted(settings.interface.items())),
    )
    return hashlib.sha256("\x1f".join(settings_parts).encode()).hexdigest()
