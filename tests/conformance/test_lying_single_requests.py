"""The real client against every kind of lie, for requests that are a row of their own.

A payment by card, a payout and the end of a subscription: each is sent twice under each fault and
side, and what the client says is compared with the truth. `make conformance` plays every case, the
test suite one in SAMPLED.
"""

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from recon.gateway_client import CancelSubscriptionRow, ReplyOutcome
from recon.sandbox.faults import KINDS
from tests.conformance.conftest import Target
from tests.conformance.test_card_contract import card_payment
from tests.conformance.test_lying_gateway import DEADLINE_SECONDS, DID_NOT, EXTRA, HAPPENED, effects
from tests.conformance.test_payout_contract import payout_row
from tests.conformance.test_subscription_contract import PLAN

SAMPLED = 6
ALL = os.environ.get("CONFORMANCE_LIES") == "all"
REQUEST_ID = "7b8c1f0e-54a1-4f65-9a0e-6d1f0c4b2a1"
NUMBERS = (1, 2)
"""Each case sends two requests: some lies need one before them."""


def paid(target: Target, order_no: str) -> ReplyOutcome:
    """What a payment by card came to; what the wire did is an outcome too."""
    return target.pay(card_payment(order_no=order_no)).outcome


def of_batch(target: Target, operation: str, row: Any) -> ReplyOutcome:
    """What a batch of one came to."""
    return target.but(deadline_seconds=DEADLINE_SECONDS).move(operation, [row]).rows[0].outcome


def payments(target: Target) -> Mapping[str, Callable[[], ReplyOutcome]]:
    """Two payments by card, by their order numbers."""
    orders = [f"lie-{number}" for number in NUMBERS]
    return {order: partial(paid, target, order) for order in orders}


def payouts(target: Target) -> Mapping[str, Callable[[], ReplyOutcome]]:
    """Two payouts, by their request ids."""
    rows = [payout_row(request_id=f"{REQUEST_ID}{number}") for number in NUMBERS]
    return {row.key: partial(of_batch, target, "payout", row) for row in rows}


def endings(target: Target) -> Mapping[str, Callable[[], ReplyOutcome]]:
    """The ends of two subscriptions, by the transactions that made them."""
    made = {}
    for number in NUMBERS:
        record = target.pay(card_payment(order_no=f"plan-{number}", subscription=PLAN)).record
        assert record is not None
        row = CancelSubscriptionRow(recurring_id=record.recurring_id, contract_name="Gold plan")
        made[record.transaction_id] = row
    return {key: partial(of_batch, target, "cancelsubscription", row) for key, row in made.items()}


REQUESTS = {
    "authorise": (payments, "order_no"),
    "payout": (payouts, "request_id"),
    "cancelsubscription": (endings, "transaction_id"),
}
"""How an operation is asked for, and by which field of an effect it is found in the truth."""

CASES = [
    pytest.param(operation, kind, side, id=f"{operation}-{kind}-{side}")
    for operation in REQUESTS
    for kind, terms in KINDS.items()
    for side in sorted(terms.sides)
    # A payment would have to be kept with its card to come late, so no plan may say so.
    if terms.where != "notification" and (operation, kind) != ("authorise", "late")
]


@pytest.mark.parametrize(("operation", "kind", "side"), CASES if ALL else CASES[::SAMPLED])
def test_no_outcome_of_a_single_request_is_false(
    sandbox: Any, target: Any, operation: str, kind: str, side: str
) -> None:
    """What the client says happened did, what it says did not happen did not."""
    asks, field = REQUESTS[operation]
    requests = asks(target)
    rule = {"operation": operation, "kind": kind} | EXTRA.get(kind, {})
    sandbox.faults(rule | ({"when": side} if len(KINDS[kind].sides) > 1 else {}))
    outcomes = {key: ask() for key, ask in requests.items()}
    true = {effect[field] for effect in effects(sandbox) if effect["operation"] == operation}
    assert {key for key, outcome in outcomes.items() if outcome in HAPPENED} <= true
    assert true.isdisjoint(key for key, outcome in outcomes.items() if outcome in DID_NOT)
