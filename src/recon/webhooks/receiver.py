"""Receiver of the gateway's webhooks: one HTTP address per account, limited in size and time.

A form is checked and stored in one database transaction, and acknowledged only once it is stored; a
refused one is stored as a case. Accounts that merchants.toml does not declare are answered like any
other wrong address and leave no trace. The server uses plain HTTP; in production a proxy in front
of it terminates TLS. Nothing about a request is logged.
"""

import hashlib
import json
import re
import socket
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from recon.config.settings import Settings
from recon.gateway_client import OurAccount, UnsignedError
from recon.instructions.account import MESSAGES, GatewayAccount, gateway_account
from recon.model.errors import AmountError, ConfigurationError, SourceUnreadableError, StoreError
from recon.model.money import parse_minor_units
from recon.model.terms import Clock
from recon.privacy.card_numbers import holds_card
from recon.privacy.own_servers import Bodies, OrderlyServer, server_config
from recon.store.database.engine import Store, open_store
from recon.store.database.migrate import check_revision
from recon.store.nights.notification_rows import GatewayMessage, Saved, save, save_case

CODE = r"[A-Za-z0-9._ -]{1,40}"
ID = r"[A-Za-z0-9#][A-Za-z0-9._#/:-]{0,63}"
AMOUNT = r"[0-9]{1,15}(?:\.[0-9]{1,4})?"
STORED_FIELDS: Mapping[str, str] = {
    "webhooks_type": r"[A-Za-z _-]{1,40}",
    "order_no": ID,
    "transaction_id": ID,
    "refund_reference_id": ID,
    "refund_reference": ID,
    "request_id": ID,
    "recurring_id": ID,
    "short_reference_id": ID,
    "currency": r"[A-Z]{3}",
    "refund_currency": r"[A-Z]{3}",
    "payment_currency": r"[A-Z]{3}",
    "amount": AMOUNT,
    "refund_amount": AMOUNT,
    "payment_amount": AMOUNT,
    "order_status": CODE,
    "payment_status": CODE,
    "refund_status": CODE,
    "review_status": CODE,
    "recurring_status": CODE,
    "status": CODE,
    "error_code": CODE,
    "return_type": CODE,
    "failure_type": CODE,
    "result_code": CODE,
    "refund_date": r"[0-9]{14}",
    "transaction_date": r"[0-9]{14}",
}
"""Field -> pattern of the whole value to be stored; other values are dropped."""

IDENTITY_FIELDS = (
    *("webhooks_type", "order_no", "transaction_id", "refund_reference_id", "refund_reference"),
    *("request_id", "recurring_id", "order_status", "payment_status", "refund_status"),
    *("review_status", "recurring_status", "status"),
)
"""Subject and stage of a message; two messages equal in these must be equal in all fields."""

SUBJECT_FIELDS = ("transaction_id", "order_no", "request_id", "recurring_id")
STATUS_FIELDS = (
    *("refund_status", "review_status", "recurring_status", "status"),
    *("payment_status", "order_status"),
)
OWN_AMOUNTS = ("refund_amount", "payment_amount")
"""Amount of a refund or payout itself, in addition to the payment's amount."""

TYPE_WORDS: Mapping[str, str] = {
    "PAYMENT": "payment",
    "REVIEW RESULT": "review",
    "DISPUTE RECIEVED": "dispute received",
    "DISPUTE RECEIVED": "dispute received",
    "DISPUTE RESULT": "dispute result",
    "REFUND RECIEVED": "refund received",
    "REFUND RECEIVED": "refund received",
    "REFUND ACCEPTED": "refund accepted",
    "REFUND RESULT": "refund result",
    "SUBSCRIPTION": "subscription",
    "PAYOUT": "payout",
}
"""The gateway's types, including its spelling mistakes, -> our terms."""

OTHER = "other"
Problem = Literal["malformed", "forged", "other account", "contradiction"]


@dataclass(frozen=True, slots=True)
class MessageRefusal:
    """Why a message is not trusted; safe to store."""

    problem: Problem
    reason: str
    fields: Mapping[str, str]


