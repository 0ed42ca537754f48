"""From actions in files to instructions: what is the same again, and what is a second of its like.

An action is the same again when it means what an instruction means (`intention`) and bears its
request id, or, without ids, stands in a newer version of its file. Whatever else means the same is
a second one, and a changed row in a newer version of a file looks like a correction: both wait for
a person who sees the first one. The business date is never part of it: yesterday again cannot
double anything.

`Known` is what the journal already has, looked up by what each instruction is about.

A capture that surely did not happen may be planned once more, where the operator wants that: a new
instruction, linked to the first, since nothing is ever sent again. It is planned in a later run
than the one that ended the doubt, once, for whole captures only, and while the order file still
asks for it. Refunds and payouts never come back this way.
"""

import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import count

from recon.config.limits import CurrencyLimits
from recon.instructions.instruction import (
    MOVES_MONEY,
    REPEAT,
    Asked,
    Instruction,
    Intention,
    ids_differ,
    named,
    plain_id,
)
from recon.model.money import Money
from recon.model.terms import REJECTED_STATES, InstructionKind, InstructionState, OrderStatus

CONTRADICTS = "contradicts its own row"
"""Begins the sentence about an action that its row does not bear out."""

_S = OrderStatus
_FITTING: Mapping[InstructionKind, AbstractSet[OrderStatus]] = {
    InstructionKind.CAPTURE: {_S.AUTHORISED, _S.PENDING, _S.PAID},
    InstructionKind.REFUND: {_S.PAID, _S.PARTIALLY_REFUNDED, _S.REFUNDED},
    # It gives up money that such an order counts on.
    InstructionKind.CANCEL: frozenset(_S) - {_S.PAID, _S.PARTIALLY_REFUNDED},
    # An order file can only accept a payment in review; money follows it.
    InstructionKind.REVIEW: {_S.AUTHORISED, _S.PENDING, _S.PAID},
}
"""Kind -> statuses of a row that may ask for it."""
_IN_PARTS = frozenset({InstructionKind.CAPTURE, InstructionKind.REFUND})
"""Kinds that may move a part of the order."""


@dataclass(frozen=True, slots=True)
class OrderRow:
    """What an order row says beside its action; amounts are minor units."""

    status: OrderStatus
    currency: str
    amount: int
    expected_captured_amount: int | None = None
    refund_amount: int | None = None

    def asked(self, kind: InstructionKind, *, before: int = 0) -> int:
        """What a blank action_amount asks for.

        Of refunds it is what is left after `before`, the sum of those instructed earlier; all of
        them again where nothing is left.
        """
        figure, _ = self._figure(kind)
        is_rest = kind is InstructionKind.REFUND and self._is_total(kind) and before < figure
        return figure - before if is_rest else figure

    def against(self, kind: InstructionKind, *, amount: int, before: int = 0) -> str:
        """Both facts, where the row does not bear out what is asked; "" where it does.

        Args:
            kind: Of the action.
            amount: What it would move.
            before: Sum of the same kind that was instructed earlier for the payment.
        """
        asked = f"{CONTRADICTS}: {kind} of {self._money(amount)}, but the row's"
        if self.status not in _FITTING[kind]:
            return f"{asked} status is {self.status}"
        bounds = [self._figure(kind)]
        if kind in _IN_PARTS:
            bounds += [self._captured, (self.amount, "amount")]
        before = before if self._is_total(kind) else 0
        for bound, column in bounds:
            if amount > bound - before or (not amount and kind in _IN_PARTS):
                part = f", of which {self._money(before)} is instructed already" if before else ""
                return f"{asked} {column} is {self._money(bound)}{part}"
        return ""

    @property
    def _captured(self) -> tuple[int, str]:
        if self.expected_captured_amount is None:
            return self.amount, "amount"
        return self.expected_captured_amount, "expected_captured_amount"

    def _figure(self, kind: InstructionKind) -> tuple[int, str]:
        # Many programs write 0 into every paid order: it speaks of no refund.
        states_refund = self.refund_amount or self.status is not OrderStatus.PAID
        if kind is InstructionKind.REFUND and self.refund_amount is not None and states_refund:
            return self.refund_amount, "refund_amount"
        return self._captured if kind in _IN_PARTS else (self.amount, "amount")

    def _is_total(self, kind: InstructionKind) -> bool:
        """Whether the figure is the sum of all actions of the kind, not of this one alone."""
        if kind is InstructionKind.REFUND and self.status is OrderStatus.REFUNDED:
            return True
        own = {"refund_amount", "expected_captured_amount"}
        column = self._figure(kind)[1]
        return column in own and (kind is InstructionKind.CAPTURE or column == "refund_amount")

    def _money(self, minor_units: int) -> Money:
        return Money.of_minor_units(minor_units, currency=self.currency)


