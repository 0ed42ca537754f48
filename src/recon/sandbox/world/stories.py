"""What order files and ledger say of one payment, and what a correct reconciliation finds in it.

Most stories are one row of a table: which payments fit, the finding, and what is changed in files
that agree with the gateway. Effects are worked out from what each side holds, not by the engine.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Any, Literal, NamedTuple

from recon.model.business_date import BusinessCalendar
from recon.model.words import (
    BreakCode,
    EntryType,
    Flag,
    GatewayState,
    InstructionKind,
    OrderStatus,
    UnverifiedReason,
)
from recon.sandbox.world.records import BOOKING_GRACE, LedgerLine, OrderLine, TruePayment

REFUND_REASONS = ("returned goods", "price correction", "late delivery", "damaged on arrival")
CHECKOUT_TIME = timedelta(seconds=40)
"""From placing an order to its authorisation."""
BOOKING_TIME = timedelta(minutes=25)
"""From a movement to its ledger entry."""
STEP_MIN, STEP_MAX = 100, 400
"""Minor units by which a planted amount differs; every seeded amount is larger."""
OTHER_CURRENCY = {"EUR": "USD", "USD": "GBP", "GBP": "EUR"}
"""Currencies with the same decimals, so that the same digits are an amount of both."""
ROUNDING_CURRENCY = "EUR"
"""The one currency for which the sample's rules have a tolerance."""

Record = TruePayment | OrderLine
Finding = BreakCode | Flag | UnverifiedReason | Literal["pending"]
"""A break, a match with a flag, a set that cannot be judged, or one still within its grace."""


@dataclass(frozen=True, slots=True)
class BreakEffect:
    """What a break means in money: on the leg "orders" gateway less order, on "ledger" likewise."""

    leg: str
    account_id: str
    currency: str
    amount: int


@dataclass(frozen=True, slots=True)
class Alone:
    """What a night of one account alone shows where it takes both accounts to see the truth."""

    account_id: str
    code: BreakCode
    effects: tuple[BreakEffect, ...]


@dataclass(frozen=True, slots=True)
class Expectation:
    """What must be found of one order."""

    merchant_id: str
    account_id: str
    order_no: str
    transaction_id: str
    why: str
    """What was done to the files, in words."""
    finding: Finding
    effects: tuple[BreakEffect, ...] = ()
    alone: tuple[Alone, ...] = ()


@dataclass(frozen=True, slots=True)
class Story:
    """Everything that the merchant's files say of one order, and the expectation."""

    orders: tuple[OrderLine, ...] = ()
    ledger: tuple[LedgerLine, ...] = ()
    expected: Expectation | None = None
    """None: it simply matches."""
    later: tuple[OrderLine, ...] = ()
    """Lines that another file brings: repeats, newer versions."""


def expecting(
    story: Story, finding: Finding, why: str, *, of: Record, payment: TruePayment | None = None
) -> Story:
    """The story with its expectation; `payment` is what the gateway has of it."""
    effects: tuple[BreakEffect, ...] = ()
    if isinstance(finding, BreakCode):
        effects = tuple(_effects(story, of=of, payment=payment))
    ids = (of.merchant_id, of.account_id, of.order_no, of.transaction_id)
    return replace(story, expected=Expectation(*ids, why, finding, effects))


def _effects(story: Story, *, of: Record, payment: TruePayment | None) -> Iterator[BreakEffect]:
    """By account and currency what each side holds of the order; those of 0 left out."""
    orders, payments = (*story.orders, *story.later), [payment] if payment else []
    for place in dict.fromkeys(map(_place, (of, *payments, *orders, *story.ledger))):
        gateway = sum(each.net for each in payments if _place(each) == place)
        held = {
            "orders": sum(order_net(line) for line in orders if _place(line) == place),
            "ledger": ledger_net([line for line in story.ledger if _place(line) == place]),
        }
        for leg, amount in held.items():
            if gateway != amount:
                yield BreakEffect(leg, *place, gateway - amount)


def _place(record: Record | LedgerLine) -> tuple[str, str]:
    return record.account_id, record.currency


