"""The sandbox's HTTP server: operations under `/v1`, control routes under `/_sandbox`.

It blocks for the command line and runs in a thread for the demo and tests. A reply is sent whole,
or with a fault of the connection that the client really observes. A reset is a TCP RST and an empty
reply a FIN without a byte; both need the transport below the HTTP server, so each request's scope
holds uvicorn's request-response cycle, which knows it.
"""

import asyncio
import hashlib
import socket
import struct
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from email.utils import formatdate
from queue import Empty, Queue
from typing import Any, cast

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from recon.model.errors import ConfigurationError
from recon.privacy.own_servers import Bodies, OrderlyServer, server_config
from recon.sandbox.call import OperationReply, Sandbox
from recon.sandbox.control import control_routes
from recon.sandbox.database import Database
from recon.sandbox.exchange import EXTENDED_ONLY, OPERATIONS, Exchange, exchange
from recon.sandbox.faults import FaultRule, install, read_plan
from recon.sandbox.notifications import Dispatcher
from recon.sandbox.options import (
    LOOPBACK,
    ORDERS_MAX,
    SandboxOptions,
    VirtualClock,
    real_seconds,
)
from recon.sandbox.payments import page_shown, page_submitted
from recon.sandbox.population import populate
from recon.sandbox.terms import SandboxTerms, load_terms
from recon.sandbox.wire import (
    BODY_BYTES_MAX,
    parse_body,
    render_json,
    render_xml,
    rendered,
)

HTTP_TOO_LARGE = 413


class _App(Starlette):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # uvicorn passes a bound method of the cycle; other servers cannot apply wire faults.
        scope["cycle"] = getattr(send, "__self__", None)
        await super().__call__(scope, receive, send)


def create_app(options: SandboxOptions) -> Starlette:
    """Create the application on its state, populating a new state.

    Raises:
        ConfigurationError: state, fault plan or sandbox.toml cannot be used.
    """
    sandbox = open_sandbox(options)
    names = [
        name for name in OPERATIONS if options.profile == "extended" or name not in EXTENDED_ONLY
    ]
    bodies = Bodies(BODY_BYTES_MAX)
    routes = [
        Route(f"/v1/{name}", _endpoint(sandbox, name, bodies=bodies), methods=["POST"])
        for name in names
    ]
    page = _pay_page(sandbox, bodies=bodies)
    routes.append(Route("/v1/pay/{page_key}", page, methods=["GET", "POST"]))
    dispatcher = Dispatcher(sandbox)
    sandbox.database.after_commit = dispatcher.wake
    routes += control_routes(sandbox, repopulate=repopulate, dispatcher=dispatcher)
    app = _App(routes=routes)
    app.state.sandbox = sandbox
    app.state.outage = None
    return app


def open_sandbox(options: SandboxOptions) -> Sandbox:
    """Open the sandbox on its state; a new state is populated from the seed."""
    if not 0 <= options.orders <= ORDERS_MAX:
        msg = f"a population has 0 to {ORDERS_MAX} orders, not {options.orders}"
        raise ConfigurationError(msg)
    terms = load_terms()
    database = Database(options.state)
    with database.transaction():
        if not database.note("merchant"):
            fill(database, options=options, terms=terms)
        known = (database.note("merchant"), database.note("account"))
        if known != (options.merchant, options.account):
            msg = (
                f"the state {database.name} belongs to merchant {known[0]}, account {known[1]};"
                " name these or another state file"
            )
            raise ConfigurationError(msg)
        _install_plan(database, options=options)
    as_populated = replace(
        options, seed=int(database.note("seed")), orders=int(database.note("orders"))
    )
    moved, runs = int(database.note("clock_moved") or 0), options.real_clock
    if runs:
        # A clock that runs with real time is never earlier than the last request.
        last = database.select("SELECT coalesce(max(received_at), 0) FROM request")[0][0]
        moved = max(moved, last - VirtualClock().now())
    clock = VirtualClock(moved=moved, real=real_seconds if runs else None)
    return Sandbox(as_populated, terms, database, clock)


def fill(database: Database, *, options: SandboxOptions, terms: SandboxTerms) -> None:
    """Write the population and its parameters into an empty database."""
    payments, effects = populate(options, terms=terms, now=VirtualClock().now())
    database.write_payments(payments)
    database.append_effects(effects)
    facts = {
        "merchant": options.merchant,
        "account": options.account,
        "seed": str(options.seed),
        "orders": str(options.orders),
        "payments": str(options.orders),
    }
    for name, value in facts.items():
        database.write_note(name, value=value)


def repopulate(sandbox: Sandbox) -> None:
    """Reset to the seeded population, with the fault plan of the start."""
    with sandbox.database.transaction():
        sandbox.database.clear()
        fill(sandbox.database, options=sandbox.options, terms=sandbox.terms)
        _install_plan(sandbox.database, options=sandbox.options)
    sandbox.clock.moved = 0


