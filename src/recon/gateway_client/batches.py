"""Money batches: checking rows, building the exact request bytes, and reading each row's outcome.

Amounts are Decimals with the decimals of their currency or of the wire format, in which they are
written; nothing is rounded. Checks return problems as data, so that a caller can keep the good rows
and report the others. All functions are pure: equal rows and credentials give equal bytes, so that
their hash in a journal identifies what was sent, and a stored reply always gives the same outcomes.

Reading accepts any bytes and any status. A row is done, accepted, failed or pending only if a
trusted reply names it once, echoes what was sent and has a status in the status map; everything
else is unknown. A whole request is rejected only by a verified refusal before processing, or where
the configuration says so.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple

from recon.gateway_client.documents import (
    PADDING,
    UnreadableReplyError,
    json_object,
    rows_of,
    text_of,
    texts_of,
)
from recon.gateway_client.errors import (
    InvalidRequestError,
    NotSentError,
    RowProblem,
    UnknownOutcomeError,
)
from recon.gateway_client.interface import (
    GatewayInterface,
    OurAccount,
    Refusals,
    SignatureState,
    number_problem,
)
from recon.gateway_client.messages import (
    PreparedCall,
    amount_problem,
    is_blank,
    private_texts,
    refuse,
    refuse_account,
    text_problem,
    wire_value,
)
from recon.gateway_client.payouts import (
    PayoutRecord,
    PayoutRow,
    misfit,
    payout_problems,
    payout_record,
)
from recon.gateway_client.replies import (
    BatchReply,
    Envelope,
    FindingKind,
    ReplyFinding,
    ReplyOutcome,
    RowOutcome,
    envelope_of,
    foreign_row,
)
from recon.gateway_client.transport import RawReply
from recon.privacy.foreign_text import code_and_text, redacted

_SEQUENCE = re.compile(r"[0-9]{2}", re.ASCII)


class Operation(StrEnum):
    """The batch operations that move or release money."""

    CAPTURE = "capture"
    REFUND = "refund"
    CANCEL = "cancel"
    REVIEW = "review"
    PAYOUT = "payout"
    """A batch with one row."""
    CANCEL_SUBSCRIPTION = "cancelsubscription"
    """A batch with one row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRow:
    """Common fields of batch rows: one payment and its own amount, in major units."""

    transaction_id: str
    order_no: str
    currency: str
    amount: Decimal

    @property
    def key(self) -> str:
        """The value that identifies the row in a reply."""
        return self.transaction_id


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureRow(BatchRow):
    """Capture `amount` of an authorised payment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRow(BatchRow):
    """Release an authorised payment; `amount` is the payment's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundRow(BatchRow):
    """Refund `refund_amount` of a captured payment; `amount` is the payment's own."""

    refund_amount: Decimal
    refund_reason: str
    refund_reference: str = ""
    """The merchant's own reference; sent only if the profile says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRow(BatchRow):
    """Set a payment's review flag; `amount` is the payment's own."""

    review_flag: str = "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelSubscriptionRow:
    """End a recurring contract; contracts already created are still charged."""

    recurring_id: str
    contract_name: str

    @property
    def key(self) -> str:
        """The value that identifies the contract in a reply."""
        return self.recurring_id


Row = BatchRow | PayoutRow | CancelSubscriptionRow

ROW_TYPES: dict[Operation, type[Row]] = {
    Operation.CAPTURE: CaptureRow,
    Operation.REFUND: RefundRow,
    Operation.CANCEL: CancelRow,
    Operation.REVIEW: ReviewRow,
    Operation.PAYOUT: PayoutRow,
    Operation.CANCEL_SUBSCRIPTION: CancelSubscriptionRow,
}


def is_refund_number(text: str, *, transaction_id: str) -> bool:
    """Return whether a refund_reference_id is the transaction id, a hyphen and two digits (4.7)."""
    prefix, hyphen, number = text.rpartition("-")
    return bool(hyphen and prefix == transaction_id and _SEQUENCE.fullmatch(number))


def ids_of(row: Row) -> tuple[str, str]:
    """Return transaction_id and order_no of a row; "" for subscriptions and for new payouts."""
    return (row.transaction_id, row.order_no) if isinstance(row, BatchRow) else ("", "")


def fields_sent(operation: Operation, *, interface: GatewayInterface) -> tuple[str, ...]:
    """Return the fields of a row that are sent under this profile, in order."""
    fields = interface.batch(operation).row_fields
    if operation is Operation.REFUND and interface.profile.send_refund_reference:
        return (*fields, "refund_reference")
    return fields


def check_rows(
    operation: Operation, *, rows: Sequence[Row], interface: GatewayInterface
) -> tuple[RowProblem, ...]:
    """Return why rows must not be sent; empty if all may. The size of the batch is not checked."""
    counts = Counter(row.key for row in rows)
    problems: list[RowProblem] = []
    for position, row in enumerate(rows):
        if type(row) is not ROW_TYPES[operation]:
            reason = f"is a {type(row).__name__}, not a {ROW_TYPES[operation].__name__}"
            problems.append(RowProblem(position, "row", reason))
            continue
        problems.extend(
            RowProblem(position, name, reason)
            for name, reason in _row_problems(operation, row=row, interface=interface)
        )
        if counts[row.key] > 1:
            reason = "the same transaction stands in this batch more than once"
            problems.append(RowProblem(position, interface.batch(operation).key_field, reason))
    return tuple(problems)


def _row_problems(
    operation: Operation, *, row: Row, interface: GatewayInterface
) -> Iterator[tuple[str, str]]:
    if isinstance(row, PayoutRow):
        yield from payout_problems(row, interface=interface)
    for name in fields_sent(operation, interface=interface):
        value, reason = getattr(row, name), ""
        if name.endswith("amount"):
            if value is None:
                continue
            field = name if isinstance(row, BatchRow) else "amount"
            currency = currency_of(row, name)
            reason = amount_problem(value, currency=currency, interface=interface, field=field)
        elif not isinstance(row, PayoutRow):
            reason = text_problem(name, text=value, interface=interface)
        if reason:
            yield name, reason
    if isinstance(row, RefundRow):
        are_numbers = not any(map(number_problem, (row.amount, row.refund_amount)))
        if are_numbers and row.refund_amount > row.amount:
            yield "refund_amount", "is more than the payment's amount"


def currency_of(row: object, name: str) -> str:
    """Return the currency of an amount field: that of its own side, else the row's."""
    currency = getattr(row, f"{name.removesuffix('_amount')}_currency", None)
    return str(getattr(row, "currency", "") if currency is None else currency)


