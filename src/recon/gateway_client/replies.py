"""Whether a reply can be trusted: one rule for every operation, checked before its content.

A reply states whether the request was accepted, whose it is and, by its signature, that the sender
holds the key (API document 2.6 to 2.10 and 5). None of this proves an amount: each row and record
must echo what was sent as well. All functions are pure and accept any fields.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from recon.gateway_client.documents import rows_of, text_of, texts_of
from recon.gateway_client.errors import UnsignedError
from recon.gateway_client.interface import SignatureState, same_signature
from recon.gateway_client.messages import PreparedCall
from recon.gateway_client.payouts import PayoutRecord
from recon.privacy.foreign_text import code_and_text, redacted

IDS_DISPLAYED_CHARACTERS_MAX = 64
CHECKS_MAX = 50
PAYMENT_REPLY = "payment_reply"
"""The template of a reply that is signed over its own fields."""


class ReplyOutcome(StrEnum):
    """Outcome of one row of a batch, as far as a reply shows it."""

    DONE = "done"
    ACCEPTED = "accepted"
    """A refund that was accepted; it is paid back later."""
    FAILED = "failed"
    """The gateway answered this row with a known refusal."""
    PENDING = "pending"
    NOT_SENT = "not_sent"
    """Certainly not processed; may be sent again."""
    REJECTED = "rejected"
    """The whole request was refused, certainly before processing."""
    UNKNOWN = "unknown"
    """May have taken effect; only a later query can tell."""


class FindingKind(StrEnum):
    """Kinds of findings about a reply that a person should know, besides the outcomes."""

    HTTP_STATUS = "http_status"
    UNREADABLE = "unreadable"
    SIGNATURE = "signature"
    OTHER_ACCOUNT = "other_account"
    ACCOUNT_NOT_ECHOED = "account_not_echoed"
    REFUSED = "refused"
    RETURN_STATUS = "return_status"
    ROW_MISSING = "row_missing"
    FOREIGN_ROW = "foreign_row"
    DOUBLED_ROW = "doubled_row"
    CONTRADICTION = "contradiction"
    ECHO_DIFFERS = "echo_differs"
    UNMAPPED_CODE = "unmapped_code"
    REFUND_REFERENCE = "refund_reference"
    MALFORMED = "malformed"


@dataclass(frozen=True, slots=True)
class ReplyFinding:
    """One finding about a reply, as text redacted of card numbers."""

    kind: FindingKind
    message: str
    transaction_id: str = ""
    order_no: str = ""
    """As in the reply; those of an unrequested row show which other batch it belongs to."""


@dataclass(frozen=True, slots=True)
class RowOutcome:
    """The outcome of one requested row."""

    position: int
    """0-based position in the request."""
    transaction_id: str
    """For a payout the gateway's own id, once it has one; for a subscription ""."""
    order_no: str
    outcome: ReplyOutcome
    code: str = ""
    message: str = ""
    refund_reference_id: str = ""
    payout: PayoutRecord | None = None
    """The gateway's record of a payout, as far as the reply could be trusted."""


