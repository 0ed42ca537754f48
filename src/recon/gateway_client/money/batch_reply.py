"""The third phase of a money batch: what the reply says of every row.

Total over any bytes and any status, and pure: it can be repeated from a stored reply. Proof rules:
a row is done, accepted, failed or pending only when a trusted reply names it once, echoes what was
sent and carries a status of the table; everything else is unknown. A whole request is rejected only
by a verified refusal before processing, or where the configuration says so.
"""

from recon.gateway_client.interface.described import GatewayInterface, ReplyPolicy
from recon.gateway_client.interface.prepare import PreparedRequest
from recon.gateway_client.interface.reply_outcomes import (
    BatchReply,
    FindingKind,
    ReplyFinding,
    ReplyOutcome,
    RowOutcome,
)
from recon.gateway_client.interface.rows import Credentials, ids_of
from recon.gateway_client.interface.signing import SignatureState
from recon.gateway_client.interface.transport import RawReply
from recon.gateway_client.money.reply_message import (
    ReplyMessage,
    ReplyReading,
    message_of,
    names_other_account,
    names_our_account,
)
from recon.gateway_client.money.reply_rows import judge_rows
from recon.gateway_client.wire.json_reply import UnreadableReplyError
from recon.gateway_client.wire.wire_errors import NotSentError, UnknownOutcomeError

NO_ACCESS_STATUSES = frozenset({401, 403})
NEVER_READ_STATUSES = frozenset({408, 425, 429})
SLOW_DOWN_STATUSES = frozenset({429, 503})
OK_STATUSES = range(200, 300)
REFUSAL_STATUSES = range(400, 500)


def read_batch_reply(
    prepared: PreparedRequest,
    raw: RawReply,
    *,
    interface: GatewayInterface,
    policy: ReplyPolicy,
    credentials: Credentials,
) -> BatchReply:
    """The outcome of every row of a batch, in request order; never raises on foreign bytes.

    Args:
        prepared: What was sent.
        raw: What came back, whatever it is.
        interface: Codes, fields and signature rules.
        policy: `enforce` trusts only replies with a valid signature; `warn` lets the echo of each
            row decide; `off` does not look at signatures.
        credentials: As used for `prepared`.
    """
    reading = ReplyReading(prepared, raw, interface, policy, credentials)
    if not _has_readable_status(raw.status):
        return _by_status_alone(reading)
    try:
        message = message_of(reading)
    except UnreadableReplyError as error:
        return _unreadable(reading, reason=str(error))
    return (
        _refused_signature(reading, message)
        or _refused_by_status(reading, message)
        or _untrusted(reading, message)
        or _without_rows(reading, message)
        or _by_rows(reading, message)
    )


def without_reply(
    prepared: PreparedRequest, *, error: NotSentError | UnknownOutcomeError
) -> BatchReply:
    """The outcome of every row when no reply came: not sent, or unknown."""
    outcome = ReplyOutcome.NOT_SENT if isinstance(error, NotSentError) else ReplyOutcome.UNKNOWN
    return BatchReply(
        rows=_rows(prepared, outcome=outcome, code=error.kind, text=str(error)),
        return_status="",
        return_message=str(error),
        signature=SignatureState.UNCHECKED,
        findings=(),
        stop_sending=False,
        stop_reason="",
    )


def _has_readable_status(status: int) -> bool:
    refused = status in REFUSAL_STATUSES and status not in NEVER_READ_STATUSES
    return status in OK_STATUSES or refused


def _by_status_alone(reading: ReplyReading) -> BatchReply:
    """3xx, 408, 425, 429, 5xx: the request may have been processed whatever the body says."""
    status = reading.raw.status
    finding = ReplyFinding(FindingKind.HTTP_STATUS, f"the gateway answered HTTP {status}")
    final = reading.interface.status_map.refusals.refusal_is_final
    if final and status in SLOW_DOWN_STATUSES and "retry-after" in reading.raw.headers:
        return _same_for_all(reading, ReplyOutcome.NOT_SENT, finding=finding)
    return _same_for_all(reading, ReplyOutcome.UNKNOWN, finding=finding)


def _unreadable(reading: ReplyReading, *, reason: str) -> BatchReply:
    status = reading.raw.status
    finding = ReplyFinding(FindingKind.UNREADABLE, f"the reply (HTTP {status}) is {reason}")
    return _refused_unverified(reading, finding=finding, message=None) or _same_for_all(
        reading, ReplyOutcome.UNKNOWN, finding=finding
    )


def _refused_signature(reading: ReplyReading, message: ReplyMessage) -> BatchReply | None:
    """A refusal of our signature is believed as it stands: nobody gains by forging it."""
    if message.has_success:
        return None
    if message.code not in reading.interface.status_map.refusals.signature_codes:
        return None
    reason = f"the gateway refused our signature ({message.code}): check the sign key"
    finding = ReplyFinding(FindingKind.REFUSED, reason)
    return _same_for_all(
        reading, ReplyOutcome.REJECTED, finding=finding, message=message, stop_reason=reason
    )


def _refused_by_status(reading: ReplyReading, message: ReplyMessage) -> BatchReply | None:
    """A 4xx counts only with a valid signature, or where the gateway promised it is final."""
    status = reading.raw.status
    if status in OK_STATUSES:
        return None
    finding = ReplyFinding(FindingKind.HTTP_STATUS, f"the gateway answered HTTP {status}")
    refused = _refused_unverified(reading, finding=finding, message=message)
    if refused is not None or message.verified:
        return refused
    return _same_for_all(reading, ReplyOutcome.UNKNOWN, finding=finding, message=message)