def _wire_row(row: Row, *, fields: Sequence[str], interface: GatewayInterface) -> dict[str, Any]:
    """Return the fields of a row as sent; blank fields of a payout are left out."""
    wire: dict[str, Any] = {}
    for name in fields:
        value = getattr(row, name)
        if isinstance(row, PayoutRow) and is_blank(value):
            continue
        wire[name] = (
            interface.profile.amounts.written(value, currency=currency_of(row, name))
            if isinstance(value, Decimal)
            else wire_value(value)
        )
    return wire


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRequest(PreparedCall):
    """One money batch, ready to be journalled and sent once."""

    operation: Operation
    rows: tuple[Row, ...]


def prepare(
    operation: Operation | str,
    rows: Sequence[Row],
    *,
    account: OurAccount,
) -> PreparedRequest:
    """Check the rows and build the request of one batch.

    Raises:
        InvalidRequestError: naming each row and field that must not be sent.
        UnsignedError: the holder of the key did not sign; nothing was sent.
    """
    operation, interface = Operation(operation), account.interface
    described = interface.batch(operation)
    if not 1 <= len(rows) <= described.rows_max:
        bound = f"1 to {described.rows_max} may be sent at once"
        msg = f"a {operation} batch of {len(rows)} rows; {bound}"
        raise InvalidRequestError(msg)
    refuse_account(account)
    problems = check_rows(operation, rows=rows, interface=interface)
    refuse(f"{operation} batch", problems=problems)
    fields = fields_sent(operation, interface=interface)
    wire_rows = [_wire_row(row, fields=fields, interface=interface) for row in rows]
    if described.rows_field:
        content: dict[str, Any] = {described.rows_field: wire_rows}
        signature = account.sign(operation, fields={}, rows=wire_rows)
    else:
        (content,) = wire_rows
        signature = account.sign(operation, fields=texts_of(content))
    return PreparedRequest.of(
        content,
        described=described,
        account=account,
        signature=signature,
        private=frozenset().union(
            *(private_texts(row) for row in rows if isinstance(row, PayoutRow))
        ),
        operation=operation,
        rows=tuple(rows),
    )


