"""Queries: given many keys, every key is answered exactly once.

`read_group` returns what one reply says about each key of a group, in the same way for
retrievalTrans (API document 2.8) and retrievalRefund (profile `extended`). Rows are read by column,
as many cells are equal; an unusable row yields a reason instead of a record, is never repaired and
makes its key failed, whatever else is known about it.

`QueryClient._ask` handles a group of keys from start to end: a group without an answer is retried
after the others, with full jitter, until the retry deadline; one refused for its size is halved;
keys missing in a reply are queried again in smaller groups, finally alone. A key that cannot be
answered is `failed`, never `not_found`. Queries are safe to repeat.
"""

import asyncio
import json
import random
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import MAXYEAR, UTC, date, datetime, time
from decimal import Decimal
from enum import StrEnum
from functools import partial
from itertools import repeat
from types import MappingProxyType
from typing import Annotated, Any, Generic, NamedTuple, Self, TypeVar, get_type_hints
from zoneinfo import ZoneInfo

from recon.gateway_client import errors
from recon.gateway_client.batches import is_refund_number
from recon.gateway_client.documents import (
    EXTRA_FIELDS_MAX,
    PADDING,
    UnreadableReplyError,
    json_object,
    rows_of,
    text_of,
)
from recon.gateway_client.interface import KeyKind, OurAccount, QueryRefusal, ReadOperation
from recon.gateway_client.messages import PreparedCall, refuse_account, text_check
from recon.gateway_client.pace import AccountPace, HeldTooLongError, Sleep, Turns
from recon.gateway_client.replies import (
    RISK_FIELDS,
    Envelope,
    FindingKind,
    ReplyFinding,
    RiskFacts,
    envelope_of,
    foreign_row,
    risk_facts,
)
from recon.gateway_client.transport import RawReply, Read, Transport
from recon.privacy.foreign_text import are_harmless, redacted, without_private

QUERY, REFUND_QUERY = "retrievalTrans", "retrievalRefund"
DROPPED_FIELDS = frozenset({"card", "security_code", "cavv", "encryption_data"})
"""Never stored, whatever they contain."""
ENVELOPE_FIELDS = frozenset({"merchant_id", "account_id", "return_status", "return_message"})
_DATE = re.compile(r"[0-9]{14}", re.ASCII)


class _Cell(StrEnum):
    """Type of a cell, which determines how it is stored."""

    ID = "id"
    """Has a checked format, and is stored as it is."""
    AMOUNT = "amount"
    TEXT = "text"
    """Redacted, except for the keys that were queried."""
    NUMBER = "number"
    """A number of the gateway's: stored even if its digits look like a card number."""
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
"""Date field -> field of the record with the same date as an instant."""
_NOTHING: Mapping[str, str] = MappingProxyType({})


class OrderRecord(NamedTuple):
    """One payment attempt as the gateway reported it at `queried_at`.

    A tuple because a hundred are created for each call: a frozen dataclass takes ten times as long.
    """

    key: str
    """The order_no or transaction_id that was queried."""
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
    """`transaction_date` in the gateway's configured time zone."""
    queried_at: datetime
    extra: Mapping[str, str] = _NOTHING
    """Fields of the row that the API document does not list, redacted of card numbers."""
    reply_extra: Mapping[str, str] = _NOTHING
    """The same for the whole reply (antifraud_provider, fraud_check_result, is3ds ...)."""
    risk: RiskFacts = RiskFacts()
    """Risk data of the row; for the reply's only row, completed by those of the whole reply."""


class RefundRecord(NamedTuple):
    """One refund as the gateway reported it at `queried_at`."""

    key: str
    """The order_no or refund_reference that was queried."""
    order_no: Id
    transaction_id: Id
    currency: Id
    amount: Amount
    """The payment's amount, in major units."""
    refund_amount: Amount
    refund_status: Text
    """1 means accepted; `processed_at` shows whether it was paid back."""
    payment_status: Text
    refund_reference: Text
    """The merchant's own reference."""
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


