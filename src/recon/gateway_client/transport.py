"""HTTP to the gateway: the only module that calls httpx.

Money requests use a fresh connection per batch, once, with one deadline for everything; queries
keep a connection. Neither follows redirects, keeps cookies, reads proxy variables or decodes
compressed replies. A request counts as certainly not sent only by the class of the error *and* by
having observed that no byte of it was written.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, Literal, NoReturn

import httpx

from recon.gateway_client.addresses import DIRECT, Route, checked_base_url, checked_proxy, trust
from recon.gateway_client.documents import REPLY_BYTES_MAX
from recon.gateway_client.errors import CertificateError, NotSentError, UnknownOutcomeError
from recon.gateway_client.interface import OurAccount, QueryLimits
from recon.gateway_client.messages import PreparedCall

CONNECT_SECONDS = 5.0
DEADLINE_SECONDS = 60.0
HEADERS_STORED = ("content-type", "date", "retry-after", "x-request-id")
HEADER_CHARACTERS_MAX = 200
RETRY_AFTER_DIGITS_MAX = 9
USER_AGENT = "recon"

# Below INFO, httpcore logs reply headers unmodified, whatever they quote.
logging.getLogger("httpcore").setLevel(logging.INFO)

Clock = Callable[[], datetime]

_SURELY_NOT_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.UnsupportedProtocol,
    httpx.InvalidURL,
    httpx.LocalProtocolError,
    httpx.ProxyError,
)
"""Certain only if nothing had been written yet."""


@dataclass(frozen=True, slots=True)
class RawReply:
    """A reply as received, not yet interpreted."""

    status: int
    headers: Mapping[str, str]
    """Only those in HEADERS_STORED, in lower case."""
    body: bytes = field(repr=False)
    """As received; it may name a payee or a shopper."""
    received_at: datetime

    @property
    def meaning(self) -> Literal["read", "no_access", "refused", "busy", "other"]:
        """Meaning of the HTTP status, the same for every operation.

        `read`: the body tells the outcome. `no_access`: we may not call at all. `refused`: this
        request was not accepted. After `busy` (408, 425, 429, 5xx) and `other` (1xx, 3xx) it may
        have been processed, whatever the body says.
        """
        if self.status in range(200, 300):
            return "read"
        if self.status in {401, 403}:
            return "no_access"
        if self.status in {408, 425, 429} or self.status in range(500, 600):
            return "busy"
        return "refused" if self.status in range(400, 500) else "other"

    @property
    def asks_to_slow_down(self) -> bool:
        """Whether the gateway wants fewer calls."""
        return self.status in {429, 503}

    @property
    def retry_after_seconds(self) -> float:
        """For how long the gateway wants no further call; 0 if it does not say."""
        text = self.headers.get("retry-after", "") if self.meaning == "busy" else ""
        if text.isascii() and text.isdigit():
            return float(text[:RETRY_AFTER_DIGITS_MAX])
        at = http_date(text)
        return 0.0 if at is None else max(0.0, (at - self.received_at).total_seconds())

    @property
    def dated(self) -> datetime | None:
        """The gateway's own time from its Date header; None if it is missing."""
        return http_date(self.headers.get("date", ""))


def http_date(text: str) -> datetime | None:
    """Parse a Date or Retry-After header; None if it is not a date."""
    try:
        at = parsedate_to_datetime(text)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        return None


Read = Callable[[PreparedCall], Awaitable[RawReply]]
"""One call that may be repeated."""


@dataclass(slots=True)
class _Wire:
    """What has happened on the connection of one request so far."""

    written: bool = False
    status: int | None = None
    watched: bool = True
    """Whether writes can be observed; an injected transport may not report them."""

    async def trace(self, event: str, details: Mapping[str, Any]) -> None:
        self.watched = True
        # The CONNECT request to a proxy is not yet a byte to the gateway.
        if getattr(details.get("request"), "method", b"") == b"CONNECT":
            return
        # Headers are the first bytes. From `started` on everything counts as written, except a
        # request that h11 itself refused: it does so before passing any byte to the socket.
        if event.endswith("send_request_headers.started"):
            self.written = True
        elif event.endswith("send_request_headers.failed"):
            self.written = type(details["exception"]).__name__ != "LocalProtocolError"


def utc_now() -> datetime:
    """Return the current time; the default clock."""
    return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True)
class Connection(OurAccount):
    """An account and how to reach it; apart from the address the defaults suit most."""

    base_url: str
    limits: QueryLimits = field(default_factory=QueryLimits)
    connect_seconds: float = CONNECT_SECONDS
    """Time to connect, TLS included."""
    deadline_seconds: float = DEADLINE_SECONDS
    """Time for one call, from its first byte to the last of its reply."""
    route: Route = DIRECT
    transport: httpx.AsyncBaseTransport | None = None
    """Replaces the network, such as httpx.MockTransport; it is not closed. Its failures are unknown
    outcomes unless it reports its writes like httpx's own."""
    clock: Clock = utc_now