FOREIGN_ROWS_MAX = 1
"""With more unrequested rows the reply is not trusted as ours, and sending stops."""
FOREIGN_ROWS_STORED_MAX = 20
MASK = "*"
"""Placeholder for characters that the gateway, or our own journal, masks."""


def read_batch_reply(prepared: PreparedRequest, raw: RawReply) -> BatchReply:
    """Return the outcome of every row of a batch, in request order; never raises on any reply.

    With the policy `enforce` only replies with a valid signature are trusted; `warn` relies on the
    echo of each row; `off` ignores signatures.

    Args:
        prepared: The request that was sent.
        raw: The reply, whatever it contains.
    """
    refusals = prepared.account.interface.status_map.refusals
    if raw.meaning in {"busy", "other"}:
        return _same_for_all(prepared, _by_silence(raw, refusals=refusals))
    try:
        fields = json_object(raw.body)
    except UnreadableReplyError as error:
        why = f"the reply (HTTP {raw.status}) is {error}"
        unreadable = _Whole(ReplyOutcome.UNKNOWN, FindingKind.UNREADABLE, why)
        return _same_for_all(prepared, _by_status(raw, refusals=refusals) or unreadable)
    message = _message(fields, prepared=prepared)
    whole = _by_message(raw, message=message, refusals=refusals)
    if whole is not None:
        return _same_for_all(prepared, whole, envelope=message.envelope)
    return _by_rows(prepared, message=message)


def without_reply(
    prepared: PreparedRequest, *, error: NotSentError | UnknownOutcomeError
) -> BatchReply:
    """Return the outcome of every row if no reply came: not sent, or unknown."""
    outcome = ReplyOutcome.NOT_SENT if isinstance(error, NotSentError) else ReplyOutcome.UNKNOWN
    rows = _rows(prepared, outcome=outcome, code=error.kind, text=str(error))
    return BatchReply(rows, return_message=str(error))


class _Whole(NamedTuple):
    """One outcome for every row of a request, and the reason."""

    outcome: ReplyOutcome
    kind: FindingKind
    why: str
    stops: bool = False
    """Nothing more may be sent until a person has checked."""


class _Message(NamedTuple):
    """A reply that could be parsed: its envelope and its rows."""

    envelope: Envelope
    rows: Sequence[Mapping[str, Any]]
    malformed: int
    """Number of list elements that are not rows at all."""
    is_accepted: bool
    """The request as a whole was accepted; this says nothing about its rows."""
    is_refused: bool
    has_success: bool
    """Anything in the reply indicates that something may have taken effect."""

    @property
    def has_rows(self) -> bool:
        """Whether the reply has any row, readable or not."""
        return bool(self.rows or self.malformed)


def _message(fields: dict[str, Any], *, prepared: PreparedRequest) -> _Message:
    """Parse a reply; for single-row operations it is the row itself, if it has a status."""
    operation, codes = prepared.operation, prepared.account.interface.status_map
    described = prepared.account.interface.batch(operation)
    own = "return_message" if described.rows_field else described.message_field
    envelope = envelope_of(fields, sent=prepared, message_fields=(own, "message"))
    if described.rows_field:
        rows, malformed = rows_of(fields, field=described.rows_field)
        meaning = codes.return_status.get(envelope.return_status)
        is_accepted = meaning == "accepted"
        is_refused = meaning == "refused" or (not envelope.return_status and bool(envelope.code))
        has_success = bool(rows or malformed) or is_accepted
        return _Message(envelope, rows, malformed, is_accepted, is_refused, has_success)
    status = text_of(fields.get(described.status_field))
    has_row = status != ""
    has_success = has_row and codes.row_status[operation].get(status or "") != "failed"
    is_refused = not has_row and bool(envelope.code)
    envelope = replace(envelope, return_status="")
    return _Message(envelope, [fields] if has_row else [], 0, has_row, is_refused, has_success)


