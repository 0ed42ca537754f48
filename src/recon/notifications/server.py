"""The receiver on a socket, until somebody ends it."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import closing

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from recon.config.settings import Settings
from recon.model.errors import ConfigurationError
from recon.model.words import Clock
from recon.notifications.app import create_app
from recon.notifications.receiver import Receiver
from recon.store.database.engine import open_store
from recon.store.database.migrate import check_revision

LOOPBACK = "127.0.0.1"
CONNECTIONS_MAX = 512
"""Open at once; a request on one more gets 503 and is sent again by the gateway."""

HEAD_SECONDS_MAX = 5
"""How long a sender may take to say what it wants; a connection that says nothing is closed."""

KEEP_ALIVE_SECONDS = 5
DRAIN_SECONDS = 5
BACKLOG = 256


def receive_until_ended(
    settings: Settings, *, host: str, port: int, clock: Clock, ready: Callable[[str], None]
) -> None:
    """Receive until SIGINT or SIGTERM; tells `ready` the address once it accepts connections.

    Raises:
        ConfigurationError: the address cannot be used.
        StoreError: the database cannot be used.
    """
    with closing(open_store(settings.database_url.get_secret_value())) as store:
        check_revision(store)
        app = create_app(Receiver(settings, store=store, clock=clock))
        with listening(host, port=port) as listener:
            bound, at = listener.getsockname()[:2]
            # Connections wait in the backlog from here on, so it may be told before the first one.
            ready(f"http://{f'[{bound}]' if ':' in bound else bound}:{at}")
            uvicorn.Server(_config(app)).run(sockets=[listener])


class _Impatient(H11Protocol):
    """HTTP whose connections are closed when no request has begun in time.

    The library waits for ever for the first line, and each such connection counts as one in work.
    """

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as the library has it
        """Begin to wait."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        if self._late is not None:
            self._late.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Wait on while no whole head has come, also for the next request of a connection."""
        super().data_received(data)
        if self._waits:
            self._wait()
        elif self._late is not None:
            self._late.cancel()
            self._late = None

    def _wait(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(HEAD_SECONDS_MAX, self._give_up)

    def _give_up(self) -> None:
        self._late = None
        if self._waits:
            self.transport.abort()

    @property
    def _waits(self) -> bool:
        """No request is in work: none has come, or the last one is answered."""
        cycle: RequestResponseCycle | None = self.cycle  # None before the first, whatever it says
        return cycle is None or cycle.response_complete


def _config(app: object) -> uvicorn.Config:
    return uvicorn.Config(
        app,  # type: ignore[arg-type] # a Starlette application, which uvicorn types more narrowly
        ws="none",
        lifespan="off",
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        http=_Impatient,
        limit_concurrency=CONNECTIONS_MAX,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )


def listening(host: str, *, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        ConfigurationError: host or port cannot be used.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        msg = f"{host}, port {port} cannot be used ({error.strerror or error}); name another"
        raise ConfigurationError(msg) from error
