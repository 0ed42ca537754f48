"""One row of a batch reply against the row that was sent: echo first, then status.

Rows may come in any order. A row that is missing, contradicts itself or echoes something else
leaves its instruction unknown; a row that nobody asked for is kept as a finding.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from recon.gateway_client.interface import BatchOperation, GatewayInterface
from recon.gateway_client.outcomes import Finding, FindingKind, Outcome, RowOutcome
from recon.gateway_client.prepare import PreparedRequest
from recon.gateway_client.rows import BatchRow, Operation, RefundRow
from recon.gateway_client.text import code_and_text, scrubbed
from recon.gateway_client.wire.json_reply import text_of

FOREIGN_ROWS_MAX = 1
"""With more rows that nobody asked for, the reply is not ours: sending stops."""

FOREIGN_ROWS_KEPT_MAX = 20

_AMOUNT = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,6})?", re.ASCII)
_REFUND_SEQUENCE = re.compile(r"[0-9]{2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class JudgedRows:
    """Every requested row, in order, with what else was seen."""

    rows: tuple[RowOutcome, ...]
    findings: tuple[Finding, ...]
    stop_reason: str


@dataclass(frozen=True, slots=True)
class _Verdict:
    outcome: Outcome
    code: str = ""
    message: str = ""
    refund_reference_id: str = ""
    findings: tuple[Finding, ...] = ()


def judge_rows(
    prepared: PreparedRequest,
    *,
    rows: Sequence[Mapping[str, Any]],
    malformed: int,
    interface: GatewayInterface,
) -> JudgedRows:
    """What each requested row came to, and the rows that nobody asked for."""
    asked = {row.transaction_id for row in prepared.rows}
    answers: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    foreign: list[Mapping[str, Any]] = []
    for row in rows:
        transaction_id = text_of(row.get("transaction_id"))
        if transaction_id is not None and transaction_id in asked:
            answers[transaction_id].append(row)
        else:
            foreign.append(row)
    verdicts = [
        _verdict(sent, answers=answers[sent.transaction_id], prepared=prepared, interface=interface)
        for sent in prepared.rows
    ]
    outcomes = tuple(
        RowOutcome(
            position,
            sent.transaction_id,
            sent.order_no,
            verdict.outcome,
            verdict.code,
            verdict.message,
            verdict.refund_reference_id,
        )
        for position, (sent, verdict) in enumerate(zip(prepared.rows, verdicts, strict=True))
    )
    findings = [finding for verdict in verdicts for finding in verdict.findings]
    extras = len(foreign) + malformed
    return JudgedRows(
        rows=outcomes,
        findings=(*findings, *_foreign(foreign, malformed=malformed)),
        stop_reason=f"the reply has {extras} rows that nobody asked for"
        if extras > FOREIGN_ROWS_MAX
        else "",
    )


def _verdict(
    sent: BatchRow,
    *,
    answers: Sequence[Mapping[str, Any]],
    prepared: PreparedRequest,
    interface: GatewayInterface,
) -> _Verdict:
    """The verdict of all answers to one row: none, one, or several that must agree."""
    if not answers:
        return _unknown(sent, kind=FindingKind.ROW_MISSING, message="the reply lacks this row")
    verdicts = {
        _single(sent, answer=answer, operation=prepared.operation, interface=interface)
        for answer in answers
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
    sent: BatchRow,
    *,
    answer: Mapping[str, Any],
    operation: Operation,
    interface: GatewayInterface,
) -> _Verdict:
    description = interface.batch(operation)
    differing = _differing(sent, answer=answer, description=description)
    if differing:
        message = f"the reply differs in {', '.join(differing)}"
        return _unknown(sent, kind=FindingKind.ECHO_DIFFERS, message=message)
    status = text_of(answer.get(description.status_field))
    word = interface.status_map.row_status[operation].get(status or "")
    code, text = _code_and_text(answer, description=description)
    if word is None:
        shown = scrubbed(status or "") or "missing"
        message = f"{description.status_field} {shown} is not in the status map"
        return _unknown(sent, kind=FindingKind.UNMAPPED_CODE, message=message, code=code)
    reference, findings, ours = _refund_reference(sent, answer=answer, succeeded=word == "accepted")
    if not ours:
        return _Verdict(Outcome.UNKNOWN, code, findings[0].message, "", findings)
    return _Verdict(Outcome(word), code, text, reference, findings)


def _differing(
    sent: BatchRow, *, answer: Mapping[str, Any], description: BatchOperation
) -> list[str]:
    """Fields that do not echo what was sent; a missing echo proves nothing and differs too."""
    differing = [
        name
        for name in description.echo_fields
        if not _echoes(getattr(sent, name), given=text_of(answer.get(name)))
    ]
    if isinstance(sent, RefundRow) and sent.refund_reference:
        given = text_of(answer.get("refund_reference"))
        if given not in {"", sent.refund_reference}:
            differing.append("refund_reference")
    return differing


def _echoes(value: object, *, given: str | None) -> bool:
    if isinstance(value, Decimal):
        return given is not None and bool(_AMOUNT.fullmatch(given)) and Decimal(given) == value
    return given == value


def _code_and_text(answer: Mapping[str, Any], *, description: BatchOperation) -> tuple[str, str]:
    return code_and_text(scrubbed(text_of(answer.get(description.message_field)) or ""))


def _refund_reference(
    sent: BatchRow, *, answer: Mapping[str, Any], succeeded: bool
) -> tuple[str, tuple[Finding, ...], bool]:
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


def _foreign(foreign: Sequence[Mapping[str, Any]], *, malformed: int) -> list[Finding]:
    findings = [
        Finding(
            FindingKind.FOREIGN_ROW,
            "a row that was not asked for",
            transaction_id=scrubbed(text_of(row.get("transaction_id")) or "")[:64],
            order_no=scrubbed(text_of(row.get("order_no")) or "")[:64],
        )
        for row in foreign[:FOREIGN_ROWS_KEPT_MAX]
    ]
    if malformed:
        message = f"{malformed} elements of the reply's list are not rows"
        findings.append(Finding(FindingKind.MALFORMED, message))
    return findings


def _unknown(sent: BatchRow, *, kind: FindingKind, message: str, code: str = "") -> _Verdict:
    finding = _finding(sent, kind=kind, message=message)
    return _Verdict(Outcome.UNKNOWN, code, message, "", (finding,))


def _finding(sent: BatchRow, *, kind: FindingKind, message: str) -> Finding:
    return Finding(kind, message, transaction_id=sent.transaction_id, order_no=sent.order_no)