def _by_silence(raw: RawReply, *, refusals: Refusals) -> _Whole:
    """Outcome for 3xx, 408, 425, 429, 5xx and unproven 4xx: it may have been processed."""
    is_final = refusals.refusal_is_final
    was_not_taken = is_final and raw.asks_to_slow_down and "retry-after" in raw.headers
    outcome = ReplyOutcome.NOT_SENT if was_not_taken else ReplyOutcome.UNKNOWN
    return _Whole(outcome, FindingKind.HTTP_STATUS, f"the gateway answered HTTP {raw.status}")


def _by_status(raw: RawReply, *, refusals: Refusals, has_rows: bool = False) -> _Whole | None:
    """Outcome for 401, 403 and statuses configured as refusals, all of which stop sending."""
    kind = FindingKind.HTTP_STATUS
    if raw.status in refusals.before_processing_http and not has_rows:
        why = f"the gateway refused the request before processing (HTTP {raw.status})"
        return _Whole(ReplyOutcome.REJECTED, kind, why, stops=True)
    if raw.meaning == "no_access":
        why = f"the gateway refuses access (HTTP {raw.status})"
        return _Whole(ReplyOutcome.UNKNOWN, kind, why, stops=True)
    return None


def _by_message(raw: RawReply, *, message: _Message, refusals: Refusals) -> _Whole | None:
    """Return the outcome that applies to all rows, or None if each row has its own."""
    envelope = message.envelope
    status = f"return_status {redacted(envelope.return_status) or 'missing'}"
    sentence = f"{status}, {envelope.code_and_text or 'no text'}"
    by_status = None
    if raw.meaning != "read":
        by_status = _by_status(raw, refusals=refusals, has_rows=message.has_rows)
        if by_status is None and not envelope.is_verified:
            by_status = _by_silence(raw, refusals=refusals)
    is_final = message.is_refused and envelope.code in refusals.before_processing_codes
    whole: _Whole | None = None
    if envelope.refuses_signature and not message.has_success:
        # Trusted without a signature: nobody gains by forging this refusal.
        why = f"the gateway refused our signature ({envelope.code}): check the sign key"
        whole = _Whole(ReplyOutcome.REJECTED, FindingKind.REFUSED, why, stops=True)
    elif by_status is not None:
        whole = by_status
    elif envelope.doubt is not None:
        kind, why = envelope.doubt.kind, envelope.doubt.message
        stops = kind is not FindingKind.ACCOUNT_NOT_ECHOED
        whole = _Whole(ReplyOutcome.UNKNOWN, kind, why, stops=stops)
    elif message.is_accepted and not message.has_rows:
        why = f"the reply has no rows ({sentence})"
        whole = _Whole(ReplyOutcome.UNKNOWN, FindingKind.ROW_MISSING, why)
    elif not message.has_rows and envelope.is_verified and is_final:
        why = f"the gateway refused the whole request ({envelope.code_and_text})"
        whole = _Whole(ReplyOutcome.REJECTED, FindingKind.REFUSED, why, stops=True)
    elif not message.has_rows:
        kind = FindingKind.REFUSED if is_final else FindingKind.UNMAPPED_CODE
        why = f"the reply has no rows and does not prove a refusal ({sentence})"
        whole = _Whole(ReplyOutcome.UNKNOWN, kind, why)
    elif not message.is_accepted:
        # The rows have no defined meaning then, and the echoed signature covers neither.
        whole = _Whole(ReplyOutcome.UNKNOWN, FindingKind.RETURN_STATUS, f"{status} with rows")
    return whole


def _same_for_all(
    prepared: PreparedRequest, whole: _Whole, *, envelope: Envelope | None = None
) -> BatchReply:
    code = envelope.code if envelope else ""
    text = envelope.text if envelope else ""
    if whole.outcome is ReplyOutcome.UNKNOWN:
        # The text of an untrusted reply is no reason: an "OK" would accompany an unknown outcome.
        text = whole.why
    return BatchReply(
        _rows(prepared, outcome=whole.outcome, code=code, text=text or whole.why),
        return_status=prepared.masked_text(envelope.return_status) if envelope else "",
        return_message=envelope.code_and_text if envelope else whole.why,
        signature=envelope.signature if envelope else SignatureState.UNCHECKED,
        findings=(ReplyFinding(whole.kind, whole.why),),
        stop_reason=whole.why if whole.stops else "",
    )


def _rows(
    prepared: PreparedRequest, *, outcome: ReplyOutcome, code: str, text: str
) -> tuple[RowOutcome, ...]:
    return tuple(
        RowOutcome(position, *ids_of(sent), outcome, code, text)
        for position, sent in enumerate(prepared.rows)
    )


