"""The sandbox served: the operations under `/v1`, the truth under `/_sandbox`, on a socket.

Blocking for the command line, in a thread for the demo and tests.
"""

import asyncio
import hashlib
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TextIO

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from recon.model.errors import ConfigurationError
from recon.privacy.own_servers import server_config
from recon.sandbox.book import Book
from recon.sandbox.call import OperationReply, Sandbox
from recon.sandbox.control import control_routes
from recon.sandbox.delivery import BACKLOG, Outage, delivered, faulty_protocol, response_of
from recon.sandbox.exchange import EXTENDED_ONLY, OPERATIONS, exchange
from recon.sandbox.faults import install, read_plan
from recon.sandbox.notifications import Courier
from recon.sandbox.options import (
    LOOPBACK,
    ORDERS_MAX,
    SandboxOptions,
    VirtualClock,
    real_seconds,
)
from recon.sandbox.paying import page_shown, page_submitted
from recon.sandbox.population import populate
from recon.sandbox.terms import SandboxTerms, load_terms
from recon.sandbox.wire import BODY_BYTES_MAX, parse_body

HTTP_TOO_LARGE = 413


def create_app(options: SandboxOptions) -> Starlette:
    """The application over its state, populated when the state is new.

    Raises:
        ConfigurationError: state, fault plan or sandbox.toml cannot be used.
    """
    sandbox = open_sandbox(options)
    names = [
        name for name in OPERATIONS if options.profile == "extended" or name not in EXTENDED_ONLY
    ]
    routes = [Route(f"/v1/{name}", _endpoint(sandbox, name), methods=["POST"]) for name in names]
    routes.append(Route("/v1/pay/{page_key}", _pay_page(sandbox), methods=["GET", "POST"]))
    courier = Courier(sandbox)
    sandbox.book.after_commit = courier.wake
    routes += control_routes(sandbox, repopulate=repopulate, courier=courier)
    app = Starlette(routes=routes)
    app.state.sandbox = sandbox
    app.state.transports = {}
    app.state.outage = None
    return app


def open_sandbox(options: SandboxOptions) -> Sandbox:
    """The sandbox on its state: what is there is kept, what is not is made from the seed."""
    if not 0 <= options.orders <= ORDERS_MAX:
        msg = f"a population has 0 to {ORDERS_MAX} orders, not {options.orders}"
        raise ConfigurationError(msg)
    terms = load_terms()
    book = Book(options.state)
    with book.transaction():
        if not book.note("merchant"):
            fill(book, options=options, terms=terms)
        known = (book.note("merchant"), book.note("account"))
        if known != (options.merchant, options.account):
            msg = (
                f"the state {book.name} belongs to merchant {known[0]}, account {known[1]};"
                " name these or another state file"
            )
            raise ConfigurationError(msg)
        _install_plan(book, options=options)
    as_populated = replace(options, seed=int(book.note("seed")), orders=int(book.note("orders")))
    moved, runs = int(book.note("clock_moved") or 0), options.real_clock
    if runs:
        # One that ran by itself is never earlier than the last request.
        last = book.select("SELECT coalesce(max(received_at), 0) FROM request")[0][0]
        moved = max(moved, last - VirtualClock().now())
    clock = VirtualClock(moved=moved, real=real_seconds if runs else None)
    return Sandbox(as_populated, terms, book, clock)


def fill(book: Book, *, options: SandboxOptions, terms: SandboxTerms) -> None:
    """Write the population and what must be known of it into an empty book."""
    payments, effects = populate(options, terms=terms, now=VirtualClock().now())
    book.write_payments(payments)
    book.append_effects(effects)
    facts = {
        "merchant": options.merchant,
        "account": options.account,
        "seed": str(options.seed),
        "orders": str(options.orders),
        "payments": str(options.orders),
    }
    for name, value in facts.items():
        book.write_note(name, value=value)


def repopulate(sandbox: Sandbox) -> None:
    """Forget all that happened and begin again from the seed, with the plan of the start."""
    with sandbox.book.transaction():
        sandbox.book.clear()
        fill(sandbox.book, options=sandbox.options, terms=sandbox.terms)
        _install_plan(sandbox.book, options=sandbox.options)
    sandbox.clock.moved = 0


def _install_plan(book: Book, *, options: SandboxOptions) -> None:
    """Install the plan of the options, unless the state was already started with this very plan."""
    path = options.fault_plan
    if path is None:
        return
    rules = read_plan(path, operations=OPERATIONS)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if book.note("plan_digest") != digest:
        install(book, rules, append=False)
        book.write_note("plan_digest", value=digest)


