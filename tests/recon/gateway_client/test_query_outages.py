"""Minutes of trouble over real HTTP, in a time that passes many times as fast."""

import asyncio
import json
import random
import time
from collections.abc import Callable
from urllib.parse import parse_qs

import pytest

from recon.gateway_client import (
    OurAccount,
    QueryAnswers,
    QueryClient,
    QueryLimits,
    Transport,
)
from recon.gateway_client.pace import AccountPace
from tests.recon.gateway_client.played import NOW, Play, Player, answer
from tests.recon.gateway_client.test_query_client import keys_of, reply_of, row_of

TIMES = 30
"""A minute takes two seconds; faster, and the work of the calls would count for too much."""


class QuickTime:
    """Real time, so many times as fast."""

    def __init__(self, times: float) -> None:
        self._times = times
        self._began = time.monotonic()

    def seconds(self) -> float:
        """The time since the beginning."""
        return (time.monotonic() - self._began) * self._times

    async def sleep(self, seconds: float) -> None:
        """Wait in this time."""
        await asyncio.sleep(seconds / self._times)


class Troubled:
    """A gateway whose answers depend on the time; it keeps when each call came."""

    def __init__(self, clock: QuickTime, trouble: Callable[[float], Play | None]) -> None:
        self.calls: list[float] = []
        self._clock = clock
        self._trouble = trouble

    async def __call__(self, body: bytes, writer: asyncio.StreamWriter) -> None:
        now = self._clock.seconds()
        self.calls.append(now)
        keys = parse_qs(body.decode(), strict_parsing=True)["orders"][0].split(",")
        good = answer(200, json.dumps(reply_of([row_of(key) for key in keys])).encode())
        await (self._trouble(now) or good)(body, writer)


@pytest.fixture
def ask(player: Player, account: OurAccount) -> Callable[..., QueryAnswers]:
    """Asks a troubled gateway in its own quick time."""

    def asked(gateway: Troubled, clock: QuickTime, *, keys: int, rate: float) -> QueryAnswers:
        async def run() -> QueryAnswers:
            limits = QueryLimits(calls_per_second=rate, in_flight=4)
            async with (
                player.playing(gateway),
                QueryClient(
                    Transport(base_url=player.base_url, clock=lambda: NOW, deadline_seconds=5),
                    account=account,
                    randomness=random.Random(11),
                    sleep=clock.sleep,
                    pace=AccountPace(limits, seconds=clock.seconds),
                ) as client,
            ):
                return await client.query(order_nos=keys_of(keys))

        return asyncio.run(run())

    return asked


@pytest.mark.parametrize("status", [502, 503])
def test_a_minute_of_outage_loses_no_key(ask: Callable[..., QueryAnswers], status: int) -> None:
    """Every key is answered, by few calls into the outage, soon after its end."""
    clock = QuickTime(TIMES)

    def trouble(now: float) -> Play | None:
        return answer(status, b"<html>") if 2 <= now < 62 else None

    gateway = Troubled(clock, trouble)
    got = ask(gateway, clock, keys=3_000, rate=5)

    assert (len(got.found), got.failed, got.not_found) == (3_000, (), ())
    # A call a second: the clock that runs quicker than ours may see one more.
    assert len([at for at in gateway.calls if 2 <= at < 62]) <= 66
    # Loose, since a busy machine works slowly in a quick time; test_pace holds the pace exactly.
    assert gateway.calls[-1] <= 62 + 180


@pytest.mark.parametrize("status", [429, 503])
def test_a_retry_after_is_obeyed_to_the_call(ask: Callable[..., QueryAnswers], status: int) -> None:
    """After the first such answer no worker calls before its two seconds are over."""
    clock = QuickTime(4)
    refused: list[float] = []

    def trouble(now: float) -> Play | None:
        if len(refused) >= 3 or now < 0.5 * (1 + len(refused)):
            return None
        refused.append(now)
        return answer(status, b"{}", headers="Retry-After: 2\r\n")

    gateway = Troubled(clock, trouble)
    got = ask(gateway, clock, keys=2_000, rate=10)

    assert (len(got.found), got.failed) == (2_000, ())
    assert len(refused) == 3
    for at in refused:
        # What was on its way when the answer came cannot be called back: loopback is that quick.
        assert [call for call in gateway.calls if at + 0.5 < call < at + 2.0] == []


def test_five_calls_a_second_are_never_nine(ask: Callable[..., QueryAnswers]) -> None:
    """As the gateway counts them, from the first second on."""
    clock = QuickTime(4)
    gateway = Troubled(clock, lambda _now: None)
    ask(gateway, clock, keys=1_500, rate=5)

    inside = [sum(1 for at in gateway.calls if start <= at < start + 1) for start in gateway.calls]
    assert len(gateway.calls) == 15
    assert max(inside) <= 6  # one more where one call was late on its way and a later one was not
