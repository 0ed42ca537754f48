"""One account's access to the gateway: interface, credentials, address, and the signer's socket."""

import json
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from http.client import HTTPException
from pathlib import Path
from typing import Any, NoReturn, Self

from pydantic import SecretStr, ValidationError

from recon.config.declared import problems_of
from recon.config.settings import Settings
from recon.gateway_client import AsyncGateway, Connection, QueryLimits
from recon.gateway_client.addresses import DIRECT, Route, checked_base_url, checked_proxy, trust
from recon.gateway_client.errors import AddressError, InterfaceError, UnsignedError
from recon.gateway_client.interface import GatewayInterface, SignedMessage
from recon.model.errors import ConfigurationError
from recon.model.terms import Clock
from recon.privacy.foreign_text import redacted
from recon.privacy.own_servers import SocketConnection

SIGN_PATH = "/sign"
MATCHES_PATH = "/matches"
HEALTH_PATH = "/health"
CALL_SECONDS = 10.0
RETRY_SECONDS = 20.0
"""How long a signer that does not answer is tried again, for instance while it restarts."""
PAUSE_SECONDS = 0.25
REQUEST_BYTES_MAX = 64 * 1024 * 1024
"""Fits a batch with two people's endorsements of a list of some hundred thousand rows."""
REPLY_BYTES_MAX = 1024 * 1024
REPEATED_STATUSES = frozenset({429, 500, 502, 503, 504})
OK_STATUS = 200
_HEADERS = {"Content-Type": "application/json", "Connection": "close"}


