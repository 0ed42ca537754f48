"""Planning: turns actions in files into instructions, and detects repeats.

An action is the same as an instruction if it has the same intention and the same request id or,
without ids, comes in a newer version of its file. Any other action with the same intention is a
possible repeat, and a changed row in a newer version of a file is a possible correction: both wait
for a person who is shown the first one. The business date plays no part, so running an earlier
night again cannot double anything.

`Known` holds the journal's existing instructions, indexed by what each is about.

A capture that certainly did not happen may be planned once more if the operator allows that: as a
new instruction linked to the first, since nothing is ever sent again. This happens in a later run
than the one that ended the doubt, once, for whole captures only, and while the order file still
requests it. Refunds and payouts are never planned again in this way.
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
    IF_MEANT_TWICE,
    MOVES_MONEY,
    REPEAT,
    Instruction,
    Intention,
    RequestFields,
    ids_differ,
    named,
    plain_id,
)
from recon.model.money import Money
from recon.model.terms import REJECTED_STATES, InstructionKind, InstructionState, OrderStatus

CONTRADICTS = "contradicts its own row"
"""Start of the message on an action that its own row contradicts."""

_S = OrderStatus
_FITTING: Mapping[InstructionKind, AbstractSet[OrderStatus]] = {
    InstructionKind.CAPTURE: {_S.AUTHORISED, _S.PENDING, _S.PAID},
    InstructionKind.REFUND: {_S.PAID, _S.PARTIALLY_REFUNDED, _S.REFUNDED},
    # A cancel gives up money that such an order counts on.
    InstructionKind.CANCEL: frozenset(_S) - {_S.PAID, _S.PARTIALLY_REFUNDED},
    # An order file can only accept a payment in review; a money movement follows.
    InstructionKind.REVIEW: {_S.AUTHORISED, _S.PENDING, _S.PAID},
}
"""Kind -> order statuses with which a row may request it."""
_IN_PARTS = frozenset({InstructionKind.CAPTURE, InstructionKind.REFUND})
"""Kinds that may move a part of the order's amount."""


@dataclass(frozen=True, slots=True)
class OrderRow:
    """The order row that an action belongs to; amounts are minor units."""

    status: OrderStatus
    currency: str
    amount: int
    expected_captured_amount: int | None = None
    refund_amount: int | None = None

    def requested(self, kind: InstructionKind, *, before: int = 0) -> int:
        """Return the amount that a blank action_amount requests.

        For refunds it is what remains after `before`, the sum of those instructed earlier, or the
        whole figure again if nothing remains.
        """
        figure, _ = self._figure(kind)
        is_remainder = kind is InstructionKind.REFUND and self._is_total(kind) and before < figure
        return figure - before if is_remainder else figure

    def against(self, kind: InstructionKind, *, amount: int, before: int = 0) -> str:
        """Return action and row as text if the row contradicts the action; "" if it does not.

        Args:
            kind: Of the action.
            amount: What it would move.
            before: Sum of the same kind that was instructed earlier for the payment.
        """
        requested = f"{CONTRADICTS}: {kind} of {self._money(amount)}, but the row's"
        if self.status not in _FITTING[kind]:
            return f"{requested} status is {self.status}"
        bounds = [self._figure(kind)]
        if kind in _IN_PARTS:
            bounds += [self._captured, (self.amount, "amount")]
        before = before if self._is_total(kind) else 0
        for limit, column in bounds:
            if amount > limit - before or (not amount and kind in _IN_PARTS):
                part = f", of which {self._money(before)} is instructed already" if before else ""
                return f"{requested} {column} is {self._money(limit)}{part}"
        return ""

    @property
    def _captured(self) -> tuple[int, str]:
        if self.expected_captured_amount is None:
            return self.amount, "amount"
        return self.expected_captured_amount, "expected_captured_amount"

    def _figure(self, kind: InstructionKind) -> tuple[int, str]:
        # Many systems write 0 into every paid order, which does not mean a refund.
        states_refund = self.refund_amount or self.status is not OrderStatus.PAID
        if kind is InstructionKind.REFUND and self.refund_amount is not None and states_refund:
            return self.refund_amount, "refund_amount"
        return self._captured if kind in _IN_PARTS else (self.amount, "amount")

    def _is_total(self, kind: InstructionKind) -> bool:
        """Return whether the figure is the sum of all actions of the kind, not of this one."""
        if kind is InstructionKind.REFUND and self.status is OrderStatus.REFUNDED:
            return True
        own = {"refund_amount", "expected_captured_amount"}
        column = self._figure(kind)[1]
        return column in own and (kind is InstructionKind.CAPTURE or column == "refund_amount")

    def _money(self, minor_units: int) -> Money:
        return Money.of_minor_units(minor_units, currency=self.currency)


