"""A doubt about a refund, ended by our own reference through the sandbox's refund search."""

from dataclasses import replace
from datetime import timedelta

import pytest

from recon.instructions.resolution import SearchedRefund
from recon.model.terms import InstructionState
from recon.store.money import case_rows, instruction_rows


@pytest.fixture
def profile():
    """The one that has the search."""
    return "extended"


def _doubt(merchant, *, when, before=0):
    """A night whose last refund, a partial one, gets no answer; some went well before it."""
    paid = [p for p in merchant.payments("captured") if p.currency == "EUR"]
    for number in range(before + 1):
        one = {"action_amount": "0.50", "action_reason": "damaged"}
        row = merchant.order(paid[number], action="refund", **one)
        merchant.drop(f"orders-{number}.csv", row | {"refund_amount": "0.50"})
        if number == before:
            merchant.fault({"operation": "refund", "kind": "fin", "when": when, "nth": 1})
        merchant.night()
    merchant.fault()
    assert merchant.instruction_states().get("in_doubt") == 1


@pytest.mark.parametrize(("before", "ended"), [(0, "needs_human"), (1, "resolved_not_applied")])
def test_silence_ends_a_doubt_only_where_the_search_shows_other_refunds(merchant, before, ended):
    """A search that shows a known refund and not ours proves; one that shows none does not."""
    _doubt(merchant, when="before", before=before)
    states = []
    for hours in (25, 1):
        merchant.wait(hours=hours)
        merchant.night()
        states.append(merchant.instruction_states())

    assert len(merchant.effects()) == before
    assert states[0].get("in_doubt") == 1
    assert states[1].get(ended) == 1


def test_a_partial_refund_is_found_by_our_reference_once_it_shows(merchant):
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


def test_without_a_search_of_tonight_earlier_ones_end_nothing(merchant):
    _doubt(merchant, when="before", before=1)
    merchant.wait(hours=30)
    merchant.fault({"operation": "retrievalRefund", "kind": "status", "status": 400})
    with merchant.environment() as environment, environment.store.writing() as connection:
        (item,) = instruction_rows.find(connection, state=(InstructionState.IN_DOUBT,))
        uptime = environment.uptime()
        for minutes in (90, 5):
            at = environment.clock() - timedelta(minutes=minutes)
            then = replace(uptime, milliseconds=uptime.milliseconds - minutes * 60_000)
            silent = SearchedRefund("", at, "R-1", then)
            case_rows.note_search(connection, item.instruction_id, search=silent)
    merchant.night()

    assert merchant.instruction_states()["in_doubt"] == 1
