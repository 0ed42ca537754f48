"""What a batch came to, row by row: the values that the reply reader gives back."""

from dataclasses import dataclass
from enum import StrEnum

from recon.gateway_client.interface.payout_record import PayoutRecord
from recon.gateway_client.interface.signing import SignatureState


class ReplyOutcome(StrEnum):
    """What one row of a batch came to, as far as a reply can tell."""

    DONE = "done"
    ACCEPTED = "accepted"
    """A refund taken on; it is paid back later."""
    FAILED = "failed"
    """The gateway answered this row with a known refusal."""
    PENDING = "pending"
    NOT_SENT = "not_sent"
    """Surely not processed; may be sent again."""
    REJECTED = "rejected"
    """The whole request was refused, certainly before processing."""
    UNKNOWN = "unknown"
    """May have taken effect; only a later query can tell."""


class FindingKind(StrEnum):
    """What a person should know about a reply, beside the outcomes."""

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
    """One oddity of a reply, in words, scrubbed of card numbers."""

    kind: FindingKind
    message: str
    transaction_id: str = ""
    order_no: str = ""
    """As the reply gave them; those of a foreign row tell which other batch it belongs to."""


@dataclass(frozen=True, slots=True)
class RowOutcome:
    """What one requested row came to."""

    position: int
    """0-based, in the request."""
    transaction_id: str
    """Of a payout the gateway's own, once it has one; of a subscription ""."""
    order_no: str
    outcome: ReplyOutcome
    code: str = ""
    message: str = ""
    refund_reference_id: str = ""
    payout: PayoutRecord | None = None
    """The gateway's record of a payout, as far as the reply could be trusted."""


@dataclass(frozen=True, slots=True)
class BatchReply:
    """What a whole batch came to; `rows` has every requested row once, in request order."""

    rows: tuple[RowOutcome, ...]
    return_status: str
    return_message: str
    signature: SignatureState
    findings: tuple[ReplyFinding, ...]
    stop_sending: bool
    """Nothing more may be sent until a person has looked."""
    stop_reason: str
