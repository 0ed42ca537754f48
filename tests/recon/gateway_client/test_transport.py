import asyncio
import gzip
import socket
import ssl
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from recon.gateway_client import (
    AddressError,
    CertificateError,
    NotSentError,
    RawReply,
    Route,
    Transport,
    UnknownOutcomeError,
)
from recon.gateway_client.addresses import checked_base_url, checked_proxy, trust
from recon.gateway_client.transport import _give_up, _Wire
from tests.recon.gateway_client.played import (
    NOW,
    answer,
    pieces,
    reached,
    reset,
    silence,
)

SELF_SIGNED = Path(__file__).parent / "loopback.pem"
"""A key and its certificate for 127.0.0.1 that nobody but these tests trusts."""

CUT = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}"
CUT_CHUNK = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{}"
ENDLESS = (b"HTTP/1.1 200 OK\r\n", *[b"X-More: " + b"x" * 8000 + b"\r\n"] * 30)
BOMB = gzip.compress(b"0" * 10_000_000)


def clock():
    """The time of receipt."""
    return datetime(2026, 11, 20, 22, tzinfo=UTC)


async def send(base_url, prepared, *, connect_seconds=30, deadline_seconds=60):
    """One send; its bounds are short only where they are what ends it."""
    bounds = {"connect_seconds": connect_seconds, "deadline_seconds": deadline_seconds}
    return await Transport(reached(base_url, **bounds)).send(prepared)


def played(player, play, prepared, *, deadline_seconds=60):
    """One send to a server that plays this."""

    async def run():
        async with player.playing(play):
            return await send(player.base_url, prepared, deadline_seconds=deadline_seconds)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("play", "kind"),
    [
        (reset(), "ReadError"),
        (pieces(), "RemoteProtocolError"),
        (silence(60), "ReadTimeout|Deadline"),
        (pieces(CUT), "RemoteProtocolError"),
        (pieces(CUT_CHUNK), "RemoteProtocolError"),
        (pieces(b"\x00garbage of a server\r\n\r\n"), "RemoteProtocolError"),
        (pieces(*ENDLESS), "RemoteProtocolError"),
        (pieces(CUT, *[b" "] * 30, pause=2), "Deadline"),
        (answer(200, BOMB, headers="Content-Encoding: gzip\r\n"), "CodedReply"),
        (answer(200, b" " * (2 * 1024 * 1024 + 1)), "OversizedReply"),
    ],
    ids=["rst", "fin", "silence", "cut", "cut-chunk", "garbage", "headers", "drip", "gzip", "big"],
)
def test_a_request_that_left_without_a_whole_reply_is_an_unknown_outcome(
    player, captures, play, kind
):
    """Whatever breaks after the request was written, the outcome is unknown and nothing repeats."""
    with pytest.raises(UnknownOutcomeError) as caught:
        played(player, play, captures, deadline_seconds=0.6 if "Deadline" in kind else 60)

    assert caught.value.kind in kind.split("|")
    assert len(player.requests) == 1


def test_a_refused_connection_is_surely_not_sent(captures):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]

        with pytest.raises(NotSentError) as caught:
            asyncio.run(send(f"http://127.0.0.1:{port}", captures))

    assert caught.value.kind == "ConnectError"