Kinds = Mapping[KeyKind, Iterable[str]]
Record = TypeVar("Record", OrderRecord, RefundRecord)


def _fields_of(record: type[NamedTuple]) -> Mapping[str, _Cell]:
    """Return the row fields of a record type, with the type of each."""
    hints = get_type_hints(record, include_extras=True)
    marks = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
    return {name: own[0] for name, own in marks.items() if own}


ORDER_FIELDS, REFUND_FIELDS = _fields_of(OrderRecord), _fields_of(RefundRecord)


End = tuple[Any, ...] | str | None
"""Result of a key: its records, why the gateway's answer is unusable, or None for not found."""


@dataclass(slots=True)
class GroupAnswer:
    """What a reply says about a group of keys: each is answered or missing, or all are refused."""

    refusal: QueryRefusal | None = None
    """None if the request was accepted."""
    reason: str = ""
    """Why it was refused or cannot be read."""
    may_repeat: bool = False
    """The gateway may answer if asked again."""
    ended: dict[str, End] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    """Keys that the reply does not mention."""
    findings: list[ReplyFinding] = field(default_factory=list)


def read_group(
    keys: Sequence[str], *, raw: RawReply, sent: PreparedCall, kind: KeyKind
) -> GroupAnswer:
    """Return what a reply says about each key of a group; never raises on any reply."""
    try:
        reply = json_object(sent.account.without_key(raw.body))
    except UnreadableReplyError as error:
        return GroupAnswer("system", f"the reply is {error}", may_repeat=True)
    interface = sent.account.interface
    described: ReadOperation = getattr(interface.profile.query, sent.operation)
    envelope = envelope_of(reply, sent=sent, must_name_account=False)
    meaning = interface.status_map.query_return_status.get(envelope.return_status)
    if meaning != "accepted":
        refusal = "signature" if envelope.refuses_signature else meaning
        return _refused(envelope, refusal=refusal)
    answer = GroupAnswer()
    answer.findings.extend(filter(None, (envelope.note, envelope.doubt)))
    if envelope.doubt is not None:
        answer.ended = dict.fromkeys(keys, envelope.doubt.message)
        return answer
    listed, malformed = rows_of(reply, field=described.rows_field)
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
    queried = [(key, row) for key, rows in by_key.items() for row in rows]
    # Beside several rows it would be unclear which payment the reply's own fields are about.
    envelope_fields = reply if len(listed) + malformed == 1 else {}
    rows = _Rows(queried, at=raw.received_at, sent=sent)
    entries: Sequence[Any]
    if sent.operation == REFUND_QUERY:
        entries = rows.read(REFUND_FIELDS, RefundRecord)
    else:
        extra = _extra(reply, listed={*ENVELOPE_FIELDS, described.rows_field})
        entries = rows.orders(kind=kind, envelope_fields=envelope_fields, reply_extra=extra)
    answer.findings.extend(rows.findings)
    first = 0
    for key, of_key in by_key.items():
        first, after = first + len(of_key), first
        if of_key:
            answer.ended[key] = _end_of(key, entries[after:first], findings=answer.findings)
        else:
            answer.missing.append(key)
    answer.findings = list(dict.fromkeys(answer.findings))
    return answer


def _refused(envelope: Envelope, *, refusal: QueryRefusal | None) -> GroupAnswer:
    text = envelope.text or envelope.code or "no text"
    reason = f"return_status {redacted(envelope.return_status) or 'missing'}, {text}"
    if refusal is None:
        finding = ReplyFinding(FindingKind.UNMAPPED_CODE, f"the query was refused: {reason}")
        return GroupAnswer("system", reason, may_repeat=True, findings=[finding])
    return GroupAnswer(refusal, reason, may_repeat=refusal == "system")


