"""What the gateway's settlement file shows of an instruction whose end is not known.

A settled line proves that money moved; that there is none proves nothing, whatever file came. It
ends a doubt where it can be of this instruction only: it carries our own reference, or it is the
one capture, or the one refund, of the whole payment since the doubt began. Whoever did that,
nothing is left to be captured or refunded, so nothing can move twice. Parts without our reference
are for people: the gateway's own pages can move the same.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from recon.model.words import EntryType, InstructionKind, InstructionState
from recon.settlement.instruction import Instruction
from recon.settlement.resolution import Resolution

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
    if ours:
        return _named(instruction, lines=ours)
    whole = [line for line in moved if not line.own_reference and line.reference_no not in known]
    if len(whole) != 1 or not _is_the_whole(instruction, line=whole[0]):
        return None
    sentence = f"{_words(whole[0])} shows this payment's whole amount"
    return Resolution(InstructionState.RESOLVED_APPLIED, sentence)


def _named(instruction: Instruction, *, lines: Sequence[SettledLine]) -> Resolution:
    """Lines under our own reference: one of exactly our amount is ours."""
    if len(lines) == 1 and _same(instruction, line=lines[0]):
        sentence = f"{_words(lines[0])} has our reference and amount"
        return Resolution(InstructionState.RESOLVED_APPLIED, sentence)
    sentence = f"{_words(lines[0])} has our reference, but not this amount and payment, once"
    return Resolution(InstructionState.NEEDS_HUMAN, sentence)


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


def _words(line: SettledLine) -> str:
    reference = f" {line.reference_no}" if line.reference_no else ""
    return f"{line.source}: the {line.entry_type}{reference} settled on {line.settled_on}"
