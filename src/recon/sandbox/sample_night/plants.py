"""What is planted into the merchant's files: each story beside the payments that it fits.

A function takes a payment and tells what order file and ledger say of it, with what follows: an
agreement, a request to move money, a break of the orders' or of the ledger's, a flag, or a booking
that is still to come. Nothing here asks the engine.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from random import Random

from recon.model.words import (
    BreakCode,
    EntryType,
    Flag,
    GatewayState,
    InstructionKind,
    OrderStatus,
    UnverifiedReason,
)
from recon.sandbox.sample_night.records import (
    LEG_ORDERS,
    Alone,
    BreakEffect,
    LedgerLine,
    OrderLine,
    Story,
    Wants,
    all_of,
    breaks,
    effects_of,
    flagged,
    in_currency,
    in_state,
    of_account,
    past_grace,
    pending,
    unverified,
    within_grace,
)
from recon.sandbox.sample_night.true_payments import TruePayment


def reference_conflict(payment: TruePayment, _rng: Random) -> Story:
    """The order carries another transaction than the gateway."""
    line = replace(order_of(payment), transaction_id=f"{payment.transaction_id}X")
    expected = flagged(payment, "order names another transaction", flag=Flag.REFERENCE_CONFLICT)
    return Story((line,), entries_of(payment), expected)


def written_off(payment: TruePayment, rng: Random) -> Story:
    """A small difference that finance has written off."""
    short = step(rng)
    line = replace(order_of(payment), amount=payment.captured - short)
    off = entry_of(payment, entry_type=EntryType.WRITE_OFF, amount=short, moved_at=payment.last_at)
    expected = flagged(payment, "difference written off", flag=Flag.WRITTEN_OFF)
    return Story((line,), (capture_entry(payment), off), expected)


def entry_id_conflict(payment: TruePayment, rng: Random) -> Story:
    """Two ledger rows share an id and differ."""
    entry = capture_entry(payment)
    other = replace(entry, amount=entry.amount + step(rng))
    reason = UnverifiedReason.ENTRY_ID_CONFLICT
    expected = unverified(payment, "two unequal entries of one id", reason=reason)
    return Story((order_of(payment),), (entry, other), expected)


def newer_version(payment: TruePayment, _rng: Random) -> Story:
    """An earlier file said authorised, a later one says paid: the newer row counts."""
    line = order_of(payment)
    older = replace(line, status=OrderStatus.AUTHORISED, updated_at=payment.authorised_at)
    newer = replace(line, updated_at=payment.last_at + timedelta(seconds=1))
    return Story((older,), entries_of(payment), later=(newer,))


def repeated(payment: TruePayment, _rng: Random) -> Story:
    """The same row comes again in another file."""
    line = order_of(payment)
    return Story((line,), entries_of(payment), later=(line,))


def amount_over(payment: TruePayment, rng: Random) -> Story:
    """The order says less than the gateway holds."""
    line = replace(order_of(payment), amount=payment.captured - step(rng))
    return _differing(payment, line, code=BreakCode.AMOUNT_OVER, why="order amount lowered")


def amount_under(payment: TruePayment, rng: Random) -> Story:
    """The order says more than the gateway holds."""
    line = replace(order_of(payment), amount=payment.captured + step(rng))
    return _differing(payment, line, code=BreakCode.AMOUNT_UNDER, why="order amount raised")


def duplicate_order(payment: TruePayment, rng: Random) -> Story:
    """The order comes twice with different amounts, and neither row is newer."""
    line = order_of(payment)
    second = replace(line, amount=line.amount + step(rng))
    effects = effects_of(
        payment,
        gateway=payment.net,
        order=line.amount + second.amount,
        ledger=payment.net,
    )
    expected = breaks(
        payment, "order twice, unequal", code=BreakCode.DUPLICATE_ORDER_ROW, effects=effects
    )
    return Story((line,), entries_of(payment), expected, later=(second,))


def captured_by_somebody(payment: TruePayment, _rng: Random) -> Story:
    """The order is only authorised, the payment was captured without our instruction."""
    return _other_status(payment, OrderStatus.AUTHORISED, code=BreakCode.STATUS_CONFLICT)


def cancel_due(payment: TruePayment, _rng: Random) -> Story:
    """The order is cancelled, the authorisation still stands and nobody instructed a cancel."""
    return _other_status(payment, OrderStatus.CANCELLED, code=BreakCode.CANCEL_DUE)


def capture_due(payment: TruePayment, _rng: Random) -> Story:
    """The order is paid, the payment is only authorised and nobody instructed a capture."""
    return _other_status(payment, OrderStatus.PAID, code=BreakCode.CAPTURE_DUE)


def refund_due(payment: TruePayment, _rng: Random) -> Story:
    """The order is refunded in full, the gateway still holds the money."""
    return _other_status(payment, OrderStatus.REFUNDED, code=BreakCode.REFUND_DUE)


def part_refund_due(payment: TruePayment, rng: Random) -> Story:
    """The order is refunded in part, the gateway still holds all the money."""
    line = replace(
        order_of(payment), status=OrderStatus.PARTIALLY_REFUNDED, refund_amount=step(rng)
    )
    return _differing(payment, line, code=BreakCode.REFUND_DUE, why="order says refunded in part")


def missing_in_orders(payment: TruePayment, _rng: Random) -> Story:
    """The gateway and the ledger know the payment, no order file does."""
    effects = effects_of(payment, gateway=payment.net, order=0, ledger=payment.net)
    expected = breaks(payment, "order left out", code=BreakCode.MISSING_IN_ORDERS, effects=effects)
    return Story((), (capture_entry(payment),), expected)


def missing_in_ledger(payment: TruePayment, _rng: Random) -> Story:
    """The capture was never booked."""
    return _booked_as(payment, (), code=BreakCode.MISSING_IN_LEDGER, why="capture not booked")


def ledger_amount_mismatch(payment: TruePayment, rng: Random) -> Story:
    """The capture was booked with another amount."""
    entry = capture_entry(payment)
    entry = replace(entry, amount=entry.amount + step(rng))
    code = BreakCode.LEDGER_AMOUNT_MISMATCH
    return _booked_as(payment, (entry,), code=code, why="capture booked with another amount")


def duplicate_posting(payment: TruePayment, _rng: Random) -> Story:
    """The capture was booked twice."""
    entry = capture_entry(payment)
    second = replace(entry, entry_id=f"{entry.entry_id}-2")
    code = BreakCode.DUPLICATE_LEDGER_POSTING
    return _booked_as(payment, (entry, second), code=code, why="capture booked twice")


def refund_booked_only(payment: TruePayment, rng: Random) -> Story:
    """The ledger books a refund that the gateway never made."""
    refund = entry_of(
        payment, entry_type=EntryType.REFUND, amount=step(rng), moved_at=payment.last_at
    )
    entries = (capture_entry(payment), refund)
    code = BreakCode.LEDGER_REFUND_ONLY
    return _booked_as(payment, entries, code=code, why="refund booked that never happened")


def chargeback_unproven(payment: TruePayment, _rng: Random) -> Story:
    """The ledger books a chargeback of which the gateway shows nothing."""
    chargeback = entry_of(
        payment,
        entry_type=EntryType.CHARGEBACK,
        amount=payment.captured,
        moved_at=payment.last_at,
    )
    entries = (capture_entry(payment), chargeback)
    code = BreakCode.CHARGEBACK_UNPROVEN
    return _booked_as(payment, entries, code=code, why="chargeback booked without evidence")


def refund_repeated(payment: TruePayment, rng: Random) -> Story:
    """The same refund, with its request id, comes again in another file: it moves money once."""
    story = refund_in_part(payment, rng)
    return replace(story, later=story.orders)


def late_cancel(payment: TruePayment, _rng: Random) -> Story:
    """A cancel of a payment that is captured already: it is not sent, and waits for a person."""
    line = replace(order_of(payment), action=InstructionKind.CANCEL)
    expected = pending(payment, "cancel of a captured payment waits for a person")
    return Story((line,), entries_of(payment), expected)


def early_refund(payment: TruePayment, rng: Random) -> Story:
    """A refund of a payment that is not captured yet: it is not sent, and waits."""
    reason = rng.choice(REFUND_REASONS)
    line = replace(
        order_of(payment),
        action=InstructionKind.REFUND,
        action_reason=reason,
        request_id=f"RF-{payment.order_no}",
    )
    return Story((line,), (), pending(payment, "refund of a payment not captured yet waits"))


CAPTURED_PER_MILLE = 800
CANCELLED_PER_MILLE = 200
"""Of the authorised payments that are not captured tonight."""
REFUNDED_PER_MILLE = 45
"""Of the captured payments, half in full and half in part."""

Tell = Callable[[TruePayment, Random], Story]


def account_plants(
    account_id: str, *, other_account: str, closes_at: datetime
) -> Iterator[tuple[Tell, Wants]]:
    """What one night of the account can show, each planted a few times."""
    mine, old = of_account(account_id), past_grace(closes_at)
    settled = all_of(mine, in_state(GatewayState.PAID), old)
    authorised = all_of(mine, in_state(GatewayState.AUTHORISED))
    cancelled = all_of(mine, in_state(GatewayState.CANCELLED))
    refunded = all_of(mine, in_state(GatewayState.REFUNDED), old)
    charged_back = all_of(mine, in_state(GatewayState.CHARGEBACK), old)
    fresh = all_of(mine, in_state(GatewayState.PAID), within_grace(closes_at))
    yield currency_mismatch, all_of(settled, in_currency(*OTHER_CURRENCY))
    yield rounding, all_of(settled, in_currency(ROUNDING_CURRENCY))
    yield paid_but_cancelled, cancelled
    yield refunded_by_void, cancelled
    yield refund_unexpected, refunded
    yield refund_not_booked, refunded
    yield chargeback_not_booked, charged_back
    yield from ((tell, authorised) for tell in _ON_AUTHORISED)
    yield partial(wrong_account, other_account=other_account), settled
    yield from ((tell, settled) for tell in _ON_SETTLED)
    yield not_yet_booked, fresh


_ON_AUTHORISED: tuple[Tell, ...] = (
    capture_due,
    cancel_due,
    early_refund,
)
_ON_SETTLED: tuple[Tell, ...] = (
    amount_over,
    amount_under,
    duplicate_order,
    captured_by_somebody,
    refund_due,
    part_refund_due,
    missing_in_orders,
    missing_in_ledger,
    ledger_amount_mismatch,
    duplicate_posting,
    refund_booked_only,
    chargeback_unproven,
    reference_conflict,
    written_off,
    entry_id_conflict,
    newer_version,
    repeated,
    late_cancel,
    refund_repeated,
)


def shares(account_id: str) -> Iterator[tuple[Tell, Wants, int]]:
    """What happens to a share of the account's payments tonight, per mille of those left."""
    mine = of_account(account_id)
    authorised = all_of(mine, in_state(GatewayState.AUTHORISED))
    paid = all_of(mine, in_state(GatewayState.PAID))
    yield capture, authorised, CAPTURED_PER_MILLE
    yield cancel, authorised, CANCELLED_PER_MILLE
    yield refund_in_full, paid, REFUNDED_PER_MILLE // 2
    yield refund_in_part, paid, REFUNDED_PER_MILLE // 2
    yield chargeback_booked, all_of(mine, in_state(GatewayState.CHARGEBACK)), 1000


