"""What became of an instruction in doubt? Decided by later queries, never by time alone.

An answer counts only after the quarantine (a late effect may still arrive), and only when two
answers at least five minutes apart agree. Captures and cancels are decided by the payment's state.
A refund by itself is never decided here: the query does not say how much was refunded, and the
portal can do the same; it goes to a person when the state moved or the wait is over.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from recon.model import GatewayState, InstructionKind, InstructionState
from recon.settlement.instruction import Instruction

QUARANTINE_MIN = timedelta(minutes=15)
QUARANTINE_DEADLINES = 3
"""Quarantine is at least this many gateway deadlines."""
ANSWERS_APART_MIN = timedelta(minutes=5)

_S = GatewayState


@dataclass(frozen=True, slots=True)
class Seen:
    """The payment of an instruction as one query showed it."""

    state: GatewayState
    queried_at: datetime


@dataclass(frozen=True, slots=True)
class Resolution:
    """The end of a doubt, with its evidence in words."""

    state: InstructionState
    evidence: str


_APPLIED: Mapping[InstructionKind, frozenset[GatewayState]] = {
    InstructionKind.CAPTURE: frozenset(
        {_S.PAID, _S.PARTIALLY_REFUNDED, _S.REFUNDED, _S.CHARGEBACK}
    ),
    InstructionKind.CANCEL: frozenset({_S.CANCELLED}),
}
_NOT_APPLIED: Mapping[InstructionKind, frozenset[GatewayState]] = {
    InstructionKind.CAPTURE: frozenset({_S.AUTHORISED, _S.EXPIRED}),
    InstructionKind.CANCEL: frozenset({_S.AUTHORISED, _S.EXPIRED}),
}


def quarantine(deadline: timedelta) -> timedelta:
    """How long after a doubt an answer proves nothing."""
    return max(QUARANTINE_MIN, QUARANTINE_DEADLINES * deadline)


def resolve(
    instruction: Instruction,
    *,
    seen: Sequence[Seen],
    quarantined_for: timedelta,
    refund_visible_until: datetime,
) -> Resolution | None:
    """The end of a doubt, or None while there is not enough evidence.

    `seen` holds the answers since the doubt began, oldest first.
    """
    since = instruction.in_doubt_since
    if since is None:
        return None
    # An answer from before the quarantine's end proves nothing: the effect may still come.
    seen = [answer for answer in seen if answer.queried_at >= since + quarantined_for]
    agreed = _agreed(seen) if seen else None
    if agreed is None:
        return None
    if instruction.kind is InstructionKind.REFUND:
        return _refund(agreed, until=refund_visible_until)
    if agreed.state in _APPLIED.get(instruction.kind, frozenset()) and not _is_part(instruction):
        return Resolution(InstructionState.RESOLVED_APPLIED, _evidence(seen, agreed))
    if agreed.state in _NOT_APPLIED.get(instruction.kind, frozenset()):
        return Resolution(InstructionState.RESOLVED_NOT_APPLIED, _evidence(seen, agreed))
    return Resolution(InstructionState.NEEDS_HUMAN, _evidence(seen, agreed))


def _is_part(instruction: Instruction) -> bool:
    """A part was to move: a state does not say how much did, so a person decides."""
    return instruction.amount != instruction.payment_amount


def _agreed(seen: Sequence[Seen]) -> Seen | None:
    """The newest answer, if an earlier one said the same and none between said otherwise."""
    newest = seen[-1]
    for earlier in reversed(seen[:-1]):
        if earlier.state is not newest.state:
            return None
        if newest.queried_at - earlier.queried_at >= ANSWERS_APART_MIN:
            return newest
    return None


def _refund(agreed: Seen, *, until: datetime) -> Resolution | None:
    if agreed.state in {_S.REFUNDED, _S.PARTIALLY_REFUNDED}:
        return Resolution(
            InstructionState.NEEDS_HUMAN,
            f"the gateway shows {agreed.state}; the query cannot tell whose refund that is",
        )
    if agreed.queried_at < until:
        return None
    return Resolution(
        InstructionState.NEEDS_HUMAN,
        f"the gateway still shows {agreed.state} after the time in which a refund becomes visible",
    )


def _evidence(seen: Sequence[Seen], agreed: Seen) -> str:
    return (
        f"the gateway showed {agreed.state} in two answers, the last at "
        f"{agreed.queried_at:%Y-%m-%d %H:%M:%S} UTC ({len(seen)} answers since)"
    )
