"""What one reply of the order query says: records, unknown keys, findings, or why it was refused.

Pure and total over any bytes. A row is never repaired: a malformed amount or currency makes its
key failed, whatever else the reply has on that key.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from itertools import groupby, repeat
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from recon.gateway_client.interface.reply_outcomes import FindingKind, ReplyFinding
from recon.gateway_client.interface.rows import text_problem
from recon.gateway_client.interface.transport import RawReply
from recon.gateway_client.payments.risk_facts import RISK_FIELDS, RiskFacts, risk_facts
from recon.gateway_client.query.query_columns import (
    Columns,
    amounts_of,
    are_wellformed,
    dates_of,
    extra_columns,
    shown_texts,
    text_columns,
)
from recon.gateway_client.query.query_reading import (
    REPLY_FIELDS,
    GroupAnswer,
    KeyKind,
    QueryReading,
    extra_fields,
    money_problem,
    parsed_date,
    rows_by_key,
    trusted_reply,
)
from recon.gateway_client.wire.json_reply import rows_of, text_of
from recon.gateway_client.wire.text import scrubbed

CODE = "query_result"
ABSENT = "not_found"
ORDINARY_WORDS = frozenset({"record", ABSENT})
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


class OrderRecord(NamedTuple):
    """One payment attempt as the gateway knows it at `queried_at`.

    A tuple, since a hundred are made for each call: a frozen dataclass takes ten times as long.
    """

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
    extra: Mapping[str, str] = MappingProxyType({})
    """Fields of the row that the API document does not list, scrubbed of card numbers."""
    reply_extra: Mapping[str, str] = MappingProxyType({})
    """The same of the whole reply (antifraud_provider, fraud_check_result, is3ds ...)."""
    risk: RiskFacts = RiskFacts()
    """What the row says of the payment's risk; where it is silent and alone, the whole reply."""


def read_query_reply(
    keys: Sequence[str], *, raw: RawReply, reading: QueryReading
) -> GroupAnswer[OrderRecord]:
    """The answer of an HTTP 200 reply to a group of keys; never raises on foreign bytes."""
    reply, answer = trusted_reply(keys, raw=raw, reading=reading)
    if answer.refusal is not None or answer.failed:
        return answer
    rows_field = reading.interface.profile.query.retrievalTrans.rows_field
    by_key = rows_by_key(
        keys, reply=reply, rows_field=rows_field, kind=reading.kind, findings=answer.findings
    )
    extra = extra_fields(reply, known=REPLY_FIELDS | {rows_field})
    rows = [row for key in keys for row in by_key.get(key, ())]
    # Said once beside several rows, nobody could say of which payment it is.
    listed, malformed = rows_of(reply, field=rows_field)
    seen = _Seen(raw.received_at, reply if len(listed) + malformed == 1 else {}, extra)
    if rows and _read_ordinary(answer, keys=keys, rows=rows, reading=reading, seen=seen):
        return answer
    for key in keys:
        _read_key(answer, key=key, rows=by_key.get(key, []), reading=reading, seen=seen)
    return answer


def _read_ordinary(
    answer: GroupAnswer[OrderRecord],
    *,
    keys: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    reading: QueryReading,
    seen: "_Seen",
) -> bool:
    """Read rows that are all ordinary, a column at a time; False when they are not."""
    words = reading.interface.status_map.query_result
    meanings = [words.get(code) if type(code := row.get(CODE)) is str else None for row in rows]
    if not set(meanings) <= ORDINARY_WORDS:
        return False
    absent = {
        row.get(reading.kind) for row, word in zip(rows, meanings, strict=True) if word == ABSENT
    }
    shown = [row for row, word in zip(rows, meanings, strict=True) if word != ABSENT]
    columns = text_columns(shown) if shown else {}
    if columns is None or not (columns.keys() >= _KNOWN_FIELDS or not shown):
        return False
    cells = columns.get(reading.kind, [])
    if not (absent.issubset(keys) and absent.isdisjoint(cells)):
        return False
    if shown and not _read_columns(answer, columns=columns, reading=reading, seen=seen):
        return False
    answered = absent | set(cells)
    answer.not_found.extend(key for key in keys if key in absent)
    answer.missing.extend(key for key in keys if key not in answered)
    return True


def _read_columns(
    answer: GroupAnswer[OrderRecord], *, columns: Columns, reading: QueryReading, seen: "_Seen"
) -> bool:
    """Book a record for each row; False, and nothing booked, when one is not ordinary."""
    if not RISK_FIELDS.isdisjoint(columns):
        return False
    if not are_wellformed(columns, interface=reading.interface):
        return False
    records = _records(columns, reading=reading, seen=seen)
    if records is None:
        return False
    cells = columns[reading.kind]
    if len(set(cells)) == len(cells):
        answer.records.extend(records)
        return True
    for _, same in groupby(records, key=attrgetter("key")):
        answer.records.extend(_without_repeats(list(same), findings=answer.findings))
    return True