REFUND_REASONS = ("returned goods", "price correction", "late delivery", "damaged on arrival")


def capture(payment: TruePayment, _rng: Random) -> Story:
    """Goods have left: capture the authorised payment in full."""
    line = replace(order_of(payment), action=InstructionKind.CAPTURE)
    return Story((line,), ())


def cancel(payment: TruePayment, _rng: Random) -> Story:
    """The shopper changed their mind: let the authorisation go."""
    line = replace(
        order_of(payment),
        status=OrderStatus.CANCELLED,
        action=InstructionKind.CANCEL,
        action_reason="cancelled by shopper",
    )
    return Story((line,), ())


def refund_in_full(payment: TruePayment, rng: Random) -> Story:
    """Everything goes back; a blank amount means the whole order."""
    story = _refund(payment, amount=None, rng=rng)
    return _told_before(story, status=OrderStatus.REFUNDED, amount=None, rng=rng)


def refund_in_part(payment: TruePayment, rng: Random) -> Story:
    """A part goes back."""
    amount = rng.randint(1, payment.captured - 1)
    story = _refund(payment, amount=amount, rng=rng)
    return _told_before(story, status=OrderStatus.PARTIALLY_REFUNDED, amount=amount, rng=rng)


def _told_before(story: Story, *, status: OrderStatus, amount: int | None, rng: Random) -> Story:
    """Half of the shops write the refund into the order's state before it is made."""
    if rng.randrange(2):
        return story
    (line,) = story.orders
    return replace(story, orders=(replace(line, status=status, refund_amount=amount),))


