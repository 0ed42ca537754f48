"""The list of what is planted: each story beside the payments that it fits."""

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from random import Random

from recon.model.words import GatewayState
from recon.sandbox.sample_night import calm_finds as calm
from recon.sandbox.sample_night import instructed
from recon.sandbox.sample_night import ledger_breaks as ledger
from recon.sandbox.sample_night import order_breaks as orders
from recon.sandbox.sample_night.fitting import (
    Wants,
    all_of,
    in_currency,
    in_state,
    of_account,
    past_grace,
    within_grace,
)
from recon.sandbox.sample_night.records import Story
from recon.sandbox.sample_night.true_payments import TruePayment

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
    yield orders.currency_mismatch, all_of(settled, in_currency(*orders.OTHER_CURRENCY))
    yield calm.rounding, all_of(settled, in_currency(calm.ROUNDING_CURRENCY))
    yield orders.paid_but_cancelled, cancelled
    yield calm.refunded_by_void, cancelled
    yield orders.refund_unexpected, refunded
    yield ledger.refund_not_booked, refunded
    yield ledger.chargeback_not_booked, charged_back
    yield from ((tell, authorised) for tell in _ON_AUTHORISED)
    yield partial(orders.wrong_account, other_account=other_account), settled
    yield from ((tell, settled) for tell in _ON_SETTLED)
    yield calm.not_yet_booked, fresh


_ON_AUTHORISED: tuple[Tell, ...] = (
    orders.capture_due,
    orders.cancel_due,
    instructed.early_refund,
)
_ON_SETTLED: tuple[Tell, ...] = (
    orders.amount_over,
    orders.amount_under,
    orders.duplicate_order,
    orders.captured_by_somebody,
    orders.refund_due,
    orders.part_refund_due,
    orders.missing_in_orders,
    ledger.missing_in_ledger,
    ledger.ledger_amount_mismatch,
    ledger.duplicate_posting,
    ledger.refund_booked_only,
    ledger.chargeback_unproven,
    calm.reference_conflict,
    calm.written_off,
    calm.entry_id_conflict,
    calm.newer_version,
    calm.repeated,
    instructed.late_cancel,
    instructed.refund_repeated,
)


def shares(account_id: str) -> Iterator[tuple[Tell, Wants, int]]:
    """What happens to a share of the account's payments tonight, per mille of those left."""
    mine = of_account(account_id)
    authorised = all_of(mine, in_state(GatewayState.AUTHORISED))
    paid = all_of(mine, in_state(GatewayState.PAID))
    yield instructed.capture, authorised, CAPTURED_PER_MILLE
    yield instructed.cancel, authorised, CANCELLED_PER_MILLE
    yield instructed.refund_in_full, paid, REFUNDED_PER_MILLE // 2
    yield instructed.refund_in_part, paid, REFUNDED_PER_MILLE // 2
    yield calm.chargeback_booked, all_of(mine, in_state(GatewayState.CHARGEBACK)), 1000
