"""Where every judged row went, by the names that other rows know it by."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

Change = Callable[[Any], Any]

WITH_ITEMS: dict[str, Change] = {
    "payment-of-another-order": lambda c: c.order().payment().entry().payment(
        order_no="B", transaction_id="T1"
    ),
    "amount": lambda c: c.order().payment(amount=9999).entry(),
    "captured-amount": lambda c: c.order().payment(captured_amount=9999).entry(),
    "expected-amount": lambda c: c.order(expected_captured_amount=9999).payment().entry(),
    "booked-amount": lambda c: c.order().payment().entry(amount=9999),
    "currency": lambda c: c.order().payment().entry(currency="USD"),
    "nothing": lambda c: c.order(amount=0).payment(amount=0).entry(amount=0),
    "status": lambda c: c.order("authorised").payment().entry(),
    "state": lambda c: c.order().payment("authorised").entry(),
    "unmapped": lambda c: c.order().payment("unmapped").entry(),
    "refunded": lambda c: c.order().payment(refunded_amount=1).entry(),
    "above-authorised": lambda c: c.order().payment(authorised_amount=9999).entry(),
    "above-what-amount-means": lambda c: c.order().payment(
        amount=9999, captured_amount=10000
    ).entry().ruled(gateway={"amount_means": "authorised"}),
    "kind-of-entry": lambda c: c.order().payment().entry("adjustment"),
    "not-booked": lambda c: c.order().payment().ledger(),
    "booked-without-its-order": lambda c: c.order().payment().entry(
        order_no="", transaction_id="T1"
    ),
    "order-twice": lambda c: c.order().order().payment().entry(),
    "payment-twice": lambda c: c.order().payment().payment(transaction_id="T2").entry(),
    "answer-twice": lambda c: c.order().payment().answer("failed").entry(),
    "entry-twice": lambda c: c.order().payment().entry().entry("refund", amount=1),
    "entry-id-twice": lambda c: c.order().payment().entry(entry_id="E").entry(
        "fee", entry_id="E", order_no="B"
    ),
    "our-move": lambda c: c.order().payment().entry().move("capture", "withdrawn"),
    "our-move-by-transaction": lambda c: c.order().payment().entry().move(
        "refund", "confirmed", order_no=""
    ),
    "entry-no-longer-there": lambda c: c.order().payment().entry().gone("A1"),
    "rejected-row": lambda c: c.order().payment().entry().reject(),
    "keyless-entry": lambda c: c.order().payment().entry().entry(
        "refund", order_no="", transaction_id="T1"
    ),
    "keyless-by-reference": lambda c: c.order().payment(reference_no="R").entry().entry(
        "refund", order_no="", reference_no="R"
    ),
    "other-day": lambda c: c.order(ordered_at="2026-09-01T00:00:00Z").payment().entry(),
    "other-reference": lambda c: c.order(transaction_id="T9").payment().entry(),
    "by-hand": lambda c: c.order().payment().entry().move(
        "capture", "withdrawn", order_no="B", transaction_id="TB"
    ).ruled(account={"capture_mode": "manual"}, window={"opening_date": "2026-09-01"}),
    "settled-otherwise": lambda c: c.order().payment().entry().line(gross=9900),
    "not-settled": lambda c: c.order().payment().entry().line(order_no="B"),
    "fee": lambda c: c.order().payment().entry().line(settled_on="2026-09-01", order_no="B").line(
        fee=7
    ).ruled(fees={"EUR": {"basis_points": 0, "fixed_minor_units": 0}}),
}  # fmt: skip

BY_MATCH: dict[str, Change] = {
    "plain": lambda c: c.order().payment().entry(),
    "no-ledger-covered": lambda c: c.order().payment(),
    "captured": lambda c: c.order(expected_captured_amount=9999)
    .payment(captured_amount=9999, authorised_amount=10000)
    .entry(amount=9999),
    "beside-a-fee": lambda c: c.order().payment().entry().entry("fee", amount=30),
    "same-reference": lambda c: c.order(transaction_id="T1").payment().entry(),
    "beside-a-keyless-entry": lambda c: c.order().payment().entry().entry(
        "refund", order_no="", transaction_id="T2"
    ),
    "asked": lambda c: c.order().payment().entry().asked("A1"),
    "settled": lambda c: c.order().payment().entry().line(
        settled_on="2026-09-01", order_no="B"
    ).line(),
    "keyless-of-the-same-name": lambda c: c.order().payment().entry().entry(
        "refund", order_no="", transaction_id="A1"
    ),
    "payout-of-the-same-name": lambda c: c.order().payment().entry().payout(request_id="A1"),
    "abroad": lambda c: c.order().payment().entry(
        transaction_currency="EUR", transaction_amount=10000
    ),
}  # fmt: skip


def told(case):
    """Source, order number, state and how many rows, of the items of a case."""
    items = case.run().items
    names = ("source", "order_no", "entry_id", "state", "items")
    return sorted(zip(*(items[name].to_pylist() for name in names), strict=True))


def shown_under(items):
    """The ids under which rows are shown."""
    return {*items["result_id"].to_pylist()}


def test_rows_of_a_break_are_told_by_their_names(case):
    """Each row of a broken set is one item of its break."""
    case.order().payment(amount=12000).entry(amount=12000)
    broken = case.run()
    assert told(case) == [
        ("gateway", "A1", "", "BREAK", 1),
        ("ledger", "A1", "E0", "BREAK", 1),
        ("orders", "A1", "", "BREAK", 1),
    ]
    assert shown_under(broken.items) == {*broken.breaks["break_id"]}


def test_rows_in_another_account_are_told_under_the_one_break(case):
    """The order's set is the first of all, and the payment's set has no result of its own."""
    wrong = case.order().payment(account_id="2").run()

    assert [*wrong.breaks["code"]] == ["WRONG_ACCOUNT"]
    assert shown_under(wrong.items) == {*wrong.breaks["break_id"]}


def test_rows_of_two_currencies_say_the_one_of_their_set(case):
    case.order().payment(currency="USD")
    rows = case.run().items.to_pylist()
    assert [row["currency"] for row in rows] == ["EUR", "USD"]
    assert len({row["set_currency"] for row in rows}) == 1


def test_a_replaced_row_is_told_and_counts_nothing(case):
    """An older answer of a payment belongs to its set and is no item of it."""
    case.order().payment(amount=12000, queried_at="2026-11-02T00:00:00Z")
    case.payment(amount=11000, reference_no="R9", queried_at="2026-11-01T00:00:00Z")
    assert [row[-1] for row in told(case) if row[0] == "gateway"] == [0, 1]


@pytest.mark.parametrize("name", BY_MATCH)
def test_what_its_match_says_is_not_said_again(case, name):
    """A set of one plain row in each leg has a row among the matches and none among the items."""
    BY_MATCH[name](case)

    assert {key for _, key, entry, *_ in told(case) if entry in {"", "E0"}} <= {"", "B"}
    assert "exact" in case.run().matches["rule"].tolist()


@pytest.mark.parametrize("name", WITH_ITEMS)
def test_what_a_match_does_not_say_is_an_item(case, name):
    """A set that says more than one amount in each leg is told row by row."""
    WITH_ITEMS[name](case)

    assert "A1" in {key for _, key, *_ in told(case)}


def test_an_entry_that_nothing_is_compared_with_is_its_own_match(case):
    """A fee without a settlement source is told under the id of its match."""
    case.order().payment().entry().entry("fee", order_no="", amount=30)
    result = case.run()
    kinds = result.items["set_kind"].to_pylist()
    alone = result.items.filter(pa.array([kind == "not_compared" for kind in kinds]))
    assert alone["entry_id"].to_pylist() == ["E1"]
    assert shown_under(alone) <= {*result.matches["match_id"]}


def test_a_payout_of_a_batch_is_an_item_of_its_break(case):
    """What a settlement file paid out and the ledger does not have is reported under its batch."""
    case.order().payment().entry().line().line("payout", order_no="", transaction_id="")
    assert ("payouts", "", "payout:EUR:B1", "BREAK", 1) in told(case)
