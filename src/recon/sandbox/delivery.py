"""How a reply leaves: whole, or as a fault of the connection that the client really sees.

A reset is a TCP RST and a FIN a closed connection without a byte, so both need the transport under
the HTTP server: `FaultyProtocol` remembers it for each client address while the connection lives.
"""

import asyncio
import socket
import struct
from email.utils import formatdate
from typing import Any, cast

import uvicorn
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from recon.sandbox.call import OperationReply
from recon.sandbox.exchange import Exchange
from recon.sandbox.faults import FaultRule
from recon.sandbox.options import real_seconds
from recon.sandbox.wire import render_json, render_xml, rendered

PAGE_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'",
    "Referrer-Policy": "no-referrer",
}
"""Nothing is kept and nothing runs; any page may frame it."""
MEDIA_TYPES = {"json": "application/json", "xml": "application/xml"}
BACKLOG = 256
"""Connections that may wait to be accepted."""
LINGER_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER on with 0 seconds: closing sends RST."""

GARBAGE = b"\x16\x03\x01\x02\x00\x01\x00\xfc\x03\x03 not a status line\r\n\r\n"
HALF_A_REPLY = b'{"merchant_id": "", "account_id": "", "return_status": "1", "return_mes'
HTML_PAGE = b"<!DOCTYPE html><html><body><h1>Service temporarily unavailable</h1></body></html>"

Transports = dict[tuple[str, int], asyncio.Transport]


class FaultyProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 with its transports within reach, by client address."""

    transports: Transports

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Remember the transport of a new connection."""
        super().connection_made(transport)
        if self.client:
            self.transports[self.client] = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the transport of a closed connection."""
        if self.client:
            self.transports.pop(self.client, None)
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """End also the connections that a fault keeps open: nobody waits out a silence."""
        super().shutdown()
        self.transport.close()


class Outage:
    """A gateway that nobody can reach: for a while no connection to its port is accepted.

    Closes the door of one running server and opens it again; lives as long as the server.
    """

    def __init__(self, server: uvicorn.Server) -> None:
        self.server = server
        self._task: asyncio.Task[None] | None = None

    def begin(self, seconds: float) -> None:
        """From now on refuse every connection for so many real seconds; one outage at a time."""
        if self._task is not None and not self._task.done():
            return
        places = [door.getsockname() for server in self.server.servers for door in server.sockets]
        # Closed before the reply leaves: whoever reads it finds the door shut.
        for server in self.server.servers:
            server.close()
        self._task = asyncio.get_running_loop().create_task(self._reopen(places, after=seconds))

    async def _reopen(self, places: list[tuple[str, int]], *, after: float) -> None:
        await asyncio.sleep(after)
        if not self.server.should_exit:
            self.server.servers = [await self._listen(address) for address in places]

    async def _listen(self, address: tuple[str, int]) -> asyncio.Server:
        door = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(address)
        loop = asyncio.get_running_loop()
        return await loop.create_server(self._protocol, sock=door, backlog=BACKLOG)

    def _protocol(self) -> asyncio.Protocol:
        """A connection as uvicorn makes them."""
        protocol_class: Any = self.server.config.http_protocol_class
        made: asyncio.Protocol = protocol_class(
            config=self.server.config,
            server_state=self.server.server_state,
            app_state=self.server.lifespan.state,
        )
        return made


def faulty_protocol(transports: Transports) -> type[FaultyProtocol]:
    """The protocol of one server, with the transports that its application knows."""
    return type("ServerProtocol", (FaultyProtocol,), {"transports": transports})


def delivered(played: Exchange) -> Response:
    """The response of an exchange, with the fault of its wire."""
    rule, reply = played.wire_fault, played.reply
    if rule is None:
        return response_of(reply)
    if rule.kind == "status":
        content = {"code": "S0001", "source": "gateway", "message": "the fault plan answers"}
        given = {"Retry-After": rule.retry_after, "Location": rule.location}
        headers = {name: value for name, value in given.items() if value is not None}
        return Response(render_json(content), rule.status, headers, MEDIA_TYPES["json"])
    if rule.kind == "html":
        return HTMLResponse(HTML_PAGE)
    if rule.kind not in {"empty", "malformed"}:
        return FaultyResponse(response_of(reply) if reply.content else None, rule=rule)
    # HTTP 200 with nothing in it, or with a whole reply whose last closing mark is missing.
    body = b""
    if rule.kind == "malformed":
        body = bytes(response_of(reply).body) if reply.content else HALF_A_REPLY
        body = body[: max(body.rfind(b"}"), body.rfind(b"</"), 1)] + b",\n"
    return Response(body, media_type=MEDIA_TYPES.get(reply.form, "text/html"))


