"""The real client against every kind of lie: it may not know, but it never believes what is false.

For each operation, kind and side of the commit, two batches are sent under the fault and every
outcome is compared with the truth. `unknown` and `pending` are always honest.
"""

import json
import time
from typing import Any

import httpx
import pytest

from recon.gateway_client import QueryRefusedError, ReplyOutcome
from recon.sandbox.faults import KINDS
from tests.conformance.test_batch_contracts import payments_for, rows_for

OPERATIONS = ("capture", "cancel", "refund", "review")
CASES = [
    pytest.param(operation, kind, side, id=f"{operation}-{kind}-{side}")
    for operation in OPERATIONS
    for kind, terms in KINDS.items()
    for side in sorted(terms.sides)
]
HAPPENED = {ReplyOutcome.DONE, ReplyOutcome.ACCEPTED}
DID_NOT = {ReplyOutcome.FAILED, ReplyOutcome.REJECTED, ReplyOutcome.NOT_SENT}
EXTRA: dict[str, dict[str, Any]] = {
    "silence": {"seconds": 0.05},
    "delay": {"seconds": 0.01},
    "drip": {"pause_seconds": 0, "piece_bytes": 256},
    "refuse": {"seconds": 0.05},
    "clock_skew": {"seconds": 7200},
    "lag": {"calls": 9},
}
DEADLINE_SECONDS = 5.0


@pytest.mark.parametrize(("operation", "kind", "side"), CASES)
def test_no_outcome_of_a_batch_is_false(
    sandbox: Any, target: Any, operation: str, kind: str, side: str
) -> None:
    """What the client says happened did, what it says did not happen did not."""
    rule = {"operation": operation, "kind": kind} | EXTRA.get(kind, {})
    sandbox.faults(rule | ({"when": side} if len(KINDS[kind].sides) > 1 else {}))
    payments = payments_for(sandbox, operation)[:6]
    outcomes: list[tuple[str, ReplyOutcome]] = []
    quick = target.but(deadline_seconds=DEADLINE_SECONDS)
    for part in (payments[:3], payments[3:]):
        reply = quick.move(operation, rows_for(operation, part))
        keys = [payment["transaction_id"] for payment in part]
        outcomes += zip(keys, (row.outcome for row in reply.rows), strict=True)
    true = {e["transaction_id"] for e in effects(sandbox) if e["operation"] == operation}
    assert {key for key, outcome in outcomes if outcome in HAPPENED} <= true
    assert true.isdisjoint(key for key, outcome in outcomes if outcome in DID_NOT)


def effects(sandbox: Any) -> list[dict[str, str]]:
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
def test_no_answer_of_a_query_is_false(sandbox: Any, target: Any, kind: str) -> None:
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
