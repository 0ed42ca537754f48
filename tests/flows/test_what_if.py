"""The form `what-if`: which files it opens, what its page says."""

from pathlib import Path

from flows.what_if import page_of
from recon.model.terms import Verdict
from recon.steps.compare.rules_change import Change, ChangedRule
from recon.steps.compare.what_if import ComparedAgain, WhatIf


def answer():
    """One night on which a tolerance takes a break away."""
    change = Change(("m", "a", "SO-1", "EUR"), "AMOUNT_OVER", "matched", "", 7)
    verdicts = (Verdict.BREAKS_OPEN, Verdict.RECONCILED)
    night = ComparedAgain(
        "run", "2026-11-20", *verdicts, 1, 0, 0, 0, (change,), "d" * 64, is_same=False
    )
    rule = ChangedRule("tolerance.EUR.absolute_minor_units", "not set", "7")
    return WhatIf("c" * 64, (rule,), (), (night,), (), "e" * 64)


def test_the_page_says_rules_changes_money_and_digest():
    page = page_of(answer(), workbook=Path("/r/what-if.xlsx"))

    assert "- tolerance.EUR.absolute_minor_units not set -> 7" in page
    assert "| 2026-11-20 | AMOUNT_OVER | matched | 1 | 0.07 EUR |" in page
    assert f"digest {'e' * 16}" in page
    assert "0 of 1 nights from 2026-11-20 to 2026-11-20 the same to the byte" in page
