"""What one reply says of each key that was asked: records, not found, failed, or nothing.

One way for both reads, retrievalTrans (API document 2.8) and retrievalRefund (profile `extended`).
Rows are read a column at a time, since many of their cells say the same; a row that cannot be used
gives its reason instead of a record, is never repaired and makes its key failed, whatever else
stands there of it. Pure, and total over any bytes.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import MAXYEAR, UTC, datetime
from decimal import Decimal
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Generic, NamedTuple, TypeVar, get_type_hints
from zoneinfo import ZoneInfo

from recon.gateway_client.batches import is_refund_number
from recon.gateway_client.documents import (
    EXTRA_FIELDS_MAX,
    PADDING,
    UnreadableReplyError,
    json_object,
    rows_of,
    text_of,
)
from recon.gateway_client.interface import QueryRefusal
from recon.gateway_client.messages import text_problem
from recon.gateway_client.replies import (
    RISK_FIELDS,
    Envelope,
    FindingKind,
    ReplyContext,
    ReplyFinding,
    RiskFacts,
    envelope_of,
    foreign_row,
    risk_facts,
)
from recon.gateway_client.transport import RawReply
from recon.privacy.foreign_text import are_harmless, redacted, without_private

QUERY, REFUND_QUERY = "retrievalTrans", "retrievalRefund"
DROPPED_FIELDS = frozenset({"card", "security_code", "cavv", "encryption_data"})
"""Never kept, whatever they hold."""
ENVELOPE_FIELDS = frozenset({"merchant_id", "account_id", "return_status", "return_message"})
_DATE = re.compile(r"[0-9]{14}", re.ASCII)


class _Cell(StrEnum):
    """What a cell is, and how it is kept."""

    ID = "id"
    """In a form of ours, as it stands."""
    AMOUNT = "amount"
    TEXT = "text"
    """Redacted, but for the keys that were asked."""
    NUMBER = "number"
    """The gateway's own: kept, though its digits may look like a card's."""
    DATE = "date"


Id = Annotated[str, _Cell.ID]
Amount = Annotated[Decimal, _Cell.AMOUNT]
Text = Annotated[str, _Cell.TEXT]
Number = Annotated[str, _Cell.NUMBER]
Date = Annotated[str, _Cell.DATE]
INSTANTS = {
    "transaction_date": "transaction_at",
    "refund_date": "refund_at",
    "refund_processing_date": "processed_at",
}
"""Each date -> where a record has it as an instant."""
_NOTHING: Mapping[str, str] = MappingProxyType({})


class KeyKind(StrEnum):
    """What the keys of a query are: the field of a row that holds one."""

    ORDER_NO = "order_no"
    TRANSACTION_ID = "transaction_id"
    REFUND_REFERENCE = "refund_reference"


class OrderRecord(NamedTuple):
    """One payment attempt as the gateway knows it at `queried_at`.

    A tuple, since a hundred are made for each call: a frozen dataclass takes ten times as long.
    """

    key: str
    """The order_no or transaction_id that was asked for."""
    order_no: Id
    transaction_id: Id
    currency: Id
    amount: Amount
    """Major units, with the decimals the gateway wrote."""
    payment_status: Text
    query_result: Text
    reference_no: Number
    transaction_date: Date
    """14 digits as given, or ""."""
    transaction_at: datetime | None
    """`transaction_date` in the gateway's configured zone."""
    queried_at: datetime
    extra: Mapping[str, str] = _NOTHING
    """Fields of the row that the API document does not list, redacted of card numbers."""
    reply_extra: Mapping[str, str] = _NOTHING
    """The same of the whole reply (antifraud_provider, fraud_check_result, is3ds ...)."""
    risk: RiskFacts = RiskFacts()
    """What the row says of the payment's risk; where it is silent and alone, the whole reply."""


class RefundRecord(NamedTuple):
    """One refund as the gateway knows it at `queried_at`."""

    key: str
    """The order_no or refund_reference that was asked for."""
    order_no: Id
    transaction_id: Id
    currency: Id
    amount: Amount
    """Of the payment, major units."""
    refund_amount: Amount
    refund_status: Text
    """1 means accepted; whether it was paid back tells `processed_at`."""
    payment_status: Text
    refund_reference: Text
    """The merchant's own."""
    refund_reference_id: Id
    """The transaction_id, a hyphen and two digits."""
    refund_reason: Text
    refund_date: Date
    """14 digits as given, or ""."""
    refund_at: datetime | None
    refund_processing_date: Date
    processed_at: datetime | None
    """None while the refund is accepted but not yet paid back."""
    queried_at: datetime
    extra: Mapping[str, str] = _NOTHING
    """Fields that are not listed above, redacted of card numbers."""