def _end_of(key: str, entries: Sequence[Any], *, findings: list[ReplyFinding]) -> End:
    """Return the result of a key from its rows: records, a reason, or None for not found."""
    if len(entries) == 1:
        return (entries[0],) if isinstance(entries[0], tuple) else entries[0]
    problems = [one for one in entries if isinstance(one, str)]
    records: list[Any] = [one for one in entries if isinstance(one, tuple)]
    if records and None in entries:
        problems.append("found and not found in one reply")
        findings.append(ReplyFinding(FindingKind.CONTRADICTION, f"{key}: {problems[-1]}"))
    if problems:
        return problems[0]
    distinct: list[Any] = []
    for record in records:
        if record in distinct:
            message = "the same row twice in one query reply; taken once"
            ids = (record.transaction_id, record.order_no)
            findings.append(ReplyFinding(FindingKind.DOUBLED_ROW, message, *ids))
        else:
            distinct.append(record)
    return tuple(distinct) or None


class _Rows:
    """Rows with the key each was queried by; reads their cells by column."""

    def __init__(
        self,
        queried: Sequence[tuple[str, Mapping[str, Any]]],
        *,
        at: datetime,
        sent: PreparedCall,
    ) -> None:
        self.findings: list[ReplyFinding] = []
        self._queried, self._at, self._operation = queried, at, sent.operation
        self._interface = sent.account.interface

    def orders(
        self, *, kind: KeyKind, envelope_fields: Mapping[str, Any], reply_extra: Mapping[str, str]
    ) -> list[OrderRecord | str | None]:
        """Return for each row its record, why there is none, or None if the key is not found.

        `envelope_fields` holds the reply's own fields if it has a single row, else nothing.
        """
        meanings = self._interface.status_map.query_result
        codes = _texts([row.get("query_result") for _, row in self._queried])
        entries: list[OrderRecord | str | None] = [None] * len(codes)
        reported: list[int] = []
        for at, code in enumerate(codes):
            meaning = "record" if code is None else meanings.get(code)
            if meaning == "failed":
                entries[at] = f"query_result {redacted(code or '')}"
            elif meaning != "not_found":
                reported.append(at)
            if meaning is None:
                shown_code = redacted(code or "") or "missing"
                message = f"query_result {shown_code} is not in the status map"
                order_no = self._queried[at][0] if kind == "order_no" else ""
                finding = ReplyFinding(FindingKind.UNMAPPED_CODE, message, order_no=order_no)
                self.findings.append(finding)
        self._queried = [self._queried[at] for at in reported]
        whole = risk_facts({}, reply=envelope_fields)
        risk = [
            whole if RISK_FIELDS.isdisjoint(row) else risk_facts(row, reply=envelope_fields)
            for _, row in self._queried
        ]
        more: dict[str, Sequence[Any]] = {
            "reply_extra": [reply_extra] * len(reported),
            "risk": risk,
        }
        for at, entry in zip(reported, self.read(ORDER_FIELDS, OrderRecord, **more), strict=True):
            entries[at] = entry
        return entries

    def read(
        self, fields: Mapping[str, _Cell], record: type[Record], **more: Sequence[Any]
    ) -> list[Record | str]:
        """Return for each row its record, or why there is none."""
        keys = [key for key, _ in self._queried]
        cells, problems = self._cells(fields)
        queried_at = [self._at] * len(keys)
        columns = {"key": keys, "queried_at": queried_at, "extra": self._extras(fields), **more}
        for name, cell in fields.items():
            match cell:
                case _Cell.TEXT:
                    columns[name] = _redacted(cells[name], keep=set(keys))
                case _Cell.DATE | _Cell.NUMBER:
                    columns[name] = _redacted(cells[name])
                case _:
                    columns[name] = cells[name]
            if cell is _Cell.DATE:
                # An unreadable date must not be taken for an event that has not happened yet.
                columns[INSTANTS[name]] = self._instants(name, cells=cells, problems=problems)
        for key, problem in zip(keys, problems, strict=True):
            if problem:
                finding = ReplyFinding(FindingKind.MALFORMED, f"{key}: {problem}")
                self.findings.append(finding)
        rows = zip(*(columns[name] for name in record._fields), strict=True)
        return [
            problem or one for problem, one in zip(problems, map(record._make, rows), strict=True)
        ]

    def _cells(self, fields: Mapping[str, _Cell]) -> tuple[dict[str, list[Any]], list[str]]:
        """Return the columns, with amounts as numbers, and why each row is unusable, or ""."""
        rows = [row for _, row in self._queried]
        given = {name: _texts([row.get(name) for row in rows]) for name in fields}
        cells: dict[str, list[Any]] = {
            name: [text or "" for text in column] if None in column else column
            for name, column in given.items()
        }
        currencies, wire = cells["currency"], self._interface.profile.amounts
        unknown = {currency: wire.currency_problem(currency) for currency in set(currencies)}
        problems = [
            f"the currency {unknown[currency]}" if unknown[currency] else ""
            for currency in currencies
        ]
        readers = {each: wire.reader(each, operation=self._operation) for each in unknown}
        for name in (name for name, cell in fields.items() if cell is _Cell.AMOUNT):
            pairs = zip(cells[name], currencies, strict=True)
            cells[name] = [readers[currency](text) for text, currency in pairs]
            fits = [amount is not None for amount in cells[name]]
            self._refuse(fits, problems=problems, reason=f"the {name} is malformed")
        for name in ("transaction_id", "order_no"):
            problem_of = text_check(name, interface=self._interface)
            fits = [not problem_of(text) for text in cells[name]]
            self._refuse(fits, problems=problems, reason=f"the {name} is malformed")
        for name, column in given.items():
            if None in column:
                fits = [text is not None for text in column]
                self._refuse(fits, problems=problems, reason=f"the {name} is not text")
        if numbers := cells.get("refund_reference_id"):
            pairs = zip(numbers, cells["transaction_id"], strict=True)
            fits = [is_refund_number(number, transaction_id=owner) for number, owner in pairs]
            reason = "the refund_reference_id is not the transaction_id, a hyphen and two digits"
            self._refuse(fits, problems=problems, reason=reason)
        return cells, problems

    def _refuse(self, fits: Iterable[bool], *, problems: list[str], reason: str) -> None:
        """Record why rows are unusable; a row keeps its first reason."""
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
                message = f"{self._queried[at][0]}: {name} is not a date"
                ids = (cells["transaction_id"][at], cells["order_no"][at])
                self.findings.append(ReplyFinding(FindingKind.MALFORMED, message, *ids))
        return instants

    def _extras(self, listed: Iterable[str]) -> list[Mapping[str, str]]:
        """Return the unlisted fields of each row; rows with equal fields share one object."""
        names = frozenset(listed)
        known: dict[str, Mapping[str, str]] = {}
        extras: list[Mapping[str, str]] = []
        for _, row in self._queried:
            more = {name: row[name] for name in row if name not in names}
            text = repr(more)
            if text not in known:
                known[text] = _extra(more, listed=())
            extras.append(known[text])
        return extras


