"""The receiver over HTTP: one address per account, bounded in size and time, until it is ended.

Speaks plain HTTP; in production a proxy in front of it does TLS. Nothing of a request is logged.
"""

import socket
from collections.abc import Callable
from contextlib import closing

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from recon.config.settings import Settings
from recon.files.formats.form_pairs import FORM_BYTES_MAX
from recon.model.errors import ConfigurationError
from recon.model.words import Clock
from recon.notifications.receiver import Receiver
from recon.privacy.own_servers import Bodies, server_config
from recon.store.database.engine import open_store
from recon.store.database.migrate import check_revision

BACKLOG = 256
PATH = "/notifications/{merchant_id}/{account_id}"
TOO_LARGE = 413
TOO_SLOW = 408


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
            uvicorn.Server(server_config(app)).run(sockets=[listener])


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


def create_app(receiver: Receiver) -> Starlette:
    """The application around a receiver."""
    bodies = Bodies(FORM_BYTES_MAX)

    async def receive(request: Request) -> PlainTextResponse:
        try:
            body = await bodies.read(request)
        except TimeoutError:
            return PlainTextResponse("the body took too long", TOO_SLOW)
        if body is None:
            return PlainTextResponse(f"larger than {FORM_BYTES_MAX} bytes", TOO_LARGE)
        answer = await run_in_threadpool(receiver.receive, body, **request.path_params)
        return PlainTextResponse(answer.text, answer.status)

    async def health(_request: Request) -> PlainTextResponse:
        return PlainTextResponse("ok")

    return Starlette(
        routes=[
            Route(PATH, receive, methods=["POST"]),
            Route("/health", health, methods=["GET"]),
        ]
    )
