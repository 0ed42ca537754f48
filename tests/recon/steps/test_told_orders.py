from typing import Any

import pytest

from recon.notifications.receiver import Receiver
from recon.steps.ground.kept_answers import order_numbers
from recon.steps.night import query
from recon.steps.night import query as asking
from recon.steps.people import people
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
    merchant.move_money()

    (asked,) = (summary for summary in merchant.told if summary.step == "query")
    assert asked.figures["found"] == 2


def test_a_payment_that_only_an_instruction_file_names_is_asked_for(merchant: Any) -> None:
    """It is asked about before its instruction is judged, so that the first night sends it."""
    one = next(item for item in merchant.payments("authorised") if item.currency == "EUR")
    header = "merchant_id,account_id,kind,request_id,order_no,transaction_id,currency,amount"
    row = f"100042,100042001,capture,R-1,{one.order_no},{one.transaction_id},EUR,{one.amount}"
    (merchant.inbox / "instructions-1.csv").write_text(f"{header}\n{row}\n")
    merchant.night()
    told = {summary.step: summary for summary in merchant.told}

    assert told["query"].figures["found"] == 1
    assert [row["operation"] for row in merchant.effects()] == ["capture"]


def test_a_payment_of_an_instruction_that_has_ended_is_asked_about_again(
    merchant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No order file names it and no break keeps it: what the gateway shows of it later is seen."""
    test_a_payment_that_only_an_instruction_file_names_is_asked_for(merchant)
    merchant.wait(hours=24)
    monkeypatch.setattr(query.KeptResult, "orders_left_open", lambda _: ())
    monkeypatch.setattr(query.ShownAnswers, "failed_keys", lambda _: ())
    merchant.move_money(date="2026-11-21")
    (asked,) = (summary for summary in merchant.told if summary.step == "query")

    assert asked.figures["found"] == 1


def test_an_order_that_was_not_asked_about_is_not_called_unanswered(
    merchant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Why an instruction waits is true: nobody asked, where nobody asked."""
    one = next(item for item in merchant.payments("authorised") if item.currency == "EUR")
    merchant.drop("orders.csv", merchant.order(one, status="paid", action="capture"))
    monkeypatch.setattr(asking, "orders_in_question", lambda *_, **__: order_numbers([()]))
    merchant.night()
    with merchant.environment() as environment:
        ((_, (waiting, *_)),) = people.status(environment)

    assert "The gateway was not asked about this order tonight" in waiting.next_step
    assert "no usable answer" not in waiting.next_step
