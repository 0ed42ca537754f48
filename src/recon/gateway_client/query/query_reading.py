"""What all queries' replies have in common: a head that is trusted or not, rows by their key.

Pure and total over any bytes.
"""

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import MAXYEAR, UTC, datetime
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar
from zoneinfo import ZoneInfo

from recon.gateway_client.interface.described import GatewayInterface, QueryRefusal, ReplyPolicy
from recon.gateway_client.interface.reply_outcomes import FindingKind, ReplyFinding
from recon.gateway_client.interface.rows import Credentials
from recon.gateway_client.interface.signing import reply_signature
from recon.gateway_client.interface.transport import RawReply
from recon.gateway_client.wire.json_reply import (
    UnreadableReplyError,
    json_object,
    rows_of,
    text_of,
)
from recon.gateway_client.wire.private_names import without_private
from recon.gateway_client.wire.text import code_and_text, scrubbed

QUERY = "retrievalTrans"
REFUND_QUERY = "retrievalRefund"
DROPPED_FIELDS = frozenset({"card", "security_code", "cavv", "encryption_data"})
"""Never kept, whatever they hold."""

EXTRA_FIELDS_MAX = 50
REPLY_FIELDS = frozenset({"merchant_id", "account_id", "return_status", "return_message"})
DATE = re.compile(r"[0-9]{14}", re.ASCII)


class Keyed(Protocol):
    """A record that answers a key."""

    @property
    def key(self) -> str:
        """What was asked for."""
        ...


Record = TypeVar("Record", bound=Keyed)


class KeyKind(StrEnum):
    """What the keys of a query are: the field of a row that holds one."""

    ORDER_NO = "order_no"
    TRANSACTION_ID = "transaction_id"
    REFUND_REFERENCE = "refund_reference"


@dataclass(frozen=True, slots=True)
class FailedKey:
    """A key without an answer that can be used; it says nothing about the payment."""

    key: str
    reason: str


@dataclass(slots=True)
class GroupAnswer(Generic[Record]):
    """What one reply says of a group of keys."""

    refusal: QueryRefusal | None = None
    """None when the reply was accepted."""
    reason: str = ""
    """Why it was refused or cannot be read."""
    may_repeat: bool = False
    records: list[Record] = field(default_factory=list)
    not_found: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    """Keys that the reply is silent about."""
    findings: list[ReplyFinding] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class QueryReading:
    """Everything the replies of one query are judged by."""

    interface: GatewayInterface
    policy: ReplyPolicy
    credentials: Credentials
    signature: str
    """Of the request."""
    kind: KeyKind
    operation: str = QUERY


def trusted_reply(
    keys: Sequence[str], *, raw: RawReply, reading: QueryReading
) -> tuple[dict[str, Any], GroupAnswer[Any]]:
    """The reply of an HTTP 200 and an answer begun: refused, failed, or ready for its rows.

    Rows may be read only while the answer has no refusal and nothing failed.
    """
    try:
        reply = json_object(reading.credentials.without_key(raw.body))
    except UnreadableReplyError as error:
        return {}, GroupAnswer("system", f"the reply is {error}", may_repeat=True)
    refusal = _refusal(reply, reading=reading)
    if refusal is not None:
        return reply, refusal
    answer: GroupAnswer[Any] = GroupAnswer()
    untrusted = _untrusted(reply, reading=reading, findings=answer.findings)
    if untrusted:
        answer.failed = dict.fromkeys(keys, untrusted)
    return reply, answer


def rows_by_key(
    keys: Sequence[str],
    *,
    reply: Mapping[str, Any],
    rows_field: str,
    kind: KeyKind,
    findings: list[ReplyFinding],
) -> Mapping[str, list[Mapping[str, Any]]]:
    """The reply's rows by the key they answer; what answers none becomes a finding."""
    rows, malformed = rows_of(reply, field=rows_field)
    by_key: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    asked = set(keys)
    for row in rows:
        key = row.get(kind)
        if type(key) is not str or key not in asked:  # padded, a number, or nobody's
            key = text_of(key)
        if key is not None and key in asked:
            by_key[key].append(row)
        else:
            findings.append(_foreign(row))
    if malformed:
        message = f"{malformed} elements of the query reply's list are not rows"
        findings.append(ReplyFinding(FindingKind.MALFORMED, message))
    return by_key


