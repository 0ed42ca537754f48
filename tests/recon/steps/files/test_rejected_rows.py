"""A row that could not be read is no order that does not exist: not on the next night either."""

import pytest
from python_calamine import CalamineWorkbook

from recon.model.errors import UsageError
from recon.model.terms import Verdict
from recon.steps.files.order_files import dismiss_row, outstanding_rows
from recon.steps.runtime.identity import identify
from reports.workbook_io import workbooks

HEADER = (
    "merchant_id,account_id,order_no,currency,amount,status,ordered_at,refund_amount,action,"
    "action_amount,action_reason,request_id\n"
)
LEDGER_HEADER = "entry_id,merchant_id,account_id,order_no,entry_type,currency,amount,booked_at\n"
BAD_AMOUNT = "100042,100042001,{no},EUR,twelve,paid,{at},,,,,\n"
BAD_AMOUNT_AND_ACCOUNT = "100042,10 00 42,{no},EUR,twelve,paid,{at},,,,,\n"
NO_NUMBER = '100042,100042001,"a,b",EUR,{amount},paid,{at},,,,,\n'
GOOD = "100042,100042001,{no},EUR,{amount},paid,{at},,,,,\n"
OTHER = "100042,100042001,N-{day},EUR,1.00,cancelled,2026-11-19T10:00:00Z,,,,,\n"
DAYS = ("2026-11-20", "2026-11-21", "2026-11-22")
PEOPLE = '[approvers.anna]\nname = "Anna Berg"\n'


def sale(merchant):
    """A genuine sale: paid at the gateway, booked, and in an order file that comes tonight."""
    one = next(
        p
        for p in merchant.payments("captured")
        if p.currency == "EUR" and p.ordered_at < "2026-11-18"
    )
    entry = f"E1,100042,100042001,{one.order_no},capture,EUR,{one.amount},2026-11-19T10:00:00Z\n"
    (merchant.folder / "ledger.csv").write_text(LEDGER_HEADER + entry)
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    return one


def night(merchant, day, *lines, of):
    named = {"no": of.order_no, "amount": of.amount, "at": of.ordered_at, "day": day}
    text = "".join((*lines, OTHER)).format(**named)
    (merchant.inbox / f"orders-{day}.csv").write_text(HEADER + text)
    verdict = merchant.night(date=day, workbooks=workbooks())
    merchant.wait(hours=24)
    kept = merchant.result()
    frames = {"break": kept.breaks, "unverified": kept.unverified, "matched": kept.matches}
    return verdict, {
        name: frame.loc[frame["order_no"].eq(of.order_no), column].tolist()
        for (name, frame), column in zip(frames.items(), ("code", "reason", "rule"), strict=True)
    }


def sheet_text(merchant, title):
    rows = (
        CalamineWorkbook.from_path(str(merchant.newest().workbook))
        .get_sheet_by_name(title)
        .to_python()
    )
    return "\n".join(str(cell) for row in rows for cell in row)


@pytest.mark.parametrize("line", [BAD_AMOUNT, BAD_AMOUNT_AND_ACCOUNT])
def test_a_rejected_row_stands_for_its_order_until_it_is_delivered(merchant, line):
    """The nights after say which line of which file could not be read, and accuse nobody."""
    one = sale(merchant)
    first = night(merchant, DAYS[0], line, of=one)
    second = night(merchant, DAYS[1], of=one)
    pending = sheet_text(merchant, "Pending")
    third = night(merchant, DAYS[2], GOOD, of=one)

    assert [told["break"] for _, told in (first, second, third)] == [[], [], []]
    assert [told["unverified"] for _, told in (first, second)] == [["ROW_QUARANTINED"]] * 2
    assert "Line 2 of orders-2026-11-20.csv" in pending
    assert "Rejected on earlier nights, and not delivered again since (1)" in pending
    assert third == (Verdict.RECONCILED, {"break": [], "unverified": [], "matched": ["exact"]})


def test_an_order_that_is_brought_again_as_it_was_is_delivered(merchant):
    one = sale(merchant)
    night(merchant, DAYS[0], GOOD, of=one)
    _, second = night(merchant, DAYS[1], BAD_AMOUNT, of=one)
    third = night(merchant, DAYS[2], GOOD, of=one)

    assert second["unverified"] == ["ROW_QUARANTINED"]
    assert third == (Verdict.RECONCILED, {"break": [], "unverified": [], "matched": ["exact"]})


def test_a_person_decides_that_a_row_stands_for_no_order(merchant):
    """Then the payment is judged without it; who decided and why stands in the history."""
    one = sale(merchant)
    night(merchant, DAYS[0], BAD_AMOUNT, of=one)
    with merchant.environment() as environment:
        ((_, (row,)),) = outstanding_rows(environment)
        anna = identify("anna", code=None, environment=environment)
        with pytest.raises(UsageError, match="10 characters"):
            dismiss_row(row.reject_id, person=anna, why="no")
        with pytest.raises(UsageError, match=f"standing: {row.reject_id}"):
            dismiss_row(99, person=anna, why="not an order of ours")
        why = "a test row of the shop"
        dismiss_row(row.reject_id, person=anna, why=why)
        assert [rows for _, rows in outstanding_rows(environment)] == [()]
    _, second = night(merchant, DAYS[1], of=one)

    assert second == {"break": ["MISSING_IN_ORDERS"], "unverified": [], "matched": []}


def test_a_row_without_a_number_is_told_where_a_payment_lacks_its_order(merchant):
    """Nobody refunds a payment whose order may be the line that could not be read.

    One row is one order: it says of no more payments that they may be its own.
    """
    one = sale(merchant)
    night(merchant, DAYS[0], NO_NUMBER, of=one)
    _, second = night(merchant, DAYS[1], of=one)

    assert second["break"] == ["MISSING_IN_ORDERS"]
    told = "1 order rows could not be read and name no order (orders-2026-11-20.csv line 2): up to "
    assert f"{told}1 of the 1 payments" in sheet_text(merchant, "Summary")