def parsed_date(text: str, *, zone: ZoneInfo) -> datetime | None:
    """Parse a 14-digit date of the gateway in its time zone; None if it is not one."""
    if _DATE.fullmatch(text) is None:
        return None
    try:
        # Many times faster than strptime, and every row has a date.
        at = datetime.combine(date.fromisoformat(text[:8]), time.fromisoformat(text[8:]), zone)
        if at.year == MAXYEAR:
            at.astimezone(UTC)  # west of Greenwich this may be beyond the last year
    except (ValueError, OverflowError):
        return None
    return at


def _texts(cells: Sequence[Any]) -> list[str | None]:
    """Apply `text_of` to each cell."""
    try:
        return [*map(str.strip, cells, repeat(PADDING))]
    except TypeError:  # there is a null, a number or an object
        return [*map(text_of, cells)]


def _redacted(column: list[str], *, keep: Collection[str] | None = None) -> list[str]:
    """Return a column safe to store and show; each distinct text is redacted once.

    Numbers in `keep` are not masked, nor, if it is None, any text that is only a number.
    """
    if are_harmless(column):
        return column
    known = {text: redacted(text, keep={text} if keep is None else keep) for text in set(column)}
    return [known[text] for text in column]


def _extra(fields: Mapping[str, Any], *, listed: Iterable[str]) -> Mapping[str, str]:
    """Return the unlisted fields, redacted; private values are replaced."""
    known = DROPPED_FIELDS.union(listed)
    names = [name for name in fields if name not in known][:EXTRA_FIELDS_MAX]
    masked = without_private({name: fields[name] for name in names})
    texts = {
        # objects and lists as the JSON that was received
        name: json.dumps(value, default=str, ensure_ascii=False)
        if (text := text_of(value)) is None
        else text
        for name, value in masked.items()
    }
    return {redacted(name): redacted(text) for name, text in texts.items()}