def order_net(line: OrderLine) -> int:
    """What an order line claims of money."""
    if line.status == OrderStatus.PAID:
        return line.amount
    if line.status == OrderStatus.PARTIALLY_REFUNDED:
        return line.amount - (line.refund_amount or 0)
    return 0


def ledger_net(entries: Sequence[LedgerLine]) -> int:
    """What ledger entries come to: captures less refunds and chargebacks."""
    signs = {EntryType.CAPTURE: 1, EntryType.REFUND: -1, EntryType.CHARGEBACK: -1}
    return sum(signs.get(EntryType(entry.entry_type), 0) * entry.amount for entry in entries)


_STATUS_OF: Mapping[GatewayState, OrderStatus] = {
    GatewayState.AUTHORISED: OrderStatus.AUTHORISED,
    GatewayState.PAID: OrderStatus.PAID,
    GatewayState.PARTIALLY_REFUNDED: OrderStatus.PARTIALLY_REFUNDED,
    GatewayState.REFUNDED: OrderStatus.REFUNDED,
    GatewayState.CANCELLED: OrderStatus.CANCELLED,
    GatewayState.EXPIRED: OrderStatus.FAILED,
    GatewayState.CHARGEBACK: OrderStatus.PAID,
}
"""What the shop thinks of a payment in each state; it never hears of chargebacks."""
_PREFIX: Mapping[EntryType, str] = {
    EntryType.CAPTURE: "LC",
    EntryType.REFUND: "LR",
    EntryType.CHARGEBACK: "LB",
    EntryType.WRITE_OFF: "LW",
}


def order_of(payment: TruePayment) -> OrderLine:
    """The order line that agrees with the payment."""
    part = payment.state is GatewayState.PARTIALLY_REFUNDED
    return OrderLine(
        merchant_id=payment.merchant_id,
        account_id=payment.account_id,
        order_no=payment.order_no,
        currency=payment.currency,
        amount=payment.authorised,
        status=_STATUS_OF[payment.state],
        ordered_at=payment.authorised_at - CHECKOUT_TIME,
        transaction_id=payment.transaction_id,
        refund_amount=payment.refunded if part else None,
    )


def entry_of(
    payment: TruePayment, kind: EntryType, *, amount: int, at: datetime | None = None
) -> LedgerLine:
    """The ledger entry of one movement of the payment, the newest one's where no time is given."""
    return LedgerLine(
        entry_id=f"{_PREFIX[kind]}-{payment.order_no}",
        merchant_id=payment.merchant_id,
        account_id=payment.account_id,
        order_no=payment.order_no,
        entry_type=kind,
        currency=payment.currency,
        amount=amount,
        booked_at=(at or payment.last_at) + BOOKING_TIME,
        transaction_id=payment.transaction_id,
        reference_no=payment.refund_reference_id if kind is EntryType.REFUND else "",
    )


def capture_entry(payment: TruePayment) -> LedgerLine:
    """The booking of the payment's capture."""
    amount, at = payment.captured, payment.captured_at
    return entry_of(payment, EntryType.CAPTURE, amount=amount, at=at)


def entries_of(payment: TruePayment) -> tuple[LedgerLine, ...]:
    """Every movement of the payment, booked."""
    entries: list[LedgerLine] = []
    if payment.captured:
        entries.append(capture_entry(payment))
    if payment.refunded:
        entries.append(entry_of(payment, EntryType.REFUND, amount=payment.refunded))
    if payment.state is GatewayState.CHARGEBACK:
        entries.append(entry_of(payment, EntryType.CHARGEBACK, amount=payment.captured))
    return tuple(entries)


def plain_story(payment: TruePayment) -> Story:
    """Files that agree with the gateway."""
    return Story(orders=(order_of(payment),), ledger=entries_of(payment))


Tell = Callable[[TruePayment, Random], Story]
Wants = Callable[[TruePayment], bool]
Change = Callable[[TruePayment, Random], dict[str, Any]]
"""What an order line says instead of what is true."""
Entries = Callable[[TruePayment, OrderLine, Random], tuple[LedgerLine, ...]]
"""What is booked."""


