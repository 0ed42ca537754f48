"""In which order cleared instructions leave, and in which batches.

Captures first, since authorisations lapse, the oldest payment first among them. One payment is
touched once in a pass; what comes second waits for a later night and says for which.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from recon.instructions.eligibility import Cleared, Refused
from recon.instructions.instruction import ROWS_PER_BATCH_MAX, Instruction
from recon.model.money import format_minor_units
from recon.model.words import InstructionKind

ORDER_OF_KINDS = (
    InstructionKind.CAPTURE,  # authorisations lapse
    InstructionKind.CANCEL,
    InstructionKind.REVIEW,
    InstructionKind.REFUND,
    InstructionKind.CANCEL_SUBSCRIPTION,
    InstructionKind.PAYOUT,
)

ALONE = frozenset({InstructionKind.CANCEL_SUBSCRIPTION, InstructionKind.PAYOUT})
"""Kinds whose request carries one row."""


@dataclass(frozen=True, slots=True)
class Queue:
    """What leaves, in order, and what waits after all."""

    cleared: tuple[Cleared, ...]
    refused: tuple[Refused, ...]


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """One batch before it leaves, in figures."""

    position: int
    """1 for the first that leaves."""
    kind: InstructionKind
    sums: Mapping[str, tuple[int, int]]
    """Currency -> rows and minor units; a kind that moves none has the currency ""."""

    def __str__(self) -> str:
        listing = " and ".join(
            f"{rows} of {format_minor_units(amount, currency=currency)} {currency}"
            if currency
            else str(rows)
            for currency, (rows, amount) in self.sums.items()
        )
        return f"{self.kind} {listing}"


def queue(cleared: Iterable[Cleared], *, refusal: Callable[[Instruction], str]) -> Queue:
    """The order of sending; `refusal` is asked in that order and counts what it lets pass."""
    passed: list[Cleared] = []
    refused: list[Refused] = []
    first: dict[str, str] = {}
    for item in sorted(cleared, key=_rank):
        instruction = item.instruction
        ahead = first.get(touched(item), "")
        reason = (
            f"instruction {ahead} of the same payment goes first" if ahead else refusal(instruction)
        )
        if reason:
            refused.append(Refused(instruction, reason))
            continue
        first[touched(item)] = instruction.instruction_id
        passed.append(item)
    return Queue(tuple(passed), tuple(refused))


def touched(item: Cleared) -> str:
    """What an instruction changes: its payment or subscription, else nothing but itself."""
    instruction = item.instruction
    return item.payment.transaction_id or instruction.recurring_id or instruction.instruction_id


def batches(cleared: Sequence[Cleared]) -> Iterator[tuple[InstructionKind, tuple[Cleared, ...]]]:
    """Groups of one kind in the order given, each payment once over all of them."""
    taken: set[str] = set()
    for kind in ORDER_OF_KINDS:
        group: list[Cleared] = []
        for item in cleared:
            if item.instruction.kind is not kind or touched(item) in taken:
                continue
            taken.add(touched(item))
            group.append(item)
        size = 1 if kind in ALONE else ROWS_PER_BATCH_MAX
        for start in range(0, len(group), size):
            yield kind, tuple(group[start : start + size])


def planned_batches(cleared: Sequence[Cleared]) -> tuple[BatchPlan, ...]:
    """What would leave, batch by batch."""
    return tuple(
        BatchPlan(position, kind, _sums(rows))
        for position, (kind, rows) in enumerate(batches(cleared), start=1)
    )


def _sums(rows: Sequence[Cleared]) -> dict[str, tuple[int, int]]:
    sums: dict[str, tuple[int, int]] = {}
    for row in rows:
        instruction = row.instruction
        count, amount = sums.get(instruction.currency, (0, 0))
        sums[instruction.currency] = (count + 1, amount + instruction.amount)
    return dict(sorted(sums.items()))


def _rank(item: Cleared) -> tuple[int, str]:
    """Kind, then the age of the payment; without a known age as the journal has them."""
    dated = item.payment.dated
    kind = ORDER_OF_KINDS.index(item.instruction.kind)
    return kind, dated.isoformat() if dated else "9999"