def _refund(payment: TruePayment, *, amount: int | None, rng: Random) -> Story:
    line = replace(
        order_of(payment),
        action=InstructionKind.REFUND,
        action_amount=amount,
        action_reason=rng.choice(REFUND_REASONS),
        request_id=f"RF-{payment.order_no}",
    )
    return replace(plain_story(payment), orders=(line,))


CHECKOUT_TIME = timedelta(seconds=40)
"""From placing an order to its authorisation."""
BOOKING_TIME = timedelta(minutes=25)
"""From a movement to its ledger entry."""

STATUS_OF: Mapping[GatewayState, OrderStatus] = {
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
        status=STATUS_OF[payment.state],
        ordered_at=payment.authorised_at - CHECKOUT_TIME,
        transaction_id=payment.transaction_id,
        refund_amount=payment.refunded if part else None,
    )


def entry_of(
    payment: TruePayment, *, entry_type: EntryType, amount: int, moved_at: datetime, number: int = 1
) -> LedgerLine:
    """The ledger entry of one movement of the payment; `number` tells equal ones apart."""
    suffix = "" if number == 1 else f"-{number}"
    return LedgerLine(
        entry_id=f"{_PREFIX[entry_type]}-{payment.order_no}{suffix}",
        merchant_id=payment.merchant_id,
        account_id=payment.account_id,
        order_no=payment.order_no,
        entry_type=entry_type,
        currency=payment.currency,
        amount=amount,
        booked_at=moved_at + BOOKING_TIME,
        transaction_id=payment.transaction_id,
        reference_no=payment.refund_reference_id if entry_type is EntryType.REFUND else "",
    )