class Fit(NamedTuple):
    """Which payments a story fits."""

    state: GatewayState
    age: Literal["any", "old", "young"] = "any"
    """Old: the ledger should have every movement; young: it may be without the capture."""
    currencies: Collection[str] = ()
    """Empty: any."""


def fitting(fit: Fit, *, account_id: str, closes_at: datetime) -> Wants:
    """Payments of the account that fit."""
    due_at = partial(BusinessCalendar.of().due_at, grace=BOOKING_GRACE)
    of_age: dict[str, Wants] = {
        "any": lambda _payment: True,
        "old": lambda payment: due_at(payment.last_at) <= closes_at,
        "young": lambda payment: due_at(payment.authorised_at) > closes_at,
    }
    return lambda payment: (
        payment.account_id == account_id
        and payment.state is fit.state
        and (not fit.currencies or payment.currency in fit.currencies)
        and of_age[fit.age](payment)
    )


def _as(**changes: Any) -> Change:
    return lambda _payment, _rng: changes


def _amount(sign: int) -> Change:
    return lambda payment, rng: {"amount": payment.authorised + sign * _step(rng)}


def _step(rng: Random) -> int:
    return rng.randint(STEP_MIN, STEP_MAX)


def _all_booked(payment: TruePayment, _line: OrderLine, _rng: Random) -> tuple[LedgerLine, ...]:
    return entries_of(payment)


def _nothing(_payment: TruePayment, _line: OrderLine, _rng: Random) -> tuple[LedgerLine, ...]:
    return ()


def _capture_only(payment: TruePayment, _line: OrderLine, _rng: Random) -> tuple[LedgerLine, ...]:
    return (capture_entry(payment),)


def _other_amount(payment: TruePayment, _line: OrderLine, rng: Random) -> tuple[LedgerLine, ...]:
    return (replace(capture_entry(payment), amount=payment.captured + _step(rng)),)


def _twice(payment: TruePayment, _line: OrderLine, _rng: Random) -> tuple[LedgerLine, ...]:
    entry = capture_entry(payment)
    return (entry, replace(entry, entry_id=f"{entry.entry_id}-2"))


def _of_one_id(payment: TruePayment, line: OrderLine, rng: Random) -> tuple[LedgerLine, ...]:
    return (capture_entry(payment), *_other_amount(payment, line, rng))


def _refund_too(payment: TruePayment, _line: OrderLine, rng: Random) -> tuple[LedgerLine, ...]:
    return (capture_entry(payment), entry_of(payment, EntryType.REFUND, amount=_step(rng)))


def _chargeback_too(payment: TruePayment, _line: OrderLine, _: Random) -> tuple[LedgerLine, ...]:
    chargeback = entry_of(payment, EntryType.CHARGEBACK, amount=payment.captured)
    return (capture_entry(payment), chargeback)


def _written_off(payment: TruePayment, line: OrderLine, _rng: Random) -> tuple[LedgerLine, ...]:
    short = payment.captured - line.amount
    return (capture_entry(payment), entry_of(payment, EntryType.WRITE_OFF, amount=short))


def plant(
    finding: Finding | None,
    why: str = "",
    *,
    order: Change = lambda _payment, _rng: {},
    ledger: Entries = _all_booked,
    later: Change | None = None,
) -> Tell:
    """A story of files that agree but for what is given.

    Args:
        finding: what must be found; None: it matches.
        why: what was done, in words.
        order: what the order line says instead.
        ledger: what is booked instead of everything.
        later: the same of a second line in another file; None: there is none.
    """

    def tell(payment: TruePayment, rng: Random) -> Story:
        line = replace(order_of(payment), **order(payment, rng))
        entries = ledger(payment, line, rng)
        second = (replace(order_of(payment), **later(payment, rng)),) if later else ()
        story = Story((line,), entries, later=second)
        return expecting(story, finding, why, of=payment, payment=payment) if finding else story

    return tell


def _missing_in_orders(payment: TruePayment, _rng: Random) -> Story:
    story = Story(ledger=entries_of(payment))
    code = BreakCode.MISSING_IN_ORDERS
    return expecting(story, code, "order left out", of=payment, payment=payment)


