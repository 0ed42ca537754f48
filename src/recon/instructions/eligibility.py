"""Eligibility: may an instruction be sent tonight, given the gateway's answer and our journal?

Limits count what is confirmed and what is in doubt. If the query shows less than the journal knows,
the answer is stale and nothing is sent. Each refusal has a sentence for page one of the report.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from recon.instructions.instruction import (
    REFUNDS_PER_TRANSACTION_MAX,
    ROWS_PER_BATCH_MAX,
    Instruction,
    reported_repeats,
    unagreed,
)
from recon.model.money import format_minor_units
from recon.model.terms import GatewayState, InstructionKind, InstructionState, KeyAnswer

_PAID = frozenset({GatewayState.PAID, GatewayState.PARTIALLY_REFUNDED})
_CAPTURABLE_IN_PARTS = frozenset({GatewayState.AUTHORISED, GatewayState.PAID})
_REFUNDABLE_LATER = frozenset({GatewayState.AUTHORISED, GatewayState.PENDING})


@dataclass(frozen=True, slots=True)
class QueriedPayment:
    """One payment of an order as the baseline query showed it."""

    transaction_id: str
    state: GatewayState
    payment_status: str
    currency: str
    amount: int
    dated: datetime | None = None
    """Creation time in UTC; the oldest authorisation expires first."""
    closed_because: str = ""
    """Why a case of this payment blocks further instructions; "" if none does."""
    charged_back: int = 0
    """Minor units charged back according to settlement files or the ledger."""

    @property
    def as_queried(self) -> str:
        """The payment as the gateway shows it, as text."""
        amount = format_minor_units(self.amount, currency=self.currency)
        return f"{amount} {self.currency} with payment_status {self.payment_status}"


DISPLAYED_MAX = 3
"""Maximum number of transactions named in a reason."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The gateway's answer on an order before money moves."""

    answer: KeyAnswer
    payments: tuple[QueriedPayment, ...] = ()


@dataclass(frozen=True, slots=True)
class Eligible:
    """An instruction that may be sent, with its payment."""

    instruction: Instruction
    payment: QueriedPayment


@dataclass(frozen=True, slots=True)
class Ineligible:
    """An instruction that is not sent tonight, with the reason."""

    instruction: Instruction
    reason: str
    is_for_people: bool = False
    """Its approval no longer counts: two people must approve it again, knowing the reason."""
    repeats: tuple[str, ...] = ()
    """Ids of earlier instructions of the same intention that these people must see."""


def clear(
    instruction: Instruction,
    *,
    baseline: Baseline,
    others: Sequence[Instruction],
    multiple_captures: bool = False,
    ids_unique: bool = False,
) -> Eligible | Ineligible:
    """Decide whether an approved instruction may be sent, given the gateway and the journal.

    Args:
        instruction: Approved, not sent yet.
        baseline: Tonight's answer of the gateway on its order.
        others: The journal's rows of the order or of any payment the gateway shows for it.
        multiple_captures: Whether the gateway accepts several captures of one payment.
        ids_unique: Whether the merchant declares request ids as unique to a movement.
    """
    if baseline.answer is not KeyAnswer.FOUND:
        return Ineligible(instruction, _NO_ANSWER[baseline.answer])
    payment = _choose(instruction, payments=baseline.payments)
    if isinstance(payment, str):
        return Ineligible(instruction, payment)
    same_payment = [
        other
        for other in others
        if other.transaction_id == payment.transaction_id
        and other.instruction_id != instruction.instruction_id
    ]
    by_kind = _EVALUATIONS[instruction.kind]
    if instruction.kind is InstructionKind.CAPTURE and multiple_captures:
        by_kind = _capture_in_parts
    for check in (_fits_payment, _nothing_open):
        if reason := check(instruction, payment, same_payment):
            return Ineligible(instruction, reason)
    payment_id = payment.transaction_id
    if repeats := unagreed(
        instruction, others=same_payment, transaction_id=payment_id, ids_unique=ids_unique
    ):
        return _repeated(instruction, repeats)
    reason = by_kind(instruction, payment, same_payment)
    return Ineligible(instruction, reason) if reason else Eligible(instruction, payment)


