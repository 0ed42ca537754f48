"""A chargeback that only settlement files or the books know keeps its payment from a refund."""

from typing import Any

import pytest
from sqlalchemy import text

from recon.steps.money.settle import larger_of
from tests.recon.steps.files.test_settlement_files import declare, line, place, send


@pytest.mark.parametrize(
    ("order_no", "transaction_id", "wanted"),
    [
        pytest.param("O1", "T1", 350, id="the larger source"),
        pytest.param("O2", "T2", 1_000, id="another currency"),
        pytest.param("O3", "T3", 7, id="won back in the files only"),
        pytest.param("O4", "T4", 0, id="nothing known"),
    ],
)
def test_both_sources_tell_of_the_same_movements(
    order_no: str, transaction_id: str, wanted: int
) -> None:
    """The larger sum counts; an amount in another currency counts as the whole payment."""
    settled = {("T1", "EUR"): 300, ("T2", "USD"): 5, ("T3", "EUR"): -1}
    booked = {("O1", "", "EUR"): 200, ("O9", "T1", "EUR"): 150, ("O3", "T3", "EUR"): 7}
    of_payment = larger_of(settled, booked=booked)

    assert of_payment(order_no, transaction_id, "EUR", 1_000) == wanted


def test_what_was_charged_back_is_not_refunded(merchant: Any) -> None:
    """One by a settlement file, one in the books by its order number; a third is refunded.

    A chargeback that was won back in the books bars nothing.
    """
    place(merchant).mkdir()
    declare(merchant)
    settled, booked, won, free = [
        one for one in merchant.payments("captured") if one.currency == "EUR"
    ][:4]
    back = line(settled, entry_type="chargeback", gross=f"-{settled.amount}")
    send(merchant, "S1.csv", back)
    entries = [(booked, "chargeback"), (won, "chargeback"), (won, "chargeback_reversal")]
    with (merchant.folder / "ledger.csv").open("a") as ledger:
        for number, (one, kind) in enumerate(entries):
            cells = (f"C{number},100042,100042001", one.order_no, kind, "EUR", one.amount)
            ledger.write(",".join((*cells, "2026-11-20T12:00:00Z")) + "\n")
    merchant.night()
    refund = {"status": "partially_refunded", "refund_amount": "0.50", "action": "refund"}
    wanted = (settled, booked, won, free)
    rows = [merchant.order(one, action_amount="0.50", **refund) for one in wanted]
    merchant.drop("refunds.csv", *rows)
    merchant.move_money()

    assert {row["order_no"] for row in merchant.effects()} == {won.order_no, free.order_no}
    assert holds(merchant) == {settled.order_no: True, booked.order_no: True}


def holds(merchant: Any) -> dict[str, bool]:
    """Which orders wait, and whether a chargeback is why."""
    query = text("SELECT order_no, hold FROM instruction WHERE state = 'approved'")
    with merchant.environment() as environment, environment.store.reading() as connection:
        return {row[0]: "chargebacks would exceed" in row[1] for row in connection.execute(query)}