def _refused_unverified(
    reading: ReplyReading, *, finding: ReplyFinding, message: ReplyMessage | None
) -> BatchReply | None:
    """401 and 403 stop everything; statuses that the configuration calls final reject."""
    status = reading.raw.status
    has_rows = message is not None and bool(message.rows or message.malformed)
    if status in reading.interface.status_map.refusals.before_processing_http and not has_rows:
        reason = f"the gateway refused the request before processing (HTTP {status})"
        return _same_for_all(
            reading, ReplyOutcome.REJECTED, finding=finding, message=message, stop_reason=reason
        )
    if status in NO_ACCESS_STATUSES:
        reason = f"the gateway refuses access (HTTP {status})"
        return _same_for_all(
            reading, ReplyOutcome.UNKNOWN, finding=finding, message=message, stop_reason=reason
        )
    return None


def _untrusted(reading: ReplyReading, message: ReplyMessage) -> BatchReply | None:
    """Replies whose signature or account cannot stand for this request."""
    if not message.signature.is_enough(policy=reading.policy, may_lack=_may_lack(reading)):
        reason = f"the reply's signature is {message.signature}"
        finding = ReplyFinding(FindingKind.SIGNATURE, reason)
    elif names_other_account(reading, message):
        reason = "the reply is for another merchant or account"
        finding = ReplyFinding(FindingKind.OTHER_ACCOUNT, reason)
    elif not message.verified and not names_our_account(reading, message):
        finding = ReplyFinding(
            FindingKind.ACCOUNT_NOT_ECHOED,
            "the reply names no merchant and account and has no valid signature",
        )
        return _same_for_all(reading, ReplyOutcome.UNKNOWN, finding=finding, message=message)
    else:
        return None
    return _same_for_all(
        reading, ReplyOutcome.UNKNOWN, finding=finding, message=message, stop_reason=reason
    )


def _may_lack(reading: ReplyReading) -> bool:
    return reading.interface.signature.may_lack(reading.prepared.operation)


def _without_rows(reading: ReplyReading, message: ReplyMessage) -> BatchReply | None:
    """Rejected only by a verified refusal whose code says "before processing"."""
    if message.rows or message.malformed:
        return None
    sentence = (
        f"return_status {message.return_status or 'missing'}, {message.code_and_text or 'no text'}"
    )
    if message.is_accepted:
        finding = ReplyFinding(FindingKind.ROW_MISSING, f"the reply has no rows ({sentence})")
        return _same_for_all(reading, ReplyOutcome.UNKNOWN, finding=finding, message=message)
    refusals = reading.interface.status_map.refusals
    known = message.is_refused and message.code in refusals.before_processing_codes
    if message.verified and known:
        reason = f"the gateway refused the whole request ({message.code_and_text})"
        finding = ReplyFinding(FindingKind.REFUSED, reason)
        return _same_for_all(
            reading, ReplyOutcome.REJECTED, finding=finding, message=message, stop_reason=reason
        )
    kind = FindingKind.REFUSED if known else FindingKind.UNMAPPED_CODE
    finding = ReplyFinding(kind, f"the reply has no rows and does not prove a refusal ({sentence})")
    return _same_for_all(reading, ReplyOutcome.UNKNOWN, finding=finding, message=message)


def _by_rows(reading: ReplyReading, message: ReplyMessage) -> BatchReply:
    """Row by row, where the request as a whole was taken.

    Under any other return_status nobody knows what rows mean, and the signature, which is an echo
    of the request's, covers neither.
    """
    findings: list[ReplyFinding] = []
    if not message.is_accepted:
        sentence = f"return_status {message.return_status or 'missing'} with rows"
        finding = ReplyFinding(FindingKind.RETURN_STATUS, sentence)
        return _same_for_all(reading, ReplyOutcome.UNKNOWN, finding=finding, message=message)
    if reading.policy == "warn" and not message.signature.is_enough(
        policy="enforce", may_lack=_may_lack(reading)
    ):
        sentence = f"the reply's signature is {message.signature}; the echo of each row decided"
        findings.append(ReplyFinding(FindingKind.SIGNATURE, sentence))
    judged = judge_rows(
        reading.prepared,
        rows=message.rows,
        malformed=message.malformed,
        interface=reading.interface,
    )
    return BatchReply(
        rows=judged.rows,
        return_status=message.return_status,
        return_message=message.code_and_text,
        signature=message.signature,
        findings=(*findings, *judged.findings),
        stop_sending=bool(judged.stop_reason),
        stop_reason=judged.stop_reason,
    )


def _same_for_all(
    reading: ReplyReading,
    outcome: ReplyOutcome,
    *,
    finding: ReplyFinding,
    message: ReplyMessage | None = None,
    stop_reason: str = "",
) -> BatchReply:
    """One outcome for every row of the request."""
    code, text = (message.code, message.text) if message else ("", finding.message)
    if outcome is ReplyOutcome.UNKNOWN:
        # What a reply says that is not believed is no cause: "OK" would stand beside a doubt.
        text = finding.message
    return BatchReply(
        rows=_rows(reading.prepared, outcome=outcome, code=code, text=text or finding.message),
        return_status=message.return_status if message else "",
        return_message=message.code_and_text if message else finding.message,
        signature=message.signature if message else SignatureState.UNCHECKED,
        findings=(finding,),
        stop_sending=bool(stop_reason),
        stop_reason=stop_reason,
    )


def _rows(
    prepared: PreparedRequest, *, outcome: ReplyOutcome, code: str, text: str
) -> tuple[RowOutcome, ...]:
    return tuple(
        RowOutcome(position, *ids_of(row), outcome, code, text)
        for position, row in enumerate(prepared.rows)
    )
