"""One intended money movement, and which state may follow which."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from recon.model.words import InstructionKind, InstructionState

ROWS_PER_BATCH_MAX = 50
NOT_SENT_TRIES_MAX = 3
"""How often a night tries again after a request that surely did not leave."""
REFUNDS_PER_TRANSACTION_MAX = 99
"""The gateway numbers the refunds of a transaction with two digits."""

_S = InstructionState
_K = InstructionKind
MOVES_MONEY = frozenset({_K.CAPTURE, _K.REFUND, _K.CANCEL, _K.PAYOUT})
"""Kinds that limits count; a cancel gives up the money it releases. A review moves none."""

FOLLOWS: Mapping[InstructionState, frozenset[InstructionState]] = {
    # To a person only when a restored database cannot know whether it was sent.
    _S.PLANNED: frozenset({_S.APPROVED, _S.WITHDRAWN, _S.NEEDS_HUMAN}),
    # Back to planned when the approval of people ran out before it was sent.
    _S.APPROVED: frozenset({_S.IN_FLIGHT, _S.WITHDRAWN, _S.NEEDS_HUMAN, _S.PLANNED}),
    # Back to approved only when the request surely did not leave.
    _S.IN_FLIGHT: frozenset({_S.CONFIRMED, _S.REJECTED, _S.IN_DOUBT, _S.APPROVED}),
    _S.IN_DOUBT: frozenset({_S.RESOLVED_APPLIED, _S.RESOLVED_NOT_APPLIED, _S.NEEDS_HUMAN}),
    _S.NEEDS_HUMAN: frozenset({_S.RESOLVED_APPLIED, _S.RESOLVED_NOT_APPLIED}),
    _S.CONFIRMED: frozenset(),
    _S.REJECTED: frozenset(),
    _S.RESOLVED_APPLIED: frozenset(),
    _S.RESOLVED_NOT_APPLIED: frozenset(),
    _S.WITHDRAWN: frozenset(),
}
"""The protocol; terminal states lead nowhere, a contradiction later opens a case instead."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One row of the journal. Amounts are minor units of the currency."""

    instruction_id: str
    natural_key: str
    merchant_id: str
    account_id: str
    kind: InstructionKind
    order_no: str
    transaction_id: str
    currency: str
    amount: int
    """What moves: captured, refunded or cancelled."""
    payment_amount: int
    """The payment's own amount, which the gateway wants beside a refund or cancel."""
    reason: str
    request_id: str
    file_id: int | None
    line: int
    state: InstructionState
    hold: str
    attempts: int
    baseline_status: str
    approved_by: str
    in_doubt_since: datetime | None
    review_flag: str = ""
    recurring_id: str = ""
    contract_name: str = ""
    gateway_request_id: str = ""
    """Under which the gateway knows a payout; made when it was planned, kept for ever."""
    payee: str = ""
    """Of a payout, as people may see it, such as `DE…3000`, or `DE…3000, from 300.00 USD`."""
    payee_digest: str = ""
    """The same for every payout to this payee."""
    repeats: str = ""
    """Ids of the instructions of the same intention that people see beside it, with spaces."""
    again_for: str = ""
    """The first instruction, where this capture is planned a second time."""
    sealed: str = field(default="", repr=False)
    """A payout's details, encrypted; "" once it is final."""
    message: str = ""
    """What was last said of it, by the gateway or by whoever moved it."""
    refund_reference_id: str = ""
    """The gateway's own id of a refund; "" where it gave none."""
    planned_at: datetime | None = None
    """None until it is stored."""
    approved_at: datetime | None = None
    sent_at: datetime | None = None
    outcome_at: datetime | None = None
    """When it came to a final state."""

    @property
    def subject(self) -> str:
        """What it is done to, in words: `order A-1`, `subscription S1`, `payee DE…3000, …`."""
        if self.kind is InstructionKind.CANCEL_SUBSCRIPTION:
            return f"subscription {self.recurring_id}"
        if self.kind is InstructionKind.PAYOUT:
            return f"payee {self.payee or 'not shown'}, request_id {self.request_id}"
        return f"order {self.order_no}"

    @property
    def is_open(self) -> bool:
        """The effect may still happen or may have happened."""
        return self.state in {_S.IN_FLIGHT, _S.IN_DOUBT, _S.NEEDS_HUMAN}

    @property
    def may_have_taken_effect(self) -> bool:
        """Confirmed, applied, in flight or in doubt."""
        return self.is_open or self.state in {_S.CONFIRMED, _S.RESOLVED_APPLIED}

    @property
    def may_have_moved(self) -> bool:
        """Counted against bounds: it may have taken effect, and its kind moves money."""
        return self.kind in MOVES_MONEY and self.may_have_taken_effect
