"""Discrepancies between order and gateway, planted into the merchant's order files.

Each function takes a payment and tells what the files say of it, with the break that follows.
"""

from dataclasses import replace
from random import Random

from recon.model.words import BreakCode, OrderStatus
from recon.sandbox.sample_night.expecting import LEG_ORDERS, breaks, effects_of
from recon.sandbox.sample_night.plain_orders import capture_entry, entries_of, order_of, plain_story
from recon.sandbox.sample_night.records import Alone, BreakEffect, OrderLine, Story
from recon.sandbox.sample_night.true_payments import TruePayment

STEP_MIN = 100
STEP_MAX = 400
"""Minor units by which a planted amount differs; every seeded amount is larger."""

OTHER_CURRENCY = {"EUR": "USD", "USD": "GBP", "GBP": "EUR"}
"""Currencies with the same decimals, so that the same digits are an amount of both."""


def step(rng: Random) -> int:
    """By how much a planted amount differs, minor units."""
    return rng.randint(STEP_MIN, STEP_MAX)


def amount_over(payment: TruePayment, rng: Random) -> Story:
    """The order says less than the gateway holds."""
    line = replace(order_of(payment), amount=payment.captured - step(rng))
    return _differing(payment, line, code=BreakCode.AMOUNT_OVER, why="order amount lowered")


def amount_under(payment: TruePayment, rng: Random) -> Story:
    """The order says more than the gateway holds."""
    line = replace(order_of(payment), amount=payment.captured + step(rng))
    return _differing(payment, line, code=BreakCode.AMOUNT_UNDER, why="order amount raised")


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


def paid_but_cancelled(payment: TruePayment, _rng: Random) -> Story:
    """The order is paid, the payment was cancelled."""
    return _other_status(payment, OrderStatus.PAID, code=BreakCode.STATUS_CONFLICT)


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


def refund_unexpected(payment: TruePayment, _rng: Random) -> Story:
    """The order is paid, the gateway gave the money back."""
    return _other_status(payment, OrderStatus.PAID, code=BreakCode.REFUND_UNEXPECTED)


def authorisation_expired(payment: TruePayment, _rng: Random) -> Story:
    """The order is paid, the authorisation lapsed before anybody captured it."""
    return _other_status(payment, OrderStatus.PAID, code=BreakCode.AUTHORISATION_EXPIRED)


def missing_in_orders(payment: TruePayment, _rng: Random) -> Story:
    """The gateway and the ledger know the payment, no order file does."""
    effects = effects_of(payment, gateway=payment.net, order=0, ledger=payment.net)
    expected = breaks(payment, "order left out", code=BreakCode.MISSING_IN_ORDERS, effects=effects)
    return Story((), (capture_entry(payment),), expected)


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
