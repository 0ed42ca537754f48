from typing import Any

from recon.notifications.receiver import Receiver
from tests.recon.notifications.told import PAYMENT, form


def test_an_order_that_only_a_notification_named_is_asked_for(merchant: Any) -> None:
    """A payment that no order file has is found by what the gateway told of it."""
    payment = next(item for item in merchant.payments("captured") if item.currency == "EUR")
    message = {
        **PAYMENT,
        "order_no": payment.order_no,
        "transaction_id": payment.transaction_id,
        "amount": payment.amount,
    }
    with merchant.environment() as environment:
        receiver = Receiver(environment.settings, store=environment.store, clock=merchant.clock)
        place = {"merchant_id": "100042", "account_id": "100042001"}
        assert receiver.receive(form(message), **place).text == "success"

    merchant.drop("orders.csv", merchant.order(merchant.payments("authorised")[0]))
    merchant.night()

    (asked,) = (summary for summary in merchant.told if summary.step == "query")
    assert asked.figures["found"] == 2
