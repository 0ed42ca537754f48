"""One row of a batch reply against the row that was sent: echo first, then status.

Rows may come in any order. A row that is missing, contradicts itself or echoes something else
leaves its instruction unknown; a row that nobody asked for is kept as a finding.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recon.gateway_client.interface.described import GatewayInterface
from recon.gateway_client.interface.operation_formats import OperationFormat, SingleOperation
from recon.gateway_client.interface.payout import PayoutRow
from recon.gateway_client.interface.payout_record import PayoutRecord, misfit, payout_record
from recon.gateway_client.interface.prepare import PreparedRequest
from recon.gateway_client.interface.reply_outcomes import (
    FindingKind,
    ReplyFinding,
    ReplyOutcome,
    RowOutcome,
)
from recon.gateway_client.interface.rows import Operation, RefundRow, Row, ids_of
from recon.gateway_client.money.reply_echo import differing_fields
from recon.gateway_client.wire.json_reply import text_of
from recon.gateway_client.wire.text import code_and_text

FOREIGN_ROWS_MAX = 1
"""With more rows that nobody asked for, the reply is not ours: sending stops."""

FOREIGN_ROWS_KEPT_MAX = 20

_REFUND_SEQUENCE = re.compile(r"[0-9]{2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class JudgedRows:
    """Every requested row, in order, with what else was seen."""

    rows: tuple[RowOutcome, ...]
    findings: tuple[ReplyFinding, ...]
    stop_reason: str


@dataclass(frozen=True, slots=True)
class _Verdict:
    outcome: ReplyOutcome
    code: str = ""
    message: str = ""
    refund_reference_id: str = ""
    findings: tuple[ReplyFinding, ...] = ()
    payout: PayoutRecord | None = None


def judge_rows(
    prepared: PreparedRequest,
    *,
    rows: Sequence[Mapping[str, Any]],
    malformed: int,
    interface: GatewayInterface,
) -> JudgedRows:
    """What each requested row came to, and the rows that nobody asked for."""
    asked = {row.key for row in prepared.rows}
    key_field = interface.batch(prepared.operation).key_field
    answers: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    foreign: list[Mapping[str, Any]] = []
    for row in rows:
        key = text_of(row.get(key_field))
        if key is not None and key in asked:
            answers[key].append(row)
        else:
            foreign.append(row)
    verdicts = [
        _verdict(sent, answers=answers[sent.key], prepared=prepared, interface=interface)
        for sent in prepared.rows
    ]
    outcomes = tuple(
        _outcome(position, sent=sent, verdict=verdict)
        for position, (sent, verdict) in enumerate(zip(prepared.rows, verdicts, strict=True))
    )
    findings = [finding for verdict in verdicts for finding in verdict.findings]
    extras = len(foreign) + malformed
    return JudgedRows(
        rows=outcomes,
        findings=(*findings, *_foreign(foreign, malformed=malformed, prepared=prepared)),
        stop_reason=f"the reply has {extras} rows that nobody asked for"
        if extras > FOREIGN_ROWS_MAX
        else "",
    )


def _outcome(position: int, *, sent: Row, verdict: _Verdict) -> RowOutcome:
    transaction_id, order_no = ids_of(sent)
    return RowOutcome(
        position,
        transaction_id or (verdict.payout.transaction_id if verdict.payout else ""),
        order_no,
        verdict.outcome,
        verdict.code,
        verdict.message,
        verdict.refund_reference_id,
        verdict.payout,
    )


def _verdict(
    sent: Row,
    *,
    answers: Sequence[Mapping[str, Any]],
    prepared: PreparedRequest,
    interface: GatewayInterface,
) -> _Verdict:
    """The verdict of all answers to one row: none, one, or several that must agree."""
    if not answers:
        return _unknown(sent, kind=FindingKind.ROW_MISSING, message="the reply lacks this row")
    verdicts = {
        _single(sent, answer=answer, prepared=prepared, interface=interface) for answer in answers
    }
    if len(verdicts) > 1:
        message = f"{len(answers)} rows of the reply contradict each other"
        return _unknown(sent, kind=FindingKind.CONTRADICTION, message=message)
    verdict = verdicts.pop()
    if len(answers) == 1:
        return verdict
    note = _finding(sent, kind=FindingKind.DOUBLED_ROW, message=f"answered {len(answers)} times")
    return _Verdict(
        verdict.outcome,
        verdict.code,
        verdict.message,
        verdict.refund_reference_id,
        (*verdict.findings, note),
    )


def _single(
    sent: Row,
    *,
    answer: Mapping[str, Any],
    prepared: PreparedRequest,
    interface: GatewayInterface,
) -> _Verdict:
    description = interface.batch(prepared.operation)
    differing = differing_fields(sent, answer=answer, description=description)
    if differing:
        message = f"the reply differs in {', '.join(differing)}"
        return _unknown(sent, kind=FindingKind.ECHO_DIFFERS, message=message)
    status = text_of(answer.get(description.status_field))
    word = interface.status_map.row_status[prepared.operation].get(status or "")
    code, text = _code_and_text(answer, description=description, prepared=prepared)
    payout = _payout(answer, prepared=prepared)
    if word is None:
        shown = prepared.masked_text(status or "") or "missing"
        message = f"{description.status_field} {shown} is not in the status map"
        return _unknown(
            sent, kind=FindingKind.UNMAPPED_CODE, message=message, code=code, payout=payout
        )
    if word == "failed" and payout is not None and not code:
        message = f"{description.status_field} {status} came without a reason"
        return _unknown(sent, kind=FindingKind.CONTRADICTION, message=message, payout=payout)
    wrong = misfit(sent, record=payout) if payout and isinstance(sent, PayoutRow) else ""
    if word == "done" and wrong:
        message = f"the figures of the record do not fit: {wrong}"
        return _unknown(sent, kind=FindingKind.CONTRADICTION, message=message, payout=payout)
    reference, findings, ours = _refund_reference(sent, answer=answer, succeeded=word == "accepted")
    if not ours:
        return _Verdict(ReplyOutcome.UNKNOWN, code, findings[0].message, "", findings)
    return _Verdict(ReplyOutcome(word), code, text, reference, findings, payout)


def _code_and_text(
    answer: Mapping[str, Any], *, description: OperationFormat, prepared: PreparedRequest
) -> tuple[str, str]:
    text = prepared.masked_text(text_of(answer.get(description.message_field)) or "")
    if isinstance(description, SingleOperation) and description.code_field:
        return prepared.masked_text(text_of(answer.get(description.code_field)) or ""), text
    return code_and_text(text)


def _payout(answer: Mapping[str, Any], *, prepared: PreparedRequest) -> PayoutRecord | None:
    if prepared.operation is not Operation.PAYOUT:
        return None
    return payout_record(answer, masked_text=prepared.masked_text, kept_id=prepared.kept_id)


def _refund_reference(
    sent: Row, *, answer: Mapping[str, Any], succeeded: bool
) -> tuple[str, tuple[ReplyFinding, ...], bool]:
    """The gateway's name of a refund, findings, and whether it can be this payment's at all."""
    if not isinstance(sent, RefundRow):
        return "", (), True
    given = text_of(answer.get("refund_reference_id"))
    if given == "":
        if not succeeded:
            return "", (), True
        message = "an accepted refund came without refund_reference_id"
        return "", (_finding(sent, kind=FindingKind.REFUND_REFERENCE, message=message),), True
    prefix = f"{sent.transaction_id}-"
    if given is None or not given.startswith(prefix):
        message = "refund_reference_id belongs to another transaction"
        return "", (_finding(sent, kind=FindingKind.REFUND_REFERENCE, message=message),), False
    if _REFUND_SEQUENCE.fullmatch(given.removeprefix(prefix)) is None:
        message = "refund_reference_id does not end in two digits"
        return "", (_finding(sent, kind=FindingKind.REFUND_REFERENCE, message=message),), True
    return given, (), True


def _foreign(
    foreign: Sequence[Mapping[str, Any]], *, malformed: int, prepared: PreparedRequest
) -> list[ReplyFinding]:
    findings = [
        ReplyFinding(
            FindingKind.FOREIGN_ROW,
            "a row that was not asked for",
            transaction_id=prepared.masked_text(text_of(row.get("transaction_id")) or "")[:64],
            order_no=prepared.masked_text(text_of(row.get("order_no")) or "")[:64],
        )
        for row in foreign[:FOREIGN_ROWS_KEPT_MAX]
    ]
    if malformed:
        message = f"{malformed} elements of the reply's list are not rows"
        findings.append(ReplyFinding(FindingKind.MALFORMED, message))
    return findings


def _unknown(
    sent: Row,
    *,
    kind: FindingKind,
    message: str,
    code: str = "",
    payout: PayoutRecord | None = None,
) -> _Verdict:
    finding = _finding(sent, kind=kind, message=message)
    return _Verdict(ReplyOutcome.UNKNOWN, code, message, "", (finding,), payout)


def _finding(sent: Row, *, kind: FindingKind, message: str) -> ReplyFinding:
    transaction_id, order_no = ids_of(sent)
    return ReplyFinding(kind, message, transaction_id=transaction_id, order_no=order_no)