def read_message(
    pairs: Mapping[str, str], *, account: OurAccount, at: datetime
) -> GatewayMessage | MessageRefusal:
    """Check a form and return the message, or why it is refused.

    Args:
        pairs: Names and values as sent.
        account: The account of the address it was sent to.
        at: When it arrived.
    """
    fields = stored_fields(pairs)
    given = pairs.get("encryption_data", "")
    for name in ("merchant_id", "account_id"):
        if pairs.get(name, "") != getattr(account, name):
            reason = f"its {name} is not the one of the address it was sent to"
            return MessageRefusal("other account", reason, fields)
    if not given:
        return MessageRefusal("forged", "it carries no signature", fields)
    if not account.is_signed(given, MESSAGES, fields=pairs):
        return MessageRefusal("forged", "its signature is not ours", fields)
    if not any(fields.get(name) for name in SUBJECT_FIELDS):
        return MessageRefusal(
            "malformed", "it names no order, transaction, payout or contract", fields
        )
    return _message(fields, at=at)


def stored_fields(pairs: Mapping[str, str]) -> dict[str, str]:
    """Return the allow-listed fields whose values have the right format."""
    fields = {**pairs, "result_code": re.split("[:_]", pairs.get("result_info", ""), maxsplit=1)[0]}
    return {
        name: fields[name]
        for name, form in sorted(STORED_FIELDS.items())
        if fields.get(name)
        and re.fullmatch(form, fields[name], re.ASCII)
        and not holds_card(fields[name])  # in any field
    }


def _message(fields: Mapping[str, str], *, at: datetime) -> GatewayMessage:
    kind = TYPE_WORDS.get(fields.get("webhooks_type", "").upper(), "") or _kind_of(fields)
    name = next((name for name in OWN_AMOUNTS if name in fields), "amount")
    currency = fields.get(name.replace("amount", "currency"), "") or fields.get("currency", "")
    # The payment's own status says nothing about a refund of it.
    status_fields = ("refund_status",) if kind.startswith("refund") else STATUS_FIELDS
    amount = None
    with suppress(AmountError):
        amount = parse_minor_units(fields.get(name, ""), currency=currency)
    return GatewayMessage(
        kind=kind,
        identity_sha256=_digest({name: fields.get(name, "") for name in IDENTITY_FIELDS}),
        sha256=_digest(fields),
        order_no=fields.get("order_no", ""),
        transaction_id=fields.get("transaction_id", ""),
        currency=currency,
        amount=amount,
        status=next((fields[name] for name in status_fields if name in fields), "")[:20],
        fields=fields,
        received_at=at,
    )


def _kind_of(fields: Mapping[str, str]) -> str:
    """Return the kind of a message with no type, or with an unknown one."""
    if "webhooks_type" in fields:
        return OTHER
    if "request_id" in fields:
        return "payout"
    if "recurring_status" in fields:
        return "subscription"
    return "refund result" if "refund_status" in fields else "payment"


