"""The gateway's query shows one payment twice: alike, or in two states that exclude each other."""

from typing import Any

from recon.model.words import Verdict
from tests.recon.steps.files.test_settlement_files import broken

QUERY = {"operation": "retrievalTrans"}


def to_refund(merchant: Any) -> Any:
    """A captured payment of which the order file wants a part back."""
    payment = next(one for one in merchant.payments("captured") if one.currency == "EUR")
    wanted = {"status": "partially_refunded", "refund_amount": "0.50", "action_amount": "0.50"}
    merchant.drop("orders.csv", merchant.order(payment, action="refund", **wanted))
    return payment


def test_a_payment_in_two_states_is_a_break_and_nothing_is_sent_for_it(merchant: Any) -> None:
    """Paid and cancelled in one reply: which is true nobody knows; the refund waits with a reason.

    When the gateway shows it once again, the next night sends the refund, once.
    """
    payment = to_refund(merchant)
    merchant.fault(QUERY | {"kind": "contradicting_row", "order_no": payment.order_no})
    verdict = merchant.night()
    first = broken(merchant)
    held = merchant.effects()
    merchant.fault()
    merchant.wait(hours=24)
    merchant.night(date="2026-11-21")
    merchant.wait(hours=24)
    merchant.night(date="2026-11-22")

    assert verdict is Verdict.BREAKS_OPEN
    assert first[payment.order_no] == "AMBIGUOUS_MATCH"
    assert held == []
    assert [(one["operation"], one["amount"]) for one in merchant.effects()] == [("refund", "0.50")]
    assert "AMBIGUOUS_MATCH" not in broken(merchant).values()


def test_the_same_row_twice_is_one_payment(merchant: Any) -> None:
    """A repeat is no second payment: the refund goes, once, and no break comes of it."""
    payment = to_refund(merchant)
    merchant.fault(QUERY | {"kind": "duplicate_row", "order_no": payment.order_no})
    merchant.night()

    assert [one["operation"] for one in merchant.effects()] == ["refund"]
    assert not {"AMBIGUOUS_MATCH", "DUPLICATE_PAYMENT"} & {*broken(merchant).values()}