def response_of(reply: OperationReply) -> Response:
    """The response of a reply as it is."""
    if reply.form == "see_other":
        return RedirectResponse(reply.address, reply.http_status, PAGE_HEADERS)
    if reply.form == "pay":
        return HTMLResponse(rendered("pay", **reply.content), reply.http_status, PAGE_HEADERS)
    if reply.form == "checkout":
        return HTMLResponse(rendered("checkout", inputs=reply.content, action=reply.address))
    body = (render_xml if reply.form == "xml" else render_json)(reply.content)
    return Response(body, reply.http_status, media_type=MEDIA_TYPES[reply.form])


class FaultyResponse(Response):
    """A response that its connection does not survive, or that comes late."""

    def __init__(self, whole: Response | None, *, rule: FaultRule) -> None:
        """`whole` is the reply that the fault spoils, None when nothing was answered."""
        super().__init__()
        self.whole = whole
        self.rule = rule

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Play the fault on the connection of this request."""
        kind = self.rule.kind
        transport = scope["app"].state.transports.get(tuple(scope["client"]))
        if kind in {"silence", "delay"}:
            await _silence(receive, seconds=self.rule.lasting)
        if kind == "drip" and self.whole is not None:
            await self._drip(self.whole, send=send)
            return
        if kind == "clock_skew" and transport is not None:
            _set_date(transport, later=self.rule.lasting)
        outage: Outage | None = scope["app"].state.outage
        if kind == "refuse" and self.whole is not None and outage is not None:
            self.whole.headers["Connection"] = "close"
            outage.begin(self.rule.lasting)
        if kind in {"delay", "clock_skew", "refuse"} and self.whole is not None:
            await self.whole(scope, receive, send)
            return
        if transport is not None:
            self._break(transport)
        await _disconnected(receive)

    async def _drip(self, whole: Response, *, send: Send) -> None:
        """The whole reply, a few bytes at a time: no pause is long, all together are."""
        body, size = bytes(whole.body), self.rule.piece_bytes
        start = {"type": "http.response.start", "status": whole.status_code}
        await send(start | {"headers": whole.raw_headers})
        for first in range(0, len(body), size):
            piece = body[first : first + size]
            more = first + size < len(body)
            await send({"type": "http.response.body", "body": piece, "more_body": more})
            await asyncio.sleep(self.rule.pause_seconds)

    def _break(self, transport: asyncio.Transport) -> None:
        if self.rule.kind == "reset":
            connection = transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_RESET)
            transport.abort()
            return
        if self.rule.kind == "garbage":
            transport.write(GARBAGE)
        elif self.rule.kind == "truncate":
            transport.write(_half(self.whole, with_length=not self.rule.without_length))
        transport.close()


def _half(whole: Response | None, *, with_length: bool) -> bytes:
    """The head of a good reply and the first half of its body."""
    body = bytes(whole.body) if whole else HALF_A_REPLY
    media_type = (whole.media_type if whole else None) or MEDIA_TYPES["json"]
    length = f"Content-Length: {len(body)}\r\n" if with_length else ""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\n{length}Connection: close\r\n\r\n"
    return head.encode() + body[: len(body) // 2]


def _set_date(transport: asyncio.Transport, *, later: float) -> None:
    """Let the Date of this one reply be wrong, as that of a gateway whose clock is."""
    cycle = cast("FaultyProtocol", transport.get_protocol()).cycle
    date = formatdate(real_seconds() + later, usegmt=True).encode()
    others = [header for header in cycle.default_headers if header[0] != b"date"]
    cycle.default_headers = [*others, (b"date", date)]


async def _silence(receive: Receive, *, seconds: float) -> None:
    """Wait, or until the client has gone."""
    try:
        async with asyncio.timeout(seconds):
            await _disconnected(receive)
    except TimeoutError:
        return


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
