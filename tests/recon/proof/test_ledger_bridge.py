from dataclasses import replace

from recon.model.terms import Reject, SourceKind
from recon.proof.ledger_bridge import (
    FILE,
    IDENTICAL,
    PAID_OUT,
    REJECTED,
    SHARED_NUMBER,
    ledger_steps,
)


def test_what_the_comparison_leaves_out_of_the_books_is_told_in_money(case):
    """A repeat counts once, and two contents under one number count nothing."""
    case.entry(entry_id="E", amount=500).entry(entry_id="E", amount=500)
    case.entry(entry_id="F", amount=300).entry(entry_id="F", amount=40)

    assert ledger_steps(case.sources(), rules=case.rules) == {
        "EUR": {FILE: 1340, IDENTICAL: -500, SHARED_NUMBER: -340}
    }


def test_payouts_that_are_compared_are_told_in_money(case):
    case.payout(request_id="P1", amount=700)
    case.entry("payout", entry_id="E", order_no="", reference_no="P1", amount=700)
    case.entry("payout", entry_id="F", order_no="", reference_no="theirs", amount=40)

    assert ledger_steps(case.sources(), rules=case.rules) == {"EUR": {PAID_OUT: -700}}


def test_rejected_entries_are_told_in_money_as_far_as_they_can_be_read(case):
    """The file holds them, the comparison does not; one without an amount is in no sum."""
    case.entry(entry_id="E", amount=500)
    of_ledger = SourceKind.LEDGER, "ledger.csv", 3, "booked_at", "is no time", "soon"
    rejects = (
        Reject(*of_ledger, entry_type="refund", currency="EUR", amount=200),
        Reject(*of_ledger, entry_type="fee", currency="EUR", amount=9),
        Reject(*of_ledger),
    )
    sources = replace(case.sources(), rejects=rejects)

    assert ledger_steps(sources, rules=case.rules) == {"EUR": {FILE: 300, REJECTED: 200}}
