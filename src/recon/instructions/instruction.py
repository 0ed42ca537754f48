"""An intended money movement (instruction), its states and transitions, and its intention."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from recon.model.terms import InstructionKind, InstructionState

if TYPE_CHECKING:
    from recon.instructions.planning import Action

ROWS_PER_BATCH_MAX = 50
NOT_SENT_TRIES_MAX = 3
"""How often a night retries a request that was certainly not sent."""
REFUNDS_PER_TRANSACTION_MAX = 99
"""The gateway numbers the refunds of a transaction with two digits."""

_S = InstructionState
_K = InstructionKind
MOVES_MONEY = frozenset({_K.CAPTURE, _K.REFUND, _K.CANCEL, _K.PAYOUT})
"""Kinds that count towards limits; a cancel gives up the money it releases, a review moves none."""

FOLLOWS: Mapping[InstructionState, frozenset[InstructionState]] = {
    # To NEEDS_HUMAN only if a restored database cannot know whether it was sent.
    _S.PLANNED: frozenset({_S.APPROVED, _S.WITHDRAWN, _S.NEEDS_HUMAN}),
    # Back to PLANNED when people's approval expired before it was sent.
    _S.APPROVED: frozenset({_S.IN_FLIGHT, _S.WITHDRAWN, _S.NEEDS_HUMAN, _S.PLANNED}),
    # Back to APPROVED only if the request was certainly not sent.
    _S.IN_FLIGHT: frozenset({_S.CONFIRMED, _S.REJECTED, _S.IN_DOUBT, _S.APPROVED}),
    _S.IN_DOUBT: frozenset({_S.RESOLVED_APPLIED, _S.RESOLVED_NOT_APPLIED, _S.NEEDS_HUMAN}),
    _S.NEEDS_HUMAN: frozenset({_S.RESOLVED_APPLIED, _S.RESOLVED_NOT_APPLIED}),
    _S.CONFIRMED: frozenset(),
    _S.REJECTED: frozenset(),
    _S.RESOLVED_APPLIED: frozenset(),
    _S.RESOLVED_NOT_APPLIED: frozenset(),
    _S.WITHDRAWN: frozenset(),
}
"""Allowed transitions; final states have none, a later contradiction opens a case instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFields:
    """Fields common to instructions and to file rows that request one."""

    merchant_id: str
    account_id: str
    kind: InstructionKind
    order_no: str
    transaction_id: str
    currency: str
    reason: str
    request_id: str
    file_id: int | None
    line: int
    review_flag: str = ""
    recurring_id: str = ""
    contract_name: str = ""
    payee: str = ""
    """Display of a payout's payee, such as `DE…3000`, or `DE…3000, from 300.00 USD`."""
    payee_digest: str = ""
    """Keyed digest, the same for every payout to this payee."""
    sealed: str = field(default="", repr=False)
    """Encrypted details of a payout; "" once it is final."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction(RequestFields):
    """One instruction of the journal. Amounts are minor units of the currency."""

    instruction_id: str
    natural_key: str
    amount: int
    """Amount to capture, refund or cancel."""
    payment_amount: int
    """The payment's own amount, which the gateway requires with a refund or cancel."""
    state: InstructionState
    hold: str
    attempts: int = 0
    baseline_status: str = ""
    approved_by: str = ""
    in_doubt_since: datetime | None = None
    gateway_request_id: str = ""
    """Id of a payout at the gateway, created at planning and never changed."""
    repeats: str = ""
    """Ids of similar instructions shown to the approvers, separated by spaces."""
    again_for: str = ""
    """Id of the first instruction, if this capture is planned a second time."""
    message: str = ""
    """Last message on it, from the gateway or from whoever changed its state."""
    refund_reference_id: str = ""
    """The gateway's id of a refund; "" if it gave none."""
    planned_at: datetime | None = None
    """None until it is stored."""
    approved_at: datetime | None = None
    sent_at: datetime | None = None
    outcome_at: datetime | None = None
    """When it reached a final state."""

    @property
    def subject(self) -> str:
        """What it applies to, as text: `order A-1`, `subscription S1`, `payee DE…3000, …`."""
        if self.kind is InstructionKind.CANCEL_SUBSCRIPTION:
            return f"subscription {self.recurring_id}"
        if self.kind is InstructionKind.PAYOUT:
            return f"payee {self.payee or 'not shown'}, request_id {self.request_id}"
        return f"order {self.order_no}"

    @property
    def is_open(self) -> bool:
        """Whether its effect is undecided: in flight, in doubt or with people."""
        return self.state in {_S.IN_FLIGHT, _S.IN_DOUBT, _S.NEEDS_HUMAN}

    @property
    def may_have_taken_effect(self) -> bool:
        """Whether it is confirmed, resolved as applied, or open."""
        return self.is_open or self.state in {_S.CONFIRMED, _S.RESOLVED_APPLIED}

    @property
    def may_have_moved(self) -> bool:
        """Whether it counts against limits: it may have taken effect and its kind moves money."""
        return self.kind in MOVES_MONEY and self.may_have_taken_effect


ATTESTED = (
    *("merchant_id", "account_id", "kind", "order_no", "transaction_id", "currency", "amount"),
    *("payment_amount", "reason", "request_id", "review_flag", "recurring_id", "contract_name"),
    *("gateway_request_id", "payee", "payee_digest", "again_for", "repeats", "sealed"),
)
"""Fields of an instruction that are sent, or that determine what is sent or who must approve."""
STORED_AS_DIGEST = frozenset({"reason", "sealed"})
"""Fields of which the history, which cannot be erased, stores only a digest."""
DIGEST_CHARACTERS = 32
OF_PAYOUTS = "gateway_request_id"
"""Created for every instruction, but sent only with payouts."""