def _records(
    columns: Columns, *, reading: QueryReading, seen: "_Seen"
) -> Iterator[OrderRecord] | None:
    """A record of each row; None when a row's date or one of its further fields is odd."""
    zone = ZoneInfo(reading.interface.status_map.query.timezone)
    dates = dates_of(columns["transaction_date"], zone=zone)
    extras = extra_columns(columns, known=_KNOWN_FIELDS)
    if dates is None or extras is None:
        return None
    count = len(dates)
    return map(
        OrderRecord,
        columns[reading.kind],
        columns["order_no"],
        columns["transaction_id"],
        columns["currency"],
        amounts_of(columns["amount"]),
        shown_texts(columns["payment_status"]),
        shown_texts(columns["query_result"]),
        shown_texts(columns["reference_no"], keep=True),
        columns["transaction_date"],
        dates,
        repeat(seen.queried_at, count),
        extras,
        repeat(seen.reply_extra, count),
        repeat(risk_facts({}, reply=seen.reply), count),
    )


@dataclass(frozen=True, slots=True)
class _Seen:
    """When a reply came and what it says beside its rows."""

    queried_at: datetime
    reply: Mapping[str, Any]
    """Empty where what stands beside the rows could be about any of several."""
    reply_extra: Mapping[str, str]


def _read_key(
    answer: GroupAnswer[OrderRecord],
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
        key_rows.findings.append(ReplyFinding(FindingKind.CONTRADICTION, f"{key}: {message}"))
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
    findings: list[ReplyFinding] = field(default_factory=list)


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
        key_rows.findings.append(ReplyFinding(FindingKind.MALFORMED, f"{key}: {problem}"))
        return
    record = _record(row, key=key, reading=reading, seen=seen, findings=key_rows.findings)
    key_rows.records.append(record)


def _word(
    row: Mapping[str, Any], *, key: str, reading: QueryReading, findings: list[ReplyFinding]
) -> str:
    """record, not_found or failed; a code that is not in the table is a record with a finding."""
    code = text_of(row.get("query_result"))
    word = reading.interface.status_map.query_result.get(code or "")
    if code is None:
        return "record"  # one that cannot be used: `_row_problem` names it
    if word is None:
        message = f"query_result {scrubbed(code) or 'missing'} is not in the status map"
        order_no = key if reading.kind is KeyKind.ORDER_NO else ""
        findings.append(ReplyFinding(FindingKind.UNMAPPED_CODE, message, order_no=order_no))
        return "record"
    return word


def _row_problem(row: Mapping[str, Any], *, reading: QueryReading) -> str:
    """Why a record cannot be used; "" when it can."""
    if problem := money_problem(row, names=["amount"], interface=reading.interface):
        return problem
    for name in ("transaction_id", "order_no"):
        if text_problem(name, text=text_of(row.get(name)) or "", interface=reading.interface):
            return f"the {name} is malformed"
    for name in ("payment_status", "query_result", "reference_no", "transaction_date"):
        if text_of(row.get(name)) is None:
            return f"the {name} is not text"
    return ""


def _record(
    row: Mapping[str, Any],
    *,
    key: str,
    reading: QueryReading,
    seen: _Seen,
    findings: list[ReplyFinding],
) -> OrderRecord:
    text = {name: text_of(row.get(name)) or "" for name in _KNOWN_FIELDS}
    zone = ZoneInfo(reading.interface.status_map.query.timezone)
    at = parsed_date(text["transaction_date"], zone=zone)
    if at is None and text["transaction_date"]:
        findings.append(
            ReplyFinding(FindingKind.MALFORMED, f"{key}: transaction_date is not a date")
        )
    return OrderRecord(
        key=key,
        order_no=text["order_no"],
        transaction_id=text["transaction_id"],
        currency=text["currency"],
        amount=Decimal(text["amount"]),
        payment_status=scrubbed(text["payment_status"]),
        query_result=scrubbed(text["query_result"]),
        reference_no=scrubbed(text["reference_no"], keep={text["reference_no"]}),
        transaction_date=_date_as_given(text["transaction_date"], at=at),
        transaction_at=at,
        queried_at=seen.queried_at,
        extra=extra_fields(row, known=_KNOWN_FIELDS),
        reply_extra=seen.reply_extra,
        risk=risk_facts(row, reply=seen.reply),
    )


def _date_as_given(text: str, *, at: datetime | None) -> str:
    """A date as it stands; what is none is foreign text."""
    return text if at is not None else scrubbed(text, keep={text})


def _without_repeats(
    records: Sequence[OrderRecord], *, findings: list[ReplyFinding]
) -> list[OrderRecord]:
    kept: list[OrderRecord] = []
    for record in records:
        if record in kept:
            message = "the same row twice in one query reply; taken once"
            findings.append(
                ReplyFinding(
                    FindingKind.DOUBLED_ROW, message, record.transaction_id, record.order_no
                )
            )
        else:
            kept.append(record)
    return kept
