"""Doubts that a settlement file ends, over whole nights."""

import urllib.request
from dataclasses import replace
from datetime import date

import pytest
from sqlalchemy import text

from recon.model.errors import HistoryBrokenError
from recon.steps.night import whole_night
from tests.recon.steps.conftest import plain_workbooks
from tests.recon.steps.files.test_settlement_files import broken, declare, line, passed, place, send
from tests.recon.steps.test_instruction_files import PAYOUT, drop_instructions, two_approve

DAYS = ("2026-11-20", "2026-11-21", "2026-11-22", "2026-11-23")


@pytest.fixture
def profile():
    """The one whose refunds carry our own reference."""
    return "extended"


def test_the_file_ends_the_doubts_of_refunds_and_of_a_payout(paying_merchant):
    """Whole refund, part refund and payout: sent once, in doubt, then named by the file.

    The payout waits with people, whom nothing else could help; afterwards nothing is sent again.
    """
    merchant = paying_merchant
    whole, part = _in_doubt(merchant)
    merchant.wait(hours=24)
    merchant.night(date=DAYS[1])
    assert merchant.instruction_states() == {"in_doubt": 2, "needs_human": 1}

    name = f"settlement-true-{DAYS[0]}.csv"
    url = f"{merchant.sandbox.base_url}/_sandbox/files/100042001/{DAYS[0]}/{name}"
    with urllib.request.urlopen(url) as reply:  # noqa: S310 - loopback
        (place(merchant) / name).write_bytes(reply.read())
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


def _in_doubt(merchant):
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
    _book(merchant, *zip(paid, amounts, strict=True))
    # The gateway's search for refunds knows nothing of them all the while.
    merchant.fault({"operation": "retrievalRefund", "kind": "lag", "seconds": 10 * 86_400})
    return paid


def _book(merchant, *refunded):
    """The ledger has each payment's capture and its refund."""
    header = "entry_id,merchant_id,account_id,order_no,entry_type,currency,amount,booked_at"
    rows = [
        f"{kind}-{one.order_no},100042,100042001,{one.order_no},{kind},EUR,{money},{one.ordered_at}"
        for one, amount in refunded
        for kind, money in (("capture", one.amount), ("refund", amount))
    ]
    (merchant.folder / "ledger.csv").write_text("\n".join([header, *rows, ""]))


def test_a_line_of_another_refund_of_ours_ends_no_doubt(merchant):
    """The number that the journal has from another refund of the payment is not this one's."""
    place(merchant).mkdir()
    declare(merchant)
    first, other = [one for one in merchant.payments("captured") if one.currency == "EUR"][:2]
    refund = {"status": "refunded", "action": "refund"}
    merchant.drop("first.csv", merchant.order(other, refund_amount=other.amount, **refund))
    merchant.night(date=DAYS[0])
    merchant.drop("second.csv", merchant.order(first, refund_amount=first.amount, **refund))
    merchant.fault({"operation": "refund", "kind": "fin", "when": "before", "nth": 1})
    merchant.night(date=DAYS[0])
    merchant.fault()
    ours = {"transaction": first.transaction_id, "order": other.order_no}
    with merchant.environment() as environment, environment.store.writing() as connection:
        # As if the confirmed one had been of the same payment.
        moved = "UPDATE instruction SET transaction_id = :transaction WHERE order_no = :order"
        connection.execute(text(moved), ours)
        known = "SELECT refund_reference_id FROM instruction WHERE order_no = :order"
        number = connection.execute(text(known), ours).scalar_one()
    shown = {"entry_type": "refund", "gross": f"-{first.amount}", "reference_no": number}
    send(merchant, "S1.csv", line(first, **shown))
    merchant.wait(hours=24)
    merchant.night(date=DAYS[1])

    assert number
    assert instructions(merchant)[first.order_no][1] == "in_doubt"


def test_lines_that_the_history_did_not_bind_end_no_doubt(merchant):
    """The gate closes, and what is in doubt stays so until the rows are those that were kept."""
    place(merchant).mkdir()
    declare(merchant)
    whole = next(one for one in merchant.payments("authorised") if one.currency == "EUR")
    merchant.drop("orders.csv", merchant.order(whole, status="paid", action="capture"))
    merchant.fault({"operation": "capture", "kind": "fin", "when": "after", "nth": 1})
    merchant.night()
    merchant.fault()
    merchant.wait(hours=24)
    send(merchant, "S1.csv", line(whole, settled_on="2026-11-21"))

    def forge(told):
        if told.step == "query":
            merchant.as_owner("UPDATE order_facts_account SET row_count = row_count + 1")

    request = replace(merchant.request, business_date=date(2026, 11, 21))
    with merchant.environment() as environment, pytest.raises(HistoryBrokenError):
        whole_night.run(
            request, environment=environment, workbooks=plain_workbooks(), progress=forge
        )
    assert instructions(merchant)[whole.order_no][1] == "in_doubt"

    merchant.as_owner("UPDATE order_facts_account SET row_count = row_count - 1")
    merchant.night(date="2026-11-21")
    assert instructions(merchant)[whole.order_no][1] == "resolved_applied"


def instructions(merchant):
    """Order number -> id, state and last message of each instruction."""
    query = "SELECT order_no, instruction_id, state, message FROM instruction"
    return {order_no: tuple(rest) for order_no, *rest in merchant.rows(query)}