WAIT_FIRST_SECONDS, WAIT_MAX_SECONDS = 0.5, 10.0
"""Limits of the wait after the first unanswered call, and after many."""
DOUBLINGS_MAX = 16
FAILURES_IN_A_ROW_MAX = 6
"""After this many groups in a row without a usable answer, the rest is not queried."""
ALONE_FROM = 4
"""Up to this many missing keys are queried one by one, more of them in halves."""

REFUSALS: Mapping[str, tuple[str, str]] = {
    "address": (
        "refuses queries from this address",
        "register the outgoing IP address of this machine with the gateway",
    ),
    "signature": (
        "refused our signature",
        "check the sign key and the templates of signature.toml",
    ),
    "merchant": ("does not know this merchant or account", "check both ids"),
}
"""Cause that a person must fix before any query can succeed -> (problem, remedy)."""


class FailedKey(NamedTuple):
    """A key without a usable answer; this says nothing about the payment."""

    key: str
    reason: str


@dataclass(frozen=True)  # with slots a generic alias of it could not be called (Python 3.11)
class Answers(Generic[Record]):
    """The result of a query: every key is in exactly one of found, not_found and failed."""

    found: tuple[Record, ...]
    """All records of every key, in the order of the keys."""
    not_found: tuple[str, ...]
    """Keys that the gateway does not know."""
    failed: tuple[FailedKey, ...]
    findings: tuple[ReplyFinding, ...]
    calls: int
    """Number of HTTP calls, including retries."""
    gateway_at: datetime | None = None
    """The earliest Date of the replies that answered; None if one of them had none."""


QueryAnswers = Answers[OrderRecord]
"""All payments of every queried order or transaction."""

RefundAnswers = Answers[RefundRecord]
"""All refunds of every queried order or reference."""