TWO_PEOPLE = "needs approval by two people"
"""How the hold of every instruction begins that a rule may not approve."""

Bounds = Callable[[str], CurrencyLimits]
"""Currency -> what is configured for it."""

FIRST_PAYEE = "this is the first to"
"""Says in a hold that no payout to this payee took effect before."""


class RuleAllowance:
    """What the rule of the order file may still approve in one night."""

    def __init__(
        self,
        bounds: Bounds,
        *,
        approved: Mapping[str, int],
        paid_before: AbstractSet[str] = frozenset(),
        needs_limit: bool = False,
    ) -> None:
        self._bounds = bounds
        self._needs_limit = needs_limit
        """Real money: where no limit is set for a currency, people decide."""
        self._approved = dict(approved)
        """Currency -> minor units that this night's rule approved already."""
        self._paid_before = paid_before
        """Digests of payees with a payout that took effect."""

    def hold_on_payout(self, *, payee: str, payee_digest: str) -> str:
        """Why people must approve it: always, and they see whether the payee is new."""
        if payee_digest in self._paid_before:
            known, *from_another = payee.split(", ")
            what = ", ".join(["every payout does", *from_another])
            return f"{TWO_PEOPLE}: {what} ({known} was paid before)"
        return f"{TWO_PEOPLE}: every payout does, and {FIRST_PAYEE} {payee or 'this payee'}"

    def hold_on(self, kind: InstructionKind, *, currency: str, amount: int) -> str:
        """Why people must approve it; "" when the rule may, which is then counted."""
        bounds = self._bounds(currency)
        if self._needs_limit and bounds == CurrencyLimits():
            return f"{TWO_PEOPLE}: limits.toml sets no limit for {currency}"
        if kind not in MOVES_MONEY:
            return ""
        item, money = bounds.approved_by_rule, partial(Money.of_minor_units, currency=currency)
        if item is not None and money(amount).amount > item:
            return f"{TWO_PEOPLE}: a rule approves at most {item} {currency} at once"
        after = self._approved.get(currency, 0) + amount
        night = bounds.approved_by_rule_night
        if night is not None and money(after).amount > night:
            return (
                f"{TWO_PEOPLE}: with it the rule would have approved {money(after)} "
                f"this night, more than the {night} {currency} it may"
            )
        self._approved[currency] = after
        return ""


class SendingAllowance:
    """What may still be sent on one night and one calendar day of an account."""

    def __init__(self, bounds: Bounds, *, night: Mapping[str, int], day: Mapping[str, int]) -> None:
        self._bounds = bounds
        self._sent = {"night": Counter(night), "day": Counter(day)}

    def refusal(self, instruction: Instruction) -> str:
        """Why it is not sent; "" when it may be, which is then counted."""
        if instruction.kind not in MOVES_MONEY:
            return ""
        currency, amount = instruction.currency, instruction.amount
        bounds, money = self._bounds(currency), partial(Money.of_minor_units, currency=currency)
        if bounds.item is not None and money(amount).amount > bounds.item:
            return (
                f"it is above the limit of {bounds.item} {currency} for one instruction and is "
                "never sent; withdraw it, or raise `item` in limits.toml"
            )
        for (name, sent), bound in zip(self._sent.items(), (bounds.night, bounds.day), strict=True):
            after = money(sent[currency] + amount)
            if bound is not None and after.amount > bound:
                return (
                    f"with it this {name} would have sent {after}, more than its "
                    f"limit of {bound} {currency}; it waits for the next, or raise `{name}` in "
                    "limits.toml"
                )
        for sent in self._sent.values():
            sent[currency] += amount
        return ""


