import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from recon.gateway_client import (
    AddressError,
    NotSentError,
    PreparedRequest,
    RawReply,
    Route,
    Transport,
    UnknownOutcomeError,
)
from recon.gateway_client.addresses import checked_proxy, trust
from tests.recon.gateway_client.played import NOW, answer

SELF_SIGNED = Path(__file__).parent / "loopback.pem"
HTTPS = "https://gateway.example.test"

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.mark.parametrize(
    ("proxy", "base_url", "says"),
    [
        ("socks5://127.0.0.1:1", HTTPS, "http://host:port"),
        ("127.0.0.1:3128", HTTPS, "http://host:port"),
        ("http://proxy.example.test/path", HTTPS, "http://host:port"),
        ("http://ana:secret@proxy.example.test:3128", HTTPS, "name or password"),
        ("http://[::1", HTTPS, "not an address"),
        ("http://proxy.example.test:3128", "http://127.0.0.1:1", "would read"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_refused(proxy: str, base_url: str, says: str) -> None:
    """By reason, and without its password in the message."""
    with pytest.raises(AddressError, match=says) as caught:
        checked_proxy(Route(proxy=proxy), base_url=base_url)

    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("route", "says"),
    [
        (Route(ca_file=Path("absent.pem")), "absent.pem"),
        (Route(client_certificate_file=Path("absent.pem")), "absent.pem"),
        (Route(client_certificate_file=Path(__file__)), "cannot be used"),
        (Route(client_key_file=SELF_SIGNED), "no client certificate"),
    ],
)
def test_certificates_that_cannot_be_read_are_refused_by_file(route: Route, says: str) -> None:
    """Before anything is sent."""
    with pytest.raises(AddressError, match=says):
        trust(HTTPS, route=route)


def server_context(*, asks_for_client: bool) -> ssl.SSLContext:
    """A TLS server that may insist on a client's certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(SELF_SIGNED)
    if asks_for_client:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(SELF_SIGNED)
    return context


async def sent_over(
    route: Route, *, prepared: PreparedRequest, proxy: Serve | None, asks_for_client: bool = False
) -> RawReply:
    """Send to a TLS gateway of this machine, through a played proxy if there is one."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(prepared.body[-20:])
        await answer(200, b"{}", close=True)(b"", writer)

    context = server_context(asks_for_client=asks_for_client)
    gateway = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with gateway:
        port = gateway.sockets[0].getsockname()[1]
        if proxy is None:
            transport = Transport(
                base_url=f"https://127.0.0.1:{port}", clock=lambda: NOW, route=route
            )
            return await transport.send(prepared)
        between = await asyncio.start_server(proxy, "127.0.0.1", 0)
        async with between:
            address = f"http://127.0.0.1:{between.sockets[0].getsockname()[1]}"
            transport = Transport(
                base_url=f"https://127.0.0.1:{port}",
                clock=lambda: NOW,
                route=Route(proxy=address, ca_file=SELF_SIGNED),
                deadline_seconds=5,
            )
            return await transport.send(prepared)


@pytest.mark.parametrize("has_certificate", [True, False])
def test_a_gateway_that_asks_for_our_certificate_gets_it(
    captures: PreparedRequest, *, has_certificate: bool
) -> None:
    """Without one nothing gets through, and nobody believes it was surely not sent."""
    own = SELF_SIGNED if has_certificate else None
    route = Route(ca_file=SELF_SIGNED, client_certificate_file=own)
    sending = sent_over(route, prepared=captures, proxy=None, asks_for_client=True)

    if has_certificate:
        assert asyncio.run(sending).status == 200
        return
    with pytest.raises((NotSentError, UnknownOutcomeError)):
        asyncio.run(sending)


async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A proxy that opens the tunnel and carries bytes both ways."""
    head = await reader.readuntil(b"\r\n\r\n")
    host, port = head.split(b" ")[1].decode().split(":")
    far_reader, far_writer = await asyncio.open_connection(host, int(port))
    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    try:
        await asyncio.gather(_carry(reader, far_writer), _carry(far_reader, writer))
    finally:
        writer.close()
        far_writer.close()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(65_536):
        writer.write(piece)
        await writer.drain()


async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A proxy that wants a password."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
    await writer.drain()
    writer.close()


def test_a_proxy_carries_the_tunnel_unopened(captures: PreparedRequest) -> None:
    """TLS ends at the gateway, whose certificate is verified."""
    reply = asyncio.run(sent_over(Route(), prepared=captures, proxy=tunnel))

    assert reply.status == 200


def test_what_a_proxy_refuses_was_surely_not_sent(captures: PreparedRequest) -> None:
    """The request for the tunnel is no byte to the gateway."""
    with pytest.raises(NotSentError, match="nothing was sent"):
        asyncio.run(sent_over(Route(), prepared=captures, proxy=refuse))
