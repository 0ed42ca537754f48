"""What a night shows of a payment is dated by the lines that settle it, each part by its own."""

import pandas as pd
import pytest

from recon.period.settled_parts import beyond_what_is_known, dated_by_lines

LINES = pd.DataFrame(
    {
        "payment": ["T1", "T1"],
        "currency": ["EUR", "EUR"],
        "settled_on": ["2026-11-29", "2026-12-03"],
        "gross": [-500, -300],
        "order_no": ["O1", "O1"],
        "told": [29, 33],
    }
)


@pytest.mark.parametrize(
    ("above", "amount", "night", "days"),
    [
        (0, 500, "2026-11-30", [("2026-11-29", 500)]),
        (500, 300, "2026-12-02", [("2026-12-02", 300)]),
        (500, 300, "2026-12-04", [("2026-12-03", 300)]),
        (0, 800, "2026-12-04", [("2026-11-29", 500), ("2026-12-03", 300)]),
        (0, 900, "2026-12-04", [("2026-11-29", 500), ("2026-12-03", 300), ("2026-12-04", 100)]),
        (300, -100, "2026-12-04", [("2026-12-04", -100)]),
    ],
)
def test_each_part_has_the_day_of_its_line_where_that_is_before_the_night(
    above: int, amount: int, night: str, days: list[tuple[str, int]]
) -> None:
    """A second refund is never dated by the line of the first; the rest has the night's."""
    row = {"payment": ["T1"], "business_date": [night], "amount": [amount], "above": [above]}

    dated = dated_by_lines(pd.DataFrame(row), lines=LINES)

    assert sorted(zip(dated["event_on"], dated["amount"], strict=True)) == days


@pytest.mark.parametrize(
    ("known", "days"),
    [
        (0, [("2026-11-29", 500, 29), ("2026-12-03", 300, 33)]),
        (500, [("2026-12-03", 300, 33)]),
        (600, [("2026-12-03", 200, 33)]),
        (800, []),
    ],
)
def test_what_lines_alone_tell_has_the_day_and_the_night_of_each(
    known: int, days: list[tuple[str, int, int]]
) -> None:
    """What is known otherwise is settled by the first of them."""
    rows = beyond_what_is_known(LINES, known=pd.Series({"T1": known}), sign=-1)

    assert [*zip(rows["event_on"], rows["amount"], rows["told"], strict=True)] == days
