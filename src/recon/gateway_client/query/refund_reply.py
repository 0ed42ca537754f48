"""What one reply of the refund search says (profile extended): every refund of every key.

Pure and total over any bytes; like the order query, no row is ever repaired.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from recon.gateway_client.interface.described import GatewayInterface
from recon.gateway_client.interface.operation_formats import RefundQueryOperation
from recon.gateway_client.interface.reply_outcomes import FindingKind, ReplyFinding
from recon.gateway_client.interface.rows import text_problem
from recon.gateway_client.interface.transport import RawReply
from recon.gateway_client.query.query_reading import (
    GroupAnswer,
    QueryReading,
    extra_fields,
    money_problem,
    parsed_date,
    rows_by_key,
    trusted_reply,
)
from recon.gateway_client.wire.json_reply import text_of
from recon.gateway_client.wire.text import scrubbed
from recon.gateway_client.wire.wire_errors import InterfaceError

_TEXTS = ("refund_status", "payment_status", "refund_reason")
_IDS = ("transaction_id", "order_no")
_AMOUNTS = ("amount", "refund_amount")
_DATES = ("refund_date", "refund_processing_date")
_REFERENCES = ("refund_reference", "refund_reference_id")
_SEQUENCE = re.compile(r"[0-9]{2}", re.ASCII)
_KNOWN_FIELDS = frozenset({*_TEXTS, *_IDS, *_AMOUNTS, *_DATES, *_REFERENCES, "currency"})


@dataclass(frozen=True, slots=True)
class RefundRecord:
    """One refund as the gateway knows it at `queried_at`."""

    key: str
    """The order_no or refund_reference that was asked for."""
    order_no: str
    transaction_id: str
    currency: str
    amount: Decimal
    """Of the payment, major units."""
    refund_amount: Decimal
    refund_status: str
    """1 means accepted; whether it was paid back tells `processed_at`."""
    payment_status: str
    refund_reference: str
    """The merchant's own."""
    refund_reference_id: str
    """The transaction_id, a hyphen and two digits."""
    refund_reason: str
    refund_date: str
    """14 digits as given, or ""."""
    refund_at: datetime | None
    refund_processing_date: str
    processed_at: datetime | None
    """None while the refund is accepted but not yet paid back."""
    queried_at: datetime
    extra: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Fields that are not listed above, scrubbed of card numbers."""


def refund_query(interface: GatewayInterface) -> RefundQueryOperation:
    """How the refund search looks on the wire.

    Raises:
        InterfaceError: the profile does not know it; only `extended` does.
    """
    described = interface.profile.query.retrievalRefund
    if described is None:
        msg = "profiles.toml describes no retrievalRefund; only the profile extended has it"
        raise InterfaceError(msg)
    return described


def read_refund_reply(
    keys: Sequence[str], *, raw: RawReply, reading: QueryReading
) -> GroupAnswer[RefundRecord]:
    """The answer of an HTTP 200 reply to a group of keys; never raises on foreign bytes."""
    reply, answer = trusted_reply(keys, raw=raw, reading=reading)
    if answer.refusal is not None or answer.failed:
        return answer
    by_key = rows_by_key(
        keys,
        reply=reply,
        rows_field=refund_query(reading.interface).rows_field,
        kind=reading.kind,
        findings=answer.findings,
    )
    zone = ZoneInfo(reading.interface.status_map.query.timezone)
    for key in keys:
        rows = by_key.get(key, [])
        problems = [problem for row in rows if (problem := _row_problem(row, reading=reading))]
        if problems:
            answer.failed[key] = problems[0]
            answer.findings.append(ReplyFinding(FindingKind.MALFORMED, f"{key}: {problems[0]}"))
        elif rows:
            read = [_record(row, key=key, raw=raw, reading=reading) for row in rows]
            answer.records.extend(dict.fromkeys(read))
            findings = (one for row in rows for one in _date_findings(row, key=key, zone=zone))
            answer.findings.extend(dict.fromkeys(findings))
        else:
            answer.missing.append(key)
    return answer


def _date_findings(row: Mapping[str, Any], *, key: str, zone: ZoneInfo) -> Iterator[ReplyFinding]:
    """A date that cannot be read must not pass for a refund that is not yet paid back.

    Judged as it came: what may be shown of it may be nothing.
    """
    ids = {name: text_of(row.get(name)) or "" for name in _IDS}
    for name in _DATES:
        text = text_of(row.get(name))
        if text and parsed_date(text, zone=zone) is None:
            message = f"{key}: {name} is not a date"
            yield ReplyFinding(FindingKind.MALFORMED, message, **ids)


def _row_problem(row: Mapping[str, Any], *, reading: QueryReading) -> str:
    """Why a refund cannot be used; "" when it can."""
    if problem := money_problem(row, names=_AMOUNTS, interface=reading.interface):
        return problem
    for name in (*_TEXTS, *_DATES, "refund_reference"):
        if text_of(row.get(name)) is None:
            return f"the {name} is not text"
    return _id_problem(row, reading=reading)


def _id_problem(row: Mapping[str, Any], *, reading: QueryReading) -> str:
    for name in _IDS:
        if text_problem(name, text=text_of(row.get(name)) or "", interface=reading.interface):
            return f"the {name} is malformed"
    prefix = f"{text_of(row.get('transaction_id'))}-"
    given = text_of(row.get("refund_reference_id")) or ""
    if not given.startswith(prefix) or _SEQUENCE.fullmatch(given.removeprefix(prefix)) is None:
        return "the refund_reference_id is not the transaction_id, a hyphen and two digits"
    return ""


def _record(
    row: Mapping[str, Any], *, key: str, raw: RawReply, reading: QueryReading
) -> RefundRecord:
    text = {name: text_of(row.get(name)) or "" for name in _KNOWN_FIELDS}
    zone = ZoneInfo(reading.interface.status_map.query.timezone)
    return RefundRecord(
        key=key,
        order_no=text["order_no"],
        transaction_id=text["transaction_id"],
        currency=text["currency"],
        amount=Decimal(text["amount"]),
        refund_amount=Decimal(text["refund_amount"]),
        refund_status=scrubbed(text["refund_status"]),
        payment_status=scrubbed(text["payment_status"]),
        refund_reference=scrubbed(text["refund_reference"], keep={key}),
        refund_reference_id=text["refund_reference_id"],
        refund_reason=scrubbed(text["refund_reason"]),
        refund_date=scrubbed(text["refund_date"], keep={text["refund_date"]}),
        refund_at=parsed_date(text["refund_date"], zone=zone),
        refund_processing_date=scrubbed(
            text["refund_processing_date"], keep={text["refund_processing_date"]}
        ),
        processed_at=parsed_date(text["refund_processing_date"], zone=zone),
        queried_at=raw.received_at,
        extra=extra_fields(row, known=_KNOWN_FIELDS),
    )
