"""Which days a night's settlement files prove, and which of their lines are of payments."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.sources import SettledDays
from recon.proof.engine import reconcile

PAID_AT = datetime(2026, 11, 11, 12, tzinfo=UTC)
"""A Wednesday: settled by Monday the 16th at noon."""


def compared(case: Any, **days: Any) -> Reconciliation:
    """The case as a night compares it, its files telling of some days."""
    told = SettledDays(**{"first": "2026-11-10", **days})
    sources = replace(case.sources(), settled=told)
    return reconcile(sources, rules=case.rules, as_of=case.as_of)


def unsettled(case: Any) -> Any:
    """One payment that is settled, and one that is not; its batch may take its time."""
    case.ruled(grace={"settlement": "3bd", "held_back": "60bd"})
    case.order().payment().entry().line(settled_on="2026-11-10")
    case.order(order_no="B").payment(order_no="B", transaction_id="TB", transaction_date=PAID_AT)
    return case.entry(order_no="B")


@pytest.mark.parametrize(
    ("last", "state"),
    [("2026-11-10", "pending"), ("2026-11-15", "pending"), ("2026-11-16", "broken")],
)
def test_a_payment_is_unsettled_only_where_files_prove_the_day_it_was_due(
    case: Any, last: str, state: str
) -> None:
    """Before, it is looked for again the next day, however long its grace has been over."""
    result = compared(unsettled(case), last=last)
    assert list(result.breaks["code"]) == ["SETTLEMENT_MISSING"] * (state == "broken")
    assert list(result.pending["order_no"]) == [""] + ["B"] * (state == "pending")
    assert all(due > case.as_of for due in result.pending["due_at"])


def test_a_payment_from_before_the_first_day_owes_nothing(case: Any) -> None:
    """The first day is that of all files ever read, not of the lines in the window."""
    result = compared(unsettled(case), first="2026-11-12", last="2026-11-19")
    assert list(result.breaks["code"]) == []
    assert list(result.pending["entry_id"]) == ["held:EUR:B1"]


def test_a_batch_that_does_not_add_up_is_held_back_and_proven(case: Any) -> None:
    """What a batch leaves is a finding about the gateway, whichever night its file came in."""
    case.order().payment().entry().line().line("payout", order_no="", transaction_id="", gross=1)
    result = compared(case, last="2026-11-19")
    assert [one.passed for one in result.control_totals if one.id == "T11"] == [True]
    assert list(result.breaks["code"]) == ["HELD_BACK", "PAYOUT_NOT_BOOKED"]


def test_a_missing_file_is_told_as_the_end_of_the_proof(case: Any) -> None:
    """What is not covered names the file and the last day that is."""
    result = compared(unsettled(case), last="2026-11-10", waits_for="S11.csv")
    assert "settlement due after 2026-11-10: S11.csv is missing" in result.not_covered


def test_fees_and_payouts_of_the_account_are_in_the_batch_and_of_no_payment(case: Any) -> None:
    """A monthly fee, a reserve, and a payout of ours are no receipts; the pay-out counts them."""
    alone = {"order_no": "", "transaction_id": ""}
    case.order().payment().entry().line()
    case.line("fee", gross=0, fee=500, **alone).line("reserve", gross=-1000, **alone)
    case.line("payout", gross=-2000, own_reference="P1", **alone)
    case.line("payout", gross=6500, **alone)
    result = compared(case, last="2026-11-19")
    codes = ["FEE_NOT_BOOKED", "PAYOUT_NOT_BOOKED", "RESERVE_NOT_BOOKED"]
    assert list(result.breaks["code"]) == codes
    assert list(result.breaks["gateway_amount"]) == [-500, -6500, -1000]
    assert [one.passed for one in result.control_totals if not one.passed] == []