TWO_PEOPLE = "needs approval by two people"
"""Start of the hold of every instruction that a rule may not approve."""

Bounds = Callable[[str], CurrencyLimits]
"""Returns the limits configured for a currency."""

FIRST_PAYEE = "this is the first to"
"""Part of a hold: no payout to this payee took effect before."""


class RuleAllowance:
    """What the order-file rule may still approve in one night."""

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
        """Whether people must approve currencies without a limit, as with real money."""
        self._approved = dict(approved)
        """Currency -> minor units already approved by the rule this night."""
        self._paid_before = paid_before
        """Digests of payees with a payout that took effect."""

    def hold_on_payout(self, *, payee: str, payee_digest: str) -> str:
        """Return why people must approve a payout (always), with whether the payee is new."""
        if payee_digest in self._paid_before:
            known, *from_another = payee.split(", ")
            what = ", ".join(["every payout does", *from_another])
            return f"{TWO_PEOPLE}: {what} ({known} was paid before)"
        return f"{TWO_PEOPLE}: every payout does, and {FIRST_PAYEE} {payee or 'this payee'}"

    def hold_on(self, kind: InstructionKind, *, currency: str, amount: int) -> str:
        """Return why people must approve it; "" if the rule may, which then counts the amount."""
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
    """What may still be sent in one night and on one calendar day of an account."""

    def __init__(self, bounds: Bounds, *, night: Mapping[str, int], day: Mapping[str, int]) -> None:
        self._bounds = bounds
        self._sent = {"night": Counter(night), "day": Counter(day)}

    def refusal(self, instruction: Instruction) -> str:
        """Return why it is not sent; "" if it may be, which then counts the amount."""
        if instruction.kind not in MOVES_MONEY:
            return ""
        currency, amount = instruction.currency, instruction.amount
        bounds, money = self._bounds(currency), partial(Money.of_minor_units, currency=currency)
        if bounds.item is not None and money(amount).amount > bounds.item:
            return (
                f"it is above the limit of {bounds.item} {currency} for one instruction and is "
                "never sent; withdraw it, or raise `item` in limits.toml"
            )
        for (name, sent), limit in zip(self._sent.items(), (bounds.night, bounds.day), strict=True):
            after = money(sent[currency] + amount)
            if limit is not None and after.amount > limit:
                return (
                    f"with it this {name} would have sent {after}, more than its "
                    f"limit of {limit} {currency}; it waits for the next, or raise `{name}` in "
                    "limits.toml"
                )
        for sent in self._sent.values():
            sent[currency] += amount
        return ""


@dataclass(frozen=True, slots=True)
class Earlier:
    """An instruction of the journal, reduced to what planning needs."""

    intention: Intention
    instruction_id: str
    natural_key: str
    file_name: str
    """"" if it came without a file."""
    state: InstructionState
    is_again: bool
    """Whether it is a second capture, which no row of a file stands for."""


