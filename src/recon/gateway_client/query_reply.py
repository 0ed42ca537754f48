"""What one reply of the order query says: records, unknown keys, findings, or why it was refused.

Pure and total over any bytes. A row is never repaired: a malformed amount or currency makes its
key failed, whatever else the reply has on that key.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo

from recon.gateway_client.interface import GatewayInterface, QueryRefusal, ReplyPolicy
from recon.gateway_client.outcomes import Finding, FindingKind
from recon.gateway_client.rows import Credentials, text_problem
from recon.gateway_client.signing import SignatureState, reply_signature
from recon.gateway_client.text import code_and_text, scrubbed
from recon.gateway_client.transport import RawReply
from recon.gateway_client.wire.json_reply import (
    UnreadableReplyError,
    json_object,
    rows_of,
    text_of,
)

QUERY = "retrievalTrans"
DROPPED_FIELDS = frozenset({"card", "security_code", "cavv", "encryption_data"})
"""Never kept, whatever they hold."""

EXTRA_FIELDS_MAX = 50
_KNOWN_FIELDS = frozenset(
    {
        "transaction_id",
        "order_no",
        "currency",
        "amount",
        "payment_status",
        "query_result",
        "reference_no",
        "transaction_date",
    }
)
_REPLY_FIELDS = frozenset({"merchant_id", "account_id", "return_status", "return_message"})
_AMOUNT = re.compile(r"[0-9]{1,15}(?:\.[0-9]{2,4})?", re.ASCII)
_CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)
_DATE = re.compile(r"[0-9]{14}", re.ASCII)


class KeyKind(StrEnum):
    """What the keys of a query are."""

    ORDER_NO = "order_no"
    TRANSACTION_ID = "transaction_id"


@dataclass(frozen=True, slots=True)
class OrderRecord:
    """One payment attempt as the gateway knows it at `queried_at`."""

    key: str
    """The order_no or transaction_id that was asked for."""
    order_no: str
    transaction_id: str
    currency: str
    amount: Decimal
    """Major units, with the decimals the gateway wrote."""
    payment_status: str
    query_result: str
    reference_no: str
    transaction_date: str
    """14 digits as given, or ""."""
    transaction_at: datetime | None
    """`transaction_date` in the gateway's configured zone."""
    queried_at: datetime
    extra: Mapping[str, str] = field(default_factory=dict)
    """Fields of the row that the API document does not list, scrubbed of card numbers."""
    reply_extra: Mapping[str, str] = field(default_factory=dict)
    """The same of the whole reply (antifraud_provider, fraud_check_result, is3ds ...)."""


@dataclass(frozen=True, slots=True)
class FailedKey:
    """A key without an answer that can be used; it says nothing about the payment."""

    key: str
    reason: str


@dataclass(slots=True)
class GroupAnswer:
    """What one reply says of a group of keys."""

    refusal: QueryRefusal | None = None
    """None when the reply was accepted."""
    reason: str = ""
    """Why it was refused or cannot be read."""
    may_repeat: bool = False
    records: list[OrderRecord] = field(default_factory=list)
    not_found: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    """Keys that the reply is silent about."""
    findings: list[Finding] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class QueryReading:
    """Everything the replies of one query are judged by."""

    interface: GatewayInterface
    policy: ReplyPolicy
    credentials: Credentials
    signature: str
    """Of the request."""
    kind: KeyKind


def read_query_reply(keys: Sequence[str], *, raw: RawReply, reading: QueryReading) -> GroupAnswer:
    """The answer of an HTTP 200 reply to a group of keys; never raises on foreign bytes."""
    try:
        reply = json_object(raw.body)
    except UnreadableReplyError as error:
        return GroupAnswer("system", f"the reply is {error}", may_repeat=True)
    refusal = _refusal(reply, reading=reading)
    if refusal is not None:
        return refusal
    answer = GroupAnswer()
    untrusted = _untrusted(reply, reading=reading, findings=answer.findings)
    if untrusted:
        answer.failed = dict.fromkeys(keys, untrusted)
        return answer
    _read_rows(answer, keys=keys, reply=reply, raw=raw, reading=reading)
    return answer