def _row(
    sent: Row,
    outcome: ReplyOutcome,
    *,
    code: str,
    text: str,
    reference: str = "",
    payout: PayoutRecord | None = None,
) -> RowOutcome:
    """Build the outcome of a row; a payout's only id is the gateway's."""
    own, order_no = ids_of(sent)
    transaction_id = own or (payout.transaction_id if payout else "")
    return RowOutcome(0, transaction_id, order_no, outcome, code, text, reference, payout)


def _by_rows(prepared: PreparedRequest, *, message: _Message) -> BatchReply:
    """Read the rows, which may be in any order; unrequested ones become findings."""
    key_field = prepared.account.interface.batch(prepared.operation).key_field
    answers: dict[str, list[Mapping[str, Any]]] = {row.key: [] for row in prepared.rows}
    foreign: list[Mapping[str, Any]] = []
    for row in message.rows:
        key = text_of(row.get(key_field))
        if key is not None and key in answers:
            answers[key].append(row)
        else:
            foreign.append(row)
    envelope, findings = message.envelope, []
    if envelope.note is not None:
        why = f"{envelope.note.message}; the echo of each row decided"
        findings.append(ReplyFinding(envelope.note.kind, why))
    outcomes: list[RowOutcome] = []
    for position, sent in enumerate(prepared.rows):
        row_outcome, noted = _outcome(sent, answers=answers[sent.key], prepared=prepared)
        outcomes.append(replace(row_outcome, position=position))
        findings.extend(noted)
    findings += [
        foreign_row(row, masked=prepared.masked_text) for row in foreign[:FOREIGN_ROWS_STORED_MAX]
    ]
    if message.malformed:
        why = f"{message.malformed} elements of the reply's list are not rows"
        findings.append(ReplyFinding(FindingKind.MALFORMED, why))
    strangers = len(foreign) + message.malformed
    is_ours = strangers <= FOREIGN_ROWS_MAX
    return BatchReply(
        tuple(outcomes),
        return_status=prepared.masked_text(envelope.return_status),
        return_message=envelope.code_and_text,
        signature=envelope.signature,
        findings=tuple(findings),
        stop_reason="" if is_ours else f"the reply has {strangers} rows that nobody asked for",
    )


Classified = tuple[RowOutcome, tuple[ReplyFinding, ...]]
"""The outcome of a row, and further findings about it."""


def _outcome(
    sent: Row, *, answers: Sequence[Mapping[str, Any]], prepared: PreparedRequest
) -> Classified:
    """Return the outcome from all answers to one row: none, one, or several that must agree."""
    if not answers:
        return _unknown(sent, FindingKind.ROW_MISSING, "the reply lacks this row")
    classified = {_single(sent, answer=answer, prepared=prepared) for answer in answers}
    if len(classified) > 1:
        why = f"{len(answers)} rows of the reply contradict each other"
        return _unknown(sent, FindingKind.CONTRADICTION, why)
    outcome, findings = classified.pop()
    if len(answers) > 1:
        why = f"answered {len(answers)} times"
        findings = (*findings, ReplyFinding(FindingKind.DOUBLED_ROW, why, *ids_of(sent)))
    return outcome, findings