class Known:
    """The journal's existing instructions, oldest first, indexed by what they are about."""

    def __init__(
        self,
        journal: Iterable[tuple[Instruction, str]] = (),
        *,
        only_payments: Mapping[str, str] | None = None,
    ) -> None:
        """Index the journal.

        Args:
            journal: Instructions, each with the name of its file ("" without one).
            only_payments: Order -> the one transaction that the gateway shows for it.
        """
        self.only_payments = only_payments or {}
        self._by_key: dict[str, Earlier] = {}
        self._by_request: dict[str, Earlier] = {}
        self._about: dict[tuple[str, ...], list[Earlier]] = defaultdict(list)
        """Kind with subject, order or payment -> earlier instructions."""
        for instruction, file_name in journal:
            self.note(instruction, file_name=file_name)

    def note(self, item: Instruction, *, file_name: str) -> None:
        """Add one instruction."""
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
        for key in _keys(earlier.intention):
            self._about[key].append(earlier)

    def meant(self, item: "Instruction | Action") -> Intention:
        """Return the intention, with the payment that the gateway shows for the order."""
        return Intention.of(item, queried_id=self.only_payments.get(item.order_no, ""))

    def of_key(self, natural_key: str) -> Earlier | None:
        """Return the instruction with a natural key; None if there is none."""
        return self._by_key.get(natural_key)

    def of_request(self, request_id: str) -> Earlier | None:
        """Return the first instruction with this request id, whatever its intention, or None."""
        return self._by_request.get(plain_id(request_id))

    def near(self, intention: Intention) -> list[Earlier]:
        """Return those of the same kind and the same order, payee, subscription or payment."""
        nearby = {
            instruction.instruction_id: instruction
            for key in _keys(intention)
            for instruction in self._about.get(key, ())
        }
        return list(nearby.values())

    def related(self, intention: Intention) -> list[Earlier]:
        """Return those of the same kind that may concern the same payment, with any amount."""
        return [
            instruction
            for instruction in self.near(intention)
            if instruction.intention.is_of_payment(intention)
        ]

    def alike(self, intention: Intention) -> list[Earlier]:
        """Return those that may have the same intention, with any request ids."""
        return [
            instruction
            for instruction in self.related(intention)
            if instruction.intention.what == intention.what
        ]


def _keys(intention: Intention) -> Iterator[tuple[str, ...]]:
    if intention.subject:
        yield intention.kind.value, intention.subject
        return
    yield intention.kind.value, "order", intention.order_no
    if intention.payment:
        yield intention.kind.value, "payment", intention.payment


RULE_APPROVER = "rule: order file"
BY_HAND = "by hand"
"""Shown in a hold in place of the file if the first one came without one."""
CONTENT_CHARACTERS = 32
"""Length of the content digest in a natural key; enough that no two payouts share it."""
HOLD_CHARACTERS = 400
"""Maximum length of a hold."""
IF_MEANT = "two people approve it if it is meant so, else withdraw it"
REPEATS_NAMED_MAX = 99
"""Maximum number of earlier ones stored, oldest first; a payment has no more refunds."""
_ENDED = REJECTED_STATES | {InstructionState.WITHDRAWN}
"""States in which an instruction moved nothing, and never will."""
REQUEST_IDS = uuid.UUID("5f0c6c1e-2f0b-5d0e-9c3a-7a4b1d6e8f20")
"""Namespace of the gateway's request ids of our payouts, which are derived once and stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action(RequestFields):
    """One row of a file that requests a movement."""

    action_id: int
    file_name: str
    order_amount: int
    action_amount: int | None
    strict: bool = False
    """From an instruction file: its request id stands for one instruction, whatever its terms."""
    content_digest: str = ""
    """Keyed digest of a payout's details other than its amount."""
    row: OrderRow | None = None
    """The order row it belongs to; None if it comes from an instruction file."""

    @property
    def amount(self) -> int:
        """Amount to move; if blank, the order row's own figure, else the whole order."""
        if self.action_amount is not None:
            return self.action_amount
        return self.order_amount if self.row is None else self.row.requested(self.kind)

    @property
    def base_key(self) -> str:
        """The natural key without the requester: kind, account, subject, amount and currency."""
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
    """The result of planning a set of actions."""

    new: tuple[Instruction, ...]
    links: tuple[tuple[int, str], ...]
    """(action id, instruction id) of every action, whether new or known."""


