"""The desk on a Unix socket, until somebody ends it: HTTP whose callers the kernel names."""

import asyncio
import json
import socket
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

from recon.model.errors import ConfigurationError, ReconError
from recon.privacy import own_sockets
from recon.privacy.own_servers import Bodies, Impatient, server_config
from recon.privacy.own_sockets import HeardError, NoSocketError

BODY_BYTES_MAX = 64 * 1024 * 1024
"""A returned workbook in base64 is the largest."""
CREDENTIALS = "3i"
"""What the kernel tells of a peer: process, user, group."""
UNEXPECTED = "the desk met an error of its own; its log says which; nothing is known to be done"

Hear = Callable[[str, Mapping[str, Any], str], Mapping[str, Any]]
"""`(act, body, origin) -> reply`; a ReconError is told to whoever asked."""


class _Known(Impatient):
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
        config = server_config(desk_app(hear), http=_Known)
        uvicorn.Server(config).run(sockets=[listener])
    path.unlink(missing_ok=True)


def desk_app(hear: Hear) -> Starlette:
    """The application around what hears: `POST /<act>` with a JSON object."""
    bodies = Bodies(BODY_BYTES_MAX)

    async def answer_of(request: Request) -> JSONResponse:
        try:
            read = await bodies.read(request)
        except TimeoutError:
            return _refused("the request took too long")
        body = None if read is None else _object_of(read)
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
        return own_sockets.listening(path, mode=own_sockets.WITH_GROUP)
    except NoSocketError as error:
        msg = f"{error}: name another (RECON_DESK_SOCKET)"
    except HeardError:
        msg = f"another desk listens at {path}"
    except OSError as error:
        msg = f"the desk's socket {path} cannot be used: {error.strerror or error}"
    raise ConfigurationError(msg)


def _object_of(body: bytes) -> Mapping[str, Any] | None:
    """The JSON object that was sent; None when it is none."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _refused(why: str, *, kind: str = "UsageError") -> JSONResponse:
    return JSONResponse({"error": why, "kind": kind}, status_code=400)