def capture_entry(payment: TruePayment) -> LedgerLine:
    """The booking of the payment's capture."""
    return entry_of(
        payment,
        entry_type=EntryType.CAPTURE,
        amount=payment.captured,
        moved_at=payment.captured_at or payment.last_at,
    )


def entries_of(payment: TruePayment) -> tuple[LedgerLine, ...]:
    """Every movement of the payment, booked."""
    entries: list[LedgerLine] = []
    if payment.captured:
        entries.append(capture_entry(payment))
    if payment.refunded:
        entries.append(_booked(payment, EntryType.REFUND, amount=payment.refunded))
    if payment.state is GatewayState.CHARGEBACK:
        entries.append(_booked(payment, EntryType.CHARGEBACK, amount=payment.captured))
    return tuple(entries)


def plain_story(payment: TruePayment) -> Story:
    """Files that agree with the gateway."""
    return Story(orders=(order_of(payment),), ledger=entries_of(payment))


def _booked(payment: TruePayment, entry_type: EntryType, *, amount: int) -> LedgerLine:
    return entry_of(payment, entry_type=entry_type, amount=amount, moved_at=payment.last_at)


def refund_not_booked(payment: TruePayment, _rng: Random) -> Story:
    """The order and the gateway are refunded, the ledger knows only the capture."""
    code = BreakCode.REFUND_NOT_BOOKED
    return _booked_as(payment, (capture_entry(payment),), code=code, why="refund not booked")


def chargeback_not_booked(payment: TruePayment, _rng: Random) -> Story:
    """The gateway charged the payment back, the ledger knows only the capture."""
    code = BreakCode.CHARGEBACK_NOT_BOOKED
    return _booked_as(payment, (capture_entry(payment),), code=code, why="chargeback not booked")


def ledger_net(entries: tuple[LedgerLine, ...]) -> int:
    """What ledger entries come to: captures less refunds and chargebacks; minor units."""
    signs = {EntryType.CAPTURE: 1, EntryType.REFUND: -1, EntryType.CHARGEBACK: -1}
    return sum(signs.get(EntryType(entry.entry_type), 0) * entry.amount for entry in entries)


def _booked_as(
    payment: TruePayment, entries: tuple[LedgerLine, ...], *, code: BreakCode, why: str
) -> Story:
    """The order agrees with the gateway (but knows of no chargeback), the ledger does not."""
    line = order_of(payment)
    effects = effects_of(
        payment, gateway=payment.net, order=order_net(line), ledger=ledger_net(entries)
    )
    return Story((line,), entries, breaks(payment, why, code=code, effects=effects))


STEP_MIN = 100
STEP_MAX = 400
"""Minor units by which a planted amount differs; every seeded amount is larger."""

OTHER_CURRENCY = {"EUR": "USD", "USD": "GBP", "GBP": "EUR"}
"""Currencies with the same decimals, so that the same digits are an amount of both."""


def step(rng: Random) -> int:
    """By how much a planted amount differs, minor units."""
    return rng.randint(STEP_MIN, STEP_MAX)