def _refusal(reply: Mapping[str, Any], *, reading: QueryReading) -> GroupAnswer | None:
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
        finding = Finding(FindingKind.UNMAPPED_CODE, f"the query was refused: {reason}")
        return GroupAnswer("system", reason, may_repeat=True, findings=[finding])
    return GroupAnswer(word, reason, may_repeat=word == "system")


def _untrusted(reply: Mapping[str, Any], *, reading: QueryReading, findings: list[Finding]) -> str:
    """Why the whole reply cannot be used; "" when it can."""
    state = reply_signature(
        text_of(reply.get("encryption_data")),
        expected=(reading.signature,),
        policy=reading.policy,
    )
    allowed_absent = reading.interface.signature.replies[QUERY] == "echo-or-absent"
    if state is SignatureState.WRONG or (state is SignatureState.ABSENT and not allowed_absent):
        message = f"the query reply's signature is {state}"
        findings.append(Finding(FindingKind.SIGNATURE, message))
        if reading.policy == "enforce":
            return message
    for name in ("merchant_id", "account_id"):
        if text_of(reply.get(name)) not in {"", getattr(reading.credentials, name)}:
            message = f"the query reply has another {name}"
            findings.append(Finding(FindingKind.OTHER_ACCOUNT, message))
            return message
    return ""


def _read_rows(
    answer: GroupAnswer,
    *,
    keys: Sequence[str],
    reply: Mapping[str, Any],
    raw: RawReply,
    reading: QueryReading,
) -> None:
    description = reading.interface.profile.query.retrievalTrans
    rows, malformed = rows_of(reply, field=description.rows_field)
    reply_extra = _extra(reply, known=_REPLY_FIELDS | {description.rows_field})
    by_key: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    asked = set(keys)
    for row in rows:
        key = text_of(row.get(reading.kind))
        if key is not None and key in asked:
            by_key[key].append(row)
        else:
            answer.findings.append(_foreign(row))
    if malformed:
        message = f"{malformed} elements of the query reply's list are not rows"
        answer.findings.append(Finding(FindingKind.MALFORMED, message))
    for key in keys:
        _read_key(
            answer,
            key=key,
            rows=by_key.get(key, []),
            reading=reading,
            seen=_Seen(raw.received_at, reply_extra),
        )


@dataclass(frozen=True, slots=True)
class _Seen:
    """When a reply came and what it says beside its rows."""

    queried_at: datetime
    reply_extra: Mapping[str, str]


def _read_key(
    answer: GroupAnswer,
    *,
    key: str,
    rows: Sequence[Mapping[str, Any]],
    reading: QueryReading,
    seen: _Seen,
) -> None:
    """Records, not found, failed or silent: one key is exactly one of them."""
    if not rows:
        answer.missing.append(key)
        return
    key_rows = _KeyRows()
    for row in rows:
        _sort_row(key_rows, row=row, key=key, reading=reading, seen=seen)
    if key_rows.records and key_rows.absent:
        message = "found and not found in one reply"
        key_rows.problems.append(message)
        key_rows.findings.append(Finding(FindingKind.CONTRADICTION, f"{key}: {message}"))
    answer.findings.extend(key_rows.findings)
    if key_rows.problems:
        answer.failed[key] = key_rows.problems[0]
    elif key_rows.absent:
        answer.not_found.append(key)
    else:
        answer.records.extend(_without_repeats(key_rows.records, findings=answer.findings))


@dataclass(slots=True)
class _KeyRows:
    """The rows of one key, sorted by what they say."""

    records: list[OrderRecord] = field(default_factory=list)
    absent: int = 0
    problems: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def _sort_row(
    key_rows: _KeyRows, *, row: Mapping[str, Any], key: str, reading: QueryReading, seen: _Seen
) -> None:
    word = _word(row, key=key, reading=reading, findings=key_rows.findings)
    if word == "not_found":
        key_rows.absent += 1
        return
    if word == "failed":
        code = scrubbed(text_of(row.get("query_result")) or "")
        key_rows.problems.append(f"query_result {code}")
        return
    problem = _row_problem(row, reading=reading)
    if problem:
        key_rows.problems.append(problem)
        key_rows.findings.append(Finding(FindingKind.MALFORMED, f"{key}: {problem}"))
        return
    record = _record(row, key=key, reading=reading, seen=seen, findings=key_rows.findings)
    key_rows.records.append(record)


