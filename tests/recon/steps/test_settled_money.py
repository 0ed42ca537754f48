"""Doubts about refunds and payouts, ended by the sandbox's own settlement file, night by night."""

from typing import Any

import pytest

from tests.recon.steps.test_instruction_files import PAYOUT, drop_instructions, two_approve
from tests.recon.steps.test_settled_doubts import instructions
from tests.recon.steps.test_settled_nights import settle
from tests.recon.steps.test_settlement_files import broken, declare, passed, place

DAYS = ("2026-11-20", "2026-11-21", "2026-11-22", "2026-11-23")


@pytest.fixture
def profile() -> str:
    """The one whose refunds carry our own reference."""
    return "extended"


def test_the_file_ends_the_doubts_of_refunds_and_of_a_payout(paying_merchant: Any) -> None:
    """Whole refund, part refund and payout: sent once, in doubt, then named by the file.

    The payout waits with people, whom nothing else could help; afterwards nothing is sent again.
    """
    merchant = paying_merchant
    whole, part = _in_doubt(merchant)
    merchant.wait(hours=24)
    merchant.night(date=DAYS[1])
    assert merchant.instruction_states() == {"in_doubt": 2, "needs_human": 1}

    settle(merchant, DAYS[0], true=True)
    merchant.wait(hours=24)
    merchant.night(date=DAYS[2])
    ended = instructions(merchant)
    assert {state for _, state, _ in ended.values()} == {"resolved_applied"}
    assert ended[""][2].endswith("has our reference and amount")
    assert set(passed(merchant, "T11")) == {True}
    ours = {whole.order_no, part.order_no, ""}
    assert {order: code for order, code in broken(merchant).items() if order in ours} == {}

    merchant.wait(hours=24)
    merchant.night(date=DAYS[3])
    moved = sorted((row["operation"], row["amount"]) for row in merchant.effects())
    assert moved == [("payout", "250.00"), ("refund", "0.50"), ("refund", whole.amount)]
    assert merchant.invariants()["double_effects"] == 0


def _in_doubt(merchant: Any) -> list[Any]:
    """Two refunds and a payout whose replies were lost; the payments that were refunded."""
    place(merchant).mkdir()
    declare(merchant)
    drop_instructions(merchant, PAYOUT)
    merchant.night(date=DAYS[0])
    two_approve(merchant)
    paid = [one for one in merchant.payments("captured") if one.currency == "EUR"][:2]
    said = {"status": "partially_refunded", "action": "refund"}
    amounts = (paid[0].amount, "0.50")
    rows = [
        merchant.order(one, refund_amount=amount, action_amount=amount, **said)
        for one, amount in zip(paid, amounts, strict=True)
    ]
    merchant.drop("refunds.csv", rows[0] | {"status": "refunded"}, rows[1])
    lost = {"kind": "fin", "when": "after", "nth": 1}
    merchant.fault({"operation": "refund", **lost}, {"operation": "payout", **lost})
    merchant.night(date=DAYS[0])
    assert merchant.instruction_states() == {"in_doubt": 3}
    # The gateway's search for refunds knows nothing of them all the while.
    merchant.fault({"operation": "retrievalRefund", "kind": "lag", "seconds": 10 * 86_400})
    return paid
