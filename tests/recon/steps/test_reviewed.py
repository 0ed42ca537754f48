"""A review moves no money: what it released can be captured, in parts, or cancelled afterwards."""

import json
import urllib.request
from typing import Any

import pytest

from recon.model.words import InstructionKind, InstructionState
from recon.steps.money.by_hand import HandRequest, carry_out
from tests.recon.steps.conftest import Payment
from tests.recon.steps.test_instruction_files import drop_instructions


def _in_review(merchant: Any) -> Payment:
    """The sandbox's one payment that waits for a review."""
    with urllib.request.urlopen(merchant.sandbox.base_url + "/_sandbox/payments") as reply:  # noqa: S310 - loopback
        found = map(json.loads, reply.read().decode().splitlines())
        (row,) = (one for one in found if one["state"] == "in_review")
    amount = row["amount"].removesuffix(".00")
    return Payment(
        *(row["order_no"], row["transaction_id"], row["currency"], amount),
        ordered_at="2026-11-19T12:49:36Z",
        state="in_review",
    )


def _row(payment: Payment, kind: str, **changed: str) -> dict[str, str]:
    return {
        "merchant_id": "100042",
        "account_id": "100042001",
        "kind": kind,
        "request_id": f"{kind}-1",
        "order_no": payment.order_no,
        "transaction_id": payment.transaction_id,
        "currency": payment.currency,
        "amount": payment.amount,
    } | changed


def _nights(merchant: Any, payment: Payment, *rows: dict[str, str]) -> None:
    """One night for each row."""
    merchant.drop("orders.csv", merchant.order(payment, status="pending"))
    for day, row in enumerate(rows, start=20):
        drop_instructions(merchant, row, name=f"instructions-{day}.csv")
        merchant.night(date=f"2026-11-{day}")
        merchant.wait(hours=24)


@pytest.mark.parametrize("kind", ["capture", "cancel"])
def test_what_a_review_released_goes_on_in_the_next_night(merchant: Any, kind: str) -> None:
    """The night after the review captures or cancels the payment, with one effect each."""
    payment = _in_review(merchant)
    _nights(merchant, payment, _row(payment, "review", review_flag="1"), _row(payment, kind))

    assert merchant.instruction_states() == {"confirmed": 2}
    told = [one["operation"] for one in merchant.effects()]
    assert [one for one in told if one in {"capture", "cancel"}] == [kind]


def test_what_a_review_released_is_captured_in_parts(merchant: Any) -> None:
    """A gateway that takes parts gets the first part of a payment that was reviewed."""
    with (merchant.folder / "config" / "gateway.toml").open("a") as gateway:
        gateway.write("capture_multiple = true\n")
    payment = _in_review(merchant)
    part = _row(payment, "capture", amount="1000")
    _nights(merchant, payment, _row(payment, "review", review_flag="1"), part)

    assert merchant.instruction_states() == {"confirmed": 2}
    captured = [one for one in merchant.effects() if one["operation"] == "capture"]
    assert [one["amount"] for one in captured] == ["1000.00"]


@pytest.mark.parametrize("kind", ["capture", "cancel"])
def test_what_a_review_released_goes_on_by_hand(merchant: Any, kind: str) -> None:
    """By hand, too, a confirmed review stands in nobody's way."""
    payment = _in_review(merchant)
    states = []
    for wanted in ("review", kind):
        request = HandRequest(
            InstructionKind(wanted), "100042", "100042001", order_no=payment.order_no, by="anna"
        )
        with merchant.environment() as environment:
            states.append(carry_out(request, environment=environment).state)

    assert states == [InstructionState.CONFIRMED] * 2