@dataclass(frozen=True, slots=True)
class Earlier:
    """An instruction that the journal has, as planning needs it."""

    intention: Intention
    instruction_id: str
    natural_key: str
    file_name: str
    """"" when it came with no file."""
    state: InstructionState
    is_again: bool
    """A capture that was planned a second time: no row of a file means it."""


class Known:
    """Instructions that the journal already has, oldest first, by what they are about."""

    def __init__(
        self,
        journal: Iterable[tuple[Instruction, str]] = (),
        *,
        shown: Mapping[str, str] | None = None,
    ) -> None:
        """Take what there is.

        Args:
            journal: Instructions, each with the name of its file ("" without one).
            shown: Order -> the one transaction that the gateway shows for it.
        """
        self.shown = shown or {}
        self._by_key: dict[str, Earlier] = {}
        self._by_request: dict[str, Earlier] = {}
        self._about: dict[tuple[str, ...], list[Earlier]] = defaultdict(list)
        """kind and subject, order or payment -> earlier ones"""
        for instruction, file_name in journal:
            self.note(instruction, file_name=file_name)

    def note(self, item: Instruction, *, file_name: str) -> None:
        """Remember one instruction."""
        earlier = Earlier(
            self.meant(item),
            item.instruction_id,
            item.natural_key,
            file_name,
            item.state,
            is_again=bool(item.again_for),
        )
        self._by_key[earlier.natural_key] = earlier
        if item.request_id:
            self._by_request.setdefault(plain_id(item.request_id), earlier)
        for key in _places(earlier.intention):
            self._about[key].append(earlier)

    def meant(self, item: "Instruction | Action") -> Intention:
        """What is intended, with the payment that is shown for the order."""
        return Intention.of(item, shown=self.shown.get(item.order_no, ""))

    def of_key(self, natural_key: str) -> Earlier | None:
        """The instruction of a natural key."""
        return self._by_key.get(natural_key)

    def of_request(self, request_id: str) -> Earlier | None:
        """The first instruction with this request id, whatever it means."""
        return self._by_request.get(plain_id(request_id))

    def near(self, intention: Intention) -> list[Earlier]:
        """Those of the same kind for the same order, payee, subscription or payment."""
        nearby = {
            instruction.instruction_id: instruction
            for key in _places(intention)
            for instruction in self._about.get(key, ())
        }
        return list(nearby.values())

    def related(self, intention: Intention) -> list[Earlier]:
        """Those of the same kind that may be about the same payment, whatever their amount."""
        return [
            instruction
            for instruction in self.near(intention)
            if instruction.intention.is_of_payment(intention)
        ]

    def alike(self, intention: Intention) -> list[Earlier]:
        """Those that may mean the same, whatever their ids."""
        return [
            instruction
            for instruction in self.related(intention)
            if instruction.intention.what == intention.what
        ]


def _places(intention: Intention) -> Iterator[tuple[str, ...]]:
    if intention.subject:
        yield intention.kind.value, intention.subject
        return
    yield intention.kind.value, "order", intention.order_no
    if intention.payment:
        yield intention.kind.value, "payment", intention.payment