def _repeated(instruction: Instruction, repeats: Sequence[Instruction]) -> Ineligible:
    ids = tuple(repeat.instruction_id for repeat in repeats)
    return Ineligible(instruction, reported_repeats(repeats), is_for_people=True, repeats=ids)


def clear_alone(
    instruction: Instruction,
    *,
    others: Sequence[Instruction],
    rule_approver: str,
    ids_unique: bool = False,
) -> Eligible | Ineligible:
    """Decide on an instruction that no query covers: a payout, or the end of a subscription.

    Args:
        instruction: Approved, not sent yet.
        others: The journal's rows of the same subscription or payee.
        rule_approver: The name under which a rule approves, which is refused for payouts.
        ids_unique: As above.
    """
    own = [other for other in others if other.instruction_id != instruction.instruction_id]
    if instruction.kind is InstructionKind.PAYOUT:
        if repeats := unagreed(instruction, others=own, transaction_id="", ids_unique=ids_unique):
            return _repeated(instruction, repeats)
        if instruction.approved_by == rule_approver:
            return Ineligible(instruction, "every payout needs approval by two people")
        own = []
    for other in own:
        if other.is_open:
            reason = f"instruction {other.instruction_id} of the same subscription is not settled"
            return Ineligible(instruction, f"{reason} yet")
        if other.may_have_taken_effect:
            return Ineligible(instruction, "it was done before")
    nothing = QueriedPayment("", GatewayState.NONE, "", instruction.currency, instruction.amount)
    return Eligible(instruction, nothing)


def conflicting_payments(payments: Iterable[QueriedPayment]) -> dict[str, str]:
    """Return transactions shown with different amounts or statuses, with the reason to wait."""
    first: dict[str, QueriedPayment] = {}
    reasons: dict[str, str] = {}
    for payment in payments:
        known = first.setdefault(payment.transaction_id, payment)
        if known.as_queried != payment.as_queried:
            ways = " and as ".join(sorted({known.as_queried, payment.as_queried}))
            reasons[payment.transaction_id] = (
                f"the gateway shows transaction {payment.transaction_id} in two ways, as {ways}; "
                "nothing is sent for it until its answers agree"
            )
    return reasons


_NO_ANSWER: Mapping[KeyAnswer, str] = {
    KeyAnswer.FAILED: "the gateway gave no usable answer for this order tonight",
    KeyAnswer.UNMAPPED: "the gateway answered with a code that is not mapped; map it in rules.toml",
    KeyAnswer.NOT_FOUND: "the gateway does not know this order",
}


def _choose(
    instruction: Instruction, *, payments: Sequence[QueriedPayment]
) -> QueriedPayment | str:
    if instruction.transaction_id:
        named = [p for p in payments if p.transaction_id == instruction.transaction_id]
        if named:
            return named[0]
        as_queried = sorted({payment.transaction_id for payment in payments})
        more = (
            f" and {len(as_queried) - DISPLAYED_MAX} more"
            if len(as_queried) > DISPLAYED_MAX
            else ""
        )
        return (
            f"the instruction names transaction {instruction.transaction_id}, the gateway shows "
            f"{', '.join(as_queried[:DISPLAYED_MAX]) or 'none'}{more} for this order"
        )
    if len({p.transaction_id for p in payments}) == 1:
        return payments[0]
    possible = _POSSIBLE[instruction.kind]
    fitting = {p.transaction_id: p for p in payments if p.state in possible}
    if len(fitting) == 1:
        return next(iter(fitting.values()))
    return "several payments could be meant; name the transaction_id in the order file"


def _fits_payment(
    instruction: Instruction, payment: QueriedPayment, _others: Sequence[Instruction]
) -> str:
    if payment.closed_because:
        return payment.closed_because
    if payment.currency != instruction.currency:
        return f"the payment is in {payment.currency}, the instruction in {instruction.currency}"
    if payment.state is GatewayState.UNMAPPED:
        return f"payment_status {payment.payment_status} is not mapped; map it in rules.toml"
    if instruction.amount > payment.amount:
        return "the amount is larger than the payment"
    return ""