Record = TypeVar("Record", OrderRecord, RefundRecord)


def _fields_of(record: type[NamedTuple]) -> Mapping[str, _Cell]:
    """The fields of a row that a record has, and what each is."""
    hints = get_type_hints(record, include_extras=True)
    marks = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
    return {name: own[0] for name, own in marks.items() if own}


ORDER_FIELDS, REFUND_FIELDS = _fields_of(OrderRecord), _fields_of(RefundRecord)


@dataclass(slots=True)
class GroupAnswer(Generic[Record]):
    """What one reply says of a group: each key is in one of the four, or all are refused."""

    refusal: QueryRefusal | None = None
    """None when the request was taken."""
    reason: str = ""
    """Why it was refused or cannot be read."""
    may_repeat: bool = False
    """Asked again, the gateway may answer."""
    records: list[Record] = field(default_factory=list)
    not_found: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """Key -> why what the gateway says of it cannot be used."""
    missing: list[str] = field(default_factory=list)
    """Keys that the reply is silent about."""
    findings: list[ReplyFinding] = field(default_factory=list)


def read_group(
    keys: Sequence[str], *, raw: RawReply, context: ReplyContext, kind: KeyKind
) -> GroupAnswer[Any]:
    """What a reply to a group of keys says of each of them; never raises on foreign bytes."""
    try:
        reply = json_object(context.account.without_key(raw.body))
    except UnreadableReplyError as error:
        return GroupAnswer("system", f"the reply is {error}", may_repeat=True)
    envelope = envelope_of(reply, context=context)
    word = context.account.interface.status_map.query_return_status.get(envelope.return_status)
    if word != "accepted":
        return _refused(envelope, word="signature" if envelope.refuses_signature else word)
    answer: GroupAnswer[Any] = GroupAnswer()
    answer.findings.extend(filter(None, (envelope.note, envelope.doubt)))
    if envelope.doubt is not None:
        answer.failed = dict.fromkeys(keys, envelope.doubt.message)
        return answer
    listed, malformed = rows_of(reply, field=context.rows_field)
    if malformed:
        message = f"{malformed} elements of the query reply's list are not rows"
        answer.findings.append(ReplyFinding(FindingKind.MALFORMED, message))
    by_key: dict[str, list[Mapping[str, Any]]] = {key: [] for key in keys}
    for row in listed:
        of_key = by_key.get(text_of(row.get(kind)) or "")
        if of_key is None:
            answer.findings.append(foreign_row(row))
        else:
            of_key.append(row)
    asked = [(key, row) for key, rows in by_key.items() for row in rows]
    # Said once beside several rows, nobody could say of which payment it is.
    beside = reply if len(listed) + malformed == 1 else {}
    rows = _Rows(asked, raw=raw, context=context)
    entries: Sequence[Any]
    if context.operation == REFUND_QUERY:
        entries = rows.read(REFUND_FIELDS, RefundRecord)
    else:
        extra = _extra(reply, listed={*ENVELOPE_FIELDS, context.rows_field})
        entries = rows.orders(kind=kind, beside=beside, reply_extra=extra)
    answer.findings.extend(rows.findings)
    grouped: dict[str, list[Any]] = {key: [] for key in keys}
    for (key, _), one in zip(asked, entries, strict=True):
        grouped[key].append(one)
    for key, ones in grouped.items():
        _book(answer, key=key, entries=ones)
    answer.findings = list(dict.fromkeys(answer.findings))
    return answer


def _refused(envelope: Envelope, *, word: QueryRefusal | None) -> GroupAnswer[Any]:
    words = envelope.text or envelope.code or "no text"
    reason = f"return_status {redacted(envelope.return_status) or 'missing'}, {words}"
    if word is None:
        finding = ReplyFinding(FindingKind.UNMAPPED_CODE, f"the query was refused: {reason}")
        return GroupAnswer("system", reason, may_repeat=True, findings=[finding])
    return GroupAnswer(word, reason, may_repeat=word == "system")