def _word(
    row: Mapping[str, Any], *, key: str, reading: QueryReading, findings: list[Finding]
) -> str:
    """record, not_found or failed; a code that is not in the table is a record with a finding."""
    code = text_of(row.get("query_result")) or ""
    word = reading.interface.status_map.query_result.get(code)
    if word is None:
        message = f"query_result {scrubbed(code) or 'missing'} is not in the status map"
        order_no = key if reading.kind is KeyKind.ORDER_NO else ""
        findings.append(Finding(FindingKind.UNMAPPED_CODE, message, order_no=order_no))
        return "record"
    return word


def _row_problem(row: Mapping[str, Any], *, reading: QueryReading) -> str:
    """Why a record cannot be used; "" when it can."""
    if _AMOUNT.fullmatch(text_of(row.get("amount")) or "") is None:
        return "the amount is malformed"
    if _CURRENCY.fullmatch(text_of(row.get("currency")) or "") is None:
        return "the currency is malformed"
    for name in ("transaction_id", "order_no"):
        if text_problem(name, text=text_of(row.get(name)) or "", interface=reading.interface):
            return f"the {name} is malformed"
    for name in ("payment_status", "reference_no", "transaction_date"):
        if text_of(row.get(name)) is None:
            return f"the {name} is not text"
    return ""


def _record(
    row: Mapping[str, Any],
    *,
    key: str,
    reading: QueryReading,
    seen: _Seen,
    findings: list[Finding],
) -> OrderRecord:
    text = {name: text_of(row.get(name)) or "" for name in _KNOWN_FIELDS}
    zone = ZoneInfo(reading.interface.status_map.query.timezone)
    at = parsed_date(text["transaction_date"], zone=zone)
    if at is None and text["transaction_date"]:
        findings.append(Finding(FindingKind.MALFORMED, f"{key}: transaction_date is not a date"))
    return OrderRecord(
        key=key,
        order_no=text["order_no"],
        transaction_id=text["transaction_id"],
        currency=text["currency"],
        amount=Decimal(text["amount"]),
        payment_status=scrubbed(text["payment_status"]),
        query_result=scrubbed(text["query_result"]),
        reference_no=scrubbed(text["reference_no"], keep={text["reference_no"]}),
        transaction_date=scrubbed(text["transaction_date"], keep={text["transaction_date"]}),
        transaction_at=at,
        queried_at=seen.queried_at,
        extra=_extra(row, known=_KNOWN_FIELDS),
        reply_extra=seen.reply_extra,
    )


def parsed_date(text: str, *, zone: ZoneInfo) -> datetime | None:
    """A 14-digit date of the gateway, in its zone; None when it is not one."""
    if _DATE.fullmatch(text) is None:
        return None
    try:
        return datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=zone)
    except ValueError:
        return None


def _extra(row: Mapping[str, Any], *, known: frozenset[str] | set[str]) -> dict[str, str]:
    names = [name for name in row if name not in known and name not in DROPPED_FIELDS]
    return {scrubbed(name): scrubbed(_shown(row[name])) for name in names[:EXTRA_FIELDS_MAX]}


def _shown(value: object) -> str:
    text = text_of(value)
    return str(value) if text is None else text


def _without_repeats(
    records: Sequence[OrderRecord], *, findings: list[Finding]
) -> list[OrderRecord]:
    kept: list[OrderRecord] = []
    for record in records:
        if record in kept:
            message = "the same row twice in one query reply; taken once"
            findings.append(
                Finding(FindingKind.DOUBLED_ROW, message, record.transaction_id, record.order_no)
            )
        else:
            kept.append(record)
    return kept


def _foreign(row: Mapping[str, Any]) -> Finding:
    return Finding(
        FindingKind.FOREIGN_ROW,
        "a row that was not asked for",
        transaction_id=scrubbed(text_of(row.get("transaction_id")) or "")[:64],
        order_no=scrubbed(text_of(row.get("order_no")) or "")[:64],
    )