def test_a_handshake_that_is_never_answered_is_surely_not_sent(captures):
    """TLS hello unanswered: the request itself was never written."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]

        with pytest.raises(NotSentError) as caught:
            asyncio.run(send(f"https://127.0.0.1:{port}", captures, connect_seconds=0.4))

    assert caught.value.kind == "ConnectTimeout"


def test_a_server_that_reads_only_after_the_client_gave_up_is_an_unknown_outcome(captures):
    """The kernel took the bytes: the server can still read all of them later."""
    with socket.socket() as late:
        late.bind(("127.0.0.1", 0))
        late.listen()

        with pytest.raises(UnknownOutcomeError):
            asyncio.run(
                send(f"http://127.0.0.1:{late.getsockname()[1]}", captures, deadline_seconds=0.6)
            )
        connection, _ = late.accept()
        with connection:
            received = b"".join(iter(lambda: connection.recv(65536), b""))

    assert received.endswith(captures.body)


def test_a_redirect_is_handed_back_and_not_followed(player, captures):
    raw = played(player, answer(307, b"", headers="Location: /v1/cancel\r\n"), captures)

    assert raw.status == 307
    assert len(player.requests) == 1


def test_each_batch_has_a_connection_of_its_own_and_no_cookies(player, captures):
    """Two sends over one transport: two connections, nothing remembered between them."""

    async def run():
        play = answer(200, b"{}", headers="Set-Cookie: a=b; Path=/\r\n")
        async with player.playing(play):
            transport = Transport(reached(player.base_url))
            await transport.send(captures)
            await transport.send(captures)

    asyncio.run(run())

    assert player.connections == 2
    assert not any(b"cookie" in request.lower() for request in player.requests)


def test_the_bytes_of_the_journal_are_the_bytes_on_the_wire(player, captures):
    raw = played(player, answer(200, b"{}", headers="X-Secret: s\r\nRetry-After: 5\r\n"), captures)
    head, body = player.requests[0].split(b"\r\n\r\n", 1)

    assert body == captures.body
    assert head.startswith(b"POST /v1/capture HTTP/1.1")
    assert b"accept-encoding: identity" in head.lower()
    assert raw == RawReply(200, {"retry-after": "5"}, b"{}", clock())


@pytest.mark.parametrize(
    "url",
    [
        "http://gateway.example",
        "http://localhost:80",
        "http://127.0.0.1.example",
        "http://127.0.0.1@gateway.example",
        "http://0.0.0.0:80",
        "http://[::ffff:192.168.0.1]",
        "http://2130706433",
        "http://192.168.0.1",
        "ftp://127.0.0.1",
        "https://user:pass@gateway.example",
        "https://gateway.example/?a=b",
        "https://gateway.example:99999",
        "gateway.example",
        "https://",
        "https://gateway.example/api/v1/",
        "",
    ],
)
def test_a_base_url_that_is_not_safe_is_refused(url):
    """Only https, or http to a loopback literal."""
    with pytest.raises(AddressError):
        checked_base_url(url)


def test_certificates_are_always_verified():
    """No context of ours skips the host name or the chain."""
    contexts = [trust("https://g.example"), trust("http://127.0.0.1")]

    assert {context.verify_mode for context in contexts} == {ssl.CERT_REQUIRED}
    assert all(context.check_hostname for context in contexts)


NOT_SENT: tuple[type[Exception], ...] = (
    *(httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol),
    *(httpx.InvalidURL, httpx.LocalProtocolError, httpx.ProxyError),
)
MAYBE_SENT: tuple[type[Exception], ...] = (
    *(httpx.ReadError, httpx.ReadTimeout, httpx.WriteError, httpx.WriteTimeout),
    *(httpx.CloseError, httpx.RemoteProtocolError, TimeoutError, OSError, ValueError),
)


@pytest.mark.parametrize("error", [*NOT_SENT, *MAYBE_SENT])
def test_an_error_of_the_short_list_means_not_sent_only_on_an_untouched_wire(error):
    on_untouched = NotSentError if error in NOT_SENT else UnknownOutcomeError
    for written, expected in ((False, on_untouched), (True, UnknownOutcomeError)):
        with pytest.raises(expected):
            _give_up(error("x"), wire=_Wire(written=written), deadline_seconds=1)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5", 5),
        ("-5", 0),
        ("1e9", 0),
        ("", 0),
        ("9" * 400, 999_999_999),
        ("Fri, 20 Nov 2026 22:01:00 GMT", 60),
        ("Fri, 20 Nov 2020 22:01:00 GMT", 0),
        ("soon", 0),
    ],
)
def test_retry_after_is_a_count_or_a_date_and_never_negative(text, seconds):
    for status in (429, 503):
        reply = RawReply(status, {"retry-after": text}, b"", NOW)
        assert reply.retry_after_seconds == seconds
    assert RawReply(200, {"retry-after": text}, b"", NOW).retry_after_seconds == 0


HTTPS = "https://gateway.example.test"


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
def test_a_proxy_that_cannot_be_used_is_refused(proxy, base_url, says):
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
def test_certificates_that_cannot_be_read_are_refused_by_file(route, says):
    with pytest.raises(AddressError, match=says):
        trust(HTTPS, route=route)


def server_context(*, asks_for_client):
    """A TLS server that may insist on a client's certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(SELF_SIGNED)
    if asks_for_client:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(SELF_SIGNED)
    return context


async def sent_over(route, *, prepared, proxy, asks_for_client=False):
    """Send to a TLS gateway of this machine, through a played proxy if there is one."""

    async def serve(reader, writer):
        await reader.readuntil(prepared.body[-20:])
        await answer(200, b"{}", close=True)(b"", writer)

    context = server_context(asks_for_client=asks_for_client)
    gateway = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with gateway:
        port = gateway.sockets[0].getsockname()[1]
        if proxy is None:
            transport = Transport(reached(f"https://127.0.0.1:{port}", route=route))
            return await transport.send(prepared)
        between = await asyncio.start_server(proxy, "127.0.0.1", 0)
        async with between:
            address = f"http://127.0.0.1:{between.sockets[0].getsockname()[1]}"
            route = Route(proxy=address, ca_file=SELF_SIGNED)
            place = reached(f"https://127.0.0.1:{port}", route=route, deadline_seconds=5)
            transport = Transport(place)
            return await transport.send(prepared)


@pytest.mark.parametrize("trusted", [False, True])
def test_a_certificate_that_nobody_vouches_for_is_refused_before_anything_is_sent(
    captures, *, trusted
):
    """Refused by default, accepted when its file is the one to trust."""
    route = Route(ca_file=SELF_SIGNED if trusted else None)
    sending = sent_over(route, prepared=captures, proxy=None)

    if trusted:
        assert asyncio.run(sending).status == 200
        return
    with pytest.raises(CertificateError, match="nothing was sent"):
        asyncio.run(sending)


@pytest.mark.parametrize("has_certificate", [True, False])
def test_a_gateway_that_asks_for_our_certificate_gets_it(captures, *, has_certificate):
    own = SELF_SIGNED if has_certificate else None
    route = Route(ca_file=SELF_SIGNED, client_certificate_file=own)
    sending = sent_over(route, prepared=captures, proxy=None, asks_for_client=True)

    if has_certificate:
        assert asyncio.run(sending).status == 200
        return
    with pytest.raises((NotSentError, UnknownOutcomeError)):
        asyncio.run(sending)


async def tunnel(reader, writer):
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


async def _carry(reader, writer):
    while piece := await reader.read(65_536):
        writer.write(piece)
        await writer.drain()


async def refuse(reader, writer):
    """A proxy that wants a password."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
    await writer.drain()
    writer.close()


def test_a_proxy_carries_the_tunnel_unopened(captures):
    reply = asyncio.run(sent_over(Route(), prepared=captures, proxy=tunnel))

    assert reply.status == 200


def test_what_a_proxy_refuses_was_surely_not_sent(captures):
    with pytest.raises(NotSentError, match="nothing was sent"):
        asyncio.run(sent_over(Route(), prepared=captures, proxy=refuse))