def _single(sent: Row, *, answer: Mapping[str, Any], prepared: PreparedRequest) -> Classified:
    """Compare one answer with the row that was sent: first the echo, then the status."""
    operation, masked, interface = (
        prepared.operation,
        prepared.masked_text,
        prepared.account.interface,
    )
    described = interface.batch(operation)
    if differing := differing_fields(sent, answer=answer, prepared=prepared):
        why = f"the reply differs in {', '.join(differing)}"
        return _unknown(sent, FindingKind.ECHO_DIFFERS, why)
    status = text_of(answer.get(described.status_field)) or ""
    meaning = interface.status_map.row_status[operation].get(status)
    text = masked(text_of(answer.get(described.message_field)) or "")
    if described.code_field:
        code = masked(text_of(answer.get(described.code_field)) or "")
    else:
        code, text = code_and_text(text)
    payout, wrong = None, ""
    if isinstance(sent, PayoutRow):
        payout = payout_record(answer, sent=sent, prepared=prepared)
        wrong = misfit(sent, record=payout)
    if meaning is None:
        why = f"{described.status_field} {masked(status) or 'missing'} is not in the status map"
        return _unknown(sent, FindingKind.UNMAPPED_CODE, why, code=code, payout=payout)
    if meaning == "failed" and payout is not None and not code:
        why = f"{described.status_field} {status} came without a reason"
        return _unknown(sent, FindingKind.CONTRADICTION, why, payout=payout)
    if meaning == "done" and wrong:
        why = f"the figures of the record do not fit: {wrong}"
        return _unknown(sent, FindingKind.CONTRADICTION, why, payout=payout)
    reference, finding, is_ours = _refund_reference(
        sent, answer=answer, is_due=meaning == "accepted"
    )
    if finding is not None and not is_ours:
        return _unknown(sent, finding.kind, finding.message, code=code)
    outcome = ReplyOutcome(meaning)
    row = _row(sent, outcome, code=code, text=text, reference=reference, payout=payout)
    return row, () if finding is None else (finding,)


def _refund_reference(
    sent: Row, *, answer: Mapping[str, Any], is_due: bool
) -> tuple[str, ReplyFinding | None, bool]:
    """Return the refund's id at the gateway, any finding, and whether it can be this payment's."""
    given = text_of(answer.get("refund_reference_id"))
    if not isinstance(sent, RefundRow) or (given == "" and not is_due):
        return "", None, True
    if given and is_refund_number(given, transaction_id=sent.transaction_id):
        return given, None, True
    is_ours = given is not None and (not given or given.startswith(f"{sent.transaction_id}-"))
    if given == "":
        why = "an accepted refund came without refund_reference_id"
    elif is_ours:
        why = "refund_reference_id does not end in two digits"
    else:
        why = "refund_reference_id belongs to another transaction"
    return "", ReplyFinding(FindingKind.REFUND_REFERENCE, why, *ids_of(sent)), is_ours


def _unknown(
    sent: Row,
    kind: FindingKind,
    why: str,
    *,
    code: str = "",
    payout: PayoutRecord | None = None,
) -> Classified:
    row = _row(sent, ReplyOutcome.UNKNOWN, code=code, text=why, payout=payout)
    return row, (ReplyFinding(kind, why, *ids_of(sent)),)


def differing_fields(
    sent: Row, *, answer: Mapping[str, Any], prepared: PreparedRequest
) -> list[str]:
    """Return the fields of a reply's row that differ from what was sent or lack a required echo."""
    interface, operation = prepared.account.interface, prepared.operation
    described = interface.batch(operation)

    def echoes(name: str, given: str | None) -> bool:
        value = _at(sent, path=name)
        if not isinstance(value, Decimal):
            return given == str(value).strip(PADDING)
        amounts, currency = interface.profile.amounts, currency_of(sent, name)
        return value == amounts.amount_of(given, currency=currency, operation=operation)

    def contradicts(name: str) -> bool:
        """Whether an optional echo differs from what was sent; if masked, in its visible part."""
        value, given = _at(sent, path=name), text_of(_at(answer, path=name))
        if value in {None, ""} or given == "":
            return False
        if given is None or (isinstance(value, Decimal) and MASK not in given):
            return not echoes(name, given)
        return not _shows_same("".join(given.split()), sent="".join(str(value).split()))

    differing = [
        name for name in described.echo_fields if not echoes(name, text_of(answer.get(name)))
    ]
    differing += [name for name in described.echo_fields_if_given if contradicts(name)]
    if isinstance(sent, RefundRow) and sent.refund_reference:
        given = text_of(answer.get("refund_reference"))
        differing += ["refund_reference"] if given not in {"", sent.refund_reference} else []
    return differing


def _at(value: object, *, path: str) -> object:
    """Return the value at a path (dots for nested objects), or None."""
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    return value


def _shows_same(given: str, *, sent: str) -> bool:
    """Return whether the visible parts of a masked echo agree with what was sent."""
    first, *others = re.split(r"\*+", given)
    if not others:
        return given == sent
    at = len(first)
    for part in others[:-1]:
        position = sent.find(part, at)
        if position < 0:
            return False
        at = position + len(part)
    last = others[-1]
    return sent.startswith(first) and sent.endswith(last) and at + len(last) <= len(sent)
