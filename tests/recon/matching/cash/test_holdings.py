"""What page one says the gateway holds: the same as T18 lists, and fees with both their sides."""

from typing import Any

import pytest

from recon.model.gateway_holds import FeesTaken, GatewayHolds, HeldPart, Holding

ALONE = {"order_no": "", "transaction_id": ""}


def _held(case: Any) -> Any:
    """B1 keeps 20.00 and a reserve of 10.00, B2 is not paid out, B3 came to less than nothing."""
    case.order().payment().entry().line(fee=300).line("reserve", gross=-1000, **ALONE)
    case.line("payout", gross=6700, **ALONE)
    case.line("adjustment", gross=500, batch_id="B2", settled_on="2026-11-19", **ALONE)
    case.line("adjustment", gross=-2300, batch_id="B3", settled_on="2026-11-18", **ALONE)
    return case.line("payout", gross=0, batch_id="B3", settled_on="2026-11-18", **ALONE)


def test_payable_held_back_and_reserve_have_their_oldest_day(case: Any) -> None:
    """Payable counts open batches and what is held; a debt takes off it and is of no age."""
    result = _held(case).line("payout", gross=50, batch_id="B4", settled_on="2026-11-17", **ALONE)
    result.line("adjustment", gross=450, batch_id="B4", settled_on="2026-11-17", **ALONE)
    assert result.run().gateway_holds.holdings == (
        Holding(
            *("M", "1", "EUR"),
            payable=HeldPart(500 + 100, "2026-11-17"),
            held_back=HeldPart(100, "2026-11-17"),
            reserve=HeldPart(1000, "2026-10-01"),
        ),
    )


@pytest.mark.parametrize("what", ["payable", "reserve"])
def test_page_one_ties_to_the_total_that_proves_it(case: Any, what: str) -> None:
    """What is shown is the right side of T18."""
    case.ruled(settlement={"EUR": {"opening_payable": 70, "opening_reserve": 150}})
    result = _held(case).run()
    (total,) = [each for each in result.control_totals if each.name.startswith(f"{what}:")]
    part = getattr(result.gateway_holds.holdings[0], what)
    assert part.amount == total.right != 0


def test_fees_are_those_of_lines_and_of_entries_less_their_reversals(case: Any) -> None:
    """An entry that is there twice counts once; another currency stands by itself."""
    _held(case).entry("fee", amount=500, **ALONE, entry_id="F1")
    case.entry("fee", amount=500, **ALONE, entry_id="F1")
    case.entry("fee_reversal", amount=150, **ALONE)
    case.entry("fee", amount=7, currency="USD", **ALONE)
    fees = case.run().gateway_holds.fees
    assert fees == (FeesTaken("M", "1", "EUR", 300, 350), FeesTaken("M", "1", "USD", 0, 7))
    assert [row.difference for row in fees] == [-50, -7]


def test_sums_over_accounts_keep_the_oldest_day() -> None:
    """Page one has one line a currency."""
    rows = [
        Holding("M", account, "EUR", payable=HeldPart(amount, since))
        for account, amount, since in (("1", 5, "2026-11-02"), ("2", 7, "2026-11-01"))
    ]
    fees = [FeesTaken("M", "1", "EUR", 3, None), FeesTaken("M", "2", "EUR", 4, None)]
    ((held, taken),) = GatewayHolds(tuple(rows), tuple(fees)).by_currency().values()
    assert held.payable == HeldPart(12, "2026-11-01")
    assert (taken.charged, taken.booked, taken.difference) == (7, None, None)