def _wrong_account(payment: TruePayment, _rng: Random, *, other_account: str) -> Story:
    """The order is filed under the merchant's other account."""
    line = replace(order_of(payment), account_id=other_account)
    story, why = Story((line,), entries_of(payment)), "order filed under another account"
    story = expecting(story, BreakCode.WRONG_ACCOUNT, why, of=line, payment=payment)
    if story.expected is None:
        return story
    there, here = story.expected.effects
    alone = (
        Alone(payment.account_id, BreakCode.MISSING_IN_ORDERS, (here,)),
        Alone(other_account, BreakCode.MISSING_AT_GATEWAY, (there,)),
    )
    return replace(story, expected=replace(story.expected, alone=alone))


def _asked_back(payment: TruePayment, rng: Random, *, amount: int | None = None) -> dict[str, Any]:
    """A refund is instructed; a blank amount means the whole order."""
    return {
        "action": InstructionKind.REFUND,
        "action_amount": amount,
        "action_reason": rng.choice(REFUND_REASONS),
        "request_id": f"RF-{payment.order_no}",
    }


def _refund(payment: TruePayment, rng: Random, *, in_full: bool, again: bool = False) -> Story:
    """Half of the shops write a refund into the order's state before it is made.

    It may come again in another file: the request id is the same, and it moves money once.
    """
    amount = None if in_full else rng.randint(1, payment.captured - 1)
    line = replace(order_of(payment), **_asked_back(payment, rng, amount=amount))
    if not rng.randrange(2):
        status = OrderStatus.REFUNDED if in_full else OrderStatus.PARTIALLY_REFUNDED
        line = replace(line, status=status, refund_amount=amount)
    return Story((line,), entries_of(payment), later=(line,) if again else ())


AUTHORISED, CANCELLED = Fit(GatewayState.AUTHORISED), Fit(GatewayState.CANCELLED)
PAID, SETTLED = Fit(GatewayState.PAID), Fit(GatewayState.PAID, "old")
_YOUNG = Fit(GatewayState.PAID, "young")
_REFUNDED, _DISPUTED = Fit(GatewayState.REFUNDED, "old"), Fit(GatewayState.CHARGEBACK, "old")

_IS_PAID, _IS_REFUNDED = _as(status=OrderStatus.PAID), _as(status=OrderStatus.REFUNDED)
_IS_CANCELLED = _as(status=OrderStatus.CANCELLED)
_IS_AUTHORISED = _as(status=OrderStatus.AUTHORISED)


def account_plants(*, other_account: str) -> Sequence[tuple[Fit, Tell]]:
    """What one night of an account can show, each planted a few times."""
    code = BreakCode
    return (
        (
            Fit(GatewayState.PAID, "old", OTHER_CURRENCY),
            plant(
                code.CURRENCY_MISMATCH,
                "order in another currency",
                order=lambda payment, _rng: {"currency": OTHER_CURRENCY[payment.currency]},
            ),
        ),
        (
            Fit(GatewayState.PAID, "old", (ROUNDING_CURRENCY,)),
            plant(
                Flag.ROUNDING,
                "one cent apart",
                order=lambda payment, _rng: {"amount": payment.captured - 1},
            ),
        ),
        (CANCELLED, plant(code.STATUS_CONFLICT, "order paid, payment cancelled", order=_IS_PAID)),
        (CANCELLED, plant(Flag.REFUNDED_BY_VOID, "refunded by a cancel", order=_IS_REFUNDED)),
        (_REFUNDED, plant(code.REFUND_UNEXPECTED, "order paid, payment refunded", order=_IS_PAID)),
        (_REFUNDED, plant(code.REFUND_NOT_BOOKED, "refund not booked", ledger=_capture_only)),
        (
            _DISPUTED,
            plant(code.CHARGEBACK_NOT_BOOKED, "chargeback not booked", ledger=_capture_only),
        ),
        (AUTHORISED, plant(code.CAPTURE_DUE, "order paid, payment authorised", order=_IS_PAID)),
        (
            AUTHORISED,
            plant(code.CANCEL_DUE, "order cancelled, payment authorised", order=_IS_CANCELLED),
        ),
        (
            AUTHORISED,
            plant("pending", "refund of a payment not captured yet waits", order=_asked_back),
        ),
        (SETTLED, partial(_wrong_account, other_account=other_account)),
        *((SETTLED, tell) for tell in _ON_SETTLED),
        (_YOUNG, plant("pending", "capture not yet booked", ledger=_nothing)),
    )