@dataclass(frozen=True, slots=True)
class SignerSocket:
    """Client of the signer that listens at `path`.

    `grounds` is the evidence for a request, such as who approved which row; it is passed on
    unchanged.
    """

    path: Path
    retry_seconds: float = RETRY_SECONDS
    grounds: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def on(self, grounds: Mapping[str, Any]) -> Self:
        """Return the same signer with other grounds."""
        return replace(self, grounds=grounds)

    def sign(self, signed: SignedMessage) -> str:
        """Return the signature of a message.

        Raises:
            UnsignedError: The signer refused, or did not answer in time; nothing was signed.
        """
        reply = self._answer(SIGN_PATH, message_of(signed) | {"grounds": self.grounds})
        signature = reply.get("signature")
        if not isinstance(signature, str) or not signature:
            self._unreachable("its answer cannot be read")
        return signature

    def matches(self, signed: SignedMessage, *, given: str) -> bool:
        """Return whether `given` is the signature of a message.

        Raises:
            UnsignedError: The signer refused, or did not answer in time.
        """
        return self._answer(MATCHES_PATH, message_of(signed) | {"given": given})["matches"] is True

    def health(self) -> Mapping[str, Any]:
        """Return the signer's own status; it is asked once.

        Raises:
            UnsignedError: The signer did not answer.
        """
        return replace(self, retry_seconds=0)._answer(HEALTH_PATH)  # noqa: SLF001 - itself

    def _answer(self, path: str, message: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        body = None if message is None else json.dumps(message).encode()
        if body is not None and len(body) > REQUEST_BYTES_MAX:
            msg = (
                f"what a signer would be asked is larger than {REQUEST_BYTES_MAX} bytes; nothing "
                "was sent: let people approve shorter lists"
            )
            raise UnsignedError(msg, final=True)
        give_up_at = time.monotonic() + self.retry_seconds
        while True:
            try:
                status, reply = self._call(path, body=body)
                why = f"it answered HTTP {status}"
            except (HTTPException, OSError, ValueError) as error:
                # Not chained: a protocol error may quote the request.
                status, reply, why = 0, {}, f"{type(error).__name__}"
            if status == OK_STATUS:
                return reply
            if status and status not in REPEATED_STATUSES:
                raise _refusal(reply, status=status)
            if time.monotonic() >= give_up_at:
                self._unreachable(why)
            time.sleep(PAUSE_SECONDS)

    def _call(self, path: str, *, body: bytes | None) -> tuple[int, dict[str, Any]]:
        socket = SocketConnection(self.path, name="signer", seconds_max=CALL_SECONDS)
        with closing(socket) as connection:
            connection.request("GET" if body is None else "POST", path, body, headers=_HEADERS)
            reply = connection.getresponse()
            content = reply.read(REPLY_BYTES_MAX)
        document = json.loads(content)
        return reply.status, document if isinstance(document, dict) else {}

    def _unreachable(self, why: str) -> NoReturn:
        waited = f" within {self.retry_seconds:g} s" if self.retry_seconds else ""
        msg = f"the signer at {self.path} did not answer{waited} ({why}); nothing was sent"
        raise UnsignedError(msg)


def message_of(signed: SignedMessage) -> dict[str, Any]:
    """Return a message as JSON data for the signer: its non-empty text fields by name."""
    return {
        "template": signed.template,
        "merchant_id": signed.merchant_id,
        "account_id": signed.account_id,
        "fields": _texts(signed.fields),
        "rows": [_texts(row) for row in signed.rows],
    }


def _texts(fields: Mapping[str, Any]) -> dict[str, str]:
    return {name: value for name, value in fields.items() if isinstance(value, str) and value}


def _refusal(reply: Mapping[str, Any], *, status: int) -> UnsignedError:
    reason = redacted(str(reply.get("message") or f"HTTP {status}"))
    refusals = reply.get("refused")
    rows = refusals if isinstance(refusals, dict) else {}
    by_row = {int(row): redacted(str(why)) for row, why in rows.items() if row.isdecimal()}
    msg = f"the signer refused: {reason}; nothing was sent"
    return UnsignedError(msg, refused=by_row, final=True)


MESSAGES = "payment_reply"
"""The template in signature.toml for the signatures of notifications (A-13)."""


@dataclass(frozen=True, kw_only=True)
class GatewayAccount(Connection):
    """A connection to the gateway for one account, with the settings it came from."""

    settings: Settings = field(repr=False)

    def client(self, *, clock: Clock) -> AsyncGateway:
        """Return a client of this account."""
        return AsyncGateway(replace(self, clock=clock))

    @property
    def signed_in_messages(self) -> frozenset[str]:
        """The fields that the signature of a notification covers (A-13)."""
        return frozenset(self.interface.signature.templates[MESSAGES])


def gateway_account(settings: Settings, *, merchant_id: str, account_id: str) -> GatewayAccount:
    """Return the gateway's interface and our credentials, checked before anything is sent.

    Raises:
        ConfigurationError: Profiles, signature, status map, base URL, key, proxy or certificates
            are invalid.
    """
    gateway = settings.gateway
    key: SecretStr | SignerSocket
    if settings.sign_keys.signer is None:
        key = settings.sign_keys.of(f"{merchant_id}/{account_id}")
    else:  # the signer gets as much time as the gateway
        key = SignerSocket(settings.sign_keys.signer, retry_seconds=gateway.deadline_seconds)
    route = Route(
        proxy=gateway.proxy,
        ca_file=gateway.ca_file,
        client_certificate_file=gateway.client_certificate_file,
        client_key_file=gateway.client_key_file,
    )
    try:
        base_url = checked_base_url(settings.gateway_base_url)
        checked_proxy(route, base_url=base_url)
        if route != DIRECT:
            trust(base_url, route=route)  # unreadable files fail before a night starts
        return GatewayAccount(
            base_url=base_url,
            merchant_id=merchant_id,
            account_id=account_id,
            sign_key=key,
            interface=GatewayInterface.of(**settings.interface),
            policy=gateway.reply_signatures,
            limits=QueryLimits(
                calls_per_second=gateway.calls_per_second,
                in_flight=gateway.queries_in_flight,
                retry_seconds=gateway.read_retry_seconds,
            ),
            connect_seconds=gateway.connect_timeout_seconds,
            deadline_seconds=gateway.deadline_seconds,
            route=route,
            settings=settings,
        )
    except (InterfaceError, AddressError) as error:
        msg = str(error)
        if isinstance(error.__cause__, ValidationError):  # messages for users instead of pydantic's
            msg = problems_of(error.__cause__, source=msg.partition(": ")[0])
        raise ConfigurationError(msg) from error