def _install_plan(database: Database, *, options: SandboxOptions) -> None:
    """Install the plan of the options, unless this state was already started with the same plan."""
    path = options.fault_plan
    if path is None:
        return
    rules = read_plan(path, operations=OPERATIONS)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if database.note("plan_digest") != digest:
        install(database, rules, append=False)
        database.write_note("plan_digest", value=digest)


def _endpoint(
    sandbox: Sandbox, operation: str, *, bodies: Bodies
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        body = await bodies.read(request)
        if body is None:
            content = {"code": "I0001", "source": "request", "message": "the body is too large"}
            return response_of(OperationReply(content, http_status=HTTP_TOO_LARGE))
        # The address of the connection itself: a header could be forged.
        host, port = request.scope["server"]
        played = exchange(
            sandbox,
            operation=operation,
            body=body,
            client_ip=request.client.host if request.client else "",
            base_url=f"http://{host}:{port}",
        )
        return delivered(played)

    return answer


def _pay_page(sandbox: Sandbox, *, bodies: Bodies) -> Callable[[Request], Awaitable[Response]]:
    """Endpoint of the payment page, which shows the step that is left."""

    async def answer(request: Request) -> Response:
        key = request.path_params["page_key"]
        if request.method != "POST":
            return response_of(page_shown(sandbox, key))
        fields, _ = parse_body(await bodies.read(request) or b"")
        client = request.client.host if request.client else ""
        return response_of(page_submitted(sandbox, key, fields=fields or {}, client_ip=client))

    return answer


PAGE_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'",
    "Referrer-Policy": "no-referrer",
}
"""Nothing is cached, no script runs, and any page may frame it."""
MEDIA_TYPES = {"json": "application/json", "xml": "application/xml"}
BACKLOG = 256
"""Maximum number of connections that may wait to be accepted."""
LINGER_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER on with 0 seconds: closing sends RST."""

GARBAGE = b"\x16\x03\x01\x02\x00\x01\x00\xfc\x03\x03 not a status line\r\n\r\n"
HALF_A_REPLY = b'{"merchant_id": "", "account_id": "", "return_status": "1", "return_mes'
HTML_PAGE = b"<!DOCTYPE html><html><body><h1>Service temporarily unavailable</h1></body></html>"


class Outage:
    """An unreachable gateway: for a while no connection to its port is accepted.

    Closes the listening sockets of one running server and reopens them; lives as long as it.
    """

    def __init__(self, server: uvicorn.Server) -> None:
        self.server = server
        self._task: asyncio.Task[None] | None = None

    def begin(self, seconds: float) -> None:
        """Refuse every connection for this many real seconds; one outage at a time."""
        if self._task is not None and not self._task.done():
            return
        addresses = [
            listener.getsockname() for server in self.server.servers for listener in server.sockets
        ]
        # Closed before the reply is sent: a client that has read it can no longer connect.
        for server in self.server.servers:
            server.close()
        self._task = asyncio.get_running_loop().create_task(self._reopen(addresses, after=seconds))

    async def _reopen(self, addresses: list[tuple[str, int]], *, after: float) -> None:
        await asyncio.sleep(after)
        if self.server.should_exit:
            return
        self.server.servers = []
        for address in addresses:
            listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            loop = asyncio.get_running_loop()
            opened = await loop.create_server(self._protocol, sock=listener, backlog=BACKLOG)
            self.server.servers.append(opened)

    def _protocol(self) -> asyncio.Protocol:
        """A connection as uvicorn creates them."""
        server, protocol_class = self.server, cast("Any", self.server.config.http_protocol_class)
        state = server.lifespan.state
        made: asyncio.Protocol = protocol_class(
            config=server.config, server_state=server.server_state, app_state=state
        )
        return made


def delivered(played: Exchange) -> Response:
    """The HTTP response of an exchange, with its wire fault applied."""
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
    # HTTP 200 with an empty body, or with a reply that lacks its last closing mark.
    body = b""
    if rule.kind == "malformed":
        body = bytes(response_of(reply).body) if reply.content else HALF_A_REPLY
        body = body[: max(body.rfind(b"}"), body.rfind(b"</"), 1)] + b",\n"
    return Response(body, media_type=MEDIA_TYPES.get(reply.form, "text/html"))


def response_of(reply: OperationReply) -> Response:
    """The HTTP response of a reply without faults."""
    if reply.form == "see_other":
        return RedirectResponse(reply.address, reply.http_status, PAGE_HEADERS)
    if reply.form == "pay":
        return HTMLResponse(rendered("pay", **reply.content), reply.http_status, PAGE_HEADERS)
    if reply.form == "checkout":
        return HTMLResponse(rendered("checkout", inputs=reply.content, action=reply.address))
    body = (render_xml if reply.form == "xml" else render_json)(reply.content)
    return Response(body, reply.http_status, media_type=MEDIA_TYPES[reply.form])


class FaultyResponse(Response):
    """A response that breaks its connection or is sent late."""

    def __init__(self, whole: Response | None, *, rule: FaultRule) -> None:
        """`whole` is the reply that the fault spoils, None when there is none."""
        super().__init__()
        self.whole = whole
        self.rule = rule

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Apply the fault to the connection of this request."""
        kind = self.rule.kind
        cycle: RequestResponseCycle | None = scope["cycle"]
        if kind in {"silence", "delay"}:
            with suppress(TimeoutError):  # or until the client disconnects
                await asyncio.wait_for(_disconnected(receive), self.rule.lasting)
        if kind == "drip" and self.whole is not None:
            await self._drip(self.whole, send=send)
            return
        if kind == "clock_skew" and cycle is not None:
            # The Date header of this reply alone is that of a wrong clock.
            date = formatdate(real_seconds() + self.rule.lasting, usegmt=True).encode()
            others = [header for header in cycle.default_headers if header[0] != b"date"]
            cycle.default_headers = [*others, (b"date", date)]
        outage: Outage | None = scope["app"].state.outage
        if kind == "refuse" and self.whole is not None and outage is not None:
            self.whole.headers["Connection"] = "close"
            outage.begin(self.rule.lasting)
        if kind in {"delay", "clock_skew", "refuse"} and self.whole is not None:
            await self.whole(scope, receive, send)
            return
        if cycle is not None:
            self._break(cycle.transport)
        await _disconnected(receive)

    async def _drip(self, whole: Response, *, send: Send) -> None:
        """Send the whole reply a few bytes at a time: each pause is short, the total is long."""
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
            transport.write(_half(self.whole))
        transport.close()