_ON_SETTLED: tuple[Tell, ...] = (
    plant(BreakCode.AMOUNT_OVER, "order amount lowered", order=_amount(-1)),
    plant(BreakCode.AMOUNT_UNDER, "order amount raised", order=_amount(+1)),
    plant(BreakCode.DUPLICATE_ORDER_ROW, "order twice, unequal", later=_amount(+1)),
    plant(BreakCode.STATUS_CONFLICT, "order authorised, payment paid", order=_IS_AUTHORISED),
    plant(BreakCode.REFUND_DUE, "order refunded, payment paid", order=_IS_REFUNDED),
    plant(
        BreakCode.REFUND_DUE,
        "order says refunded in part",
        order=lambda _payment, rng: {
            "status": OrderStatus.PARTIALLY_REFUNDED,
            "refund_amount": _step(rng),
        },
    ),
    _missing_in_orders,
    plant(BreakCode.MISSING_IN_LEDGER, "capture not booked", ledger=_nothing),
    plant(
        BreakCode.LEDGER_AMOUNT_MISMATCH,
        "capture booked with another amount",
        ledger=_other_amount,
    ),
    plant(BreakCode.DUPLICATE_LEDGER_POSTING, "capture booked twice", ledger=_twice),
    plant(BreakCode.LEDGER_REFUND_ONLY, "refund booked that never happened", ledger=_refund_too),
    plant(
        BreakCode.CHARGEBACK_UNPROVEN,
        "chargeback booked without evidence",
        ledger=_chargeback_too,
    ),
    plant(
        Flag.REFERENCE_CONFLICT,
        "order names another transaction",
        order=lambda payment, _rng: {"transaction_id": f"{payment.transaction_id}X"},
    ),
    plant(Flag.WRITTEN_OFF, "difference written off", order=_amount(-1), ledger=_written_off),
    plant(UnverifiedReason.ENTRY_ID_CONFLICT, "two unequal entries of one id", ledger=_of_one_id),
    # An earlier file said authorised, a later one says paid: the newer row counts.
    plant(
        None,
        order=lambda payment, _rng: {
            "status": OrderStatus.AUTHORISED,
            "updated_at": payment.authorised_at,
        },
        later=lambda payment, _rng: {"updated_at": payment.last_at + timedelta(seconds=1)},
    ),
    plant(None, later=_as()),
    plant(
        "pending",
        "cancel of a captured payment waits for a person",
        order=_as(action=InstructionKind.CANCEL),
    ),
    partial(_refund, in_full=False, again=True),
)
AUTHORISATION_EXPIRED = plant(
    BreakCode.AUTHORISATION_EXPIRED, "order paid, payment expired", order=_IS_PAID
)
REFUNDED_ELSEWHERE = plant(
    UnverifiedReason.REFUND_AMOUNT_UNKNOWN, "refund amount not shown by the query"
)
"""Refunded in part, and the gateway's query does not show how much."""
_CANCEL = _as(
    status=OrderStatus.CANCELLED,
    action=InstructionKind.CANCEL,
    action_reason="cancelled by shopper",
)
SHARES: Sequence[tuple[Fit, Tell, int]] = (
    (AUTHORISED, plant(None, order=_as(action=InstructionKind.CAPTURE)), 800),
    (AUTHORISED, plant(None, order=_CANCEL), 200),
    (PAID, partial(_refund, in_full=True), 22),
    (PAID, partial(_refund, in_full=False), 22),
    (Fit(GatewayState.CHARGEBACK), plant(Flag.CHARGEBACK_BOOKED, "chargeback booked"), 1000),
)
"""What happens tonight to so many of a thousand payments that are left."""