RULE_APPROVER = "rule: order file"
BY_HAND = "by hand"
"""Stands in a hold where the first one came with no file."""
CONTENT_CHARACTERS = 32
"""Of a content digest within a natural key; enough that no two payouts share it."""
HOLD_CHARACTERS = 400
"""Of the sentence why it waits."""
IF_MEANT = "two people approve it if it is meant so, else withdraw it"
REPEATS_NAMED_MAX = 99
"""Earlier ones that a hold names; a payment has no more refunds, and the oldest come first."""
_ENDED = REJECTED_STATES | {InstructionState.WITHDRAWN}
"""States in which an instruction moved nothing, and never will."""
REQUEST_IDS = uuid.UUID("5f0c6c1e-2f0b-5d0e-9c3a-7a4b1d6e8f20")
"""Name space of the ids under which the gateway knows our payouts; each is made once and kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action(Asked):
    """One row of an order file that asks for something."""

    action_id: int
    file_name: str
    order_amount: int
    action_amount: int | None
    strict: bool = False
    """From an instruction file: its request id stands for one instruction, whatever it says."""
    content_digest: str = ""
    """Of all that a payout says beside its amount; keyed."""
    row: OrderRow | None = None
    """What its row says beside it; None where it stands in no order row."""

    @property
    def amount(self) -> int:
        """What is to move; a blank amount takes the row's own figure, else the whole order."""
        if self.action_amount is not None:
            return self.action_amount
        return self.order_amount if self.row is None else self.row.asked(self.kind)

    @property
    def base_key(self) -> str:
        """All that the row says it does, without who asked."""
        subject = (self.merchant_id, self.account_id, self._subject)
        return "|".join((self.kind.value, *subject, str(self.amount), self.currency))

    @property
    def _subject(self) -> str:
        if self.kind is InstructionKind.PAYOUT:
            return f"payout:{self.content_digest[:CONTENT_CHARACTERS]}"
        if self.kind is InstructionKind.CANCEL_SUBSCRIPTION:
            return f"{self.recurring_id}/{self.contract_name}"
        return f"{self.order_no}@{self.transaction_id}"


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
    ids_unique: bool = False,
) -> Plan:
    """Instructions for the actions that the journal does not know yet.

    Args:
        actions: Rows that have no instruction; all of a file's rows or none of them.
        known: The journal's instructions; new ones are noted in it.
        new_id: Makes instruction ids.
        auto_approve: A rule may approve.
        allowance: What it lets pass is approved by rule; without one nothing bounds the rule.
        ids_unique: The merchant declares that each request id stands for a movement of its own.
    """
    planning = _Planning(list(actions), known=known, ids_unique=ids_unique)
    new: list[Instruction] = []
    links: list[tuple[int, str]] = []
    for action in planning.actions:
        wanted, planned_id = planning.resolved(action)
        if not planned_id:
            meant = known.meant(wanted)
            because, repeats = planning.hold(wanted, meant)
            limit = ""
            if allowance and wanted.kind is InstructionKind.PAYOUT:
                limit = allowance.hold_on_payout(
                    payee=wanted.payee, payee_digest=wanted.payee_digest
                )
            elif allowance and auto_approve and not because:
                limit = allowance.hold_on(
                    wanted.kind, currency=wanted.currency, amount=wanted.amount
                )
            because = "; ".join(filter(None, (because, limit)))[:HOLD_CHARACTERS]
            approved = auto_approve and not because
            instruction_id, natural_key = new_id(), planning.free_key(wanted)
            instruction = Instruction(
                **{name.name: getattr(wanted, name.name) for name in fields(Asked)},
                instruction_id=instruction_id,
                natural_key=natural_key,
                amount=wanted.amount,
                payment_amount=wanted.order_amount,
                state=InstructionState.APPROVED if approved else InstructionState.PLANNED,
                hold=because,
                approved_by=RULE_APPROVER if approved else "",
                gateway_request_id=str(uuid.uuid5(REQUEST_IDS, instruction_id)),
                repeats=named(repeat.instruction_id for repeat in repeats[:REPEATS_NAMED_MAX]),
            )
            planning.note(wanted, instruction=instruction)
            new.append(instruction)
            planned_id = instruction.instruction_id
        links.append((action.action_id, planned_id))
    return Plan(tuple(new), tuple(links))