def _nothing_open(
    _instruction: Instruction, _payment: QueriedPayment, others: Sequence[Instruction]
) -> str:
    for other in others:
        if other.is_open:
            return f"instruction {other.instruction_id} of the same payment is not settled yet"
    return ""


def _capture_or_cancel(
    instruction: Instruction, payment: QueriedPayment, others: Sequence[Instruction]
) -> str:
    if any(o.kind is instruction.kind and o.state is InstructionState.CONFIRMED for o in others):
        return "it was done before"
    if payment.state is not GatewayState.AUTHORISED:
        return f"the gateway shows {payment.state}, not authorised"
    if any(other.may_have_moved for other in others):
        return "the gateway shows less than this journal knows of the payment; ask again later"
    if instruction.kind is InstructionKind.CANCEL and instruction.amount != payment.amount:
        return "a cancel must carry the payment's own amount"
    return ""


def _capture_in_parts(
    instruction: Instruction, payment: QueriedPayment, others: Sequence[Instruction]
) -> str:
    """Check a partial capture: together the captures may not exceed the authorisation."""
    if payment.state not in _CAPTURABLE_IN_PARTS:
        return f"the gateway shows {payment.state}; there is nothing to capture"
    moved = [o for o in others if o.may_have_moved]
    if any(o.kind is not InstructionKind.CAPTURE for o in moved):
        return "money of this payment went back already; a further part is for people"
    if payment.state is GatewayState.PAID and not moved:
        return "the gateway shows a capture that this journal does not know; check the rest"
    if sum(o.amount for o in moved) + instruction.amount > payment.amount:
        return "captures would exceed what was authorised"
    return ""


def _refund(
    instruction: Instruction, payment: QueriedPayment, others: Sequence[Instruction]
) -> str:
    if payment.state in _REFUNDABLE_LATER:
        return f"the gateway shows {payment.state}; a refund needs a captured payment"
    if payment.state not in _PAID:
        return f"the gateway shows {payment.state}; there is nothing to refund"
    refunds = [o for o in others if o.kind is InstructionKind.REFUND and o.may_have_moved]
    if payment.state is GatewayState.PARTIALLY_REFUNDED and not refunds:
        return "the gateway shows a partial refund that this journal does not know; check the rest"
    if len(refunds) >= REFUNDS_PER_TRANSACTION_MAX:
        return f"the payment has {REFUNDS_PER_TRANSACTION_MAX} refunds, the most it can number"
    return _beyond_captured(instruction, payment, others)


def _beyond_captured(
    instruction: Instruction, payment: QueriedPayment, others: Sequence[Instruction]
) -> str:
    """Check that refunds and chargebacks together do not exceed what was captured."""
    moved = [other for other in others if other.may_have_moved]
    captures = sum(o.amount for o in moved if o.kind is InstructionKind.CAPTURE)
    captured = min(captures or payment.amount, payment.amount)
    back = sum(o.amount for o in moved if o.kind is InstructionKind.REFUND) + instruction.amount
    if back > captured:
        return "refunds would exceed what was captured"
    if back + payment.charged_back > captured:
        return (
            "refunds and chargebacks would exceed what was captured: settlement files or the "
            "ledger has a chargeback of this payment"
        )
    return ""


_POSSIBLE: Mapping[InstructionKind, frozenset[GatewayState]] = {
    InstructionKind.CAPTURE: frozenset({GatewayState.AUTHORISED}),
    InstructionKind.CANCEL: frozenset({GatewayState.AUTHORISED}),
    InstructionKind.REVIEW: frozenset({GatewayState.IN_REVIEW}),
    InstructionKind.REFUND: _PAID,
}


def _review(
    _instruction: Instruction, payment: QueriedPayment, _others: Sequence[Instruction]
) -> str:
    if payment.state is not GatewayState.IN_REVIEW:
        return f"the gateway shows {payment.state}, not in review"
    return ""