class QueryClient:
    """Queries the gateway; a context manager that holds one connection per worker.

    Args:
        transport: Connection to the gateway.
        account: The account whose payments are queried.
        pace: The account's current pace, shared with earlier clients, and its clock.
        randomness: For the waits between retries; None makes each wait the longest possible.
        sleep: How to wait; tests pass their own.
        answered: Called with the number of keys of each reply that answered some.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        account: OurAccount,
        pace: AccountPace,
        randomness: random.Random | None = None,
        sleep: Sleep = asyncio.sleep,
        answered: Callable[[int], None] = lambda _: None,
    ) -> None:
        refuse_account(account)
        self._transport, self._account, self._pace = transport, account, pace
        self._randomness, self._sleep = randomness, sleep
        self._answered = answered
        self._stack = AsyncExitStack()
        self._reads: list[Read] = []
        self._turns = Turns(pace, sleep=sleep)

    async def __aenter__(self) -> Self:
        for _ in range(self._pace.limits.in_flight):
            self._reads.append(await self._stack.enter_async_context(self._transport.reading()))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._reads.clear()
        await self._stack.aclose()

    async def query(
        self, *, order_nos: Iterable[str] = (), trades: Iterable[str] = ()
    ) -> QueryAnswers:
        """Query payments by order number, or by transaction id.

        Raises:
            QueryRefusedError: no query can succeed before a person changes something.
            UnsignedError: the holder of the key does not sign; nothing was sent.
            CertificateError: the gateway's certificate was not accepted.
        """
        silence = self._account.interface.status_map.query.row_missing_when_asked_alone
        by_kind: Kinds = {"order_no": order_nos, "transaction_id": trades}
        return await self._answers(QUERY, by_kind, is_silence_absence=silence == "not_found")

    async def refunds(
        self, *, order_nos: Iterable[str] = (), references: Iterable[str] = ()
    ) -> RefundAnswers:
        """Query refunds by order number, or by our own references.

        Raises:
            InterfaceError: the profile has no refund search; only `extended` has.
            GatewayClientError: as `query`.
        """
        silence = self._account.interface.status_map.query.refund_missing_when_asked_alone
        by_kind: Kinds = {"order_no": order_nos, "refund_reference": references}
        return await self._answers(REFUND_QUERY, by_kind, is_silence_absence=silence == "not_found")

    async def _answers(
        self, operation: str, kinds: Kinds, *, is_silence_absence: bool
    ) -> Answers[Any]:
        """Query every distinct key of the one kind that is given."""
        described: ReadOperation | None = getattr(self._account.interface.profile.query, operation)
        if described is None:
            msg = f"profiles.toml describes no {operation}; only the profile extended has it"
            raise errors.InterfaceError(msg)
        given = {kind: tuple(dict.fromkeys(keys)) for kind, keys in kinds.items()}
        kinds_given = [kind for kind, keys in given.items() if keys]
        if len(kinds_given) > 1:
            msg = f"ask by {kinds_given[0]} or by {kinds_given[1]}, not by both at once"
            raise ValueError(msg)
        kind: KeyKind = kinds_given[0] if kinds_given else "order_no"
        signing = partial(self._account.sign, operation, fields={})
        signature = await self._account.in_thread(signing)
        query = _Query(
            given[kind],
            kind=kind,
            operation=operation,
            described=described,
            account=self._account,
            signature=signature,
            is_silence_absence=is_silence_absence,
        )
        try:
            async with asyncio.TaskGroup() as tasks:
                workers = [tasks.create_task(self._work(query, one)) for one in self._reads]
                await query.waiting.join()
                for worker in workers:
                    worker.cancel()
        except* (errors.QueryRefusedError, errors.CertificateError) as refusals:
            refusal = refusals.exceptions[0]
        else:
            return query.answers()
        raise refusal

    async def _work(self, query: "_Query", read: Read) -> None:
        while True:
            group = await query.waiting.get()
            try:
                await self._ask(query, group, read)
            finally:
                query.waiting.task_done()

    async def _ask(self, query: "_Query", group: "_Group", read: Read) -> None:
        """Query a group until each of its keys has a result, or put it back behind the others.

        Smaller groups that result from it are queried here one after another, so that a refusal
        that halving cannot fix is found after few calls.
        """
        keys, pace = group.keys, self._pace
        # Further calls are useless if everything is refused or the gateway is silent.
        is_silent = query.misses >= FAILURES_IN_A_ROW_MAX and pace.has_been_silent_too_long
        if query.refused >= FAILURES_IN_A_ROW_MAX or pace.closed_because or is_silent:
            query.abandon(group, why=pace.closed_because)
            return
        if len(keys) > query.group_max:  # lowered since the group was made
            await self._ask_each(query, _halves(keys), read)
            return
        try:
            answer = await self._call(query, group, read)
        except HeldTooLongError as error:
            query.abandon(group, why=str(error))
            return
        except _NoAnswerError as error:
            await self._put_back(query, group, reason=str(error))
            return
        self._pace.answered()
        query.misses = 0
        query.findings.extend(answer.findings)
        if answer.refusal and answer.refusal in REFUSALS:
            what, cure = REFUSALS[answer.refusal]
            msg = f"the gateway {what} ({answer.reason}): {cure}"
            raise errors.QueryRefusedError(msg, cause=answer.refusal)
        if answer.refusal is None:
            query.book(answer)
            self._answered(len(keys))
            if answer.missing and len(keys) == 1:
                why = "the gateway's reply has no row for it"
                query.fail(keys, None if query.is_silence_absence else why)
            elif len(answer.missing) <= ALONE_FROM:
                await self._ask_each(query, [(key,) for key in answer.missing], read)
            else:
                await self._ask_each(query, _halves(answer.missing), read)
        elif answer.refusal == "system" or len(keys) == 1:
            query.refused += 1
            query.last_failure = answer.reason
            query.fail(keys, answer.reason)
        else:
            halves = _halves(keys)
            if answer.refusal == "too_many":
                query.group_max = min(query.group_max, len(halves[0]))
            await self._ask_each(query, halves, read)

    async def _ask_each(
        self, query: "_Query", groups: Iterable[tuple[str, ...]], read: Read
    ) -> None:
        for keys in groups:
            await self._ask(query, _Group(keys), read)

    async def _call(self, query: "_Query", group: "_Group", read: Read) -> GroupAnswer:
        """Make one HTTP call and read its reply.

        Raises:
            HeldTooLongError: the wait for it would be too long; no call was made.
            _NoAnswerError: it failed, or the reply is unusable; it may be repeated.
        """
        since = self._pace.seconds() if group.since is None else group.since
        async with self._turns.turn(before=since + self._pace.retry_seconds) as turn:
            query.calls += 1
            sent = query.call(group.keys)
            try:
                raw = await read(sent)
            except errors.CertificateError:
                raise
            except (errors.NotSentError, errors.UnknownOutcomeError) as error:
                raise _NoAnswerError(str(error)) from error
            # Before the slot is released, so that a Retry-After already holds the next call.
            self._pace.heed(raw, turn=turn)
        answer = _answer_of_status(raw) or read_group(
            group.keys, raw=raw, sent=sent, kind=query.kind
        )
        if answer.may_repeat:
            raise _NoAnswerError(answer.reason)
        if not all(isinstance(end, str) for end in answer.ended.values()):
            query.dates.append(raw.dated)
        return answer

    async def _put_back(self, query: "_Query", group: "_Group", *, reason: str) -> None:
        """Queue a group without an answer again behind the others, or fail its keys."""
        pace = self._pace
        pace.missed()
        query.misses += 1
        query.last_failure = reason
        now = pace.seconds()
        since = now if group.since is None else group.since
        group = _Group(group.keys, since, now - since, reason)
        if now + pace.held_seconds >= since + pace.retry_seconds:
            query.abandon(group)
            return
        query.waiting.put_nowait(group)
        # Full jitter up to a doubling limit; a Retry-After is handled by the pace.
        bound = WAIT_FIRST_SECONDS * 2 ** min(query.misses - 1, DOUBLINGS_MAX)
        seconds_left = since + pace.retry_seconds - now
        bound = max(0.0, min(WAIT_MAX_SECONDS, bound, seconds_left, pace.seconds_left))
        await self._sleep(self._randomness.uniform(0, bound) if self._randomness else bound)


class _NoAnswerError(Exception):
    """A call without a usable answer; it may be repeated."""


class _Group(NamedTuple):
    """Keys that are queried together, and their unanswered calls."""

    keys: tuple[str, ...]
    since: float | None = None
    """Time by the pace's clock at which the first of these calls failed; None if there was none."""
    seconds: float = 0.0
    """Seconds from then to the last of them."""
    reason: str = ""
    """Why the last one failed."""


