"""What became of an instruction in doubt? Decided by evidence, never by time alone.

Evidence is what was asked after the doubt by the order of the history. An answer counts only when
the quarantine had passed as it was asked (a late effect may still arrive), by clocks that nobody
here can set, and only when two answers at least five minutes apart agree. Captures and cancels are
decided by the payment's state; that the effect came, one answer and a message whose signature
covers that state decide at once. A refund is decided by our own reference, where the gateway can be
asked for it; by the state alone never, because the portal can do the same, and by a message never,
because the signature of a message does not cover its refund. That the search does not know it
counts only where the same search showed another refund of ours, a day after the doubt. Part
captures, payments that are no longer shown, refunds that only a message or a skipped number names,
and kinds that no query shows go to a person.

A line of a settlement file proves that money moved; that there is none proves nothing, whatever
file came. It ends a doubt where it can be of this instruction only: it carries our own reference,
or it is the one capture, or the one refund, of the whole payment since the doubt began. Whoever
did that, nothing is left to be captured or refunded, so nothing can move twice. Parts without our
reference are for people: the gateway's own pages can move the same.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from recon.instructions.instruction import Instruction
from recon.model.terms import EntryType, GatewayState, InstructionKind, InstructionState
from recon.model.uptime import NEVER_READ, Uptime, between

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


@dataclass(frozen=True, slots=True)
class Seen:
    """The payment of an instruction as one query showed it; NONE when it was not shown."""

    state: GatewayState
    queried_at: datetime
    """When the gateway said so, by the clock on the wall: for words, never for evidence."""
    uptime: Uptime = NEVER_READ
    """What clocks showed when it was asked."""


@dataclass(frozen=True, slots=True)
class SearchedRefund:
    """What one search for our own refund reference found."""

    refund_reference_id: str
    """"" when the gateway knows no refund of that reference."""
    queried_at: datetime
    shown_with: str = ""
    """A refund of ours that the same search did show; "" when it showed none."""
    uptime: Uptime = NEVER_READ


@dataclass(frozen=True, slots=True)
class DoubtEvidence:
    """Everything known since the doubt began, each part in the order in which it came."""

    seen: Sequence[Seen] = ()
    refunds: Sequence[SearchedRefund] = ()
    messages: Sequence[str] = ()
    """Messages of the gateway that name our own reference, or skip a number, in words."""
    signed: Sequence[Seen] = ()
    """States of the payment in messages whose signature covers them; one may be sent again."""
    readings: Sequence[Uptime] = ()
    """Clocks as they were read since the doubt, the first of all first."""
    uptime: Uptime = NEVER_READ
    """The same clocks now."""

    def had_waited(self, uptime: Uptime, *, much: timedelta) -> bool:
        """Whether so much time had surely passed since the doubt at a reading."""
        return waited(uptime, readings=self.readings) >= much


@dataclass(frozen=True, slots=True)
class Resolution:
    """The end of a doubt, with its evidence in words."""

    state: InstructionState
    evidence: str


TAKEN = frozenset({_S.PAID, _S.PARTIALLY_REFUNDED, _S.REFUNDED, _S.CHARGEBACK})
_APPLIED: Mapping[InstructionKind, frozenset[GatewayState]] = {
    _K.CAPTURE: TAKEN,
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


def waited(uptime: Uptime, *, readings: Sequence[Uptime]) -> timedelta:
    """How much time passed at least since a doubt: the longest that one of its readings ties.

    After another boot, or on another machine, the wait begins again with the first reading there,
    unless the gateway's Date ties it to an earlier one.
    """
    tied = (between(reading, uptime) for reading in readings)
    return max((much for much in tied if much is not None), default=timedelta())


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
    for refund in reversed(evidence.refunds):
        if refund.refund_reference_id:  # it carries our own reference: it needs no second answer
            sentence = f"the gateway has our reference as refund {refund.refund_reference_id}"
            return Resolution(InstructionState.RESOLVED_APPLIED, sentence)
    if instruction.kind in NO_QUERY_SHOWS:
        sentence = f"no query shows what became of a {instruction.kind.value.replace('_', ' ')}"
        return Resolution(InstructionState.NEEDS_HUMAN, sentence)
    # An answer from before the quarantine's end proves nothing: the effect may still come.
    had_waited = evidence.had_waited
    searched = [one for one in evidence.refunds if had_waited(one.uptime, much=SILENCE_MIN)]
    seen = [one for one in evidence.seen if had_waited(one.uptime, much=quarantined_for)]
    unseen = _unseen(seen, evidence=evidence, since=since, now=now)
    if evidence.messages:
        # About our refund, or of a later one: a person looks, nothing is sent again.
        hint = f"{evidence.messages[-1]}; its signature does not cover that: look the refund up"
        is_over = seen or unseen or had_waited(evidence.uptime, much=quarantined_for)
        return Resolution(InstructionState.NEEDS_HUMAN, hint) if is_over else None
    return (
        _by_message(instruction, evidence=evidence, agreed=_agreed(seen) if seen else None)
        or _missing_refund(searched)
        or _by_state(instruction, seen=seen, refund_visible_until=refund_visible_until)
        or unseen
        or _divided(seen)
    )


def _unseen(
    seen: Sequence[Seen], *, evidence: DoubtEvidence, since: datetime, now: datetime
) -> Resolution | None:
    """No usable answer, or none about this payment, for too long: nobody waits for ever."""
    last = seen[-1].queried_at if seen else since
    heard = [answer.uptime for answer in seen[-1:]] or evidence.readings[:1]
    quiet = between(heard[0], evidence.uptime) if heard else None
    if by_any_clock(quiet, last=last, now=now) < UNSEEN_MAX:
        return None
    sentence = f"the gateway has not shown this payment since {last:%Y-%m-%d %H:%M} UTC"
    if evidence.seen and not seen:
        sentence = (
            "no clock says how old the doubt was at any answer: this machine was started anew, or "
            "is another, and the gateway's replies have no Date that tells"
        )
    return Resolution(InstructionState.NEEDS_HUMAN, sentence)


def by_any_clock(quiet: timedelta | None, *, last: datetime, now: datetime) -> timedelta:
    """How long nothing was heard; where no other clock ties both, by the one on the wall.

    Set forward or back, that one only asks people too early, who wait by the clocks that count.
    """
    return abs(now - last) if quiet is None else quiet


def _divided(seen: Sequence[Seen]) -> Resolution | None:
    """Answers that say this and that, and never the same twice: nobody waits for ever."""
    if not seen or _agreed(seen):
        return None
    quiet = between(seen[0].uptime, seen[-1].uptime)
    last, now = seen[0].queried_at, seen[-1].queried_at
    if by_any_clock(quiet, last=last, now=now) < UNSEEN_MAX:
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
    terms = (
        f"a signed message of {states[-1].queried_at:%Y-%m-%d %H:%M:%S} UTC has {states[-1].state}"
    )
    newest = evidence.seen[-1] if evidence.seen else None
    if newest is not None and newest.state in applied:
        shown = f"{terms}, and the gateway shows {newest.state}"
        return Resolution(InstructionState.RESOLVED_APPLIED, shown)
    if agreed is None or agreed.state in applied:
        return None
    denied = f"{terms}, but the gateway shows {agreed.state} in two answers"
    return Resolution(InstructionState.NEEDS_HUMAN, denied)


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
    proven = [refund for refund in refunds if refund.shown_with]
    if _apart(proven):
        shown = f"{sentence}; they showed refund {proven[-1].shown_with} of ours"
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
    sentence = (
        f"the gateway showed {agreed.state} in two answers, the last at "
        f"{agreed.queried_at:%Y-%m-%d %H:%M:%S} UTC ({len(seen)} answers since)"
    )
    if agreed.state in _APPLIED.get(instruction.kind, frozenset()):
        if not _is_part(instruction):
            return Resolution(InstructionState.RESOLVED_APPLIED, sentence)
        sentence = f"{sentence}; a state does not say whether the part that we asked for moved"
    elif agreed.state in _NOT_APPLIED.get(instruction.kind, frozenset()):
        return Resolution(InstructionState.RESOLVED_NOT_APPLIED, sentence)
    return Resolution(InstructionState.NEEDS_HUMAN, sentence)


def _is_part(instruction: Instruction) -> bool:
    """A part was to move: a state does not say how much did, so a person decides."""
    return instruction.amount != instruction.payment_amount


def _agreed(seen: Sequence[Seen]) -> Seen | None:
    """The newest answer, if an earlier one said the same and none between said otherwise."""
    newest = seen[-1]
    for earlier in reversed(seen[:-1]):
        if earlier.state is not newest.state:
            return None
        if _are_apart(earlier, newest):
            return newest
    return None


def _apart(answers: Sequence[SearchedRefund]) -> bool:
    return len(answers) > 1 and _are_apart(answers[0], answers[-1])


def _are_apart(earlier: Seen | SearchedRefund, later: Seen | SearchedRefund) -> bool:
    """Whether two answers were asked so far from each other that they are two."""
    passed = between(earlier.uptime, later.uptime)
    return passed is not None and passed >= ANSWERS_APART_MIN


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


_TYPES: Mapping[InstructionKind, str] = {
    InstructionKind.CAPTURE: EntryType.CAPTURE.value,
    InstructionKind.REFUND: EntryType.REFUND.value,
    InstructionKind.PAYOUT: EntryType.PAYOUT.value,
}
"""What each kind is settled as; the others move no money that is settled."""
_OTHER_ZONE = timedelta(days=1)
"""The gateway's day may have begun before ours."""


