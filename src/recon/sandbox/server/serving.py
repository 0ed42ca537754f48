"""The sandbox on a socket: blocking for the command line, in a thread for the demo and tests."""

import asyncio
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TextIO

import uvicorn
from starlette.applications import Starlette

from recon.model.errors import ConfigurationError
from recon.privacy.own_servers import server_config
from recon.sandbox.ground.options import LOOPBACK, SandboxOptions
from recon.sandbox.server.delivery import BACKLOG, Outage, faulty_protocol
from recon.sandbox.server.sandbox_app import create_app

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
        work = threading.Thread(target=_run, args=(server, listener), name="sandbox", daemon=True)
        work.start()
        if not started.wait(START_SECONDS_MAX):
            msg = f"the sandbox did not start within {START_SECONDS_MAX} seconds"
            raise ConfigurationError(msg)
        try:
            yield RunningSandbox(_base_url(listener), listener.getsockname()[1])
        finally:
            server.end_now()
            work.join(STOP_SECONDS_MAX)


def _run(server: _Server, listener: socket.socket) -> None:
    asyncio.run(server.serve(sockets=[listener]))


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
