"""What starting a payment came to: the value that the payment reader gives back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from recon.gateway_client.interface.reply_outcomes import ReplyFinding, ReplyOutcome
from recon.gateway_client.interface.signing import SignatureState
from recon.gateway_client.wire.html_form import HostedForm

ApmRefusal = Literal["", "invalid_input", "not_found"]


@dataclass(frozen=True, slots=True)
class RiskReason:
    """One reason of the gateway's anti-fraud decision."""

    name: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentRecord:
    """What a trusted reply says of a payment (2.6, 2.7), scrubbed of card numbers."""

    transaction_id: str = ""
    card: str = ""
    """Masked by the gateway; by us where it was not."""
    order_status: str = ""
    result_code: str = ""
    result_text: str = ""
    contract_name: str = ""
    recurring_id: str = ""
    recurring_deduction_period: str = ""
    recurring_deduction_time: str = ""
    note: str = ""
    token_id: str = field(default="", repr=False)
    """Pays again without the card's number."""
    connector: str = ""
    threeds_result: str = ""
    risk_action: str = ""
    risk_score: str = ""
    risk_reasons: tuple[RiskReason, ...] = ()
    issuer_url: str = field(default="", repr=False)
    """Where the shopper pays; https, or http to this machine. Never followed by us."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """Elements that the API document does not list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentReply:
    """What a payment request came to.

    DONE: paid or authorised. PENDING: the shopper, or the gateway, has something left to do.
    FAILED: declined. REJECTED: surely refused before anything happened. Anything doubtful is
    UNKNOWN, and a payment is never sent again: the order is queried.
    """

    outcome: ReplyOutcome
    code: str = ""
    message: str = ""
    record: PaymentRecord | None = None
    """None when the reply could not be trusted, and for the hosted page."""
    form: HostedForm | None = None
    """The hosted page's form, when it is the one of this payment."""
    refusal: ApmRefusal = ""
    """What the document says of the HTTP status of a payment by another method: no payment."""
    http_status: int | None = None
    signature: SignatureState = SignatureState.UNCHECKED
    findings: tuple[ReplyFinding, ...] = ()
    stop_reason: str = ""
    """Not empty: nothing more may be sent until a person has looked."""
