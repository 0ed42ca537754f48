"""A doubt about a refund, ended by our own reference through the sandbox's refund search."""

from typing import Any

import pytest


@pytest.fixture
def profile() -> str:
    """The one that has the search."""
    return "extended"


def _doubt(merchant: Any, *, when: str) -> None:
    """A night whose only refund, a partial one, gets no answer."""
    paid = next(p for p in merchant.payments("captured") if p.currency == "EUR")
    row = merchant.order(paid, action="refund", action_amount="0.50", action_reason="damaged")
    merchant.drop("orders.csv", row | {"refund_amount": "0.50"})
    merchant.fault({"operation": "refund", "kind": "fin", "when": when, "nth": 1})
    merchant.night()
    merchant.fault()
    assert merchant.instruction_states() == {"in_doubt": 1}


def test_a_refund_that_never_was_is_no_longer_in_doubt_once_it_would_show(merchant: Any) -> None:
    """Searches that find nothing, far enough apart, say that it did not happen."""
    _doubt(merchant, when="before")
    for _ in range(2):
        merchant.wait(hours=1)
        merchant.night()

    assert merchant.effects() == []
    assert merchant.instruction_states() == {"resolved_not_applied": 1}


def test_a_partial_refund_is_found_by_our_reference_once_it_shows(merchant: Any) -> None:
    """No state proves it: one silent search ends nothing, then our reference names it."""
    _doubt(merchant, when="after")
    merchant.fault({"operation": "retrievalRefund", "kind": "lag", "seconds": 5400})
    states = []
    for _ in range(2):
        merchant.wait(hours=1)
        merchant.night()
        states.append(merchant.instruction_states())

    (refund,) = [row for row in merchant.effects() if row["operation"] == "refund"]
    assert refund["refund_reference"]
    assert states == [{"in_doubt": 1}, {"resolved_applied": 1}]
    assert merchant.invariants()["double_effects"] == 0
