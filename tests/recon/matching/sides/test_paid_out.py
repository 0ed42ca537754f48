"""What each batch pays out is the sum of its pay-out rows, whatever their order."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from recon.matching.sides.settlement_side import paid_out


def _payout(case: Any, batch: str, net: int, **cells: object) -> Any:
    plain = {"order_no": "", "transaction_id": "", "gross": net, "batch_id": batch}
    return case.line("payout", **{**plain, **cells})


def test_several_pay_out_rows_of_a_batch_are_added_up(new_case: Callable[[], Any]) -> None:
    """Each row of a batch and currency counts, with its sign; the last of their days stands."""
    case = new_case().line(batch_id="B2")
    _payout(case, "B2", 700, settled_on="2026-10-03")
    _payout(case, "B2", -200, settled_on="2026-10-02")
    _payout(case, "B2", 90, currency="USD")
    _payout(case, "B1", 50)
    lines = case.sources().settlement
    assert lines is not None
    wanted = [
        ("M", "1", "EUR", "B1", "2026-10-01", 50),
        ("M", "1", "EUR", "B2", "2026-10-03", 500),
        ("M", "1", "USD", "B2", "2026-10-01", 90),
    ]
    assert [*paid_out(lines).itertuples(index=False, name=None)] == wanted
    pd.testing.assert_frame_equal(paid_out(lines.iloc[::-1]), paid_out(lines))


def test_a_pay_out_that_we_asked_for_is_no_pay_out_of_the_batch(
    new_case: Callable[[], Any],
) -> None:
    """A pay-out row under our own reference is a line of the batch, not what it comes to."""
    case = new_case()
    _payout(case, "B1", -500, own_reference="P1")
    lines = case.sources().settlement
    assert lines is not None
    assert paid_out(lines).empty
