from typing import Any

from recon.matching.books_bridge import FILE, IDENTICAL, SHARED_NUMBER, books_of


def test_what_the_comparison_leaves_out_of_the_books_is_told_in_money(case: Any) -> None:
    """A repeat counts once, and two contents under one number count nothing."""
    case.entry(entry_id="E", amount=500).entry(entry_id="E", amount=500)
    case.entry(entry_id="F", amount=300).entry(entry_id="F", amount=40)

    assert books_of(case.sources()) == {"EUR": {FILE: 1340, IDENTICAL: -500, SHARED_NUMBER: -340}}
