"""Server and client of the approvals service: HTTP on a Unix socket that identifies its callers."""

import asyncio
import json
import socket
import struct
from collections.abc import Callable, Mapping
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from recon.model import errors
from recon.model.errors import ConfigurationError, ReconError, UsageError
from recon.privacy import own_servers
from recon.privacy.own_servers import (
    Bodies,
    Impatient,
    OrderlyServer,
    SocketConnection,
    SocketUnusableError,
    server_config,
)

SECONDS_MAX = 120.0
"""How long the service may take to reply; it waits for the database's write lock."""
REPLY_BYTES_MAX = 16 * 1024 * 1024
_HEADERS = {"Content-Type": "application/json", "Connection": "close"}


def ask_desk(path: Path, act: str, *, body: Mapping[str, Any]) -> dict[str, Any]:
    """Send a request to the approvals service and return its reply.

    Raises:
        ReconError: The service refused; with its message and the same type.
        UsageError: No service listens, or it did not reply in time.
    """
    with closing(SocketConnection(path, name="desk", seconds_max=SECONDS_MAX)) as connection:
        try:
            connection.connect()
        except OSError as error:
            msg = f"no desk listens at {path}: start `recon serve desk`; nothing was changed"
            raise UsageError(msg) from error
        try:
            connection.request("POST", f"/{act}", json.dumps(dict(body)), headers=_HEADERS)
            reply = connection.getresponse()
            answer: dict[str, Any] = json.loads(reply.read(REPLY_BYTES_MAX))
        except (HTTPException, OSError, ValueError):
            # Not chained: a protocol error may quote the request, which may contain a code.
            msg = (
                f"the desk at {path} did not reply: look at `recon status` before you say it "
                "again, for it may have been noted"
            )
            raise UsageError(msg) from None
    if reply.status != HTTPStatus.OK:
        raise _error_of(answer)
    return answer


def _error_of(answer: Mapping[str, Any]) -> ReconError:
    """Return an error of the type that the service reports, as if it had been raised here."""
    kind = getattr(errors, str(answer.get("kind", "")), UsageError)
    is_ours = isinstance(kind, type) and issubclass(kind, ReconError)
    why = str(answer.get("error", "the desk refused"))
    return kind(why) if is_ours else UsageError(why)


BODY_BYTES_MAX = 64 * 1024 * 1024
"""The largest request is a returned workbook in base64."""
CREDENTIALS = "3i"
"""Format of the kernel's credentials of a peer: process, user, group."""
UNEXPECTED = "the desk met an error of its own; its log says which; nothing is known to be done"

CarryOut = Callable[[str, Mapping[str, Any], str], Mapping[str, Any]]
"""`(act, body, origin) -> reply`; the caller receives a ReconError as an error reply."""


class _Known(Impatient):
    """HTTP protocol that identifies the client by the login at the other end of the socket."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as the library has it
        """Read the peer's credentials from the kernel."""
        super().connection_made(transport)
        peer: socket.socket = transport.get_extra_info("socket")
        size = struct.calcsize(CREDENTIALS)
        credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        _, user, _ = struct.unpack(CREDENTIALS, credentials)
        self.client = (f"login {user}", 0)


def serve_until_ended(path: Path, *, carry_out: CarryOut, ready: Callable[[str], None]) -> None:
    """Serve requests until SIGINT or SIGTERM; `ready` is called once the socket exists.

    Raises:
        ConfigurationError: The socket cannot be created, or another service listens there.
    """
    with listening(path) as listener:
        ready(str(path))
        config = server_config(desk_app(carry_out), http=_Known)
        OrderlyServer(config).run(sockets=[listener])
    path.unlink(missing_ok=True)


def desk_app(carry_out: CarryOut) -> Starlette:
    """Return the web application around `carry_out`: `POST /<act>` with a JSON object."""
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
            reply = await run_in_threadpool(carry_out, request.path_params["act"], body, origin)
        except ReconError as error:
            return _refused(str(error), kind=type(error).__name__)
        except Exception:  # noqa: BLE001 - no text of a foreign error leaves the desk
            return _refused(UNEXPECTED)
        return JSONResponse(dict(reply))

    return Starlette(routes=[Route("/{act}", answer_of, methods=["POST"])])


def listening(path: Path) -> socket.socket:
    """Return a listening Unix socket to which its owner and group may connect.

    Raises:
        ConfigurationError: It cannot be created, or another service listens there.
    """
    try:
        return own_servers.listening(path, whose="the desk", mode=own_servers.WITH_GROUP)
    except SocketUnusableError as error:
        msg = f"{error} (RECON_DESK_SOCKET)"
        raise ConfigurationError(msg) from error


def _object_of(body: bytes) -> Mapping[str, Any] | None:
    """Parse the JSON object of a request; None if it is not one."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _refused(why: str, *, kind: str = "UsageError") -> JSONResponse:
    return JSONResponse({"error": why, "kind": kind}, status_code=400)