_EVALUATIONS: Mapping[
    InstructionKind, Callable[[Instruction, QueriedPayment, Sequence[Instruction]], str]
] = {
    InstructionKind.CAPTURE: _capture_or_cancel,
    InstructionKind.CANCEL: _capture_or_cancel,
    InstructionKind.REFUND: _refund,
    InstructionKind.REVIEW: _review,
}


ORDER_OF_KINDS = (
    InstructionKind.CAPTURE,  # first, since authorisations expire
    InstructionKind.CANCEL,
    InstructionKind.REVIEW,
    InstructionKind.REFUND,
    InstructionKind.CANCEL_SUBSCRIPTION,
    InstructionKind.PAYOUT,
)

ALONE = frozenset({InstructionKind.CANCEL_SUBSCRIPTION, InstructionKind.PAYOUT})
"""Kinds whose request contains only one row."""


@dataclass(frozen=True, slots=True)
class Queue:
    """Instructions to be sent, in order, and those that are refused."""

    eligible: tuple[Eligible, ...]
    ineligible: tuple[Ineligible, ...]


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """Figures of one batch before it is sent."""

    position: int
    """1 for the batch that is sent first."""
    kind: InstructionKind
    sums: Mapping[str, tuple[int, int]]
    """Currency -> number of rows and minor units; "" for kinds that move no money."""

    def __str__(self) -> str:
        listing = " and ".join(
            f"{rows} of {format_minor_units(amount, currency=currency)} {currency}"
            if currency
            else str(rows)
            for currency, (rows, amount) in self.sums.items()
        )
        return f"{self.kind} {listing}"


def queue(eligible: Iterable[Eligible], *, refusal: Callable[[Instruction], str]) -> Queue:
    """Put instructions in sending order; `refusal` is called in it and counts what it passes."""
    passed: list[Eligible] = []
    ineligible: list[Ineligible] = []
    first: dict[str, str] = {}
    for item in sorted(eligible, key=_rank):
        instruction = item.instruction
        ahead = first.get(touched(item), "")
        reason = (
            f"instruction {ahead} of the same payment goes first" if ahead else refusal(instruction)
        )
        if reason:
            ineligible.append(Ineligible(instruction, reason))
            continue
        first[touched(item)] = instruction.instruction_id
        passed.append(item)
    return Queue(tuple(passed), tuple(ineligible))


def touched(item: Eligible) -> str:
    """Return the id of what an instruction changes: payment or subscription, else its own id."""
    instruction = item.instruction
    return item.payment.transaction_id or instruction.recurring_id or instruction.instruction_id


def batches(eligible: Sequence[Eligible]) -> Iterator[tuple[InstructionKind, tuple[Eligible, ...]]]:
    """Yield batches of one kind each, in the given order and with each payment only once."""
    batched: set[str] = set()
    for kind in ORDER_OF_KINDS:
        group: list[Eligible] = []
        for item in eligible:
            if item.instruction.kind is not kind or touched(item) in batched:
                continue
            batched.add(touched(item))
            group.append(item)
        size = 1 if kind in ALONE else ROWS_PER_BATCH_MAX
        for start in range(0, len(group), size):
            yield kind, tuple(group[start : start + size])


def planned_batches(eligible: Sequence[Eligible]) -> tuple[BatchPlan, ...]:
    """Return the batches that would be sent."""
    return tuple(
        BatchPlan(position, kind, _sums([row.instruction for row in rows]))
        for position, (kind, rows) in enumerate(batches(eligible), start=1)
    )


def _sums(items: Sequence[Instruction]) -> dict[str, tuple[int, int]]:
    sums: dict[str, tuple[int, int]] = {}
    for item in items:
        count, amount = sums.get(item.currency, (0, 0))
        sums[item.currency] = (count + 1, amount + item.amount)
    return dict(sorted(sums.items()))


def _rank(item: Eligible) -> tuple[int, str]:
    """Return the sort key: kind, then age of the payment; payments without a date last."""
    dated = item.payment.dated
    kind = ORDER_OF_KINDS.index(item.instruction.kind)
    return kind, dated.isoformat() if dated else "9999"