def _digest(fields: Mapping[str, str]) -> str:
    canonical = json.dumps(dict(fields), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


FORM_BYTES_MAX = 65_536
PAIRS_MAX = 200
NAME_CHARACTERS_MAX = 100
VALUE_CHARACTERS_MAX = 5_000
ACKNOWLEDGED = 200
STATUS_OF: Mapping[str, int] = {
    "malformed": 400,
    "forged": 401,
    "other account": 403,
    "contradiction": 409,
}
"""HTTP status of the response to a refused message."""

NOWHERE = 404
UNAVAILABLE = 503
STORE_TRIES_MAX = 5
"""Two equal messages at the same instant may collide on PostgreSQL; a retry then counts them."""

CONTRADICTION = "another message about the same thing in the same state says something else"
"""Both are stored and shown to people as a contradiction; only a flood of them is refused."""


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """The response to the sender."""

    status: int
    text: str


class Receiver:
    """Receives messages for every declared account; lives as long as the server."""

    def __init__(self, settings: Settings, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._accounts: dict[tuple[str, str], GatewayAccount] = {}
        for key in settings.accounts:
            merchant_id, _, account_id = key.partition("/")
            declared = gateway_account(settings, merchant_id=merchant_id, account_id=account_id)
            self._accounts[merchant_id, account_id] = declared

    def receive(self, body: bytes, *, merchant_id: str, account_id: str) -> Acknowledgement:
        """Check and store one message; blocks while the database is busy."""
        declared = self._accounts.get((merchant_id, account_id))
        if declared is None:
            return Acknowledgement(NOWHERE, "there is no such address")
        at = self._clock()
        read: GatewayMessage | MessageRefusal
        try:
            read = read_message(form_pairs(body), account=declared, at=at)
        except SourceUnreadableError as error:
            read = MessageRefusal("malformed", str(error), {})
        except UnsignedError:
            # The signature could not be verified: not acknowledged, so that it is sent again.
            return Acknowledgement(UNAVAILABLE, "it could not be checked; send it again later")
        for _ in range(STORE_TRIES_MAX):
            try:
                return self._save(read, body=body, account=declared, at=at)
            except StoreError:
                continue
        # Not acknowledged: the gateway sends it again.
        return Acknowledgement(UNAVAILABLE, "it could not be kept; send it again later")

    def _save(
        self,
        read: GatewayMessage | MessageRefusal,
        *,
        body: bytes,
        account: GatewayAccount,
        at: datetime,
    ) -> Acknowledgement:
        with self._store.writing() as connection:
            saved = None
            if isinstance(read, GatewayMessage):
                saved = save(connection, account, message=read)
                if saved is Saved.ALONE:
                    return Acknowledgement(ACKNOWLEDGED, "success")
                read = MessageRefusal("contradiction", CONTRADICTION, read.fields)
            case = {
                "problem": read.problem,
                "reason": read.reason,
                "body_sha256": hashlib.sha256(body).hexdigest(),
                "fields": read.fields,
            }
            save_case(connection, account, case=case, at=at)
        if saved is Saved.CONTRADICTS_OTHERS:
            return Acknowledgement(ACKNOWLEDGED, "success")
        return Acknowledgement(STATUS_OF[read.problem], f"{read.problem}: {read.reason}")


BACKLOG = 256
PATH = "/notifications/{merchant_id}/{account_id}"
TOO_LARGE = 413
TOO_SLOW = 408


def receive_until_ended(
    settings: Settings, *, host: str, port: int, clock: Clock, ready: Callable[[str], None]
) -> None:
    """Serve until SIGINT or SIGTERM; calls `ready` with the address once it accepts connections.

    Raises:
        ConfigurationError: the address cannot be used.
        StoreError: the database cannot be used.
    """
    with closing(open_store(settings.database_url.get_secret_value())) as store:
        check_revision(store)
        app = create_app(Receiver(settings, store=store, clock=clock))
        with listening(host, port=port) as listener:
            bound, at = listener.getsockname()[:2]
            # Connections wait in the backlog from here on, so the address can be announced already.
            ready(f"http://{f'[{bound}]' if ':' in bound else bound}:{at}")
            OrderlyServer(server_config(app)).run(sockets=[listener])


def listening(host: str, *, port: int) -> socket.socket:
    """Create a listening TCP socket.

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
    """Create the ASGI application of a receiver."""
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


def form_pairs(body: bytes) -> dict[str, str]:
    """Parse a form into a dict with trimmed values; stricter than a web server.

    Raises:
        SourceUnreadableError: not such a form, with the reason but without any value.
    """
    if len(body) > FORM_BYTES_MAX:
        msg = f"larger than {FORM_BYTES_MAX} bytes"
        raise SourceUnreadableError(msg)
    if not body:
        msg = "empty"
        raise SourceUnreadableError(msg)
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=PAIRS_MAX,
        )
    except ValueError as error:
        # The library's message may quote a name or value, so it is not repeated.
        msg = f"not a form of at most {PAIRS_MAX} UTF-8 pairs"
        raise SourceUnreadableError(msg) from error
    fields: dict[str, str] = {}
    for name, value in pairs:
        if len(name) > NAME_CHARACTERS_MAX or len(value) > VALUE_CHARACTERS_MAX:
            msg = "a name or value is too long"
            raise SourceUnreadableError(msg)
        if name in fields:
            msg = "the same name stands in it twice"
            raise SourceUnreadableError(msg)
        fields[name] = value.strip()
    return fields