Terms = Mapping[str, str | int]
"""Field -> value; blank and 0 values are left out."""


def terms_of(item: Instruction) -> dict[str, str | int]:
    """Return the terms that an instruction would be sent with now."""
    values = {name: getattr(item, name) for name in ATTESTED}
    if item.kind is not InstructionKind.PAYOUT:
        del values[OF_PAYOUTS]
    return {name: _stored_as(name, value) for name, value in values.items() if value}


def _stored_as(name: str, value: str | int) -> str | int:
    if name in STORED_AS_DIGEST:
        return text_digest(str(value))
    return value if isinstance(value, int) else str(value)


def text_digest(text: str) -> str:
    """Return the digest that the history stores in place of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARACTERS]


REPEAT = "looks like a repeat"
"""Start of the hold of an instruction that may repeat an earlier one."""
IF_MEANT_TWICE = "two people approve it if it is meant twice, else withdraw it"

What = tuple[str, str, InstructionKind, str, str, int]
"""Merchant, account, kind, subject, currency and minor units."""


@dataclass(frozen=True, slots=True)
class Intention:
    """One intended movement, regardless of who requested it."""

    merchant_id: str
    account_id: str
    kind: InstructionKind
    subject: str
    """Subscription or payee; "" for a payment, which the next two fields identify."""
    order_no: str
    transaction_id: str
    """As instructed or sent; "" if only the order is named."""
    currency: str
    amount: int
    """Minor units; 0 for a kind that moves none."""
    request_id: str
    queried_id: str = ""
    """The one transaction that the gateway shows for the order; "" if unknown."""

    @classmethod
    def of(cls, item: "Instruction | Action", *, queried_id: str = "") -> "Intention":
        """Return the intention of an instruction, or of a row that requests one."""
        subject = ""
        if item.kind is InstructionKind.PAYOUT:
            subject = f"payee {item.payee_digest}"
        elif item.kind is InstructionKind.CANCEL_SUBSCRIPTION:
            subject = f"subscription {item.recurring_id}"
        return cls(
            merchant_id=item.merchant_id,
            account_id=item.account_id,
            kind=item.kind,
            subject=subject,
            # A payout's transaction id comes with its reply and is not part of the intention.
            order_no="" if subject else item.order_no,
            transaction_id="" if subject else item.transaction_id,
            currency=item.currency,
            amount=item.amount if item.kind in MOVES_MONEY else 0,
            request_id=item.request_id,
            queried_id="" if subject else queried_id,
        )

    @property
    def what(self) -> What:
        """All fields except the payment and the request id."""
        identity = (self.merchant_id, self.account_id, self.kind)
        return (*identity, self.subject, self.currency, self.amount)

    @property
    def payment(self) -> str:
        """The transaction id, instructed or shown; "" if unknown."""
        return self.transaction_id or self.queried_id

    def may_be(self, other: "Intention", *, ids_unique: bool) -> bool:
        """Return whether both may be the same movement, so that only people may approve both.

        Args:
            other: An intention from the same journal.
            ids_unique: Whether the merchant declares request ids as unique to a movement.
        """
        if self.what != other.what or not self.is_of_payment(other):
            return False
        return not (ids_unique and ids_differ(self.request_id, other.request_id))

    def is_of_payment(self, other: "Intention") -> bool:
        """Return whether both may concern one payment; without transaction ids the order counts."""
        if self.transaction_id and other.transaction_id:
            return self.transaction_id == other.transaction_id
        if self.order_no == other.order_no:
            return True
        return bool(self.payment) and self.payment == other.payment


def ids_differ(mine: str, other: str) -> bool:
    """Whether two request ids are given and differ in more than case or white space.

    >>> ids_differ("R-1", "r-1 "), ids_differ("R-1", "R-2"), ids_differ("R-1", "")
    (False, True, False)
    """
    return bool(mine and other) and plain_id(mine) != plain_id(other)


def plain_id(request_id: str) -> str:
    """Return a request id without white space and in lower case, for comparisons."""
    return "".join(request_id.split()).casefold()


def unagreed(
    sent: Instruction,
    *,
    others: Iterable[Instruction],
    transaction_id: str,
    ids_unique: bool,
) -> tuple[Instruction, ...]:
    """Return instructions that may have done this movement already, unless approved together.

    Args:
        sent: The instruction about to be sent.
        others: The journal's rows of the same payment, payee or subscription.
        transaction_id: The payment that it would be sent for.
        ids_unique: As above.
    """
    own = Intention.of(sent)
    own = own if own.subject else replace(own, transaction_id=transaction_id)
    return tuple(
        other
        for other in others
        if other.instruction_id != sent.instruction_id
        and other.may_have_taken_effect
        and own.may_be(Intention.of(other), ids_unique=ids_unique)
        # Excluded if people approved one of them while the other was shown to them.
        and other.instruction_id not in sent.repeats.split()
        and sent.instruction_id not in other.repeats.split()
    )


def reported_repeats(repeats: Iterable[Instruction]) -> str:
    """Return why a repeat found before sending must wait for people."""
    first, *more = repeats
    others = f" and {len(more)} more" if more else ""
    return (
        f"{REPEAT} of instruction {first.instruction_id}{others}, which is "
        f"{first.state} for the same payment and amount; {IF_MEANT_TWICE}"
    )


def named(repeats: Iterable[str]) -> str:
    """Return instruction ids in the form in which an instruction stores them."""
    return " ".join(repeats)