class _Query:
    """A query in progress: the waiting groups, and the results so far."""

    def __init__(
        self,
        keys: tuple[str, ...],
        *,
        kind: KeyKind,
        operation: str,
        described: ReadOperation,
        account: OurAccount,
        signature: str,
        is_silence_absence: bool,
    ) -> None:
        self.kind, self._described = kind, described
        self._operation, self._account, self._signature = operation, account, signature
        self.group_max = described.rows_max
        self.waiting: asyncio.Queue[_Group] = asyncio.Queue()
        self.findings: list[ReplyFinding] = []
        self.dates: list[datetime | None] = []
        """The Date of each reply that answered some key."""
        self.calls = 0
        self.misses = self.refused = 0
        """Consecutive calls without an answer, and consecutive refused groups."""
        self.last_failure = ""
        self._keys, self.is_silence_absence = keys, is_silence_absence
        self._ended: dict[str, End] = {}
        problem_of = text_check(kind, interface=account.interface)
        for key in keys:
            problem = problem_of(key)
            if problem := problem if key else "is empty":
                self.fail([key], f"not asked: the {kind} {problem}")
        characters_max = account.interface.profile.query_characters_max
        may_be_sent = [key for key in keys if key not in self._ended]
        for group in grouped(
            may_be_sent, rows_max=described.rows_max, characters_max=characters_max
        ):
            self.waiting.put_nowait(_Group(group))

    def call(self, keys: Sequence[str]) -> PreparedCall:
        """Build the request for a group."""
        return PreparedCall.of(
            {self._described.keys[self.kind]: ",".join(keys)},
            described=self._described,
            account=self._account,
            signature=self._signature,
            operation=self._operation,
        )

    def book(self, answer: GroupAnswer) -> None:
        """Store the results in an answer."""
        self.refused = 0
        self._ended |= answer.ended

    def fail(self, keys: Iterable[str], reason: str | None) -> None:
        """Store that keys have no record, and why; None: they are not found."""
        self._ended |= dict.fromkeys(keys, reason)

    def abandon(self, group: _Group, *, why: str = "") -> None:
        """Fail a group that is not queried again, or was not queried at all."""
        if group.since is None:
            self.fail(group.keys, f"not asked any more: {why or self.last_failure}")
            return
        again = f"; asked again for {group.seconds:.0f} s" if group.seconds >= 1 else ""
        self.fail(group.keys, f"{group.reason}{again}")

    def answers(self) -> Answers[Any]:
        """Return the results of all keys, independent of the order in which workers finished."""
        ended = [(key, self._ended[key]) for key in self._keys]
        return Answers(
            found=tuple(one for _, end in ended if isinstance(end, tuple) for one in end),
            not_found=tuple(key for key, end in ended if end is None),
            failed=tuple(FailedKey(key, end) for key, end in ended if isinstance(end, str)),
            findings=tuple(sorted(self.findings, key=lambda one: (one.kind, str(one)))),
            calls=self.calls,
            gateway_at=None if None in self.dates else min(filter(None, self.dates), default=None),
        )