def plan(
    actions: Iterable[Action],
    *,
    known: Known,
    new_id: Callable[[], str],
    auto_approve: bool,
    allowance: RuleAllowance | None = None,
    ids_unique: bool = False,
) -> Plan:
    """Plan instructions for the actions that have none in the journal yet.

    Args:
        actions: Rows without an instruction; either all rows of a file or none.
        known: The journal's instructions; new ones are added to it.
        new_id: Creates instruction ids.
        auto_approve: Whether a rule may approve.
        allowance: What the rule may approve; None means without limits.
        ids_unique: Whether the merchant declares request ids as unique to a movement.
    """
    planning = _Planning(list(actions), known=known, ids_unique=ids_unique)
    new: list[Instruction] = []
    links: list[tuple[int, str]] = []
    for action in planning.actions:
        resolved_action, planned_id = planning.resolved(action)
        if not planned_id:
            meant = known.meant(resolved_action)
            because, repeats = planning.hold(resolved_action, meant)
            limit = ""
            if allowance and resolved_action.kind is InstructionKind.PAYOUT:
                limit = allowance.hold_on_payout(
                    payee=resolved_action.payee, payee_digest=resolved_action.payee_digest
                )
            elif allowance and auto_approve and not because:
                limit = allowance.hold_on(
                    resolved_action.kind,
                    currency=resolved_action.currency,
                    amount=resolved_action.amount,
                )
            because = "; ".join(filter(None, (because, limit)))[:HOLD_CHARACTERS]
            approved = auto_approve and not because
            instruction_id, natural_key = new_id(), planning.free_key(resolved_action)
            instruction = Instruction(
                **{
                    name.name: getattr(resolved_action, name.name) for name in fields(RequestFields)
                },
                instruction_id=instruction_id,
                natural_key=natural_key,
                amount=resolved_action.amount,
                payment_amount=resolved_action.order_amount,
                state=InstructionState.APPROVED if approved else InstructionState.PLANNED,
                hold=because,
                approved_by=RULE_APPROVER if approved else "",
                gateway_request_id=str(uuid.uuid5(REQUEST_IDS, instruction_id)),
                repeats=named(repeat.instruction_id for repeat in repeats[:REPEATS_NAMED_MAX]),
            )
            planning.note(resolved_action, instruction=instruction)
            new.append(instruction)
            planned_id = instruction.instruction_id
        links.append((action.action_id, planned_id))
    return Plan(tuple(new), tuple(links))