@dataclass(frozen=True, slots=True)
class BatchReply:
    """The outcome of a batch; `rows` has every requested row once, in request order."""

    rows: tuple[RowOutcome, ...]
    return_status: str = ""
    return_message: str = ""
    signature: SignatureState = SignatureState.UNCHECKED
    findings: tuple[ReplyFinding, ...] = ()
    stop_reason: str = ""
    """If not empty, nothing more may be sent until a person has checked."""

    @property
    def as_text(self) -> str:
        """The gateway's message about the whole request, and every finding."""
        sentences = (self.return_message, *(finding.message for finding in self.findings))
        return "; ".join(filter(None, dict.fromkeys(sentences)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What a reply states about itself."""

    return_status: str
    """Unmodified, since only the exact value has a meaning; "" if missing."""
    code: str
    """Such as I0013; "" if missing."""
    text: str
    """The gateway's message without the code, masked."""
    signature: SignatureState
    doubt: ReplyFinding | None
    """Why the content must not be used; None if the reply is trusted."""
    note: ReplyFinding | None
    """With the policy `warn`: what `enforce` would have refused."""
    refuses_signature: bool
    """The code says that our own signature was not accepted."""

    @property
    def is_verified(self) -> bool:
        """Whether the signature is valid."""
        return self.signature is SignatureState.VALID

    @property
    def code_and_text(self) -> str:
        """`<code>:<text>`, as far as they were given."""
        return ":".join(part for part in (self.code, self.text) if part)


def envelope_of(
    fields: Mapping[str, Any],
    *,
    sent: PreparedCall,
    message_fields: Iterable[str] = ("return_message", "message"),
    must_name_account: bool = True,
) -> Envelope:
    """Check the envelope of a reply; its text is the first filled field of `message_fields`.

    With `must_name_account`, a reply without a valid signature must name our merchant and account.
    """
    ours, rules = sent.account, sent.account.interface
    code, text = first_text(fields, names=message_fields, masked=sent.masked_text)
    signature = _signature(fields, sent=sent)
    is_lacking_fine = rules.signature.may_lack(sent.operation)
    is_enough = signature is SignatureState.VALID or (
        is_lacking_fine and signature is SignatureState.ABSENT
    )
    doubt = note = None
    if ours.policy != "off" and not is_enough:
        note = ReplyFinding(FindingKind.SIGNATURE, f"the reply's signature is {signature}")
        if ours.policy == "enforce":
            doubt, note = note, None
    named = {(text_of(fields.get("merchant_id")), ours.merchant_id)}
    named.add((text_of(fields.get("account_id")), ours.account_id))
    if doubt is None and any(given not in {"", own} for given, own in named):
        message = "the reply is for another merchant or account"
        doubt = ReplyFinding(FindingKind.OTHER_ACCOUNT, message)
    must_be_named = must_name_account and signature is not SignatureState.VALID
    if doubt is None and must_be_named and any(given != own for given, own in named):
        message = "the reply names no merchant and account and has no valid signature"
        doubt = ReplyFinding(FindingKind.ACCOUNT_NOT_ECHOED, message)
    return Envelope(
        return_status=text_of(fields.get("return_status")) or "",
        code=code,
        text=text,
        signature=signature,
        doubt=doubt,
        note=note,
        refuses_signature=code in rules.status_map.refusals.signature_codes,
    )


def first_text(
    fields: Mapping[str, Any], *, names: Iterable[str], masked: Callable[[str], str]
) -> tuple[str, str]:
    """Return code and text of the first filled field among `names`, masked."""
    filled = next((text for name in names if (text := text_of(fields.get(name)))), "")
    code, text = code_and_text(masked(filled))
    return masked(text_of(fields.get("code")) or "") or code, text


def _signature(fields: Mapping[str, Any], *, sent: PreparedCall) -> SignatureState:
    """Check the signature, using the key last: its holder may be another process."""
    given, account = text_of(fields.get("encryption_data")), sent.account
    is_echo = account.interface.signature.is_echo(sent.operation)
    if account.policy == "off":
        return SignatureState.UNCHECKED
    if given == "":
        return SignatureState.ABSENT
    if is_echo and same_signature(given or "", expected=sent.signature):
        return SignatureState.VALID
    batch = account.interface.profile.batch.get(sent.operation)
    # A repeated signature may be renewed only in replies with rows or a record of their own.
    if given is None or (is_echo and batch is None):
        return SignatureState.WRONG
    try:
        listed, _ = rows_of(fields, field=batch.rows_field if batch else "")
        rows = [texts_of(row) for row in listed]
        # A batch has its own template: that of a payment covers no rows.
        template = PAYMENT_REPLY if batch is None else sent.operation
        is_right = account.is_signed(given, template, fields=texts_of(fields), rows=rows)
    except UnsignedError:
        return SignatureState.UNCHECKED
    return SignatureState.VALID if is_right else SignatureState.WRONG


def foreign_row(row: Mapping[str, Any], *, masked: Callable[[str], str] = redacted) -> ReplyFinding:
    """Return a finding about an unrequested row, with the ids that show its batch."""
    return ReplyFinding(
        FindingKind.FOREIGN_ROW,
        "a row that was not asked for",
        transaction_id=masked(text_of(row.get("transaction_id")) or "")[
            :IDS_DISPLAYED_CHARACTERS_MAX
        ],
        order_no=masked(text_of(row.get("order_no")) or "")[:IDS_DISPLAYED_CHARACTERS_MAX],
    )


@dataclass(frozen=True, slots=True)
class RiskReason:
    """One reason of the gateway's anti-fraud decision."""

    name: str
    status: str


@dataclass(frozen=True, slots=True)
class FraudCheck:
    """One check of the anti-fraud provider."""

    check_items: str
    status: str


@dataclass(frozen=True, slots=True)
class RiskFacts:
    """Anti-fraud data as text, redacted of card numbers; "" where missing."""

    antifraud_provider: str = ""
    fraud_checks: tuple[FraudCheck, ...] = ()
    is3ds: str = ""
    risk_action: str = ""
    risk_score: str = ""
    risk_reasons: tuple[RiskReason, ...] = ()


RISK_FIELDS = frozenset(
    {
        *("antifraud_provider", "fraud_check_result", "is3ds"),
        *("risk_action", "risk_score", "risk_reasons"),
    }
)
"""For a row without any of them those of the whole reply apply."""


def risk_facts(row: Mapping[str, Any], *, reply: Mapping[str, Any]) -> RiskFacts:
    """Return the risk data of a row; missing ones are taken from the whole reply.

    The document lists them outside of the rows although each can only concern one payment, so both
    places are read.
    """

    def text_under(name: str) -> str:
        return redacted(text_of(row.get(name)) or text_of(reply.get(name)) or "")

    def pairs(name: str, *, key: str) -> list[tuple[str, str]]:
        rows = rows_of(row, field=name)[0] or rows_of(reply, field=name)[0]
        texts = ((text_of(row.get(key)), text_of(row.get("status"))) for row in rows[:CHECKS_MAX])
        return [(redacted(name or ""), redacted(status or "")) for name, status in texts]

    return RiskFacts(
        antifraud_provider=text_under("antifraud_provider"),
        fraud_checks=tuple(
            FraudCheck(*pair) for pair in pairs("fraud_check_result", key="check_items")
        ),
        is3ds=text_under("is3ds"),
        risk_action=text_under("risk_action"),
        risk_score=text_under("risk_score"),
        risk_reasons=tuple(RiskReason(*pair) for pair in pairs("risk_reasons", key="name")),
    )
