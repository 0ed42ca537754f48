"""Where every judged row went, by the names that other rows know it by."""

from typing import Any

import pyarrow as pa

from recon.matching.breaks.result_rows import id_of_text


def told(case: Any) -> list[tuple[Any, ...]]:
    """Source, order number, state and how many rows, of the items of a case."""
    items = case.run().items
    names = ("source", "order_no", "entry_id", "state", "items")
    return sorted(zip(*(items[name].to_pylist() for name in names), strict=True))


def shown_under(items: pa.Table) -> set[str]:
    """The ids under which rows are shown, those that are blank because they follow from others."""
    ids = set()
    for row in items.to_pylist():
        key = row["set_key"] or row["order_no"]
        first = id_of_text("\x1f".join((row["merchant_id"], row["account_id"], key, "1")))
        ids.add(row["result_id"] or row["set_id"] or first)
    return ids


def test_rows_of_a_break_are_told_by_their_names(case: Any) -> None:
    """Each row of a broken set is one item of its break."""
    case.order().payment(amount=12000).entry(amount=12000)
    broken = case.run()
    assert told(case) == [
        ("gateway", "A1", "", "BREAK", 1),
        ("ledger", "A1", "E0", "BREAK", 1),
        ("orders", "A1", "", "BREAK", 1),
    ]
    assert shown_under(broken.items) == {*broken.breaks["break_id"]}


def test_rows_in_another_account_are_told_under_the_one_break(case: Any) -> None:
    """The order's set is the first of all, and the payment's set has no result of its own."""
    wrong = case.order().payment(account_id="2").run()

    assert [*wrong.breaks["code"]] == ["WRONG_ACCOUNT"]
    assert shown_under(wrong.items) == {*wrong.breaks["break_id"]}


def test_the_currency_of_a_set_is_said_where_a_row_has_another(case: Any) -> None:
    """In nearly every set all rows have one; then it is blank, and the row's own counts."""
    case.order().payment(amount=12000).entry(amount=12000)
    assert {*case.run().items["set_currency"].to_pylist()} == {""}

    case.order(order_no="W").payment(order_no="W", transaction_id="TW", currency="USD")
    rows = [row for row in case.run().items.to_pylist() if row["order_no"] == "W"]
    assert [row["currency"] for row in rows] == ["EUR", "USD"]
    assert len({row["set_currency"] or row["currency"] for row in rows}) == 1
    assert sorted(row["set_currency"] == "" for row in rows) == [False, True]


def test_a_replaced_row_is_told_and_counts_nothing(case: Any) -> None:
    """An older answer of a payment belongs to its set and is no item of it."""
    case.order().payment(amount=12000, queried_at="2026-11-02T00:00:00Z")
    case.payment(amount=11000, reference_no="R9", queried_at="2026-11-01T00:00:00Z")
    assert [row[-1] for row in told(case) if row[0] == "gateway"] == [0, 1]


def test_exact_sets_are_told_by_their_match_alone(case: Any) -> None:
    """A set that agrees in every leg has a row among the matches and none among the items."""
    case.order().payment().entry()
    assert told(case) == []
    assert case.run().matches["rule"].tolist() == ["exact"]


def test_an_entry_that_nothing_is_compared_with_is_its_own_match(case: Any) -> None:
    """A fee without a settlement source is told under the id of its match."""
    case.order().payment().entry().entry("fee", order_no="", amount=30)
    result = case.run()
    kinds = result.items["set_kind"].to_pylist()
    alone = result.items.filter(pa.array([kind == "not_compared" for kind in kinds]))
    assert alone["entry_id"].to_pylist() == ["E1"]
    assert shown_under(alone) <= {*result.matches["match_id"]}


def test_a_payout_of_a_batch_is_an_item_of_its_break(case: Any) -> None:
    """What a settlement file paid out and the books do not have is told under its batch."""
    case.order().payment().entry().line().line("payout", order_no="", transaction_id="")
    assert ("payouts", "", "payout:EUR:B1", "BREAK", 1) in told(case)