@dataclass(frozen=True, slots=True)
class SettledLine:
    """One line of a settlement file; amounts are signed minor units."""

    entry_type: str
    transaction_id: str
    reference_no: str
    own_reference: str
    currency: str
    gross: int
    settled_on: str
    """ISO date."""
    source: str
    """The file."""


def our_references(instruction: Instruction) -> frozenset[str]:
    """What a line may name this instruction by."""
    return frozenset({instruction.instruction_id, instruction.gateway_request_id} - {""})


def lines_about(instruction: Instruction, *, lines: Sequence[SettledLine]) -> list[SettledLine]:
    """Those of its transaction, or under one of its references."""
    names = our_references(instruction)
    of_payment = {instruction.transaction_id} - {""}
    return [
        line for line in lines if line.own_reference in names or line.transaction_id in of_payment
    ]


def by_settlement(
    instruction: Instruction, *, lines: Sequence[SettledLine], known: Collection[str]
) -> Resolution | None:
    """The end of a doubt by the lines of its payment or references; None where they prove nothing.

    Args:
        instruction: in doubt, or with a person.
        lines: what files tell of its transaction, or under one of its references.
        known: the gateway's references of other refunds of ours, whose lines are not this one's.
    """
    wanted = _TYPES.get(instruction.kind)
    moved = [line for line in lines if line.entry_type == wanted]
    ours = [line for line in moved if line.own_reference in our_references(instruction)]
    if ours:  # of exactly our amount, once, it is ours
        sentence = f"{_text(ours[0])} has our reference"
        if len(ours) == 1 and _same(instruction, line=ours[0]):
            return Resolution(InstructionState.RESOLVED_APPLIED, f"{sentence} and amount")
        sentence = f"{sentence}, but not this amount and payment, once"
        return Resolution(InstructionState.NEEDS_HUMAN, sentence)
    whole = [line for line in moved if not line.own_reference and line.reference_no not in known]
    if len(whole) != 1 or not _is_the_whole(instruction, line=whole[0]):
        return None
    sentence = f"{_text(whole[0])} shows this payment's whole amount"
    return Resolution(InstructionState.RESOLVED_APPLIED, sentence)


def _same(instruction: Instruction, *, line: SettledLine) -> bool:
    if (line.currency, abs(line.gross)) != (instruction.currency, instruction.amount):
        return False
    # The gateway's id of a payout comes with its reply: one in doubt has none to be held against.
    unknown = instruction.kind is InstructionKind.PAYOUT and not instruction.transaction_id
    return unknown or line.transaction_id in {"", instruction.transaction_id}


def _is_the_whole(instruction: Instruction, *, line: SettledLine) -> bool:
    """One movement of all that the payment has, settled since the doubt began."""
    since = instruction.in_doubt_since
    if since is None or instruction.kind is InstructionKind.PAYOUT:
        return False
    return (
        bool(line.transaction_id)
        and _same(instruction, line=line)
        and instruction.amount == instruction.payment_amount
        and line.settled_on >= (since - _OTHER_ZONE).date().isoformat()
    )


def _text(line: SettledLine) -> str:
    reference = f" {line.reference_no}" if line.reference_no else ""
    return f"{line.source}: the {line.entry_type}{reference} settled on {line.settled_on}"
