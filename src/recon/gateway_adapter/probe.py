"""One read-only query under a given signature rule, and what the gateway says to it.

For the doctor: it asks for an order that no shop has, so that nothing is learnt or moved.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import product
from typing import Any
from urllib.parse import urlencode

from recon.gateway_adapter.account import GatewayAccount
from recon.gateway_client.errors import NotSentError, UnknownOutcomeError
from recon.gateway_client.interface import SignatureRules
from recon.gateway_client.route import checked_proxy, trust
from recon.gateway_client.signing import SignatureState, same_signature, sign
from recon.gateway_client.text import code_and_text, scrubbed
from recon.gateway_client.transport import ReadConnection
from recon.gateway_client.wire.json_reply import UnreadableReplyError, json_object, text_of
from recon.model import Clock

QUERY = "retrievalTrans"
PROBE_ORDER = "recon-doctor-probe"
"""An order number that no shop uses."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What one query came to."""

    word: str
    """As the status map calls it: accepted, signature, address, merchant …; silent: no answer."""
    told: str
    """The gateway's own words, or why there are none."""
    signature: SignatureState
    """Of the reply, against the request's own."""
    unknown: str = ""
    """The query_result of the row about the order that no shop has; "" when it has no row."""
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


async def probe(place: GatewayAccount, *, rule: SignatureRules, clock: Clock) -> Probe:
    """Ask once, signed by `rule`."""
    described = place.interface.profile.query.retrievalTrans
    fields = {described.order_nos_field: PROBE_ORDER}
    signature = sign(
        QUERY,
        fields={**fields, "orders": PROBE_ORDER},
        credentials=place.credentials,
        interface=place.interface.model_copy(update={"signature": rule}),
    )
    message = {
        "merchant_id": place.credentials.merchant_id,
        "account_id": place.credentials.account_id,
        **fields,
        "encryption_data": signature,
    }
    gateway = place.settings.gateway
    connection = ReadConnection(
        base_url=place.base_url,
        clock=clock,
        connect_seconds=gateway.connect_timeout_seconds,
        deadline_seconds=gateway.deadline_seconds,
        trusted=trust(place.base_url, route=place.route),
        proxy=checked_proxy(place.route, base_url=place.base_url),
    )
    try:
        async with connection:
            raw = await connection.call(
                path=described.path,
                content_type="application/x-www-form-urlencoded",
                body=urlencode(message).encode(),
            )
    except (NotSentError, UnknownOutcomeError) as error:
        return Probe("silent", str(error), SignatureState.UNCHECKED)
    try:
        reply = json_object(raw.body)
    except UnreadableReplyError as error:
        told = f"HTTP {raw.status}, and the reply is {error}"
        return Probe("silent", told, SignatureState.ABSENT)
    word, told = _read(raw.status, reply, place=place)
    return Probe(
        word,
        told,
        _state(text_of(reply.get("encryption_data")) or "", expected=signature),
        _unknown(reply, rows_field=described.rows_field),
        _skew_seconds(raw.headers.get("date", ""), now=raw.received_at),
    )


def _unknown(reply: Mapping[str, Any], *, rows_field: str) -> str:
    """What the reply says of the order that no shop has."""
    rows = reply.get(rows_field)
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and text_of(row.get("order_no")) == PROBE_ORDER:
            return scrubbed(text_of(row.get("query_result")) or "blank")
    return ""


def _read(status: int, reply: Mapping[str, Any], *, place: GatewayAccount) -> tuple[str, str]:
    """What the reply says in the status map's words, and in its own."""
    told = scrubbed(text_of(reply.get("return_message")) or text_of(reply.get("message")) or "")
    code = scrubbed(text_of(reply.get("code")) or "") or code_and_text(told)[0]
    number = text_of(reply.get("return_status")) or ""
    codes = place.interface.status_map
    word = str(codes.query_return_status.get(number, "unknown"))
    if code in codes.refusals.signature_codes:
        word = "signature"
    said = f"HTTP {status}, return_status {scrubbed(number) or 'missing'}, {told or 'no text'}"
    return word, said


def _state(given: str, *, expected: str) -> SignatureState:
    if not given:
        return SignatureState.ABSENT
    same = same_signature(given, expected=expected)
    return SignatureState.VALID if same else SignatureState.WRONG


def _skew_seconds(header: str, *, now: datetime) -> float | None:
    try:
        told = parsedate_to_datetime(header)
    except (ValueError, TypeError, OverflowError):
        return None
    told = told.replace(tzinfo=UTC) if told.tzinfo is None else told
    return (told - now).total_seconds()
