"""What the gateway shows after the end of an instruction, against what the journal believes.

A final state is never changed. Two answers, far enough apart and after the quarantine, that show
the opposite make a case for two people, and nothing more is sent for that payment until they have
closed it.

The gateway numbers the refunds of a payment -01, -02, … (docs/GATEWAY.md): a number that comes
twice belongs to one effect, and a number that nobody has is a movement that is not ours, or one
that the journal believes not to have happened. Either opens a case, whatever became of the
instruction.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from recon.instructions.instruction import Instruction
from recon.instructions.resolution import ANSWERS_APART_MIN, Seen, by_any_clock
from recon.model.uptime import Uptime, between
from recon.model.words import CONFIRMED_STATES, GatewayState, InstructionKind, InstructionState

_S = GatewayState
_K = InstructionKind
NOT_DONE_STATES = (InstructionState.REJECTED, InstructionState.RESOLVED_NOT_APPLIED)
"""The journal believes that nothing moved."""
_MONEY_CAME = frozenset({_S.PAID, _S.PARTIALLY_REFUNDED, _S.REFUNDED, _S.CHARGEBACK})
_AGAINST_DONE: Mapping[InstructionKind, frozenset[GatewayState]] = {
    _K.CAPTURE: frozenset({_S.AUTHORISED, _S.EXPIRED, _S.CANCELLED, _S.FAILED}),
    _K.CANCEL: frozenset({_S.AUTHORISED, *_MONEY_CAME}),
}
_AGAINST_NOT_DONE: Mapping[InstructionKind, frozenset[GatewayState]] = {
    _K.CAPTURE: _MONEY_CAME,
    _K.CANCEL: frozenset({_S.CANCELLED}),
    _K.REFUND: frozenset({_S.PARTIALLY_REFUNDED, _S.REFUNDED}),
}


@dataclass(frozen=True, slots=True)
class Ended:
    """An instruction in a final state, with what its row knows beside."""

    instruction: Instruction
    sent_at: datetime | None
    ended_at: datetime

    @property
    def is_done(self) -> bool:
        """The journal believes that the money moved."""
        return self.instruction.state in CONFIRMED_STATES


def against(ended: Ended, *, others: Sequence[Instruction]) -> frozenset[GatewayState]:
    """States of the payment that say the opposite of what the journal believes.

    Args:
        ended: A capture, cancel or refund that was confirmed, or whose doubt was ended.
        others: The other instructions of its payment; one that moved explains what is shown.
    """
    kind = ended.instruction.kind
    if ended.is_done:
        return _AGAINST_DONE.get(kind, frozenset())
    if ended.instruction.state not in NOT_DONE_STATES:
        return frozenset()
    if any(other.kind is kind and other.may_have_moved for other in others):
        return frozenset()
    return _AGAINST_NOT_DONE.get(kind, frozenset())


@dataclass(frozen=True, slots=True)
class Opposite:
    """What the newest answers say against the end of an instruction; falsy where they do not."""

    words: str = ""
    is_steady: bool = False
    """Two answers, far enough apart, say so: it is a case; one alone may still be taken back."""

    def __bool__(self) -> bool:
        """Whether anything speaks against it."""
        return bool(self.words)


def shown_against(
    ended: Ended,
    *,
    seen: Sequence[Seen],
    readings: Sequence[Uptime],
    others: Sequence[Instruction],
    quarantined_for: timedelta,
) -> Opposite:
    """What contradicts the end of an instruction, in words.

    Args:
        ended: As above.
        seen: Answers about its payment that were asked after its end, in the order of coming.
        readings: Clocks as they were read since its end, the first of all first.
        others: As above.
        quarantined_for: After the end; younger answers may lag behind.
    """
    opposite = against(ended, others=others)
    steady: list[Seen] = []
    for answer in reversed(seen):
        since = between(readings[0], answer.uptime)
        passed = by_any_clock(since, last=ended.ended_at, now=answer.queried_at)
        if answer.state not in opposite or passed < quarantined_for:
            break
        steady.append(answer)
    if not steady:
        return Opposite()
    words = (
        f"the journal has it as {ended.instruction.state}, but since "
        f"{steady[-1].queried_at:%Y-%m-%d %H:%M} UTC the gateway shows {steady[0].state}"
    )
    apart = between(steady[-1].uptime, steady[0].uptime)
    last, now = steady[-1].queried_at, steady[0].queried_at
    is_steady = by_any_clock(apart, last=last, now=now) >= ANSWERS_APART_MIN
    return Opposite(words, is_steady=is_steady)


def number_unexplained(*, known: Iterable[str], refund_ids: Iterable[str]) -> str:
    """That the gateway counted a refund which nobody has named, in words; "" when it did not.

    Args:
        known: The gateway's ids of our own refunds of a payment.
        refund_ids: Its ids of refunds of that payment which its messages name.
    """
    ours = {number_of(refund_id) for refund_id in known}
    named = {number_of(refund_id) for refund_id in refund_ids}
    first, last = max(ours, default=0) + 1, max(named, default=0)
    missing = sorted(set(range(first, last)) - named)
    if not missing:
        return ""
    return f"the gateway told of refund -{last:02} of this payment, and nobody of -{missing[0]:02}"


def number_of(refund_reference_id: str) -> int:
    """The number in the gateway's id of a refund; 0 when it has none."""
    _, dash, digits = refund_reference_id.rpartition("-")
    return int(digits) if dash and digits.isascii() and digits.isdigit() else 0


