"""The desk on a Unix socket, until somebody ends it: HTTP whose callers the kernel names."""

import asyncio
import json
import os
import socket
import stat
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from recon.model.errors import ConfigurationError, ReconError

SOCKET_MODE = 0o660
"""Its owner, and the group of those who may speak to it."""
BODY_BYTES_MAX = 64 * 1024 * 1024
"""A returned workbook in base64 is the largest."""
READ_SECONDS_MAX = 10.0
CONNECTIONS_MAX = 64
BACKLOG = 64
DRAIN_SECONDS = 5
CREDENTIALS = "3i"
"""What the kernel tells of a peer: process, user, group."""
UNEXPECTED = "the desk met an error of its own; its log says which; nothing is known to be done"

Hear = Callable[[str, Mapping[str, Any], str], Mapping[str, Any]]
"""`(act, body, origin) -> reply`; a ReconError is told to whoever asked."""


class _Known(H11Protocol):
    """HTTP whose client is the login at the other end of the socket."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as the library has it
        """Ask the kernel who it is."""
        super().connection_made(transport)
        peer: socket.socket = transport.get_extra_info("socket")
        size = struct.calcsize(CREDENTIALS)
        credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        _, user, _ = struct.unpack(CREDENTIALS, credentials)
        self.client = (f"login {user}", 0)


def serve_until_ended(path: Path, *, hear: Hear, ready: Callable[[str], None]) -> None:
    """Hear people until SIGINT or SIGTERM; tells `ready` once the socket is there.

    Raises:
        ConfigurationError: the socket cannot be made, or another desk listens there.
    """
    with listening(path) as listener:
        ready(str(path))
        uvicorn.Server(_config(desk_app(hear))).run(sockets=[listener])
    path.unlink(missing_ok=True)


def desk_app(hear: Hear) -> Starlette:
    """The application around what hears: `POST /<act>` with a JSON object."""

    async def answer_of(request: Request) -> JSONResponse:
        try:
            async with asyncio.timeout(READ_SECONDS_MAX):
                body = await _body(request)
        except TimeoutError:
            return _refused("the request took too long")
        if body is None:
            return _refused("the request is no JSON object, or too large")
        origin = request.client.host if request.client else ""
        try:
            reply = await run_in_threadpool(hear, request.path_params["act"], body, origin)
        except ReconError as error:
            return _refused(str(error), kind=type(error).__name__)
        except Exception:  # noqa: BLE001 - no text of a foreign error leaves the desk
            return _refused(UNEXPECTED)
        return JSONResponse(dict(reply))

    return Starlette(routes=[Route("/{act}", answer_of, methods=["POST"])])


def listening(path: Path) -> socket.socket:
    """A listening Unix socket that its owner and group may connect to.

    Raises:
        ConfigurationError: something that is no socket is there, a desk listens, or it cannot be.
    """
    try:
        _clear(path)
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o777 & ~SOCKET_MODE)
        try:
            made.bind(str(path))
        finally:
            os.umask(before)
        made.listen(BACKLOG)
    except OSError as error:
        msg = f"the desk's socket {path} cannot be used: {error.strerror or error}"
        raise ConfigurationError(msg) from error
    return made


def _clear(path: Path) -> None:
    """Remove a socket that an earlier desk left behind, and nothing else."""
    if not path.exists():
        return
    if not stat.S_ISSOCK(path.stat().st_mode):
        msg = f"{path} is there and is no socket: name another (RECON_DESK_SOCKET)"
        raise ConfigurationError(msg)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            path.unlink()
            return
    msg = f"another desk listens at {path}"
    raise ConfigurationError(msg)


async def _body(request: Request) -> Mapping[str, Any] | None:
    """The JSON object that was sent; None when it is none, or too large."""
    read = bytearray()
    async for part in request.stream():
        read += part
        if len(read) > BODY_BYTES_MAX:
            return None
    try:
        document = json.loads(bytes(read))
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _refused(why: str, *, kind: str = "UsageError") -> JSONResponse:
    return JSONResponse({"error": why, "kind": kind}, status_code=400)


def _config(app: Starlette) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        ws="none",
        lifespan="off",
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        http=_Known,
        limit_concurrency=CONNECTIONS_MAX,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
