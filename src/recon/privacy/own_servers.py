"""Configuration of all our servers, with limits on their clients.

An idle connection, or a body that is slow or large, must not lock out other clients.
"""

import asyncio
import grp
import os
import signal
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

OWNER_ONLY = 0o600
WITH_GROUP = 0o660
BACKLOG = 512
PATH_BYTES_MAX = 100
"""Limit that holds on every system; Linux allows 107."""
_ALL = 0o777


class SocketUnusableError(Exception):
    """A socket cannot be created; the message says why, and what to do."""


def listening(path: Path, *, whose: str, mode: int = OWNER_ONLY, group: str = "") -> socket.socket:
    """Create a listening Unix socket, replacing one that an earlier process left behind.

    Args:
        path: Path of the socket.
        whose: Name of the server, for messages.
        mode: Who may connect, even while it is being created.
        group: Group that gets access by `WITH_GROUP`; "" leaves it unchanged.

    Raises:
        SocketUnusableError: the path is not a socket, another process listens there, there is no
            such group, or it cannot be created.
    """
    try:
        return _listening(path, whose=whose, mode=mode, group=group)
    except KeyError:
        why = f"no group {group}"
    except OSError as error:
        why = error.strerror or str(error)
    msg = f"the socket {path} of {whose} cannot be used ({why}); name another, or its folder"
    raise SocketUnusableError(msg)


def _listening(path: Path, *, whose: str, mode: int, group: str) -> socket.socket:
    if len(os.fsencode(path)) > PATH_BYTES_MAX:
        raise OSError(0, f"its path has more than {PATH_BYTES_MAX} bytes")
    _clear(path, whose=whose)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Nobody can connect between the creation of the socket and the change of its group.
        before = os.umask(_ALL & ~mode)
        try:
            listener.bind(str(path))
        finally:
            os.umask(before)
        if group:
            os.chown(path, -1, grp.getgrnam(group).gr_gid)
            path.chmod(WITH_GROUP)
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def is_heard(path: Path) -> bool:
    """Return whether a process listens at a path."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def _clear(path: Path, *, whose: str) -> None:
    """Remove a socket that an earlier process left behind, but nothing else."""
    try:
        kind = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(kind):
        msg = f"{path} is there and is no socket: name another for {whose}"
        raise SocketUnusableError(msg)
    if is_heard(path):
        msg = f"another process listens for {whose} at {path} already; nothing was changed"
        raise SocketUnusableError(msg)
    path.unlink()


class SocketConnection(HTTPConnection):
    """HTTP over a Unix socket, for requests to the desk and the signer.

    The host name is sent but never resolved: the path decides which server answers. httpx is not
    used because its transport for such sockets leaves one open when nobody answers.
    """

    def __init__(self, path: Path, *, name: str, seconds_max: float) -> None:
        super().__init__(name, timeout=seconds_max)
        self._path = path

    def connect(self) -> None:
        """Connect to the path."""
        connecting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connecting.settimeout(self.timeout)
            connecting.connect(str(self._path))
        except BaseException:
            connecting.close()
            raise
        self.sock = connecting


HEAD_SECONDS_MAX = 5
"""Time for a client to send its request head; an idle connection is closed."""
BODY_SECONDS_MAX = 10.0
KEEP_ALIVE_SECONDS = 5
DRAIN_SECONDS = 5
CONNECTIONS_MAX = 512
"""Open connections; a request on a further one gets 503."""
SMALL_BYTES_MAX = 1024 * 1024
"""A larger body waits for its turn: only `LARGE_AT_ONCE` are in memory."""
LARGE_AT_ONCE = 2


class Impatient(H11Protocol):
    """HTTP protocol that closes a connection if no request begins in time.

    uvicorn waits for the first line without a limit, and counts such a connection as busy.
    """

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as the library has it
        """Start the timer."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        if self._late is not None:
            self._late.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Keep the timer running until a request head is complete, also for the next request."""
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
        """No request is in progress: none has arrived, or the last one is answered."""
        cycle: RequestResponseCycle | None = self.cycle  # None before the first
        return cycle is None or cycle.response_complete


def server_config(
    app: Starlette,
    *,
    connections_max: int | None = CONNECTIONS_MAX,
    http: type[asyncio.Protocol] = Impatient,
    drain_seconds: int = DRAIN_SECONDS,
) -> uvicorn.Config:
    """Return the configuration of a server without logs, WebSockets and identifying headers.

    Args:
        app: The application.
        connections_max: Open connections; a request on a further one gets 503. None: no limit.
        http: Protocol class of the connections.
        drain_seconds: How long open requests may continue on shutdown.
    """
    return uvicorn.Config(
        app,
        ws="none",
        lifespan="off",
        log_level="error",
        access_log=False,
        proxy_headers=False,  # a client cannot claim another address
        server_header=False,
        http=http,
        limit_concurrency=connections_max,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=drain_seconds,
    )


class OrderlyServer(uvicorn.Server):
    """A server that ends on SIGINT and SIGTERM and lets its process clean up.

    uvicorn itself would raise the signal again as soon as the last request is answered.
    """

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle the signals in the block; only possible in the main thread."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handled = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in handled}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@dataclass(frozen=True, slots=True)
class Bodies:
    """Reads request bodies with limits on size, time and total memory.

    Raises TimeoutError if a body is not complete in time.
    """

    bytes_max: int
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(LARGE_AT_ONCE))

    async def read(self, request: Request) -> bytes | None:
        """Return the body; None as soon as it is too large."""
        async with asyncio.timeout(BODY_SECONDS_MAX):
            return await self._bounded(request)

    async def _bounded(self, request: Request) -> bytes | None:
        body, waited = bytearray(), False
        try:
            async for part in request.stream():
                if len(body) + len(part) > self.bytes_max:
                    return None
                if not waited and len(body) + len(part) > SMALL_BYTES_MAX:
                    waited = await self._turns.acquire()
                body += part
            return bytes(body)
        finally:
            if waited:
                self._turns.release()
