"""One configuration of servers: no logs, no words about itself, bounds on whoever connects."""

import asyncio

import pytest
from starlette.applications import Starlette
from starlette.requests import Request

from recon.privacy import own_servers
from recon.privacy.own_servers import Bodies, Impatient, server_config


def asked(*parts, seconds=0, then=None):
    """A request whose body comes in these parts, each after some seconds, the last one `then`."""

    async def receive():
        await asyncio.sleep(seconds)
        try:
            part = await anext(coming)
        except StopAsyncIteration:
            return {"type": "http.request", "body": b"", "more_body": False}
        return {"type": "http.request", "body": part, "more_body": True}

    async def all_parts():
        for number, part in enumerate(parts, start=1):
            if then is not None and number == len(parts):
                await then.wait()
            yield part

    coming = all_parts()
    return Request({"type": "http", "method": "POST", "headers": []}, receive)


def test_servers_say_and_log_nothing():
    config = server_config(Starlette())
    assert (config.access_log, config.server_header, config.proxy_headers) == (False,) * 3
    assert (config.http, config.limit_concurrency) == (Impatient, own_servers.CONNECTIONS_MAX)


def test_a_body_is_bounded_in_size_and_time(monkeypatch):
    bodies = Bodies(10)
    assert asyncio.run(bodies.read(asked(b"12345", b"67890"))) == b"1234567890"
    assert asyncio.run(bodies.read(asked(b"12345", b"678901"))) is None
    monkeypatch.setattr(own_servers, "BODY_SECONDS_MAX", 0.05)
    with pytest.raises(TimeoutError):
        asyncio.run(bodies.read(asked(b"1", seconds=1)))


def test_few_large_bodies_are_in_memory_at_once():
    large = b"x" * (own_servers.SMALL_BYTES_MAX + 1)
    ends: list[str] = []

    async def end(name, request, bodies):
        assert await bodies.read(request)
        ends.append(name)

    async def all_at_once():
        bodies, go_on = Bodies(10 * len(large)), asyncio.Event()
        slow = [end(name, asked(large, b"x", then=go_on), bodies) for name in ("first", "second")]
        begun = [asyncio.create_task(one) for one in (*slow, end("third", asked(large), bodies))]
        for _ in range(100):  # more than a body takes that waits for nothing
            await asyncio.sleep(0)
        await end("small", asked(b"small"), bodies)
        go_on.set()
        await asyncio.gather(*begun)

    asyncio.run(all_at_once())
    assert ends[0] == "small"
    assert sorted(ends[1:]) == ["first", "second", "third"]
