from typing import Any

from recon.proof.books_bridge import FILE, IDENTICAL, PAID_OUT, SHARED_NUMBER, books_of


def test_what_the_comparison_leaves_out_of_the_books_is_told_in_money(case: Any) -> None:
    """A repeat counts once, and two contents under one number count nothing."""
    case.entry(entry_id="E", amount=500).entry(entry_id="E", amount=500)
    case.entry(entry_id="F", amount=300).entry(entry_id="F", amount=40)

    assert books_of(case.sources()) == {"EUR": {FILE: 1340, IDENTICAL: -500, SHARED_NUMBER: -340}}


def test_payouts_that_are_compared_are_told_in_money(case: Any) -> None:
    """A payout that somebody told of is compared, so it is a step; another is not."""
    case.payout(request_id="P1", amount=700)
    case.entry("payout", entry_id="E", order_no="", reference_no="P1", amount=700)
    case.entry("payout", entry_id="F", order_no="", reference_no="theirs", amount=40)

    assert books_of(case.sources()) == {"EUR": {PAID_OUT: -700}}
