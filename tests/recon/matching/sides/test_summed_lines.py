"""Settlement lines, summed up."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from recon.matching.frames.sources import SETTLEMENT_COLUMNS, frame_of
from recon.matching.sides.settlement_side import (
    REPRESENTS,
    first_days_reported,
    is_summed,
    lines_of_rows,
    of_payments,
    one_by_one,
    paid_out,
    summed_lines,
    with_summed,
)

LINE = {
    "merchant_id": "M",
    "account_id": "1",
    "batch_id": "B1",
    "settled_on": "2026-10-02",
    "entry_type": "capture",
    "order_no": "A",
    "transaction_id": "T",
    "currency": "EUR",
    "gross": 1000,
    "fee": 30,
    "net": 970,
    "source": "s.csv",
    "line": 2,
}


def lines_of(*rows: dict[str, Any]) -> pd.DataFrame:
    """Settlement lines."""
    return frame_of([{**LINE, **row} for row in rows], columns=SETTLEMENT_COLUMNS)


def amounts(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Batch, type, what it comes to, and how many lines that is."""
    names = ("batch_id", "entry_type", "gross", "fee", "net", REPRESENTS)
    return sorted(frame[[*names]].itertuples(index=False, name=None))


def test_lines_of_one_batch_and_sign_are_one_row() -> None:
    """What a sum comes to without signs is that of its lines, so signs are never mixed."""
    sums = summed_lines(
        lines_of(
            {"order_no": "A"},
            {"order_no": "B", "gross": 500, "fee": 0, "net": 500},
            {"order_no": "C", "gross": 7, "fee": 1, "net": 6},
            {"order_no": "D", "gross": -7, "fee": -1, "net": -6},
            {"order_no": "E", "batch_id": "B2"},
            {"order_no": "F", "entry_type": "refund", "gross": -4, "fee": 0, "net": -4},
        )
    )

    assert amounts(sums) == [
        *(("B1", "capture", -7, -1, -6, 1), ("B1", "capture", 500, 0, 500, 1)),
        *(("B1", "capture", 1007, 31, 976, 2), ("B1", "refund", -4, 0, -4, 1)),
        ("B2", "capture", 1000, 30, 970, 1),
    ]
    assert {*sums["order_no"], *sums["transaction_id"], *sums["reference_no"]} == {""}


def test_sums_of_parts_are_added_up() -> None:
    """A batch in several parts is one row more, of as many lines."""
    left = lines_of({"order_no": "A"})
    parts = [summed_lines(lines_of({}, {})), summed_lines(lines_of({})), summed_lines(lines_of())]

    whole = with_summed(left, parts=parts)

    assert amounts(whole) == [
        *(("B1", "capture", 1000, 30, 970, 0), ("B1", "capture", 3000, 90, 2910, 3)),
    ]
    assert is_summed(whole).tolist() == [False, True]
    assert lines_of_rows(whole).tolist() == [1, 3]
    assert one_by_one(whole)["order_no"].tolist() == ["A"]


def test_a_sum_is_of_no_payment_and_still_tells_its_day() -> None:
    """No set has it, and its account is settled since its day."""
    left = lines_of({"order_no": "A", "settled_on": "2026-10-09"})
    whole = with_summed(left, parts=[summed_lines(lines_of({"entry_type": "fee", "gross": 0}))])

    assert of_payments(whole).tolist() == [True, False]
    accounts = whole.index.to_numpy() * 0
    assert first_days_reported(whole, accounts=accounts) == {0: "2026-10-02"}


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
    """A payout row under our own reference is a line of the batch, not what it comes to."""
    case = new_case()
    _payout(case, "B1", -500, own_reference="P1")
    lines = case.sources().settlement
    assert lines is not None
    assert paid_out(lines).empty
