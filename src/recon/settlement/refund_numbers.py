"""What the gateway's own numbers say of the refunds of a payment.

It numbers them -01, -02, … (docs/GATEWAY.md): a number that comes twice belongs to one effect, and
a number that nobody has is a movement that is not ours, or one that the journal believes not to
have happened. Either opens a case, whatever the instruction came to.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from recon.model.words import CONFIRMED_STATES
from recon.settlement.instruction import Instruction

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