def currency_mismatch(payment: TruePayment, _rng: Random) -> Story:
    """The same digits in another currency."""
    line = replace(order_of(payment), currency=OTHER_CURRENCY[payment.currency])
    effects = (
        BreakEffect(LEG_ORDERS, payment.account_id, payment.currency, payment.net),
        BreakEffect(LEG_ORDERS, payment.account_id, line.currency, -line.amount),
    )
    expected = breaks(
        payment, "order in another currency", code=BreakCode.CURRENCY_MISMATCH, effects=effects
    )
    return Story((line,), entries_of(payment), expected)


def paid_but_cancelled(payment: TruePayment, _rng: Random) -> Story:
    """The order is paid, the payment was cancelled."""
    return _other_status(payment, OrderStatus.PAID, code=BreakCode.STATUS_CONFLICT)


def refund_unexpected(payment: TruePayment, _rng: Random) -> Story:
    """The order is paid, the gateway gave the money back."""
    return _other_status(payment, OrderStatus.PAID, code=BreakCode.REFUND_UNEXPECTED)


def authorisation_expired(payment: TruePayment, _rng: Random) -> Story:
    """The order is paid, the authorisation lapsed before anybody captured it."""
    return _other_status(payment, OrderStatus.PAID, code=BreakCode.AUTHORISATION_EXPIRED)


def wrong_account(payment: TruePayment, _rng: Random, *, other_account: str) -> Story:
    """The order is filed under the merchant's other account."""
    line = replace(order_of(payment), account_id=other_account)
    here = BreakEffect(LEG_ORDERS, payment.account_id, payment.currency, payment.net)
    there = BreakEffect(LEG_ORDERS, other_account, line.currency, -line.amount)
    expected = breaks(
        line,
        "order filed under another account",
        code=BreakCode.WRONG_ACCOUNT,
        effects=(there, here),
    )
    alone = (
        Alone(payment.account_id, BreakCode.MISSING_IN_ORDERS, (here,)),
        Alone(other_account, BreakCode.MISSING_AT_GATEWAY, (there,)),
    )
    return Story((line,), plain_story(payment).ledger, replace(expected, alone=alone))


def order_net(line: OrderLine) -> int:
    """What an order line claims of money, minor units."""
    if line.status == OrderStatus.PAID:
        return line.amount
    if line.status == OrderStatus.PARTIALLY_REFUNDED:
        return line.amount - (line.refund_amount or 0)
    return 0


def _other_status(payment: TruePayment, status: OrderStatus, *, code: BreakCode) -> Story:
    line = replace(order_of(payment), status=status, refund_amount=None)
    why = f"order {status}, payment {payment.state}"
    return _differing(payment, line, code=code, why=why)


def _differing(payment: TruePayment, line: OrderLine, *, code: BreakCode, why: str) -> Story:
    """The ledger agrees with the gateway, the order does not."""
    effects = effects_of(payment, gateway=payment.net, order=order_net(line), ledger=payment.net)
    expected = breaks(payment, why, code=code, effects=effects)
    return Story((line,), entries_of(payment), expected)


ROUNDING_CURRENCY = "EUR"
"""The one currency for which the sample's rules have a tolerance."""


def rounding(payment: TruePayment, _rng: Random) -> Story:
    """One cent apart, inside the tolerance of the sample's rules."""
    line = replace(order_of(payment), amount=payment.captured - 1)
    expected = flagged(payment, "one cent apart", flag=Flag.ROUNDING)
    return Story((line,), entries_of(payment), expected)


def refunded_by_void(payment: TruePayment, _rng: Random) -> Story:
    """The order is refunded; the gateway had only to cancel."""
    line = replace(order_of(payment), status=OrderStatus.REFUNDED)
    expected = flagged(payment, "refunded by a cancel", flag=Flag.REFUNDED_BY_VOID)
    return Story((line,), (), expected)


def chargeback_booked(payment: TruePayment, _rng: Random) -> Story:
    """A chargeback that the ledger knows."""
    expected = flagged(payment, "chargeback booked", flag=Flag.CHARGEBACK_BOOKED)
    return replace(plain_story(payment), expected=expected)


def not_yet_booked(payment: TruePayment, _rng: Random) -> Story:
    """Captured yesterday or today; the ledger has two business days."""
    return Story((order_of(payment),), (), pending(payment, "capture not yet booked"))


def refunded_amount_unknown(payment: TruePayment, _rng: Random) -> Story:
    """Refunded in part elsewhere; the gateway's query does not show how much."""
    reason = UnverifiedReason.REFUND_AMOUNT_UNKNOWN
    expected = unverified(payment, "refund amount not shown by the query", reason=reason)
    return replace(plain_story(payment), expected=expected)