def _book(answer: GroupAnswer[Any], *, key: str, entries: Sequence[Any]) -> None:
    """One end of a key, of what its rows say: a record, why there is none, or None: not found."""
    records = [one for one in entries if not isinstance(one, str | None)]
    problems = [one for one in entries if isinstance(one, str)]
    if records and None in entries:
        problems.append("found and not found in one reply")
        message = f"{key}: {problems[-1]}"
        answer.findings.append(ReplyFinding(FindingKind.CONTRADICTION, message))
    if problems:
        answer.failed[key] = problems[0]
    elif not entries:
        answer.missing.append(key)
    elif not records:
        answer.not_found.append(key)
    for at, record in enumerate(() if problems else records):
        if record in records[:at]:
            message = "the same row twice in one query reply; taken once"
            ids = (record.transaction_id, record.order_no)
            answer.findings.append(ReplyFinding(FindingKind.DOUBLED_ROW, message, *ids))
        else:
            answer.records.append(record)


class _Rows:
    """Rows about keys that were asked, each with its key, and their cells by column."""

    def __init__(
        self,
        asked: Sequence[tuple[str, Mapping[str, Any]]],
        *,
        raw: RawReply,
        context: ReplyContext,
    ) -> None:
        self.findings: list[ReplyFinding] = []
        self._asked, self._raw, self._operation = asked, raw, context.operation
        self._interface = context.account.interface

    def orders(
        self, *, kind: KeyKind, beside: Mapping[str, Any], reply_extra: Mapping[str, str]
    ) -> list[OrderRecord | str | None]:
        """Of each row its record, why there is none, or None for a key that is not found.

        `beside` is what the reply says beside its only row; empty where it could be about several.
        """
        meanings = self._interface.status_map.query_result
        entries: list[OrderRecord | str | None] = []
        shown: list[int] = []
        for at, (key, row) in enumerate(self._asked):
            code = text_of(row.get("query_result"))
            meaning = "record" if code is None else meanings.get(code)
            entries.append(f"query_result {redacted(code or '')}" if meaning == "failed" else None)
            if meaning is None:
                message = (
                    f"query_result {redacted(code or '') or 'missing'} is not in the status map"
                )
                order_no = key if kind is KeyKind.ORDER_NO else ""
                finding = ReplyFinding(FindingKind.UNMAPPED_CODE, message, order_no=order_no)
                self.findings.append(finding)
            if meaning in {"record", None}:
                shown.append(at)
        self._asked = [self._asked[at] for at in shown]
        whole = risk_facts({}, reply=beside)
        risk = [
            whole if RISK_FIELDS.isdisjoint(row) else risk_facts(row, reply=beside)
            for _, row in self._asked
        ]
        more: dict[str, Sequence[Any]] = {"reply_extra": [reply_extra] * len(shown), "risk": risk}
        for at, entry in zip(shown, self.read(ORDER_FIELDS, OrderRecord, **more), strict=True):
            entries[at] = entry
        return entries

    def read(
        self, fields: Mapping[str, _Cell], record: type[Record], **more: Sequence[Any]
    ) -> list[Record | str]:
        """Of each row its record, or why there is none."""
        keys = [key for key, _ in self._asked]
        cells, problems = self._cells(fields)
        queried_at = [self._raw.received_at] * len(keys)
        columns = {"key": keys, "queried_at": queried_at, "extra": self._extras(fields), **more}
        for name, cell in fields.items():
            match cell:
                case _Cell.AMOUNT:
                    columns[name] = _amounts(cells[name], problems=problems)
                case _Cell.TEXT:
                    columns[name] = _shown(cells[name], keep=set(keys))
                case _Cell.DATE:
                    columns[name] = _shown(cells[name])
                    # One that cannot be read must not pass for one that is still to come.
                    columns[INSTANTS[name]] = self._instants(name, cells=cells, problems=problems)
                case _Cell.NUMBER:
                    columns[name] = _shown(cells[name])
                case _:
                    columns[name] = cells[name]
        for key, problem in zip(keys, problems, strict=True):
            if problem:
                finding = ReplyFinding(FindingKind.MALFORMED, f"{key}: {problem}")
                self.findings.append(finding)
        rows = zip(*(columns[name] for name in record._fields), strict=True)
        return [
            problem or record._make(values) for problem, values in zip(problems, rows, strict=True)
        ]

    def _cells(self, fields: Mapping[str, _Cell]) -> tuple[dict[str, list[str]], list[str]]:
        """Columns of text without padding, and of each row why it cannot be used, or ""."""
        given = {
            name: [
                cell.strip(PADDING) if type(cell := row.get(name)) is str else text_of(cell)
                for _, row in self._asked
            ]
            for name in fields
        }
        cells = {name: [text or "" for text in column] for name, column in given.items()}
        currencies, wire = cells["currency"], self._interface.profile.amounts
        unknown = cache(wire.currency_problem)
        problems = [
            f"the currency {problem}" if (problem := unknown(currency)) else ""
            for currency in currencies
        ]
        for name in (name for name, cell in fields.items() if cell is _Cell.AMOUNT):
            pairs = zip(cells[name], currencies, strict=True)
            fits = [
                wire.amount_of(text, currency=currency, operation=self._operation) is not None
                for text, currency in pairs
            ]
            self._refuse(fits, problems=problems, reason=f"the {name} is malformed")
        for name in ("transaction_id", "order_no"):
            fits = [
                not text_problem(name, text=text, interface=self._interface) for text in cells[name]
            ]
            self._refuse(fits, problems=problems, reason=f"the {name} is malformed")
        for name, column in given.items():
            fits = [text is not None for text in column]
            self._refuse(fits, problems=problems, reason=f"the {name} is not text")
        if numbers := cells.get("refund_reference_id"):
            pairs = zip(numbers, cells["transaction_id"], strict=True)
            fits = [is_refund_number(number, transaction_id=owner) for number, owner in pairs]
            reason = "the refund_reference_id is not the transaction_id, a hyphen and two digits"
            self._refuse(fits, problems=problems, reason=reason)
        return cells, problems

    def _refuse(self, fits: Iterable[bool], *, problems: list[str], reason: str) -> None:
        """Write down why rows cannot be used; the first reason of a row stays."""
        for at, fit in enumerate(fits):
            if not fit and not problems[at]:
                problems[at] = reason

    def _instants(
        self, name: str, *, cells: Mapping[str, list[str]], problems: Sequence[str]
    ) -> list[datetime | None]:
        zone = ZoneInfo(self._interface.status_map.query.timezone)
        instants = [parsed_date(text, zone=zone) for text in cells[name]]
        for at, instant in enumerate(instants):
            if instant is None and cells[name][at] and not problems[at]:
                message = f"{self._asked[at][0]}: {name} is not a date"
                ids = (cells["transaction_id"][at], cells["order_no"][at])
                self.findings.append(ReplyFinding(FindingKind.MALFORMED, message, *ids))
        return instants

    def _extras(self, listed: Iterable[str]) -> list[Mapping[str, str]]:
        """Of each row what is not listed; one object for all rows that say the same."""
        names = frozenset(listed)
        known: dict[str, Mapping[str, str]] = {}
        extras: list[Mapping[str, str]] = []
        for _, row in self._asked:
            more = {name: row[name] for name in row if name not in names}
            text = repr(more)
            if text not in known:
                known[text] = _extra(more, listed=())
            extras.append(known[text])
        return extras


