from typing import Any

from recon.steps import people


def _status(merchant: Any) -> list[tuple[str, list[tuple[str, str, int]]]]:
    with merchant.environment() as environment:
        return [
            (run.business_date, [(one.what, one.currency, one.amount) for one in attention])
            for run, attention in people.status(environment)
        ]


def test_doubt_comes_before_what_only_waits(merchant: Any) -> None:
    """Money in doubt stands above instructions that were not sent, with amount and currency."""
    capture = merchant.payments("authorised")[0]
    paid = next(p for p in merchant.payments("captured") if p.currency == "EUR")
    merchant.drop(
        "orders.csv",
        merchant.order(paid, status="cancelled", action="cancel"),
        merchant.order(capture, status="paid", action="capture"),
    )
    merchant.fault({"operation": "capture", "kind": "garbage", "when": "after"})
    merchant.night()
    ((date, listed),) = _status(merchant)

    assert date == "2026-11-20"
    assert [what for what, _, _ in listed] == ["capture in doubt", "cancel not sent"]
    assert listed[1][1:] == ("EUR", int(paid.amount.replace(".", "")))


def test_a_repeat_waits_for_a_person_with_its_reason(merchant: Any) -> None:
    """An equal refund from another file is not sent, and the list says which one it repeats."""
    paid = next(p for p in merchant.payments("captured") if p.currency == "EUR")
    refund = merchant.order(paid, status="paid", action="refund", action_amount="1.00")
    merchant.drop("orders-1.csv", refund)
    merchant.drop("orders-2.csv", refund, merchant.order(merchant.payments("captured")[-1]))
    merchant.night()
    with merchant.environment() as environment:
        ((_, attention),) = people.status(environment)

    assert [one.what for one in attention] == ["refund waiting for approval"]
    assert "orders-1.csv" in attention[0].next_step
    assert len(merchant.effects()) == 1


def test_a_quiet_account_needs_nobody(merchant: Any) -> None:
    """An account whose instructions are all settled has an empty list."""
    merchant.drop("orders.csv", *(merchant.order(p) for p in merchant.payments("captured")[:2]))
    merchant.night()

    assert _status(merchant) == [("2026-11-20", [])]
