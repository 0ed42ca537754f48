"""The receiver: a form in, an HTTP status out, everything between in one database transaction.

A message is acknowledged only when it stands in the database; what is refused stands there as a
case. Accounts that merchants.toml does not declare are not told apart from other wrong addresses,
and leave no trace.

The receiver over HTTP: one address per account, bounded in size and time, until it is ended.

Speaks plain HTTP; in production a proxy in front of it does TLS. Nothing of a request is logged.
"""

import hashlib
import socket
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from recon.config.settings import Settings
from recon.files.formats.form_pairs import FORM_BYTES_MAX, form_pairs
from recon.gateway_client import UnsignedError
from recon.instructions.account import GatewayAccount, gateway_account
from recon.model.errors import ConfigurationError, SourceUnreadableError, StoreError
from recon.model.words import Clock
from recon.notifications.message import MessageRefusal, VerifiedMessage, read_message
from recon.privacy.own_servers import Bodies, server_config
from recon.store.database.engine import Store, open_store
from recon.store.database.migrate import check_revision
from recon.store.nights.notification_rows import Kept, Told, keep, keep_case

ACKNOWLEDGED = 200
STATUS_OF: Mapping[str, int] = {
    "malformed": 400,
    "forged": 401,
    "other account": 403,
    "contradiction": 409,
}
"""What the sender of a refused message gets."""

NOWHERE = 404
UNAVAILABLE = 503
STORE_TRIES_MAX = 5
"""Two equal messages at the same instant meet on PostgreSQL; the second then counts up."""

CONTRADICTION = "another message about the same thing in the same state says something else"
"""Both are kept, and people see that they differ; only a flood of such messages is refused."""


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """What the sender gets."""

    status: int
    text: str


class Receiver:
    """Receives for every declared account; lives as long as the server."""

    def __init__(self, settings: Settings, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._accounts: dict[tuple[str, str], GatewayAccount] = {}
        for key in settings.accounts:
            merchant_id, _, account_id = key.partition("/")
            declared = gateway_account(settings, merchant_id=merchant_id, account_id=account_id)
            self._accounts[merchant_id, account_id] = declared

    def receive(self, body: bytes, *, merchant_id: str, account_id: str) -> Acknowledgement:
        """Judge and keep one message; blocks for as long as the database takes."""
        declared = self._accounts.get((merchant_id, account_id))
        if declared is None:
            return Acknowledgement(NOWHERE, "there is no such address")
        try:
            read = _read(body, account=declared)
        except UnsignedError:
            # Nobody holds its signature against ours: not acknowledged, so that it comes again.
            return Acknowledgement(UNAVAILABLE, "it could not be checked; send it again later")
        for _ in range(STORE_TRIES_MAX):
            try:
                return self._keep(read, body=body, account=declared)
            except StoreError:
                continue
        # Not acknowledged: the gateway repeats it.
        return Acknowledgement(UNAVAILABLE, "it could not be kept; send it again later")

    def _keep(
        self, read: VerifiedMessage | MessageRefusal, *, body: bytes, account: GatewayAccount
    ) -> Acknowledgement:
        ids = {
            "merchant_id": account.credentials.merchant_id,
            "account_id": account.credentials.account_id,
        }
        with self._store.writing() as connection:
            kept = None
            if isinstance(read, VerifiedMessage):
                kept = keep(connection, _told(read), at=self._clock(), **ids)
                if kept is Kept.ALONE:
                    return Acknowledgement(ACKNOWLEDGED, "success")
                read = MessageRefusal("contradiction", CONTRADICTION, read.fields)
            case = {
                "problem": read.problem,
                "reason": read.reason,
                "body_sha256": hashlib.sha256(body).hexdigest(),
                "fields": read.fields,
            }
            keep_case(connection, case, at=self._clock(), **ids)
        if kept is Kept.BESIDE_OTHERS:
            return Acknowledgement(ACKNOWLEDGED, "success")
        return Acknowledgement(STATUS_OF[read.problem], f"{read.problem}: {read.reason}")


def _read(body: bytes, *, account: GatewayAccount) -> VerifiedMessage | MessageRefusal:
    try:
        pairs = form_pairs(body)
    except SourceUnreadableError as error:
        return MessageRefusal("malformed", str(error), {})
    return read_message(pairs, credentials=account.credentials, interface=account.interface)


def _told(message: VerifiedMessage) -> Told:
    return Told(
        kind=message.kind,
        identity_sha256=message.identity_sha256,
        sha256=message.sha256,
        order_no=message.fields.get("order_no", ""),
        transaction_id=message.fields.get("transaction_id", ""),
        currency=message.currency,
        amount=message.amount,
        status=message.status,
        fields=message.fields,
    )


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
