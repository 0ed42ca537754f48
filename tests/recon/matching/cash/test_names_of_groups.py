"""What names a group and what does not, and batches whose pay-out has another currency."""

from typing import Any

import pytest

ALONE = {"order_no": "", "transaction_id": ""}


def _differing(case: Any) -> Any:
    """A settled payment of order A1 with a fee of 10.00, of which the books have 7.00."""
    case.order().payment().entry().line(fee=1000, transaction_id="")
    case.line("payout", gross=9000, **ALONE).entry("payout", reference_no="B1", amount=9000)
    return case.entry("fee", amount=700)


def _codes(result: Any) -> list[str]:
    assert not [total for total in result.control_totals if not total.passed]
    return sorted(result.breaks["code"])


@pytest.mark.parametrize("amount", [300, 301])
def test_a_stray_adjustment_under_the_key_of_a_group_has_an_id_of_its_own(
    case: Any, amount: int
) -> None:
    """An adjustment that closes nothing stands alone, and no two breaks share an id."""
    _differing(case).entry("adjustment", order_no="fees:EUR", amount=amount)
    result = case.run()
    stray = [] if amount == 300 else ["FEE_BOOKED_DIFFERS", "LEDGER_ONLY"]
    assert _codes(result) == stray
    assert result.breaks["break_id"].is_unique


@pytest.mark.parametrize(("name", "closes"), [("A1", False), ("fees:EUR:A1", True)])
def test_an_order_names_no_group_of_fees(case: Any, name: str, *, closes: bool) -> None:
    """Only the key of a group or a batch is its name: an order's own adjustment stays with it."""
    _differing(case).ruled(ledger={"fees_per": "payment"})
    result = case.entry("adjustment", order_no=name, amount=300).run()
    assert ("FEE_BOOKED_DIFFERS" not in _codes(result)) == closes
    assert ("LEDGER_AMOUNT_MISMATCH" not in _codes(result)) == closes


@pytest.mark.parametrize("word", ["2026-13", "0000-10", "9999-12", "２０２６-10"])  # noqa: RUF001
def test_a_reference_that_is_no_month_is_none(case: Any, word: str) -> None:
    """A fee whose reference only looks like a month is of the month that it is booked in."""
    _differing(case).ruled(ledger={"fees_per": "month"})
    result = case.entry("fee", amount=300, reference_no=word).run()
    assert _codes(result) == []


def test_a_batch_paid_out_in_another_currency_is_not_judged_as_held(case: Any) -> None:
    """One break says so; what its lines come to is listed and no second break."""
    case.order().payment().entry().line()
    case.line("payout", currency="USD", gross=11000, **ALONE)
    result = case.entry("payout", currency="USD", reference_no="B1", amount=11000).run()
    assert _codes(result) == ["CURRENCY_MISMATCH"]
    assert "held:EUR:B1" not in set(result.pending["entry_id"])
    listed = result.held.set_index("currency")["amount"].to_dict()
    assert listed == {"EUR": 10000, "USD": -11000}
