from datetime import UTC, datetime

import pytest

from recon.instructions.eligibility import QueriedPayment
from recon.model.terms import GatewayState
from recon.steps.money.settle import larger_of, payments_by_order
from tests.recon.steps.files.test_settlement_files import declare, line, place, send

ROW = {
    "order_no": "A-1",
    "transaction_id": "T1",
    "payment_status": "3000",
    "currency": "EUR",
    "amount": 10_000,
    "transaction_date": datetime(2026, 11, 20, tzinfo=UTC),
}


def _shown(row, **more):
    return row["order_no"], QueriedPayment(
        *(row["transaction_id"], GatewayState.PAID),
        *(row["payment_status"], row["currency"], row["amount"], row["transaction_date"]),
        **more,
    )


def _closed(*rows):
    found = payments_by_order(map(_shown, rows))
    return {order: [one.closed_because for one in payments] for order, payments in found.items()}


@pytest.mark.parametrize(
    "otherwise", [{"payment_status": "4100"}, {"amount": 9_000}, {"currency": "USD"}]
)
def test_answers_that_contradict_each_other_close_the_payment(otherwise):
    """One transaction in two rows, of one order or of two, whichever comes first: both wait."""
    for order in ("A-1", "A-2"):
        other = ROW | otherwise | {"order_no": order}
        for rows in ((ROW, other), (other, ROW)):
            told = _closed(*rows, ROW | {"order_no": "A-3", "transaction_id": "T3"})
            closed = [*told["A-1"], *told.get("A-2", ())]
            assert ["shows transaction T1 in two ways" in why for why in closed] == [True, True]
            assert told["A-3"] == [""]


def test_the_same_answer_about_two_orders_closes_nothing():
    assert _closed(ROW, ROW | {"order_no": "A-2"}) == {"A-1": [""], "A-2": [""]}
    found = payments_by_order([_shown(ROW, closed_because="a case")])
    assert [one.closed_because for one in found["A-1"]] == ["a case"]


@pytest.mark.parametrize(
    ("order_no", "transaction_id", "wanted"),
    [
        pytest.param("O1", "T1", 350, id="the larger source"),
        pytest.param("O2", "T2", 1_000, id="another currency"),
        pytest.param("O3", "T3", 7, id="won back in the files only"),
        pytest.param("O4", "T4", 0, id="nothing known"),
    ],
)
def test_both_sources_tell_of_the_same_movements(order_no, transaction_id, wanted):
    settled = {("T1", "EUR"): 300, ("T2", "USD"): 5, ("T3", "EUR"): -1}
    booked = {("O1", "", "EUR"): 200, ("O9", "T1", "EUR"): 150, ("O3", "T3", "EUR"): 7}
    of_payment = larger_of(settled, booked=booked)

    assert of_payment(order_no, transaction_id, "EUR", 1_000) == wanted


def test_what_was_charged_back_is_not_refunded(merchant):
    """One by a settlement file, one in the ledger by its order number; a third is refunded.

    A chargeback that was won back in the ledger bars nothing.
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


def holds(merchant):
    found = merchant.rows("SELECT order_no, hold FROM instruction WHERE state = 'approved'")
    return {order_no: "chargebacks would exceed" in hold for order_no, hold in found}