class _Planning:
    """One pass over some actions; tracks which file rows stand for which instructions."""

    def __init__(self, actions: Sequence[Action], *, known: Known, ids_unique: bool) -> None:
        self.actions = actions
        self._known = known
        self._ids_unique = ids_unique
        self._matched: set[tuple[int | None, str]] = set()
        """(file, instruction) pairs in use: a second equal row of a file is not the first again."""
        self._requested = defaultdict[tuple[int | None, str, str], list[Intention]](list)
        """File, kind and order -> intentions of the file's rows."""
        for action in actions:
            key = (action.file_id, action.kind, action.order_no)
            self._requested[key].append(known.meant(action))

    def resolved(self, action: Action) -> tuple[Action, str]:
        """Return the action with its effective amount, and the id of the instruction it stands for.

        The id is "" for a new one. A blank refund requests what remains of its row's figure.
        """
        meant = self._known.meant(action)
        if planned_id := self._repeated(action, meant):
            return action, planned_id
        before = self._before(action, meant)
        if action.row is None or action.action_amount is not None or not before:
            return action, ""
        remainder = replace(action, action_amount=action.row.requested(action.kind, before=before))
        if remainder.amount != action.amount:
            # Those that may still move are in `before`: only an ended one can be this remainder.
            alike = self._known.alike(self._known.meant(remainder))
            return remainder, self._first_repeated(
                remainder, [one for one in alike if one.state in _ENDED]
            )
        if action.kind is not InstructionKind.REFUND or before != action.amount:
            return action, ""
        live = [one for one in self._known.related(meant) if one.state not in _ENDED]
        return action, self._first_repeated(action, live[::-1])

    def _repeated(self, action: Action, meant: Intention) -> str:
        """Return the instruction with the row's intention that the row stands for, else ""."""
        alike = self._known.alike(meant)
        if action.request_id:
            exact = self._known.of_key(_natural_key(action))
            alike = ([exact] if exact else []) + ([] if meant.subject else alike)
        return self._first_repeated(action, alike)

    def _first_repeated(self, action: Action, earlier: Iterable[Earlier]) -> str:
        """Return the first of `earlier` that the row repeats, by request id or newer file version.

        "" if it repeats none of them.
        """
        fitting = [
            one
            for one in earlier
            if one.intention.request_id == action.request_id
            and (
                action.request_id
                or (
                    one.file_name == action.file_name
                    and (action.file_id, one.instruction_id) not in self._matched
                )
            )
        ]
        # A row that newly names the payment may be meant to send what could not be sent before.
        current = [
            one
            for one in fitting
            if not one.is_again and action.transaction_id in {"", one.intention.transaction_id}
        ]
        # With two payments of one order, instructed alike, each row stands for the one it names.
        current.sort(key=lambda one: one.intention.transaction_id != action.transaction_id)
        for one in current[:1]:
            self._matched.add((action.file_id, one.instruction_id))
            return one.instruction_id
        return ""

    def _before(self, action: Action, meant: Intention) -> int:
        """Return minor units of the same kind that moved, or may still move, for the payment."""
        return sum(
            one.intention.amount
            for one in self._known.related(meant)
            if one.state not in _ENDED and one.intention.currency == action.currency
        )

    def hold(self, action: Action, meant: Intention) -> tuple[str, tuple[Earlier, ...]]:
        """Return why a new instruction waits for people, and which earlier ones they must see.

        The reason is "" if nothing is against it.
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
                f"{first.file_name or BY_HAND} ({first.state}){others}"
            )
        because = because or self._id_used(action, meant) or self._replaces(action, meant)
        before = 0 if repeats else self._before(action, meant)
        own = ""
        if action.row:
            own = action.row.against(action.kind, amount=action.amount, before=before)
        advice = IF_MEANT_TWICE if repeats else IF_MEANT if own else ""
        return "; ".join(filter(None, (because, own, advice))), repeats

    def free_key(self, action: Action) -> str:
        """Return a natural key that no instruction has."""
        key = _natural_key(action)
        if action.request_id and self._known.of_key(key) is None:
            return key
        numbered = (f"{key}{number}" for number in count(1))
        return next(earlier for earlier in numbered if self._known.of_key(earlier) is None)

    def note(self, action: Action, *, instruction: Instruction) -> None:
        """Add a new instruction, which later rows may repeat."""
        self._matched.add((action.file_id, instruction.instruction_id))
        self._known.note(instruction, file_name=action.file_name)

    def _id_used(self, action: Action, meant: Intention) -> str:
        """Return a message if its request id was used for something else, else ""."""
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
        """Return a message if it replaces what an earlier version of its file requested."""
        requested = self._requested[action.file_id, action.kind, action.order_no]
        for earlier in self._known.related(meant):
            if (
                earlier.file_name == action.file_name
                and not earlier.is_again
                and not ids_differ(earlier.intention.request_id, action.request_id)
                and not any(_still_asks(own, earlier.intention) for own in requested)
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
    """Return the complete key with a request id; without one a number must be appended."""
    last = f"r:{action.request_id}" if action.request_id else "n:"
    return f"{action.base_key}|{last}"


AGAIN = "+2"
"""Suffix of the natural key of a second instruction; it ensures that there is never a third."""
BY_PEOPLE = "people approved instruction {first}, which did not take effect; this one is new"


def plan_again(
    ended: Iterable[Instruction],
    *,
    have_second: Container[str],
    new_id: Callable[[], str],
    auto_approve: bool,
    allowance: RuleAllowance,
) -> tuple[Instruction, ...]:
    """Plan a second instruction for each capture that is allowed one.

    Args:
        ended: Instructions whose doubt an earlier run ended and that their file still requests.
        have_second: Ids of those that already have a second instruction.
        new_id: Creates instruction ids.
        auto_approve: Whether a rule may approve in this run.
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
