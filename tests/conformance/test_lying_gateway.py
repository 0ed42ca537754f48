"""The real client against every kind of lie: it may not know, but it never believes what is false.

For each operation, kind and side of the commit, two requests are sent under the fault, since some
lies need one before them, and every outcome is compared with the truth. `unknown` and `pending` are
always honest.
"""

import json
import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import httpx
import pytest

from recon.gateway_client import CancelSubscriptionRow, QueryRefusedError, ReplyOutcome
from recon.sandbox.faults import KINDS
from tests.conformance.test_batch_contracts import payments_for, rows_for
from tests.conformance.test_card_contract import card_payment
from tests.conformance.test_payout_contract import payout_row
from tests.conformance.test_subscription_contract import PLAN

SAMPLED = 6
ALL = os.environ.get("CONFORMANCE_LIES") == "all"
DEADLINE_SECONDS = 5.0
REQUEST_ID = "7b8c1f0e-54a1-4f65-9a0e-6d1f0c4b2a1"
NUMBERS = (1, 2)
HAPPENED = {ReplyOutcome.DONE, ReplyOutcome.ACCEPTED}
DID_NOT = {ReplyOutcome.FAILED, ReplyOutcome.REJECTED, ReplyOutcome.NOT_SENT}
EXTRA: dict[str, dict[str, Any]] = {
    "silence": {"seconds": 0.05},
    "delay": {"seconds": 0.01},
    "drip": {"pause_seconds": 0, "piece_bytes": 256},
    "refuse": {"seconds": 0.05},
    "clock_skew": {"seconds": 7200},
}
Ask = Callable[[], Mapping[str, ReplyOutcome]]
"""One request: by what each of its effects is known -> what it came to."""


def paid(target, order_no):
    """What a payment by card came to; what the wire did is an outcome too."""
    return {order_no: target.pay(card_payment(order_no=order_no)).outcome}


def moved(target, operation, rows):
    """What each row of a batch came to."""
    reply = target.but(deadline_seconds=DEADLINE_SECONDS).move(operation, [*rows.values()])
    return dict(zip(rows, (row.outcome for row in reply.rows), strict=True))


def payments(target, _sandbox, _operation):
    """Two payments by card, by their order numbers."""
    return [partial(paid, target, f"lie-{number}") for number in NUMBERS]


def batches(target, sandbox, operation):
    """Two batches of three, by the transactions."""
    known = payments_for(sandbox, operation)
    rows = [{row.key: row for row in rows_for(operation, some)} for some in (known[:3], known[3:6])]
    return [partial(moved, target, operation, some) for some in rows]


def payouts(target, _sandbox, operation):
    """Two payouts, by their request ids."""
    rows = [payout_row(request_id=f"{REQUEST_ID}{number}") for number in NUMBERS]
    return [partial(moved, target, operation, {row.key: row}) for row in rows]


def endings(target, _sandbox, operation):
    """The ends of two subscriptions, by the transactions that made them."""
    asks: list[Ask] = []
    for number in NUMBERS:
        record = target.pay(card_payment(order_no=f"plan-{number}", subscription=PLAN)).record
        row = CancelSubscriptionRow(recurring_id=record.recurring_id, contract_name="Gold plan")
        asks.append(partial(moved, target, operation, {record.transaction_id: row}))
    return asks


REQUESTS = {
    **dict.fromkeys(("capture", "cancel", "refund", "review"), (batches, "transaction_id")),
    "authorise": (payments, "order_no"),
    "payout": (payouts, "request_id"),
    "cancelsubscription": (endings, "transaction_id"),
}
"""How an operation is asked for, and by which field of an effect it is found in the truth."""


def cases(*operations):
    """Every kind of lie about these operations, on each side of the commit."""
    return [
        pytest.param(operation, kind, side, id=f"{operation}-{kind}-{side}")
        for operation in operations
        for kind, terms in KINDS.items()
        for side in sorted(terms.sides)
        if (asks := REQUESTS[operation][0]) is batches
        # A payment would have to be kept with its card to come late, so no plan may say so.
        or (terms.where != "notification" and (asks, kind) != (payments, "late"))
    ]


SINGLE = cases("authorise", "payout", "cancelsubscription")


@pytest.mark.parametrize(
    ("operation", "kind", "side"),
    [*cases("capture", "cancel", "refund", "review"), *(SINGLE if ALL else SINGLE[::SAMPLED])],
)
def test_no_outcome_is_false(sandbox, target, operation, kind, side):
    """What the client says happened did, what it says did not happen did not."""
    requests, field = REQUESTS[operation]
    asks = requests(target, sandbox, operation)
    rule = {"operation": operation, "kind": kind} | EXTRA.get(kind, {})
    sandbox.faults(rule | ({"when": side} if len(KINDS[kind].sides) > 1 else {}))
    outcomes = [one for ask in asks for one in ask().items()]
    true = {effect[field] for effect in effects(sandbox) if effect["operation"] == operation}
    assert {key for key, outcome in outcomes if outcome in HAPPENED} <= true
    assert true.isdisjoint(key for key, outcome in outcomes if outcome in DID_NOT)


def effects(sandbox):
    """What the API did, asked over a connection that no fault has touched."""
    with type(sandbox)(sandbox.base_url).http as fresh:
        for _ in range(100):
            try:
                lines = fresh.get("/_sandbox/effects").text.splitlines()
            except httpx.TransportError:
                time.sleep(0.01)
            else:
                return [line for line in map(json.loads, lines) if line["origin"] == "api"]
    pytest.fail("the sandbox does not come back")


TWO_DECIMALS = {"EUR", "USD", "GBP"}
UNSEEN_BY_ANY_CLIENT = {"lag", "wrong_amount", "stray_row"}
"""A query that shows an old state or another amount in due form cannot be told from the truth."""


@pytest.mark.parametrize("kind", sorted(set(KINDS) - UNSEEN_BY_ANY_CLIENT))
def test_no_answer_of_a_query_is_false(sandbox, target, kind):
    """A known order is never `not found`, and what is found is the payment as it truly is."""
    # How many decimals a currency has is the adapter's knowledge, so here all have two.
    payments = [row for row in sandbox.authorised() if row["currency"] in TWO_DECIMALS][:3]
    rule = {"operation": "retrievalTrans", "kind": kind, "times": 2} | EXTRA.get(kind, {})
    rule |= {"when": "before"} if KINDS[kind].sides == {"before"} else {}
    sandbox.faults(rule)
    quick = target.but(deadline_seconds=DEADLINE_SECONDS)
    orders = [payment["order_no"] for payment in payments]
    try:
        answers = quick.ask(order_nos=orders)
    except QueryRefusedError:
        return
    assert answers.not_found == ()
    by_order = {payment["order_no"]: payment for payment in payments}
    for record in answers.found:
        true = by_order[record.key]
        assert (record.transaction_id, str(record.amount)) == (
            true["transaction_id"],
            true["amount"],
        )
