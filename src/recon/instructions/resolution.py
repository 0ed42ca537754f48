"""Resolution of instructions in doubt: by evidence, never by time alone.

Evidence is what was queried after the doubt began, in the order of the history. An answer counts
only if the quarantine had passed when it was queried (a late effect may still arrive), measured by
clocks that nobody here can set, and only if two answers at least five minutes apart agree. Captures
and cancels are decided by the payment's state; that they took effect is decided at once by one
answer and a message whose signature covers that state. A refund is decided by our own reference, if
the gateway can be searched for it; never by the state alone, since the portal can make refunds too,
and never by a message, since its signature does not cover the refund. That a search does not find
it counts only if the same search showed another refund of ours, a day after the doubt. Partial
captures, payments no longer shown, refunds that only a message or a skipped number shows, and kinds
that no query shows are decided by a person.

A line of a settlement file proves that money moved; a missing line proves nothing. A line ends a
doubt if it can belong to this instruction only: it has our own reference, or it is the only capture
or refund of the whole payment since the doubt began. Whoever made that movement, nothing remains to
capture or refund, so nothing can move twice. Parts without our reference are decided by people,
since the portal can make the same movement.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from recon.instructions.instruction import Instruction
from recon.model.terms import EntryType, GatewayState, InstructionKind, InstructionState
from recon.model.uptime import NEVER_READ, Uptime, between

QUARANTINE_MIN = timedelta(minutes=15)
QUARANTINE_DEADLINES = 3
"""The quarantine lasts at least this many gateway deadlines."""
ANSWERS_APART_MIN = timedelta(minutes=5)
SILENCE_MIN = timedelta(hours=24)
"""A search that does not find a refund counts only this long after the doubt began."""
UNSEEN_MAX = timedelta(days=3)
"""A doubt is given to people if no answer has shown its payment for this long."""

_S = GatewayState
_K = InstructionKind


@dataclass(frozen=True, slots=True)
class ObservedPayment:
    """The payment of an instruction in one answer; NONE if it was not shown."""

    state: GatewayState
    queried_at: datetime
    """Time of the answer by the wall clock: for messages, never for evidence."""
    uptime: Uptime = NEVER_READ
    """Clock readings at the time of the query."""


@dataclass(frozen=True, slots=True)
class SearchedRefund:
    """The result of one search for our own refund reference."""

    refund_reference_id: str
    """"" if the gateway knows no refund with that reference."""
    queried_at: datetime
    reported_with: str = ""
    """Another refund of ours that the same search did find; "" if it found none."""
    uptime: Uptime = NEVER_READ


@dataclass(frozen=True, slots=True)
class DoubtEvidence:
    """All evidence since the doubt began, each kind in order of arrival."""

    observed: Sequence[ObservedPayment] = ()
    refunds: Sequence[SearchedRefund] = ()
    messages: Sequence[str] = ()
    """Texts on messages of the gateway that name our own reference, or skip a number."""
    signed: Sequence[ObservedPayment] = ()
    """States of the payment in messages whose signature covers them; they may be replayed."""
    readings: Sequence[Uptime] = ()
    """Clock readings since the doubt began, the earliest first."""
    uptime: Uptime = NEVER_READ
    """Readings of the same clocks now."""

    def had_waited(self, uptime: Uptime, *, much: timedelta) -> bool:
        """Return whether at least `much` time had certainly passed since the doubt began."""
        return waited(uptime, readings=self.readings) >= much


@dataclass(frozen=True, slots=True)
class Resolution:
    """The end of a doubt, with its evidence as text."""

    state: InstructionState
    evidence: str


CAPTURED_STATES = frozenset({_S.PAID, _S.PARTIALLY_REFUNDED, _S.REFUNDED, _S.CHARGEBACK})
_APPLIED: Mapping[InstructionKind, frozenset[GatewayState]] = {
    _K.CAPTURE: CAPTURED_STATES,
    _K.CANCEL: frozenset({_S.CANCELLED}),
}
_NOT_APPLIED: Mapping[InstructionKind, frozenset[GatewayState]] = {
    _K.CAPTURE: frozenset({_S.AUTHORISED, _S.EXPIRED}),
    _K.CANCEL: frozenset({_S.AUTHORISED, _S.EXPIRED}),
}
NO_QUERY_SHOWS = frozenset({_K.REVIEW, _K.CANCEL_SUBSCRIPTION, _K.PAYOUT})
"""Kinds whose effect no query can show: they go to a person at once."""


def quarantine(deadline: timedelta) -> timedelta:
    """Return how long after the start of a doubt an answer proves nothing."""
    return max(QUARANTINE_MIN, QUARANTINE_DEADLINES * deadline)


def waited(uptime: Uptime, *, readings: Sequence[Uptime]) -> timedelta:
    """Return the minimum time since a doubt began: the longest to any comparable reading.

    After a reboot, or on another machine, the wait starts again with the first reading there,
    unless the gateway's Date header links it to an earlier one.
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
    """Return the end of a doubt, or None while the evidence is insufficient."""
    since = instruction.in_doubt_since
    if since is None:
        return None
    for refund in reversed(evidence.refunds):
        if refund.refund_reference_id:  # our own reference needs no second answer
            sentence = f"the gateway has our reference as refund {refund.refund_reference_id}"
            return Resolution(InstructionState.RESOLVED_APPLIED, sentence)
    if instruction.kind in NO_QUERY_SHOWS:
        sentence = f"no query shows what became of a {instruction.kind.value.replace('_', ' ')}"
        return Resolution(InstructionState.NEEDS_HUMAN, sentence)
    # An answer from before the end of the quarantine proves nothing: the effect may still come.
    had_waited = evidence.had_waited
    searched = [one for one in evidence.refunds if had_waited(one.uptime, much=SILENCE_MIN)]
    observed = [one for one in evidence.observed if had_waited(one.uptime, much=quarantined_for)]
    unseen = _unobserved(observed, evidence=evidence, since=since, now=now)
    if evidence.messages:
        # It concerns our refund, or a later one: a person decides, nothing is sent again.
        hint = f"{evidence.messages[-1]}; its signature does not cover that: look the refund up"
        is_over = observed or unseen or had_waited(evidence.uptime, much=quarantined_for)
        return Resolution(InstructionState.NEEDS_HUMAN, hint) if is_over else None
    return (
        _by_message(instruction, evidence=evidence, agreed=_agreed(observed) if observed else None)
        or _missing_refund(searched)
        or _by_state(instruction, observed=observed, refund_visible_until=refund_visible_until)
        or unseen
        or _divided(observed)
    )


