"""What became of an instruction in doubt? Decided by evidence, never by time alone.

An answer counts only after the quarantine (a late effect may still arrive), and only when two
answers at least five minutes apart agree. Captures and cancels are decided by the payment's state;
that the effect came, one answer and a message whose signature covers that state decide at once. A
refund is decided by our own reference, where the gateway can be asked for it; by the state alone
never, because the portal can do the same, and by a message never, because the signature of a
message does not cover its refund. That the search does not know it counts only where the same
search showed another refund of ours, a day after the doubt. Part captures, payments that are no
longer shown, refunds that only a message or a skipped number names, and kinds that no query shows
go to a person.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from recon.model.words import GatewayState, InstructionKind, InstructionState
from recon.settlement.instruction import Instruction

QUARANTINE_MIN = timedelta(minutes=15)
QUARANTINE_DEADLINES = 3
"""Quarantine is at least this many gateway deadlines."""
ANSWERS_APART_MIN = timedelta(minutes=5)
SILENCE_MIN = timedelta(hours=24)
"""That a search does not know a refund counts only so long after the doubt."""
UNSEEN_MAX = timedelta(days=3)
"""A doubt whose payment no answer has shown for so long is for people."""

_S = GatewayState
_K = InstructionKind


class _Timed(Protocol):
    @property
    def queried_at(self) -> datetime:
        """When the gateway said so."""
        ...


@dataclass(frozen=True, slots=True)
class Seen:
    """The payment of an instruction as one query showed it; NONE when it was not shown."""

    state: GatewayState
    queried_at: datetime


@dataclass(frozen=True, slots=True)
class SearchedRefund:
    """What one search for our own refund reference found."""

    refund_reference_id: str
    """"" when the gateway knows no refund of that reference."""
    queried_at: datetime
    shown_beside: str = ""
    """A refund of ours that the same search did show; "" when it showed none."""


@dataclass(frozen=True, slots=True)
class DoubtEvidence:
    """Everything known since the doubt began, each part oldest first."""

    seen: Sequence[Seen] = ()
    refunds: Sequence[SearchedRefund] = ()
    messages: Sequence[str] = ()
    """Messages of the gateway that name our own reference, or skip a number, in words."""
    signed: Sequence[Seen] = ()
    """States of the payment in messages whose signature covers them; one may be sent again."""
    waited: timedelta | None = None
    """Time since the doubt by a clock that nobody can set; None when none was running."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """The end of a doubt, with its evidence in words."""

    state: InstructionState
    evidence: str


_APPLIED: Mapping[InstructionKind, frozenset[GatewayState]] = {
    _K.CAPTURE: frozenset({_S.PAID, _S.PARTIALLY_REFUNDED, _S.REFUNDED, _S.CHARGEBACK}),
    _K.CANCEL: frozenset({_S.CANCELLED}),
}
_NOT_APPLIED: Mapping[InstructionKind, frozenset[GatewayState]] = {
    _K.CAPTURE: frozenset({_S.AUTHORISED, _S.EXPIRED}),
    _K.CANCEL: frozenset({_S.AUTHORISED, _S.EXPIRED}),
}
NO_QUERY_SHOWS = frozenset({_K.REVIEW, _K.CANCEL_SUBSCRIPTION, _K.PAYOUT})
"""Kinds whose effect no answer can show: a person looks at once."""


def quarantine(deadline: timedelta) -> timedelta:
    """How long after a doubt an answer proves nothing."""
    return max(QUARANTINE_MIN, QUARANTINE_DEADLINES * deadline)


def ripe_at(
    since: datetime, *, waited: timedelta | None, now: datetime, quarantined_for: timedelta
) -> datetime:
    """When nothing can come late any more: before, nobody can tell late from never.

    A clock that was put forward must not shorten the wait: by today's time the doubt is younger.
    """
    began = since if waited is None else max(since, now - waited)
    return began + quarantined_for


def resolve(
    instruction: Instruction,
    *,
    evidence: DoubtEvidence,
    now: datetime,
    quarantined_for: timedelta,
    refund_visible_until: datetime,
) -> Resolution | None:
    """The end of a doubt, or None while there is not enough evidence."""
    since = instruction.in_doubt_since
    if since is None:
        return None
    named = _named_refund(evidence.refunds)
    if named is not None:
        return named
    if instruction.kind in NO_QUERY_SHOWS:
        sentence = f"no query shows what became of a {instruction.kind.value.replace('_', ' ')}"
        return Resolution(InstructionState.NEEDS_HUMAN, sentence)
    # An answer from before the quarantine's end proves nothing: the effect may still come.
    ripe = ripe_at(since, waited=evidence.waited, now=now, quarantined_for=quarantined_for)
    silent = ripe - quarantined_for + SILENCE_MIN
    searched = [refund for refund in evidence.refunds if refund.queried_at >= silent]
    seen = [answer for answer in evidence.seen if answer.queried_at >= ripe]
    if evidence.messages:
        return _hinted(evidence) if now >= ripe else None
    return (
        _by_message(instruction, evidence=evidence, agreed=_agreed(seen) if seen else None)
        or _missing_refund(searched)
        or _by_state(instruction, seen=seen, refund_visible_until=refund_visible_until)
        or _unseen(seen, since=ripe, now=now)
        or _divided(seen)
    )


def _unseen(seen: Sequence[Seen], *, since: datetime, now: datetime) -> Resolution | None:
    """No usable answer, or none about this payment, for too long: nobody waits for ever."""
    last = max((answer.queried_at for answer in seen), default=since)
    if now - last < UNSEEN_MAX:
        return None
    sentence = f"the gateway has not shown this payment since {last:%Y-%m-%d %H:%M} UTC"
    return Resolution(InstructionState.NEEDS_HUMAN, sentence)


def _divided(seen: Sequence[Seen]) -> Resolution | None:
    """Answers that say this and that, and never the same twice: nobody waits for ever."""
    if not seen or seen[-1].queried_at - seen[0].queried_at < UNSEEN_MAX or _agreed(seen):
        return None
    states = ", ".join(sorted({answer.state.value for answer in seen}))
    sentence = (
        f"the gateway's {len(seen)} answers since {seen[0].queried_at:%Y-%m-%d %H:%M} UTC do not "
        f"agree ({states})"
    )
    return Resolution(InstructionState.NEEDS_HUMAN, sentence)


def _by_message(
    instruction: Instruction, *, evidence: DoubtEvidence, agreed: Seen | None
) -> Resolution | None:
    """A signed message that the effect came, and one answer of the gateway that shows it, too.

    An old message can be sent again, so it never proves that nothing happened; that something did
    stays true. What later answers deny is for people.
    """
    applied = _APPLIED.get(instruction.kind, frozenset())
    states = [message for message in evidence.signed if message.state in applied]
    if not states or _is_part(instruction):
        return None
    words = (
        f"a signed message of {states[-1].queried_at:%Y-%m-%d %H:%M:%S} UTC has {states[-1].state}"
    )
    newest = evidence.seen[-1] if evidence.seen else None
    if newest is not None and newest.state in applied:
        shown = f"{words}, and the gateway shows {newest.state}"
        return Resolution(InstructionState.RESOLVED_APPLIED, shown)
    if agreed is None or agreed.state in applied:
        return None
    denied = f"{words}, but the gateway shows {agreed.state} in two answers"
    return Resolution(InstructionState.NEEDS_HUMAN, denied)


def _hinted(evidence: DoubtEvidence) -> Resolution:
    """A message about our refund, or of a later one: a person looks, nothing is sent again."""
    sentence = f"{evidence.messages[-1]}; its signature does not cover that: look the refund up"
    return Resolution(InstructionState.NEEDS_HUMAN, sentence)


def _named_refund(refunds: Sequence[SearchedRefund]) -> Resolution | None:
    """A refund that carries our own reference is ours: it needs no second answer."""
    for refund in reversed(refunds):
        if refund.refund_reference_id:
            sentence = f"the gateway has our reference as refund {refund.refund_reference_id}"
            return Resolution(InstructionState.RESOLVED_APPLIED, sentence)
    return None


def _missing_refund(refunds: Sequence[SearchedRefund]) -> Resolution | None:
    """Two searches, far enough apart, that do not know our reference.

    That nothing is found proves something only of a search that finds what is there: each must
    have shown another refund of ours, by our reference, beside its silence about this one.
    """
    if not _apart(refunds):
        return None
    sentence = (
        f"the gateway knows no refund of our reference in {len(refunds)} searches, the last at "
        f"{refunds[-1].queried_at:%Y-%m-%d %H:%M:%S} UTC"
    )
    proven = [refund for refund in refunds if refund.shown_beside]
    if _apart(proven):
        shown = f"{sentence}; they showed refund {proven[-1].shown_beside} of ours"
        return Resolution(InstructionState.RESOLVED_NOT_APPLIED, shown)
    alone = f"{sentence}, but they showed no other refund of ours either, so that proves nothing"
    return Resolution(InstructionState.NEEDS_HUMAN, alone)


def _by_state(
    instruction: Instruction, *, seen: Sequence[Seen], refund_visible_until: datetime
) -> Resolution | None:
    agreed = _agreed(seen) if seen else None
    if agreed is None:
        return None
    if agreed.state is GatewayState.NONE:
        sentence = "the gateway no longer shows this payment"
        return Resolution(InstructionState.NEEDS_HUMAN, sentence)
    if instruction.kind is InstructionKind.REFUND:
        return _refund(agreed, until=refund_visible_until)
    sentence = _evidence(seen, agreed)
    if _is_part(instruction) and agreed.state in _APPLIED.get(instruction.kind, frozenset()):
        sentence = f"{sentence}; a state does not say whether the part that we asked for moved"
    return Resolution(_state_shown(instruction, agreed), sentence)


def _state_shown(instruction: Instruction, agreed: Seen) -> InstructionState:
    """What the payment's state decides; everything else is for a person."""
    if agreed.state in _APPLIED.get(instruction.kind, frozenset()) and not _is_part(instruction):
        return InstructionState.RESOLVED_APPLIED
    if agreed.state in _NOT_APPLIED.get(instruction.kind, frozenset()):
        return InstructionState.RESOLVED_NOT_APPLIED
    return InstructionState.NEEDS_HUMAN


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


def _apart(answers: Sequence[_Timed]) -> bool:
    return len(answers) > 1 and answers[-1].queried_at - answers[0].queried_at >= ANSWERS_APART_MIN


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