def _refusal(reply: Mapping[str, Any], *, reading: QueryReading) -> GroupAnswer[Any] | None:
    status = text_of(reply.get("return_status")) or ""
    message = text_of(reply.get("return_message")) or text_of(reply.get("message")) or ""
    code, text = code_and_text(scrubbed(message))
    code = scrubbed(text_of(reply.get("code")) or "") or code
    word = reading.interface.status_map.query_return_status.get(status)
    if word == "accepted":
        return None
    if code in reading.interface.status_map.refusals.signature_codes:
        word = "signature"
    reason = f"return_status {scrubbed(status) or 'missing'}, {text or code or 'no text'}"
    if word is None:
        finding = ReplyFinding(FindingKind.UNMAPPED_CODE, f"the query was refused: {reason}")
        return GroupAnswer("system", reason, may_repeat=True, findings=[finding])
    return GroupAnswer(word, reason, may_repeat=word == "system")


def _untrusted(
    reply: Mapping[str, Any], *, reading: QueryReading, findings: list[ReplyFinding]
) -> str:
    """Why the whole reply cannot be used; "" when it can."""
    state = reply_signature(
        text_of(reply.get("encryption_data")),
        expected=(reading.signature,),
        policy=reading.policy,
    )
    may_lack = reading.interface.signature.may_lack(reading.operation)
    if reading.policy != "off" and not state.is_enough(policy="enforce", may_lack=may_lack):
        message = f"the query reply's signature is {state}"
        findings.append(ReplyFinding(FindingKind.SIGNATURE, message))
        if reading.policy == "enforce":
            return message
    for name in ("merchant_id", "account_id"):
        if text_of(reply.get(name)) not in {"", getattr(reading.credentials, name)}:
            message = f"the query reply has another {name}"
            findings.append(ReplyFinding(FindingKind.OTHER_ACCOUNT, message))
            return message
    return ""


def money_problem(
    row: Mapping[str, Any], *, names: Sequence[str], interface: GatewayInterface
) -> str:
    """Why a row's currency or one of these amounts cannot be used; "" when they can."""
    amounts = interface.profile.amounts
    currency = text_of(row.get("currency")) or ""
    if problem := amounts.currency_problem(currency):
        return f"the currency {problem}"
    for name in names:
        if not amounts.is_amount(text_of(row.get(name)) or "", currency=currency):
            return f"the {name} is malformed"
    return ""


def parsed_date(text: str, *, zone: ZoneInfo) -> datetime | None:
    """A 14-digit date of the gateway, in its zone; None when it is not one."""
    if DATE.fullmatch(text) is None:
        return None
    try:
        # Many times as fast as strptime, and every row of a query has a date.
        at = datetime.fromisoformat(f"{text[:8]}T{text[8:]}").replace(tzinfo=zone)
        if at.year == MAXYEAR:
            at.astimezone(UTC)  # west of Greenwich that may be a year too many
    except (ValueError, OverflowError):
        return None
    return at


def extra_fields(row: Mapping[str, Any], *, known: frozenset[str] | set[str]) -> dict[str, str]:
    """Fields of a row that are not listed, scrubbed; of private ones only the names."""
    names = [name for name in row if name not in known and name not in DROPPED_FIELDS]
    kept = without_private({name: row[name] for name in names[:EXTRA_FIELDS_MAX]})
    return {scrubbed(name): scrubbed(_shown(value)) for name, value in kept.items()}


def _shown(value: object) -> str:
    """Objects and lists as JSON, as they came."""
    text = text_of(value)
    return json.dumps(value, default=str, ensure_ascii=False) if text is None else text


def _foreign(row: Mapping[str, Any]) -> ReplyFinding:
    return ReplyFinding(
        FindingKind.FOREIGN_ROW,
        "a row that was not asked for",
        transaction_id=scrubbed(text_of(row.get("transaction_id")) or "")[:64],
        order_no=scrubbed(text_of(row.get("order_no")) or "")[:64],
    )