def _unobserved(
    observed: Sequence[ObservedPayment], *, evidence: DoubtEvidence, since: datetime, now: datetime
) -> Resolution | None:
    """Give a doubt to people if no usable answer has shown its payment for UNSEEN_MAX."""
    last = observed[-1].queried_at if observed else since
    heard = [answer.uptime for answer in observed[-1:]] or evidence.readings[:1]
    quiet = between(heard[0], evidence.uptime) if heard else None
    if by_any_clock(quiet, last=last, now=now) < UNSEEN_MAX:
        return None
    sentence = f"the gateway has not shown this payment since {last:%Y-%m-%d %H:%M} UTC"
    if evidence.observed and not observed:
        sentence = (
            "no clock says how old the doubt was at any answer: this machine was started anew, or "
            "is another, and the gateway's replies have no Date that decides it"
        )
    return Resolution(InstructionState.NEEDS_HUMAN, sentence)


def by_any_clock(quiet: timedelta | None, *, last: datetime, now: datetime) -> timedelta:
    """Return the time without an answer; by the wall clock only if no other clock measured it.

    A wall clock that is set wrongly only calls people too early, never decides anything else.
    """
    return abs(now - last) if quiet is None else quiet


def _divided(observed: Sequence[ObservedPayment]) -> Resolution | None:
    """Give a doubt to people if its answers have disagreed for UNSEEN_MAX."""
    if not observed or _agreed(observed):
        return None
    quiet = between(observed[0].uptime, observed[-1].uptime)
    last, now = observed[0].queried_at, observed[-1].queried_at
    if by_any_clock(quiet, last=last, now=now) < UNSEEN_MAX:
        return None
    states = ", ".join(sorted({answer.state.value for answer in observed}))
    sentence = (
        f"the gateway's {len(observed)} answers since {observed[0].queried_at:%Y-%m-%d %H:%M} UTC "
        f"do not agree ({states})"
    )
    return Resolution(InstructionState.NEEDS_HUMAN, sentence)


def _by_message(
    instruction: Instruction, *, evidence: DoubtEvidence, agreed: ObservedPayment | None
) -> Resolution | None:
    """Resolve by a signed message that the effect came, together with an answer that shows it.

    An old message can be replayed, so it never proves that nothing happened; that something
    happened remains true. If later answers contradict it, people decide.
    """
    applied = _APPLIED.get(instruction.kind, frozenset())
    states = [message for message in evidence.signed if message.state in applied]
    if not states or _is_part(instruction):
        return None
    reported = (
        f"a signed message of {states[-1].queried_at:%Y-%m-%d %H:%M:%S} UTC has {states[-1].state}"
    )
    newest = evidence.observed[-1] if evidence.observed else None
    if newest is not None and newest.state in applied:
        shown = f"{reported}, and the gateway shows {newest.state}"
        return Resolution(InstructionState.RESOLVED_APPLIED, shown)
    if agreed is None or agreed.state in applied:
        return None
    denied = f"{reported}, but the gateway shows {agreed.state} in two answers"
    return Resolution(InstructionState.NEEDS_HUMAN, denied)