def _endpoint(sandbox: Sandbox, operation: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        body = await _read_body(request)
        if body is None:
            content = {"code": "I0001", "source": "request", "message": "the body is too large"}
            return response_of(OperationReply(content, http_status=HTTP_TOO_LARGE))
        # The address on the connection itself: a header could say anything.
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


def _pay_page(sandbox: Sandbox) -> Callable[[Request], Awaitable[Response]]:
    """The one page, which shows what is left to do."""

    async def answer(request: Request) -> Response:
        key = request.path_params["page_key"]
        if request.method != "POST":
            return response_of(page_shown(sandbox, key))
        fields, _ = parse_body(await _read_body(request) or b"")
        client = request.client.host if request.client else ""
        return response_of(page_submitted(sandbox, key, fields=fields or {}, client_ip=client))

    return answer


async def _read_body(request: Request) -> bytes | None:
    """The whole body, None when it is larger than the gateway takes."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_BYTES_MAX:
            return None
    return bytes(body)


START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 10
DRAIN_SECONDS = 1
"""How long requests still open may go on when the sandbox ends."""


@dataclass(frozen=True, slots=True)
class RunningSandbox:
    """A sandbox that accepts connections."""

    base_url: str
    port: int


class _Server(uvicorn.Server):
    """uvicorn that says when it accepts connections and ends quietly on a signal."""

    def __init__(self, config: uvicorn.Config, *, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.ready = ready
        self._over = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept, then say so."""
        await super().startup(sockets=sockets)
        self._loop = asyncio.get_running_loop()
        self.ready()

    def end_now(self) -> None:
        """From another thread: end without waiting for the next tick or for open requests."""
        self.should_exit = self.force_exit = True
        if self._loop is not None:
            with suppress(RuntimeError):  # it ended by itself meanwhile, and its loop is closed
                self._loop.call_soon_threadsafe(self._over.set)

    async def main_loop(self) -> None:
        """The ticks of uvicorn, until they or `end_now` say that it is over."""
        ticks = asyncio.create_task(super().main_loop())
        over = asyncio.create_task(self._over.wait())
        await asyncio.wait({ticks, over}, return_when=asyncio.FIRST_COMPLETED)
        ticks.cancel()
        over.cancel()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let open requests end; forced, close their connections under them."""
        if not self.force_exit:
            await super().shutdown(sockets)
            return
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            transport: asyncio.Transport = connection.transport
            transport.abort()
        await asyncio.sleep(0)  # the loop tells the connections

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End on SIGINT and SIGTERM without raising the signal a second time."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handled = (signal.SIGINT, signal.SIGTERM)
        earlier = {number: signal.signal(number, self.handle_exit) for number in handled}
        try:
            yield
        finally:
            for number, handler in earlier.items():
                signal.signal(number, handler)


def serve(options: SandboxOptions, *, out: TextIO | None = None) -> None:
    """Serve until SIGINT or SIGTERM; says on `out` where, once it accepts connections.

    Raises:
        ConfigurationError: the port, state or fault plan cannot be used.
    """
    out = out or sys.stdout
    with _listening(options.port) as listener, _application(options) as app:
        lines = start_lines(options, base_url=_base_url(listener))

        def ready() -> None:
            print("\n".join(lines), file=out, flush=True)

        _server(app, ready=ready).run(sockets=[listener])


def start_lines(options: SandboxOptions, *, base_url: str) -> list[str]:
    """What a start prints: the base URL alone, then the environment of a client."""
    return [
        base_url,
        f"RECON_GATEWAY_BASE_URL={base_url}",
        f"RECON_SIGN_KEY={options.sign_key}",
        f"RECON_MERCHANT={options.merchant}",
        f"RECON_ACCOUNT={options.account}",
    ]


@contextmanager
def serving(options: SandboxOptions) -> Iterator[RunningSandbox]:
    """A sandbox in a thread of this process, for as long as the context lasts.

    Raises:
        ConfigurationError: the port, state or fault plan cannot be used.
    """
    started = threading.Event()
    with _listening(options.port) as listener, _application(options) as app:
        server = _server(app, ready=started.set)
        work = threading.Thread(
            target=lambda: asyncio.run(server.serve(sockets=[listener])),
            name="sandbox",
            daemon=True,
        )
        work.start()
        if not started.wait(START_SECONDS_MAX):
            msg = f"the sandbox did not start within {START_SECONDS_MAX} seconds"
            raise ConfigurationError(msg)
        try:
            yield RunningSandbox(_base_url(listener), listener.getsockname()[1])
        finally:
            server.end_now()
            work.join(STOP_SECONDS_MAX)


def _server(app: Starlette, *, ready: Callable[[], None]) -> _Server:
    http = faulty_protocol(app.state.transports)
    config = server_config(app, connections_max=None, http=http, drain_seconds=DRAIN_SECONDS)
    server = _Server(config, ready=ready)
    app.state.outage = Outage(server)
    return server


@contextmanager
def _application(options: SandboxOptions) -> Iterator[Starlette]:
    """The application, its database closed at the end."""
    app = create_app(options)
    try:
        yield app
    finally:
        app.state.sandbox.book.close()


@contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    """A listening socket on loopback; the protocol is named so that asyncio sets TCP_NODELAY."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((LOOPBACK, port))
        except OSError as error:
            msg = f"port {port} of {LOOPBACK} cannot be used ({error.strerror}); name another"
            raise ConfigurationError(msg) from error
        listener.listen(BACKLOG)
        yield listener


def _base_url(listener: socket.socket) -> str:
    host, port = listener.getsockname()
    return f"http://{host}:{port}"