class Transport:
    """Sends requests to one gateway, both money requests and queries."""

    def __init__(self, connection: Connection) -> None:
        self.base_url = checked_base_url(connection.base_url)
        self._clock, self._injected = connection.clock, connection.transport
        self._trusted = trust(self.base_url, route=connection.route)
        self._proxy = checked_proxy(connection.route, base_url=self.base_url)
        self._deadline_seconds = deadline = connection.deadline_seconds
        connect = min(connection.connect_seconds, deadline)
        self._timeouts = {"connect": connect, "pool": connect, "read": deadline, "write": deadline}

    async def send(self, prepared: PreparedCall) -> RawReply:
        """Send one request over its own connection and return the reply.

        Raises:
            NotSentError: certainly nothing was sent; a resend is safe.
            UnknownOutcomeError: anything else that is not a whole reply; never resend.
        """
        wire = _Wire(watched=self._injected is None)
        async with self._connection(keep_alive=False) as connection:
            return await self._call(connection, prepared, wire=wire)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Read]:
        """Keep one connection open for queries; one worker uses it at a time.

        Calls raise like `send`; whatever the error, they may be repeated.
        """
        async with self._connection(keep_alive=True) as connection:
            yield partial(self._call, connection)

    @asynccontextmanager
    async def _connection(self, *, keep_alive: bool) -> AsyncIterator[httpx.AsyncBaseTransport]:
        if self._injected is not None:
            yield self._injected
            return
        opened = httpx.AsyncHTTPTransport(
            verify=self._trusted,
            proxy=self._proxy or None,
            trust_env=False,
            http2=False,
            retries=0,
            limits=httpx.Limits(
                max_connections=1, max_keepalive_connections=1 if keep_alive else 0
            ),
        )
        async with opened as connection:
            yield connection

    async def _call(
        self,
        connection: httpx.AsyncBaseTransport,
        prepared: PreparedCall,
        *,
        wire: _Wire | None = None,
    ) -> RawReply:
        """Make one HTTP call within the deadline, and map every failure to one of two classes.

        A query has no `wire` to observe, since it may be repeated in any case.
        """
        watched = {} if wire is None else {"trace": wire.trace}
        wire = wire or _Wire(watched=self._injected is None)
        try:
            request = httpx.Request(
                "POST",
                self.base_url + prepared.path,
                content=prepared.body,
                headers={
                    "Content-Type": prepared.content_type,
                    "Accept": "*/*",
                    "Accept-Encoding": "identity",
                    "User-Agent": USER_AGENT,
                },
                extensions={"timeout": self._timeouts} | watched,
            )
            async with asyncio.timeout(self._deadline_seconds):
                response = await connection.handle_async_request(request)
                wire.status = response.status_code
                try:
                    content = await _bounded_body(response)
                finally:
                    await response.aclose()
            stored_headers = {
                name: response.headers[name][:HEADER_CHARACTERS_MAX]
                for name in HEADERS_STORED
                if name in response.headers
            }
            return RawReply(response.status_code, stored_headers, content, self._clock())
        except (NotSentError, UnknownOutcomeError):
            raise
        except Exception as error:  # noqa: BLE001 - an outcome nobody foresaw is an unknown outcome
            _give_up(error, wire=wire, deadline_seconds=self._deadline_seconds)


async def _bounded_body(response: httpx.Response) -> bytes:
    """Read the body; refuse compressed or oversized ones."""
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding not in {"", "identity"}:
        msg = f"the gateway answered HTTP {response.status_code} in a coding nobody asked for"
        raise UnknownOutcomeError(msg, kind="CodedReply", status=response.status_code)
    if response.is_stream_consumed:  # an injected transport may have read it already
        body = response.content
    else:
        parts: list[bytes] = []
        size = 0
        async for part in response.aiter_raw():
            parts.append(part)
            size += len(part)
            if size > REPLY_BYTES_MAX:
                break
        body = b"".join(parts)
    if len(body) > REPLY_BYTES_MAX:
        msg = f"the gateway's reply is larger than {REPLY_BYTES_MAX} bytes"
        raise UnknownOutcomeError(msg, kind="OversizedReply", status=response.status_code)
    return body


def _give_up(error: Exception, *, wire: _Wire, deadline_seconds: float) -> NoReturn:
    # The cause is not chained: protocol errors quote the reply, which may quote the request.
    kind = type(error).__name__
    if isinstance(error, _SURELY_NOT_SENT) and wire.watched and not wire.written:
        if _is_certificate(error):
            msg = "the gateway's certificate was not accepted; nothing was sent"
            raise CertificateError(msg, kind=kind) from None
        msg = f"the gateway could not be reached ({kind}); nothing was sent"
        raise NotSentError(msg, kind=kind) from None
    if isinstance(error, TimeoutError):
        kind = "Deadline"
        msg = f"no whole reply within {deadline_seconds:g} seconds; the outcome is not known"
    else:
        msg = f"the connection failed ({kind}); the outcome is not known"
    raise UnknownOutcomeError(msg, kind=kind, status=wire.status) from None


def _is_certificate(error: BaseException) -> bool:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
