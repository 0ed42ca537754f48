"""What the gateway shows after an instruction has ended, compared with the journal.

A final state never changes. Two answers that contradict it, far enough apart and after the
quarantine, make a case for two people, and nothing more is sent for that payment until they have
closed it.

The gateway numbers the refunds of a payment -01, -02, … (docs/GATEWAY.md): a number that occurs
twice belongs to one effect, and a number that is missing is a movement that is not ours, or one
that the journal takes for not done. Either opens a case, whatever the instruction's outcome.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from recon.gateway_client.batches import is_refund_number
from recon.instructions.instruction import Instruction
from recon.instructions.resolution import (
    ANSWERS_APART_MIN,
    CAPTURED_STATES,
    ObservedPayment,
    by_any_clock,
)
from recon.model.terms import CONFIRMED_STATES, GatewayState, InstructionKind, InstructionState
from recon.model.uptime import Uptime, between

_S = GatewayState
_K = InstructionKind
NOT_DONE_STATES = (InstructionState.REJECTED, InstructionState.RESOLVED_NOT_APPLIED)
"""Final states in which, for the journal, nothing moved."""
_AGAINST_DONE: Mapping[InstructionKind, frozenset[GatewayState]] = {
    _K.CAPTURE: frozenset({_S.AUTHORISED, _S.EXPIRED, _S.CANCELLED, _S.FAILED}),
    _K.CANCEL: frozenset({_S.AUTHORISED, *CAPTURED_STATES}),
}
_AGAINST_NOT_DONE: Mapping[InstructionKind, frozenset[GatewayState]] = {
    _K.CAPTURE: CAPTURED_STATES,
    _K.CANCEL: frozenset({_S.CANCELLED}),
    _K.REFUND: frozenset({_S.PARTIALLY_REFUNDED, _S.REFUNDED}),
}


def against(ended: Instruction, *, others: Sequence[Instruction]) -> frozenset[GatewayState]:
    """Return the states of the payment that contradict the journal.

    Args:
        ended: A capture, cancel or refund in a final state.
        others: The other instructions of its payment; one that moved may explain what is shown.
    """
    kind = ended.kind
    if ended.state in CONFIRMED_STATES:
        return _AGAINST_DONE.get(kind, frozenset())
    if ended.state not in NOT_DONE_STATES:
        return frozenset()
    if any(other.kind is kind and other.may_have_moved for other in others):
        return frozenset()
    return _AGAINST_NOT_DONE.get(kind, frozenset())


@dataclass(frozen=True, slots=True)
class Opposite:
    """Contradiction between the newest answers and the end of an instruction."""

    text: str
    is_steady: bool
    """Whether two answers, far enough apart, agree: only then it is a case."""


def contradicted_by(
    ended: Instruction,
    *,
    observed: Sequence[ObservedPayment],
    readings: Sequence[Uptime],
    opposite: Collection[GatewayState],
    quarantined_for: timedelta,
) -> Opposite | None:
    """Return what contradicts the end of an instruction; None if nothing does.

    Args:
        ended: As above, with the instant of its end.
        observed: Answers about its payment that were queried after its end, in order of arrival.
        readings: Clock readings since its end, the earliest first.
        opposite: States that contradict it (see `against`).
        quarantined_for: Time after the end in which answers may lag behind and do not count.
    """
    ended_at = ended.outcome_at
    if ended_at is None:
        return None
    steady: list[ObservedPayment] = []
    for answer in reversed(observed):
        since = between(readings[0], answer.uptime)
        passed = by_any_clock(since, last=ended_at, now=answer.queried_at)
        if answer.state not in opposite or passed < quarantined_for:
            break
        steady.append(answer)
    if not steady:
        return None
    text = (
        f"the journal has it as {ended.state}, but since "
        f"{steady[-1].queried_at:%Y-%m-%d %H:%M} UTC the gateway shows {steady[0].state}"
    )
    apart = between(steady[-1].uptime, steady[0].uptime)
    last, now = steady[-1].queried_at, steady[0].queried_at
    is_steady = by_any_clock(apart, last=last, now=now) >= ANSWERS_APART_MIN
    return Opposite(text, is_steady=is_steady)


def number_unexplained(*, known: Iterable[str], refund_ids: Iterable[str]) -> str:
    """Return a message if the gateway's numbering skips a refund that nobody has named, else "".

    Args:
        known: The gateway's ids of our own refunds of a payment.
        refund_ids: The gateway's ids of refunds of that payment in its messages.
    """
    ours = {number_of(refund_id) for refund_id in known}
    named = {number_of(refund_id) for refund_id in refund_ids}
    first, last = max(ours, default=0) + 1, max(named, default=0)
    missing = sorted(set(range(first, last)) - named)
    if not missing:
        return ""
    return f"the gateway reported refund -{last:02} of this payment, but not -{missing[0]:02}"


def number_of(refund_reference_id: str) -> int:
    """Return the number at the end of the gateway's id of a refund; 0 if it has none."""
    _, dash, digits = refund_reference_id.rpartition("-")
    return int(digits) if dash and digits.isascii() and digits.isdigit() else 0


def _number(refund: Instruction) -> int:
    """Return the number of a refund if its id belongs to its transaction, else 0."""
    given = refund.refund_reference_id
    is_its = is_refund_number(given, transaction_id=refund.transaction_id)
    return number_of(given) if is_its else 0


def contradicted(refunds: Sequence[Instruction]) -> Iterator[tuple[Instruction, str]]:
    """Yield refunds whose numbers contradict the journal, each with the reason.

    Args:
        refunds: All refunds sent for one payment, in that order, whatever their outcome.
    """
    first: dict[str, Instruction] = {}
    between: list[Instruction] = []
    last = 0
    for refund in refunds:
        number = _number(refund)
        if known := first.get(refund.refund_reference_id):
            yield refund, _repeated(refund, known)
            # Whoever closes that case as applied confirms that it has a number of its own.
            between.append(refund)
            continue
        if refund.refund_reference_id:
            first[refund.refund_reference_id] = refund
        if not number:
            between.append(refund)
            continue
        if number < last:
            out_of_order = f"numbered it -{number:02} after -{last:02}: not in their order"
            yield refund, _reported(refund, out_of_order)
        # Refunds without a number took, or may still have taken, the missing numbers.
        elif number - last - 1 > sum(item.may_have_moved for item in between):
            yield from _skipped(refund, last=last, between=between)
        last, between = max(last, number), []


def _skipped(
    refund: Instruction, *, last: int, between: Sequence[Instruction]
) -> Iterator[tuple[Instruction, str]]:
    """Yield the refunds that the journal takes for not done, else the one after the gap."""
    not_done = [item for item in between if not item.may_have_moved]
    before = f"after -{last:02}: one between them" if last else "as the first: one before it"
    text = f"-{_number(refund):02} {before} took effect"
    for item in not_done:
        yield item, _reported(item, f"numbered the next refund of this payment {text}")
    if not not_done:
        yield refund, _reported(refund, f"numbered it {text}, and it is not ours")


def _repeated(refund: Instruction, known: Instruction) -> str:
    both_done = refund.state in CONFIRMED_STATES and known.state in CONFIRMED_STATES
    done = " and confirmed both" if both_done else ""
    return _reported(
        refund,
        f"gave it the id {refund.refund_reference_id}, which instruction {known.instruction_id} "
        f"had before{done}: at most one of them took effect",
    )


def _reported(refund: Instruction, text: str) -> str:
    return f"the journal has it as {refund.state}, but the gateway {text}"
