"""From actions in order files to instructions: the natural key decides what is the same again.

An instruction is known by what it does (kind, account, order, amount, currency) and the merchant's
request id. Without a request id an equal action of the same file name is the same instruction; an
equal action from elsewhere looks like a repeat, and a changed one in a newer version of the file
looks like a correction: both wait for a person who sees the first one. The business date is never
part of the key: yesterday again cannot double anything.
"""

import uuid
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from recon.model import InstructionKind, InstructionState
from recon.settlement.allowance import RuleAllowance
from recon.settlement.instruction import Instruction

RULE_APPROVER = "rule: order file"
CONTENT_CHARACTERS = 32
"""Of a content digest within a natural key; enough that no two payouts share it."""
REQUEST_IDS = uuid.UUID("5f0c6c1e-2f0b-5d0e-9c3a-7a4b1d6e8f20")
"""Name space of the ids under which the gateway knows our payouts; each is made once and kept."""


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
    strict: bool = False
    """From an instruction file: its request id stands for one instruction, whatever it says."""
    review_flag: str = ""
    recurring_id: str = ""
    contract_name: str = ""
    payee: str = ""
    """As people may see it, such as `DE…3000`."""
    payee_digest: str = ""
    content_digest: str = ""
    """Of all that a payout says beside its amount; keyed."""
    sealed: str = field(default="", repr=False)

    @property
    def amount(self) -> int:
        """What is to move; a blank amount means the whole order."""
        return self.order_amount if self.action_amount is None else self.action_amount

    @property
    def base_key(self) -> str:
        """What the action does, without who asked."""
        place = (self.merchant_id, self.account_id, self._subject)
        return "|".join((self.kind.value, *place, str(self.amount), self.currency))

    @property
    def _subject(self) -> str:
        """What it is done to."""
        if self.kind is InstructionKind.PAYOUT:
            return f"payout:{self.content_digest[:CONTENT_CHARACTERS]}"
        if self.kind is InstructionKind.CANCEL_SUBSCRIPTION:
            return f"{self.recurring_id}/{self.contract_name}"
        return f"{self.order_no}@{self.transaction_id}" if self.strict else self.order_no


@dataclass(slots=True)
class Known:
    """Instructions that the journal already has, by what they do."""

    by_key: dict[str, str] = field(default_factory=dict)
    """natural key -> instruction id"""
    without_request: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """base key -> (file name, instruction id) of those without a request id, oldest first"""
    by_request: dict[tuple[str, str], str] = field(default_factory=dict)
    """(kind and order, request id) -> instruction id"""
    requests: dict[str, tuple[str, str]] = field(default_factory=dict)
    """request id -> natural key and instruction id that had it first"""
    by_file: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    """(kind and order, file name) -> base key -> instruction id of those without a request id"""

    def note(self, key: "Key", *, file_name: str, instruction_id: str) -> None:
        """Remember one instruction."""
        self.by_key[key.natural] = instruction_id
        if key.request_id:
            self.by_request[key.move, key.request_id] = instruction_id
            self.requests.setdefault(key.request_id, (key.natural, instruction_id))
            return
        self.without_request.setdefault(key.base, []).append((file_name, instruction_id))
        self.by_file.setdefault((key.move, file_name), {})[key.base] = instruction_id


@dataclass(frozen=True, slots=True)
class Key:
    """A natural key, taken apart."""

    natural: str
    """`kind|merchant|account|order|amount|currency|` and `r:<request id>` or `n:<number>`"""

    @property
    def base(self) -> str:
        """What the instruction does, without who asked."""
        return self.natural.rsplit("|", 1)[0]

    @property
    def move(self) -> str:
        """Kind and order, whatever the amount."""
        return self.natural.rsplit("|", 3)[0]

    @property
    def request_id(self) -> str:
        """The merchant's own id, "" when there was none."""
        last = self.natural.rsplit("|", 1)[1]
        return last.removeprefix("r:") if last.startswith("r:") else ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a set of actions comes to."""

    new: tuple[Instruction, ...]
    links: tuple[tuple[int, str], ...]
    """(action id, instruction id) for every action, new or known."""


def plan(
    actions: Iterable[Action],
    *,
    known: Known,
    new_id: Callable[[], str],
    auto_approve: bool,
    allowance: RuleAllowance | None = None,
) -> Plan:
    """Instructions for the actions that the journal does not know yet.

    What `allowance` lets pass is approved by rule; without one nothing bounds the rule.
    """
    new: list[Instruction] = []
    links: list[tuple[int, str]] = []
    wanted = list(actions)
    present = {(action.file_id, action.base_key) for action in wanted}
    for action in wanted:
        found = _same_again(action, known=known)
        if not found:
            hold = _hold(action, known=known, present=present)
            if not hold and allowance:
                hold = _hold_of_limits(action, allowance=allowance, auto_approve=auto_approve)
            instruction = _instruction_of(
                action,
                natural_key=_natural_key(action, known=known),
                instruction_id=new_id(),
                hold=hold,
                approved=auto_approve and not hold,
            )
            known.note(
                Key(instruction.natural_key),
                file_name=action.file_name,
                instruction_id=instruction.instruction_id,
            )
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


def _natural_key(action: Action, *, known: Known) -> str:
    if action.request_id:
        return f"{action.base_key}|r:{action.request_id}"
    return f"{action.base_key}|n:{len(known.without_request.get(action.base_key, [])) + 1}"


def _hold(action: Action, *, known: Known, present: AbstractSet[tuple[int, str]]) -> str:
    """Why a new instruction waits for a person; "" when nothing speaks against it."""
    move = Key(f"{action.base_key}|").move
    if action.strict and action.request_id in known.requests:
        used = known.requests[action.request_id][1]
        return (
            f"request_id {action.request_id} was used by instruction {used} for something else; "
            "give each its own, or withdraw one of them"
        )
    if action.request_id:
        used = known.by_request.get((move, action.request_id), "")
        told = f"request_id {action.request_id} was used by instruction {used} with another amount"
        return f"{told}; give each its own" if used else ""
    earlier = known.without_request.get(action.base_key, [])
    if earlier:
        return _repeat_sentence(earlier)
    for base_key, instruction_id in known.by_file.get((move, action.file_name), {}).items():
        if (action.file_id, base_key) not in present:
            return (
                f"a newer version of {action.file_name} has this in place of instruction "
                f"{instruction_id}; withdraw one of them, or give it a request_id of its own"
            )
    return ""


def _hold_of_limits(action: Action, *, allowance: RuleAllowance, auto_approve: bool) -> str:
    if action.kind is InstructionKind.PAYOUT:
        return allowance.hold_on_payout(payee=action.payee, payee_digest=action.payee_digest)
    if not auto_approve:
        return ""
    return allowance.hold_on(action.kind, currency=action.currency, amount=action.amount)


def _instruction_of(
    action: Action, *, natural_key: str, instruction_id: str, hold: str, approved: bool
) -> Instruction:
    return Instruction(
        instruction_id=instruction_id,
        natural_key=natural_key,
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
        review_flag=action.review_flag,
        recurring_id=action.recurring_id,
        contract_name=action.contract_name,
        gateway_request_id=str(uuid.uuid5(REQUEST_IDS, instruction_id)),
        payee=action.payee,
        payee_digest=action.payee_digest,
        sealed=action.sealed,
    )


def _repeat_sentence(earlier: Sequence[tuple[str, str]]) -> str:
    file_name, instruction_id = earlier[0]
    return (
        f"looks like a repeat of instruction {instruction_id} from {file_name}; "
        "give it a request_id of its own, or withdraw it"
    )
