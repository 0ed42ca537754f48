"""How every server of ours is configured, and the bounds on whoever connects to it.

A connection that says nothing, or a body that comes slowly or is large, keeps nobody else away.
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
"""What every system takes; Linux takes 107."""
_ALL = 0o777


class SocketUnusableError(Exception):
    """A socket cannot be made; the sentence says why, and what to do."""


def listening(path: Path, *, whose: str, mode: int = OWNER_ONLY, group: str = "") -> socket.socket:
    """A listening Unix socket; one that an earlier process left behind is made anew.

    Args:
        path: Where it is made.
        whose: Who listens, in words.
        mode: Who may connect, also while it is being made.
        group: Whose group it becomes, under `WITH_GROUP`; "" leaves it as it is.

    Raises:
        SocketUnusableError: something that is no socket lies there and stays, somebody listens
            there, there is no such group, or it cannot be made.
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
        # Nobody gets in between the socket's making and its group's.
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
    """Whether somebody listens at a path."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def _clear(path: Path, *, whose: str) -> None:
    """Remove a socket that an earlier process left behind, and nothing else."""
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
    """HTTP over a Unix socket: one way to ask for desk and signer.

    The name of the host is said and never looked up: the path decides who answers. Not httpx, whose
    transport for such sockets leaves one open when nobody answers.
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
"""How long a caller may take to say what it wants; a connection that says nothing is closed."""
BODY_SECONDS_MAX = 10.0
KEEP_ALIVE_SECONDS = 5
DRAIN_SECONDS = 5
CONNECTIONS_MAX = 512
"""Open at once; a request on one more gets 503."""
SMALL_BYTES_MAX = 1024 * 1024
"""A body that is larger waits for its turn: `LARGE_AT_ONCE` are in memory."""
LARGE_AT_ONCE = 2


class Impatient(H11Protocol):
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


def server_config(
    app: Starlette,
    *,
    connections_max: int | None = CONNECTIONS_MAX,
    http: type[asyncio.Protocol] = Impatient,
    drain_seconds: int = DRAIN_SECONDS,
) -> uvicorn.Config:
    """A server without logs, sockets of the web or headers that say what it is.

    Args:
        app: What answers.
        connections_max: Open at once; a request on one more gets 503. None: no bound.
        http: How connections are heard.
        drain_seconds: How long open requests may go on at the end.
    """
    return uvicorn.Config(
        app,
        ws="none",
        lifespan="off",
        log_level="error",
        access_log=False,
        proxy_headers=False,  # a client cannot say which address it comes from
        server_header=False,
        http=http,
        limit_concurrency=connections_max,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=drain_seconds,
    )


class OrderlyServer(uvicorn.Server):
    """A server that ends on SIGINT and SIGTERM, and lets its process close what is open.

    The library would raise the signal once more as soon as the last request is answered.
    """

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Hear the signals while the block runs; outside of the main thread nobody can."""
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
    """Reads bodies within bounds of size, time and of what is in memory at once.

    Raises TimeoutError where one is not whole in time.
    """

    bytes_max: int
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(LARGE_AT_ONCE))

    async def read(self, request: Request) -> bytes | None:
        """The body; None as soon as it is too large."""
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
