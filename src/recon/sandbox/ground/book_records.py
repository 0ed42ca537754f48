"""What the sandbox keeps: payments, effects and the log of requests, as values.

Instants are whole seconds since 1970 on the virtual clock, amounts int minor units.
"""

from dataclasses import dataclass
from typing import Literal

from recon.model.money import wire_amount
from recon.model.words import GatewayState

Origin = Literal["seed", "api", "portal", "gateway"]
"""Where an effect came from: the population, a client, somebody by hand, the gateway itself."""

EFFECT_KEYS = (
    "operation",
    "origin",
    "merchant_id",
    "account_id",
    "order_no",
    "transaction_id",
    "currency",
    "amount",
    "refund_reference_id",
    "refund_reason",
    "refund_reference",
    "request_id",
    "request_log_id",
    "committed_at",
)
"""Keys of one line of the truth, in order."""


@dataclass(frozen=True, slots=True)
class Payment:
    """One attempt to pay one order."""

    transaction_id: str
    order_no: str
    merchant_id: str
    account_id: str
    currency: str
    authorised: int
    state: GatewayState
    created_at: int
    captured: int = 0
    refunded: int = 0
    refunds: int = 0
    """How many refund sequence numbers are used."""
    captured_at: int = 0
    previous_state: str = ""
    """The state before the last change, for answers that lag."""
    review_flag: str = ""
    reference_no: str = ""

    @property
    def amount(self) -> str:
        """The authorised amount as it stands on the wire, in every state."""
        return on_wire(self.authorised, currency=self.currency)


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing that truly happened, in the append-only ledger."""

    operation: str
    origin: Origin
    merchant_id: str
    account_id: str
    order_no: str
    transaction_id: str
    currency: str
    amount: int | None
    committed_at: int
    refund_reference_id: str = ""
    refund_reason: str = ""
    refund_reference: str = ""
    request_id: str = ""
    request_log_id: str = ""


@dataclass(frozen=True, slots=True)
class RowReply:
    """What a client was told of one row of a request."""

    transaction_id: str
    order_no: str
    status: str
    message: str


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request as the sandbox's own log keeps it: no body, so no card data."""

    request_log_id: str
    received_at: int
    operation: str
    merchant_id: str
    account_id: str
    outcome: str
    """return_status or order_status, or the HTTP status."""
    fault: str
    """Kinds of the faults that were played, joined by a space."""


def on_wire(minor_units: int, *, currency: str) -> str:
    """An amount as the gateway writes it."""
    return str(wire_amount(minor_units, currency=currency))


def effect_of(
    payment: Payment, *, operation: str, origin: Origin, amount: int | None, committed_at: int
) -> Effect:
    """An effect on a payment."""
    return Effect(
        operation=operation,
        origin=origin,
        merchant_id=payment.merchant_id,
        account_id=payment.account_id,
        order_no=payment.order_no,
        transaction_id=payment.transaction_id,
        currency=payment.currency,
        amount=amount,
        committed_at=committed_at,
    )