def _half(whole: Response | None) -> bytes:
    """The head of a good reply and the first half of its body."""
    body = bytes(whole.body) if whole else HALF_A_REPLY
    media_type = (whole.media_type if whole else None) or MEDIA_TYPES["json"]
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body[: len(body) // 2]


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 10
DRAIN_SECONDS = 1
"""How long open requests may continue when the sandbox stops."""


@dataclass(frozen=True, slots=True)
class RunningSandbox:
    """A sandbox that is accepting connections."""

    base_url: str
    port: int


class _Server(OrderlyServer):
    """A server that reports when it accepts connections, and can be forced to stop."""

    def __init__(self, config: uvicorn.Config, *, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start accepting connections, then call `ready`."""
        await super().startup(sockets=sockets)
        self.ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close every connection, including those that a fault keeps open."""
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            transport: asyncio.Transport = connection.transport
            transport.abort()
        await asyncio.sleep(0)  # let the loop notify the connections
        if not self.force_exit:
            await super().shutdown(sockets)


def serve(options: SandboxOptions) -> None:
    """Serve until SIGINT or SIGTERM; once it accepts connections, print its address.

    Raises:
        ConfigurationError: the port, state or fault plan cannot be used.
    """

    def ready(base_url: str) -> None:
        """Print the base URL on a line of its own, then a client's environment variables."""
        client = {
            "RECON_GATEWAY_BASE_URL": base_url,
            "RECON_SIGN_KEY": options.sign_key,
            "RECON_MERCHANT": options.merchant,
            "RECON_ACCOUNT": options.account,
        }
        lines = [base_url, *(f"{name}={value}" for name, value in client.items())]
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()

    with _opened(options, ready=ready) as (server, listener):
        server.run(sockets=[listener])


@contextmanager
def serving(options: SandboxOptions) -> Iterator[RunningSandbox]:
    """Run a sandbox in a thread of this process for the duration of the context.

    Raises:
        ConfigurationError: the port, state or fault plan cannot be used.
    """
    started: Queue[str] = Queue()
    with _opened(options, ready=started.put) as (server, listener):
        work = threading.Thread(
            target=lambda: asyncio.run(server.serve(sockets=[listener])),
            name="sandbox",
            daemon=True,
        )
        work.start()
        try:
            base_url = started.get(timeout=START_SECONDS_MAX)
        except Empty:
            msg = f"the sandbox did not start within {START_SECONDS_MAX} seconds"
            raise ConfigurationError(msg) from None
        try:
            yield RunningSandbox(base_url, listener.getsockname()[1])
        finally:
            server.should_exit = server.force_exit = True
            work.join(STOP_SECONDS_MAX)


@contextmanager
def _opened(
    options: SandboxOptions, *, ready: Callable[[str], None]
) -> Iterator[tuple[_Server, socket.socket]]:
    """A server, its socket on loopback and its database, which is closed at the end.

    The socket's protocol is given explicitly so that asyncio sets TCP_NODELAY.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((LOOPBACK, options.port))
        except OSError as error:
            place = f"port {options.port} of {LOOPBACK}"
            msg = f"{place} cannot be used ({error.strerror}); name another"
            raise ConfigurationError(msg) from error
        listener.listen(BACKLOG)
        base_url = f"http://{LOOPBACK}:{listener.getsockname()[1]}"
        app = create_app(options)
        with closing(app.state.sandbox.database):
            config = server_config(
                app, connections_max=None, http=H11Protocol, drain_seconds=DRAIN_SECONDS
            )
            server = _Server(config, ready=lambda: ready(base_url))
            app.state.outage = Outage(server)
            yield server, listener
