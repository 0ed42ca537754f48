"""From actions in order files to instructions: the natural key decides what is the same again.

An instruction is known by what it does (kind, account, order, amount, currency) and the merchant's
request id. Without a request id an equal action of the same file name is the same instruction; an
equal action from elsewhere looks like a repeat and waits for a person who sees the first one. The
business date is never part of the key: yesterday again cannot double anything.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from recon.model import InstructionKind, InstructionState
from recon.settlement.instruction import Instruction

RULE_APPROVER = "rule: order file"


@dataclass(frozen=True, slots=True)
class Action:
    """One row of an order file that asks for something."""

    action_id: int
    file_id: int
    file_name: str
    line: int
    merchant_id: str
    account_id: str
    order_no: str
    transaction_id: str
    kind: InstructionKind
    currency: str
    order_amount: int
    action_amount: int | None
    reason: str
    request_id: str
    occurrence: int
    """1 for the first of equal actions within one file, 2 for the second, …"""

    @property
    def amount(self) -> int:
        """What is to move; a blank amount means the whole order."""
        return self.order_amount if self.action_amount is None else self.action_amount

    @property
    def base_key(self) -> str:
        """What the action does, without who asked."""
        place = (self.merchant_id, self.account_id, self.order_no)
        return "|".join((self.kind.value, *place, str(self.amount), self.currency))


@dataclass(slots=True)
class Known:
    """Instructions that the journal already has, by what they do."""

    by_key: dict[str, str] = field(default_factory=dict)
    """natural key -> instruction id"""
    without_request: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """base key -> (file name, instruction id) of those without a request id, oldest first"""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a set of actions comes to."""

    new: tuple[Instruction, ...]
    links: tuple[tuple[int, str], ...]
    """(action id, instruction id) for every action, new or known."""


def plan(
    actions: Iterable[Action], *, known: Known, new_id: Callable[[], str], auto_approve: bool
) -> Plan:
    """Instructions for the actions that the journal does not know yet."""
    new: list[Instruction] = []
    links: list[tuple[int, str]] = []
    for action in actions:
        found = _same_again(action, known=known)
        if not found:
            instruction = _instruction_of(
                action, known=known, instruction_id=new_id(), auto_approve=auto_approve
            )
            _remember(action, known=known, instruction=instruction)
            new.append(instruction)
            found = instruction.instruction_id
        links.append((action.action_id, found))
    return Plan(tuple(new), tuple(links))


def _same_again(action: Action, *, known: Known) -> str:
    if action.request_id:
        return known.by_key.get(f"{action.base_key}|r:{action.request_id}", "")
    same_file = [
        instruction_id
        for file_name, instruction_id in known.without_request.get(action.base_key, [])
        if file_name == action.file_name
    ]
    return same_file[action.occurrence - 1] if action.occurrence <= len(same_file) else ""


def _instruction_of(
    action: Action, *, known: Known, instruction_id: str, auto_approve: bool
) -> Instruction:
    earlier = [] if action.request_id else known.without_request.get(action.base_key, [])
    suffix = f"r:{action.request_id}" if action.request_id else f"n:{len(earlier) + 1}"
    hold = _repeat_sentence(earlier)
    approved = auto_approve and not hold
    return Instruction(
        instruction_id=instruction_id,
        natural_key=f"{action.base_key}|{suffix}",
        merchant_id=action.merchant_id,
        account_id=action.account_id,
        kind=action.kind,
        order_no=action.order_no,
        transaction_id=action.transaction_id,
        currency=action.currency,
        amount=action.amount,
        payment_amount=action.order_amount,
        reason=action.reason,
        request_id=action.request_id,
        file_id=action.file_id,
        line=action.line,
        state=InstructionState.APPROVED if approved else InstructionState.PLANNED,
        hold=hold,
        attempts=0,
        baseline_status="",
        approved_by=RULE_APPROVER if approved else "",
        in_doubt_since=None,
    )


def _repeat_sentence(earlier: Sequence[tuple[str, str]]) -> str:
    if not earlier:
        return ""
    file_name, instruction_id = earlier[0]
    return (
        f"looks like a repeat of instruction {instruction_id} from {file_name}; "
        "give it a request_id of its own, or withdraw it"
    )


def _remember(action: Action, *, known: Known, instruction: Instruction) -> None:
    known.by_key[instruction.natural_key] = instruction.instruction_id
    if not action.request_id:
        known.without_request.setdefault(action.base_key, []).append(
            (action.file_name, instruction.instruction_id)
        )