class _Planning:
    """One pass over some actions; remembers which rows of a file stand for which instructions."""

    def __init__(self, actions: Sequence[Action], *, known: Known, ids_unique: bool) -> None:
        self.actions = actions
        self._known = known
        self._ids_unique = ids_unique
        self._taken: set[tuple[int | None, str]] = set()
        """File and instruction: a second equal row of a file is not the first one again."""
        self._asked = defaultdict[tuple[int | None, str, str], list[Intention]](list)
        """File, kind and order -> what the file's rows mean."""
        for action in actions:
            key = (action.file_id, action.kind, action.order_no)
            self._asked[key].append(known.meant(action))

    def resolved(self, action: Action) -> tuple[Action, str]:
        """The action with what it asks for beside earlier ones, and the instruction it stands for.

        The id is "" when it is a new one. A blank refund asks for what is left of its row's figure.
        """
        meant = self._known.meant(action)
        if planned_id := self._same_again(action, meant):
            return action, planned_id
        before = self._before(action, meant)
        if action.row is None or action.action_amount is not None or not before:
            return action, ""
        rest = replace(action, action_amount=action.row.asked(action.kind, before=before))
        if rest.amount != action.amount:
            # Those that may still move are counted before it: only an ended one can be this rest.
            alike = self._known.alike(self._known.meant(rest))
            return rest, self._reported_again(rest, [one for one in alike if one.state in _ENDED])
        if action.kind is not InstructionKind.REFUND or before != action.amount:
            return action, ""
        live = [one for one in self._known.related(meant) if one.state not in _ENDED]
        return action, self._reported_again(action, live[::-1])

    def _same_again(self, action: Action, meant: Intention) -> str:
        """The instruction that means what the row means and that the row stands for, else ""."""
        alike = self._known.alike(meant)
        if action.request_id:
            exact = self._known.of_key(_natural_key(action))
            alike = ([exact] if exact else []) + ([] if meant.subject else alike)
        return self._reported_again(action, alike)

    def _reported_again(self, action: Action, earlier: Iterable[Earlier]) -> str:
        """The first of some that the row tells again: by request id, or in its file's next version.

        "" when it tells none of them again.
        """
        fitting = [
            one
            for one in earlier
            if one.intention.request_id == action.request_id
            and (
                action.request_id
                or (
                    one.file_name == action.file_name
                    and (action.file_id, one.instruction_id) not in self._taken
                )
            )
        ]
        # A row that now names the payment may be meant to send what could not be sent before.
        current = [
            one
            for one in fitting
            if not one.is_again and action.transaction_id in {"", one.intention.transaction_id}
        ]
        # Two payments of one order, instructed alike: each row stands for the one it names.
        current.sort(key=lambda one: one.intention.transaction_id != action.transaction_id)
        for one in current[:1]:
            self._taken.add((action.file_id, one.instruction_id))
            return one.instruction_id
        return ""

    def _before(self, action: Action, meant: Intention) -> int:
        """Minor units of the same kind that may have moved, or still may, for the payment."""
        return sum(
            one.intention.amount
            for one in self._known.related(meant)
            if one.state not in _ENDED and one.intention.currency == action.currency
        )

    def hold(self, action: Action, meant: Intention) -> tuple[str, tuple[Earlier, ...]]:
        """Why a new instruction waits for a person, and which earlier ones that person must see.

        "" when nothing speaks against it.
        """
        repeats = tuple(
            earlier
            for earlier in self._known.alike(meant)
            if earlier.intention.may_be(meant, ids_unique=self._ids_unique)
        )
        because = ""
        if repeats:
            first, *more = repeats
            others = f" and {len(more)} more" if more else ""
            because = (
                f"{REPEAT} of instruction {first.instruction_id} from "
                f"{first.file_name or BY_HAND} ({first.state}){others}; two people approve it if "
                "it is meant twice, else withdraw it"
            )
        because = because or self._id_used(action, meant) or self._replaces(action, meant)
        before = 0 if repeats else self._before(action, meant)
        own = action.row and action.row.against(action.kind, amount=action.amount, before=before)
        against = f"{own}; {IF_MEANT}" if own else ""
        return "; ".join(filter(None, (because, against))), repeats

    def free_key(self, action: Action) -> str:
        """A natural key that no instruction has."""
        key = _natural_key(action)
        if action.request_id and self._known.of_key(key) is None:
            return key
        numbered = (f"{key}{number}" for number in count(1))
        return next(earlier for earlier in numbered if self._known.of_key(earlier) is None)

    def note(self, action: Action, *, instruction: Instruction) -> None:
        """A new instruction, which later rows may repeat."""
        self._taken.add((action.file_id, instruction.instruction_id))
        self._known.note(instruction, file_name=action.file_name)

    def _id_used(self, action: Action, meant: Intention) -> str:
        """That its request id was used for something else."""
        if not action.request_id:
            return ""
        if action.strict and (used := self._known.of_request(action.request_id)):
            return (
                f"request_id {action.request_id} was used by instruction {used.instruction_id} "
                "for something else; give each its own, or withdraw one of them"
            )
        for earlier in self._known.near(meant):
            given = earlier.intention.request_id
            if given and plain_id(given) == plain_id(action.request_id):
                return (
                    f"request_id {action.request_id} was used by instruction "
                    f"{earlier.instruction_id} "
                    "with another amount or payment; give each its own"
                )
        return ""

    def _replaces(self, action: Action, meant: Intention) -> str:
        """That it stands in place of what an earlier version of its file asked for."""
        asked = self._asked[action.file_id, action.kind, action.order_no]
        for earlier in self._known.related(meant):
            if (
                earlier.file_name == action.file_name
                and not earlier.is_again
                and not ids_differ(earlier.intention.request_id, action.request_id)
                and not any(_still_asks(own, earlier.intention) for own in asked)
            ):
                return (
                    f"a newer version of {action.file_name} has this in place of instruction "
                    f"{earlier.instruction_id}; withdraw one of them, or give it a "
                    "request_id of its own"
                )
        return ""


