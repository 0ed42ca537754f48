"""One read-only query under a given signature rule, and what the gateway says to it.

For the doctor: it asks for an order that no shop has, or for orders that a person named. Nothing
is moved.

`shake_hands` only looks at the way to the gateway: does it answer, and with which certificate? It
opens a connection and closes it; no request is sent.
"""

import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from recon.gateway_client.addresses import Route, trust
from recon.gateway_client.documents import UnreadableReplyError, json_object, text_of
from recon.gateway_client.errors import (
    AddressError,
    NotSentError,
    UnknownOutcomeError,
    UnsignedError,
)
from recon.gateway_client.interface import SignatureRules
from recon.gateway_client.messages import request_body
from recon.gateway_client.query_records import QUERY
from recon.gateway_client.replies import ReplyContext, envelope_of
from recon.gateway_client.signing import SignatureState, sign
from recon.instructions.account import GatewayAccount
from recon.model.words import Clock
from recon.privacy.foreign_text import scrubbed

PROBE_ORDER = "recon-doctor-probe"
"""An order number that no shop uses."""
NOBODYS_SIGNATURE = "0" * 64
"""What no rule yields: for a request that is to be refused."""
SHOWN_FIELDS = ("order_no", "currency", "amount", "payment_status", "query_result")
NO_FIELDS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ProbeQuestion:
    """What one query asks."""

    order_nos: tuple[str, ...] = (PROBE_ORDER,)
    more: Mapping[str, str] = field(default_factory=lambda: NO_FIELDS)
    """Fields beside those of the document's table."""
    is_signed: bool = True
    """Without it the request bears nobody's signature."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What one query came to."""

    word: str
    """As the status map calls it: accepted, signature, address, merchant …; silent: no answer."""
    message: str
    """The gateway's own words, or why there are none."""
    signature: SignatureState
    """Of the reply, against the request's own."""
    rows: tuple[Mapping[str, str], ...] = ()
    """The rows about the orders that were asked for, each field as text, "" where it is none."""
    code: str = ""
    """The code beside a refusal's words, such as I0013; "" when it has none."""
    skew_seconds: float | None = None
    """How far the gateway's clock (its Date header) is ahead of ours; None when it names none."""


def rules_to_try(configured: SignatureRules) -> Iterator[tuple[str, SignatureRules]]:
    """The configured rule, then every other one that this product knows, each with its name."""
    yield "as configured", configured
    templates = (("merchant_id", "account_id"), ("merchant_id", "account_id", "orders"))
    for algorithm, template, case in product(
        ("sha256", "hmac-sha256"), templates, ("lower", "upper")
    ):
        rule = configured.model_copy(
            update={
                "algorithm": algorithm,
                "hex_case": case,
                "templates": {**configured.templates, QUERY: template},
            }
        )
        if rule != configured:
            yield f"{algorithm} over {' + '.join(template)}, {case} case", rule


async def probe(
    account: GatewayAccount,
    *,
    rule: SignatureRules,
    clock: Clock,
    question: ProbeQuestion | None = None,
) -> Probe:
    """Ask once, signed by `rule`; without a question for the order that no shop has."""
    question = question or ProbeQuestion()
    described = account.interface.profile.query.retrievalTrans
    joined = ",".join(question.order_nos)
    fields = {described.order_nos_field: joined}
    try:
        signature = _signature(account, rule=rule, fields={**fields, "orders": joined})
    except UnsignedError as error:
        return Probe("silent", str(error), SignatureState.UNCHECKED)
    message = account.credentials.message(
        {**fields, **question.more},
        signature=signature if question.is_signed else NOBODYS_SIGNATURE,
    )
    try:
        async with account.client(clock=clock).transport.reading() as read:
            raw = await read(described, request_body(message, body=described.body))
    except (NotSentError, UnknownOutcomeError) as error:
        return Probe("silent", str(error), SignatureState.UNCHECKED)
    try:
        reply = json_object(account.credentials.without_key(raw.body))
    except UnreadableReplyError as error:
        sentence = f"HTTP {raw.status}, and the reply is {error}"
        return Probe("silent", sentence, SignatureState.ABSENT)
    context = ReplyContext(
        operation=QUERY,
        signature=signature,
        credentials=account.credentials,
        interface=account.interface,
        policy="enforce",
    )
    envelope = envelope_of(reply, context=context)
    status = envelope.return_status
    words = account.interface.status_map.query_return_status
    dated = raw.dated
    return Probe(
        "signature" if envelope.refuses_signature else words.get(status, "unknown"),
        f"HTTP {raw.status}, return_status {scrubbed(status) or 'missing'}, "
        f"{envelope.code_and_text or 'no text'}",
        envelope.signature,
        tuple(_rows(reply, rows_field=described.rows_field, order_nos=question.order_nos)),
        envelope.code,
        None if dated is None else (dated - raw.received_at).total_seconds(),
    )


def _signature(account: GatewayAccount, *, rule: SignatureRules, fields: Mapping[str, str]) -> str:
    interface = account.interface.model_copy(update={"signature": rule})
    return sign(QUERY, fields=fields, credentials=account.credentials, interface=interface)


def _rows(
    reply: Mapping[str, Any], *, rows_field: str, order_nos: tuple[str, ...]
) -> Iterator[Mapping[str, str]]:
    """What the reply says of the orders that were asked for."""
    rows = reply.get(rows_field)
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and text_of(row.get("order_no")) in order_nos:
            yield {name: scrubbed(text_of(row.get(name)) or "") for name in SHOWN_FIELDS}


PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class Handshake:
    """What a connection to the gateway came to."""

    reached: str
    """Host and port."""
    protocol: str
    """Such as TLSv1.3; "" over http to this machine."""
    certificate_ends_at: datetime | None


def shake_hands(base_url: str, *, route: Route, connect_seconds: float) -> Handshake | str:
    """The connection's facts, or why there is none, in words.

    Args:
        base_url: The gateway's address.
        route: Whom to trust, as whom to appear.
        connect_seconds: How long connecting may take.
    """
    parts = urlsplit(base_url)
    host, port = parts.hostname or "", parts.port or PORTS.get(parts.scheme, 0)
    try:
        trusted = trust(base_url, route=route)
        with socket.create_connection((host, port), timeout=connect_seconds) as plain:
            if parts.scheme == "http":
                return Handshake(f"{host}:{port}", "", None)
            with trusted.wrap_socket(plain, server_hostname=host) as wrapped:
                return Handshake(f"{host}:{port}", wrapped.version() or "", _ends_at(wrapped))
    except ssl.SSLCertVerificationError as error:
        return (
            f"the certificate of {host} is not accepted ({error.verify_message}): if it is the "
            "gateway's own authority, name that as ca_file in gateway.toml"
        )
    except (OSError, AddressError) as error:
        cause = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return f"{host}:{port} cannot be reached ({cause}): check address, firewall and proxy"


def _ends_at(wrapped: ssl.SSLSocket) -> datetime | None:
    certificate = wrapped.getpeercert() or {}
    text = certificate.get("notAfter")
    if not isinstance(text, str):
        return None
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(text), UTC)