def _answer_of_status(raw: RawReply) -> GroupAnswer | None:
    """Return the answer that the HTTP status alone gives; None if the body must be read."""
    reason = f"the gateway answered HTTP {raw.status}"
    match raw.meaning:
        case "read":
            return None
        case "no_access":
            return GroupAnswer("address", reason)
        case "refused":
            return GroupAnswer("parameters", reason)
        case "busy":
            seconds = raw.retry_after_seconds
            wait = f" and asked to wait {seconds:.0f} s" if seconds else ""
            return GroupAnswer("system", reason + wait, may_repeat=True)
        case _:
            return GroupAnswer("system", reason)


def grouped(keys: Sequence[str], *, rows_max: int, characters_max: int) -> list[tuple[str, ...]]:
    """Split keys into groups by number and by length when comma-joined (0: any length)."""
    groups: list[tuple[str, ...]] = []
    group: list[str] = []
    characters = 0
    for key in keys:
        longer = characters + len(key) + (1 if group else 0)
        if group and (len(group) >= rows_max or (characters_max and longer > characters_max)):
            groups.append(tuple(group))
            group, longer = [], len(key)
        group.append(key)
        characters = longer
    return [*groups, tuple(group)] if group else groups


def _halves(keys: Sequence[str]) -> list[tuple[str, ...]]:
    middle = (len(keys) + 1) // 2
    return [tuple(keys[:middle]), tuple(keys[middle:])]