def parsed_date(text: str, *, zone: ZoneInfo) -> datetime | None:
    """A 14-digit date of the gateway, in its zone; None when it is not one."""
    if _DATE.fullmatch(text) is None:
        return None
    try:
        # Many times as fast as strptime, and every row of a query has a date.
        at = datetime.fromisoformat(f"{text[:8]}T{text[8:]}").replace(tzinfo=zone)
        if at.year == MAXYEAR:
            at.astimezone(UTC)  # west of Greenwich that may be a year too many
    except (ValueError, OverflowError):
        return None
    return at


def _amounts(column: Sequence[str], *, problems: Sequence[str]) -> list[Decimal]:
    """Amounts; any number for a row that is not used."""
    pairs = zip(column, problems, strict=True)
    return [Decimal(0 if problem else text) for text, problem in pairs]


def _shown(column: list[str], *, keep: Collection[str] | None = None) -> list[str]:
    """A column as it may be kept and shown; each distinct text is redacted once.

    Numbers in `keep` stay, though they may look like a card's; None: every text as a whole.
    """
    if are_harmless(column):
        return column
    known = {text: redacted(text, keep={text} if keep is None else keep) for text in set(column)}
    return [known[text] for text in column]


def _extra(fields: Mapping[str, Any], *, listed: Iterable[str]) -> Mapping[str, str]:
    """Fields that are not listed, redacted; of private ones only the names."""
    known = DROPPED_FIELDS.union(listed)
    names = [name for name in fields if name not in known][:EXTRA_FIELDS_MAX]
    kept = without_private({name: fields[name] for name in names})
    return {redacted(name): redacted(_as_text(value)) for name, value in kept.items()}


def _as_text(value: object) -> str:
    """Objects and lists as JSON, as they came."""
    text = text_of(value)
    return json.dumps(value, default=str, ensure_ascii=False) if text is None else text
