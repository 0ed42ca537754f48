"""One configuration of servers: no logs, no words about itself, bounds on whoever connects."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request

from recon.privacy import own_servers
from recon.privacy.own_servers import Bodies, Impatient, server_config


def asked(*parts: bytes, seconds: float = 0) -> Request:
    """A request whose body comes in these parts."""

    async def receive() -> dict[str, object]:
        await asyncio.sleep(seconds)
        try:
            part = await anext(coming)
        except StopAsyncIteration:
            return {"type": "http.request", "body": b"", "more_body": False}
        return {"type": "http.request", "body": part, "more_body": True}

    async def all_parts() -> AsyncIterator[bytes]:
        for part in parts:
            yield part

    coming = all_parts()
    return Request({"type": "http", "method": "POST", "headers": []}, receive)


def test_servers_say_and_log_nothing() -> None:
    """Of themselves or of whoever asks."""
    config = server_config(Starlette())
    assert (config.access_log, config.server_header, config.proxy_headers) == (False,) * 3
    assert (config.http, config.limit_concurrency) == (Impatient, own_servers.CONNECTIONS_MAX)


def test_a_body_is_bounded_in_size_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last byte that fits is taken, one more is not; one that is late ends."""
    monkeypatch.setattr(own_servers, "BODY_SECONDS_MAX", 0.05)
    bodies = Bodies(10)
    assert asyncio.run(bodies.read(asked(b"12345", b"67890"))) == b"1234567890"
    assert asyncio.run(bodies.read(asked(b"12345", b"678901"))) is None
    with pytest.raises(TimeoutError):
        asyncio.run(bodies.read(asked(b"1", seconds=1)))


def test_few_large_bodies_are_in_memory_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The third waits for its turn, and a small one does not."""
    monkeypatch.setattr(own_servers, "BODY_SECONDS_MAX", 0.2)
    large = b"x" * (own_servers.SMALL_BYTES_MAX + 1)

    async def all_at_once() -> list[bytes | BaseException | None]:
        bodies = Bodies(10 * len(large))
        stuck = [bodies.read(asked(large, *[b"x"] * 100, seconds=0.05)) for _ in range(2)]
        waiting = [asyncio.create_task(one) for one in stuck]
        await asyncio.sleep(0.12)
        late = bodies.read(asked(large, seconds=0))
        small = bodies.read(asked(b"small"))
        assert await small == b"small"
        found: list[bytes | BaseException | None] = list(
            await asyncio.gather(*waiting, late, return_exceptions=True)
        )
        return found

    found = asyncio.run(all_at_once())
    assert [type(one) for one in found[:2]] == [TimeoutError, TimeoutError]
    assert found[2] == large  # once the others were given up