def _missing_refund(refunds: Sequence[SearchedRefund]) -> Resolution | None:
    """Resolve by two searches, far enough apart, that do not find our reference.

    A missing result proves something only if the search works: each of them must have found
    another refund of ours by its reference.
    """
    if not _apart(refunds):
        return None
    sentence = (
        f"the gateway knows no refund of our reference in {len(refunds)} searches, the last at "
        f"{refunds[-1].queried_at:%Y-%m-%d %H:%M:%S} UTC"
    )
    proven = [refund for refund in refunds if refund.reported_with]
    if _apart(proven):
        shown = f"{sentence}; they showed refund {proven[-1].reported_with} of ours"
        return Resolution(InstructionState.RESOLVED_NOT_APPLIED, shown)
    alone = f"{sentence}, but they showed no other refund of ours either, so that proves nothing"
    return Resolution(InstructionState.NEEDS_HUMAN, alone)


def _by_state(
    instruction: Instruction, *, observed: Sequence[ObservedPayment], refund_visible_until: datetime
) -> Resolution | None:
    agreed = _agreed(observed) if observed else None
    if agreed is None:
        return None
    if agreed.state is GatewayState.NONE:
        sentence = "the gateway no longer shows this payment"
        return Resolution(InstructionState.NEEDS_HUMAN, sentence)
    if instruction.kind is InstructionKind.REFUND:
        return _refund(agreed, until=refund_visible_until)
    sentence = (
        f"the gateway showed {agreed.state} in two answers, the last at "
        f"{agreed.queried_at:%Y-%m-%d %H:%M:%S} UTC ({len(observed)} answers since)"
    )
    if agreed.state in _APPLIED.get(instruction.kind, frozenset()):
        if not _is_part(instruction):
            return Resolution(InstructionState.RESOLVED_APPLIED, sentence)
        sentence = f"{sentence}; a state does not say whether the part that we asked for moved"
    elif agreed.state in _NOT_APPLIED.get(instruction.kind, frozenset()):
        return Resolution(InstructionState.RESOLVED_NOT_APPLIED, sentence)
    return Resolution(InstructionState.NEEDS_HUMAN, sentence)


def _is_part(instruction: Instruction) -> bool:
    """Return whether only a part was to move; a state does not show how much did."""
    return instruction.amount != instruction.payment_amount


def _agreed(observed: Sequence[ObservedPayment]) -> ObservedPayment | None:
    """Return the newest answer if one far enough before it agrees, and all in between."""
    newest = observed[-1]
    for earlier in reversed(observed[:-1]):
        if earlier.state is not newest.state:
            return None
        if _are_apart(earlier, newest):
            return newest
    return None


def _apart(answers: Sequence[SearchedRefund]) -> bool:
    return len(answers) > 1 and _are_apart(answers[0], answers[-1])


def _are_apart(
    earlier: ObservedPayment | SearchedRefund, later: ObservedPayment | SearchedRefund
) -> bool:
    """Return whether two answers were queried far enough apart to count as two."""
    passed = between(earlier.uptime, later.uptime)
    return passed is not None and passed >= ANSWERS_APART_MIN


def _refund(agreed: ObservedPayment, *, until: datetime) -> Resolution | None:
    if agreed.state in {_S.REFUNDED, _S.PARTIALLY_REFUNDED}:
        return Resolution(
            InstructionState.NEEDS_HUMAN,
            f"the gateway shows {agreed.state}; the query does not show whose refund that is",
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
"""Entry type in settlement files by kind; other kinds move no settled money."""
_OTHER_ZONE = timedelta(days=1)
"""The gateway's day may begin before ours."""


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
    """Name of the file."""


def our_references(instruction: Instruction) -> frozenset[str]:
    """Return the references by which a line may name this instruction."""
    return frozenset({instruction.instruction_id, instruction.gateway_request_id} - {""})


def lines_about(instruction: Instruction, *, lines: Sequence[SettledLine]) -> list[SettledLine]:
    """Return the lines with its transaction or one of its references."""
    names = our_references(instruction)
    of_payment = {instruction.transaction_id} - {""}
    return [
        line for line in lines if line.own_reference in names or line.transaction_id in of_payment
    ]


def by_settlement(
    instruction: Instruction, *, lines: Sequence[SettledLine], known: Collection[str]
) -> Resolution | None:
    """Return the end of a doubt by settlement lines; None if they prove nothing.

    Args:
        instruction: In doubt, or with a person.
        lines: Lines with its transaction, or with one of its references.
        known: The gateway's references of our other refunds, whose lines do not count.
    """
    row_type = _TYPES.get(instruction.kind)
    moved = [line for line in lines if line.entry_type == row_type]
    ours = [line for line in moved if line.own_reference in our_references(instruction)]
    if ours:  # it decides only if there is one, of our amount
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
    # A payout in doubt has no transaction id yet to compare: the id comes with the reply.
    unknown = instruction.kind is InstructionKind.PAYOUT and not instruction.transaction_id
    return unknown or line.transaction_id in {"", instruction.transaction_id}


def _is_the_whole(instruction: Instruction, *, line: SettledLine) -> bool:
    """Return whether a line is the payment's whole amount, settled since the doubt began."""
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
