"""The workbooks of the reports folders over HTTP, for whoever has the password of Prefect.

A browser opens no file of its machine from a page. So the artifact of a workbook links here: one
address for each workbook, read only, nothing listed. Listens on this machine; elsewhere a proxy
with TLS stands in front of it, as in front of Prefect.
"""

import base64
import hmac
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO
from urllib.parse import quote

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from recon.model.errors import ConfigurationError
from recon.notifications.receiver_server import listening
from recon.privacy.own_servers import server_config

ADDRESS_VARIABLE = "RECON_WORKBOOKS_URL"
"""Where people reach this server; the artifact of a workbook links there."""
AUTH_VARIABLES = ("PREFECT_SERVER_API_AUTH_STRING", "PREFECT_API_AUTH_STRING")
"""The password of Prefect, `name:password`: of its server, or as a worker has it."""
WORKBOOK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,120}\.xlsx")
"""A name that leads nowhere else, and is no hidden file and no part of one."""
PIECE_BYTES = 256 * 1024
MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Vary": "Authorization",
}
ASK = {"WWW-Authenticate": 'Basic realm="Prefect of recon", charset="UTF-8"'}


def link_of(workbook: Path, *, account: tuple[str, str], address: str) -> str:
    """The address of a workbook; that of the file itself where nobody serves it."""
    if not address:
        return workbook.absolute().as_uri()
    return "/".join((address.rstrip("/"), *map(quote, (*account, workbook.name))))


def serve_until_ended(
    reports: Mapping[str, Path], *, auth: str, at: tuple[str, int], ready: Callable[[str], None]
) -> None:
    """Serve until SIGINT or SIGTERM; tells `ready` the address once it accepts connections.

    Args:
        reports: Folder of each account, by `<merchant>/<account>`.
        auth: The one name and password, with a colon between.
        at: Host and port; port 0 takes a free one.
        ready: Takes the address.

    Raises:
        ConfigurationError: the address cannot be used, or there is no password to ask for.
    """
    if not auth.partition(":")[2]:
        names = " or ".join(AUTH_VARIABLES)
        msg = f"no password is set ({names}, name:password); nobody would be kept out: set it"
        raise ConfigurationError(msg)
    host, port = at
    with listening(host, port=port) as listener:
        bound, taken = listener.getsockname()[:2]
        ready(f"http://{f'[{bound}]' if ':' in bound else bound}:{taken}")
        uvicorn.Server(server_config(create_app(reports, auth=auth))).run(sockets=[listener])


def create_app(reports: Mapping[str, Path], *, auth: str) -> Starlette:
    """The application; every path but /health asks for the password first."""

    def workbook(request: Request) -> Response:
        if not _signed_in(request, auth=auth):
            return _refused("sign in with the name and password of Prefect", 401, **ASK)
        if request.headers.get("sec-fetch-mode", "navigate") != "navigate":
            return _refused("a workbook is opened by a person, not read by a page", 403)
        account, _, name = str(request.path_params["path"]).rpartition("/")
        folder = reports.get(account)
        file = opened(folder, name) if folder else None
        if file is None:
            return _refused("there is no such workbook", 404)
        size = os.fstat(file.fileno()).st_size
        sent = {
            **HEADERS,
            "Content-Length": str(size),
            "Content-Disposition": f'attachment; filename="{name}"',
        }
        if request.method == "HEAD":
            file.close()
            return Response(headers=sent, media_type=MEDIA_TYPE)
        return StreamingResponse(_pieces(file, size=size), headers=sent, media_type=MEDIA_TYPE)

    def health(_request: Request) -> Response:
        return PlainTextResponse("ok")

    return Starlette(routes=[Route("/health", health), Route("/{path:path}", workbook)])


def opened(folder: Path, name: str) -> IO[bytes] | None:
    """A workbook of the folder itself: no link is followed, nothing but a plain file is opened."""
    if not WORKBOOK.fullmatch(name):
        return None
    with suppress(OSError):
        descriptor = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return os.fdopen(descriptor, "rb")
        os.close(descriptor)
    return None


def _pieces(file: IO[bytes], *, size: int) -> Iterator[bytes]:
    """So many bytes of the file as was said, whatever is appended meanwhile."""
    with file:
        left = size
        while left and (piece := file.read(min(PIECE_BYTES, left))):
            left -= len(piece)
            yield piece


def _signed_in(request: Request, *, auth: str) -> bool:
    """Whether a request has name and password, compared in constant time."""
    kind, _, word = request.headers.get("authorization", "").partition(" ")
    given = b""
    with suppress(ValueError):
        given = base64.b64decode(word, validate=True)
    return hmac.compare_digest(given, auth.encode()) and kind.lower() == "basic"


def _refused(words: str, status: int, **headers: str) -> Response:
    return PlainTextResponse(words, status, {**HEADERS, **headers})