_NUMBER = re.compile(r"-(\d{2})")


@dataclass(frozen=True, slots=True)
class Numbered:
    """A refund that was sent, with the id that the gateway gave it; "" when it gave none."""

    instruction: Instruction
    refund_reference_id: str

    @property
    def number(self) -> int:
        """Behind the transaction in the gateway's id; 0 when there is none."""
        behind = self.refund_reference_id.removeprefix(self.instruction.transaction_id)
        match = _NUMBER.fullmatch(behind)
        return int(match[1]) if match and behind != self.refund_reference_id else 0


def contradicted(refunds: Sequence[Numbered]) -> Iterator[tuple[Instruction, str]]:
    """Refunds that the numbers speak against, each with why in words.

    Args:
        refunds: All refunds of one payment that were sent, in that order, whatever became of them.
    """
    first: dict[str, Instruction] = {}
    between: list[Instruction] = []
    last = 0
    for refund in refunds:
        item, number = refund.instruction, refund.number
        if known := first.get(refund.refund_reference_id):
            yield item, _repeated(refund, known)
            # Whoever closes that case as applied says that it has a number of its own.
            between.append(item)
            continue
        if refund.refund_reference_id:
            first[refund.refund_reference_id] = item
        if not number:
            between.append(item)
            continue
        if number < last:
            yield (
                item,
                _told(refund, f"numbered it -{number:02} after -{last:02}: not in their order"),
            )
        elif not _explained(number - last - 1, between):
            yield from _skipped(refund, last=last, between=between)
        last, between = max(last, number), []


def _explained(missing: int, between: Sequence[Instruction]) -> bool:
    """Whether refunds without a number took, or may still have taken, the numbers left out."""
    return missing <= sum(item.may_have_moved for item in between)


def _skipped(
    numbered: Numbered, *, last: int, between: Sequence[Instruction]
) -> Iterator[tuple[Instruction, str]]:
    """On what the journal calls not done, else on the refund whose number shows the other."""
    not_done = [item for item in between if not item.may_have_moved]
    before = f"after -{last:02}: one between them" if last else "as the first: one before it"
    words = f"-{numbered.number:02} {before} took effect"
    for item in not_done:
        sentence = f"the gateway numbered the next refund of this payment {words}"
        yield item, f"the journal has it as {item.state}, but {sentence}"
    if not not_done:
        yield numbered.instruction, _told(numbered, f"numbered it {words}, and it is not ours")


def _repeated(numbered: Numbered, known: Instruction) -> str:
    done = " and confirmed both" if _both_done(numbered.instruction, known) else ""
    return _told(
        numbered,
        f"gave it the id {numbered.refund_reference_id}, which instruction {known.instruction_id} "
        f"had before{done}: at most one of them took effect",
    )


def _both_done(instruction: Instruction, other: Instruction) -> bool:
    return instruction.state in CONFIRMED_STATES and other.state in CONFIRMED_STATES


def _told(numbered: Numbered, words: str) -> str:
    return f"the journal has it as {numbered.instruction.state}, but the gateway {words}"