def _still_asks(own: Intention, earlier: Intention) -> bool:
    same_ids = own.request_id == earlier.request_id
    return same_ids and own.what == earlier.what and own.is_of_payment(earlier)


def _natural_key(action: Action) -> str:
    """Whole with a request id; without one a number is still to follow."""
    last = f"r:{action.request_id}" if action.request_id else "n:"
    return f"{action.base_key}|{last}"


AGAIN = "+2"
"""Ends the natural key of the second instruction, so that there is never a third."""
BY_PEOPLE = "people approved instruction {first}, which did not take effect; this one is new"


def plan_again(
    ended: Iterable[Instruction],
    *,
    have_second: Container[str],
    new_id: Callable[[], str],
    auto_approve: bool,
    allowance: RuleAllowance,
) -> tuple[Instruction, ...]:
    """A second instruction for each capture that may have one.

    Args:
        ended: Instructions whose doubt an earlier run ended and which their file still asks for.
        have_second: Ids of those for which there is a second instruction already.
        new_id: Makes instruction ids.
        auto_approve: A rule may approve in this run.
        allowance: What the rule may approve; the rest waits for people.
    """
    again = []
    for first in ended:
        may_come_again = (
            first.kind is InstructionKind.CAPTURE
            and first.state is InstructionState.RESOLVED_NOT_APPLIED
            and first.amount == first.payment_amount
            and not first.again_for
        )
        if not may_come_again or first.instruction_id in have_second:
            continue
        hold = BY_PEOPLE.format(first=first.instruction_id)
        if first.approved_by == RULE_APPROVER:
            hold = ""
            if auto_approve:
                hold = allowance.hold_on(first.kind, currency=first.currency, amount=first.amount)
        approved = auto_approve and not hold
        again.append(
            replace(
                first,
                instruction_id=new_id(),
                natural_key=f"{first.natural_key}{AGAIN}",
                again_for=first.instruction_id,
                state=InstructionState.APPROVED if approved else InstructionState.PLANNED,
                hold=hold,
                attempts=0,
                baseline_status="",
                approved_by=RULE_APPROVER if approved else "",
                in_doubt_since=None,
                gateway_request_id="",
                message="",
                refund_reference_id="",
                sent_at=None,
                outcome_at=None,
            )
        )
    return tuple(again)
