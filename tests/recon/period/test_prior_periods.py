import pandas as pd
import pytest

from recon.period.business_month import BusinessMonth
from recon.period.prior_periods import ClosedPeriod, counted_on, prior_items, told_dates

OCTOBER = ClosedPeriod(BusinessMonth.named("2026-10"), "2026-11-03")
NOVEMBER = ClosedPeriod(BusinessMonth.named("2026-11"), "2026-12-02")


@pytest.mark.parametrize(
    ("own", "told", "counts"),
    [
        ("2026-11-28", "2026-12-02", "2026-11-28"),
        ("2026-11-28", "2026-12-03", "2026-12-01"),
        ("2026-12-01", "2026-12-03", "2026-12-01"),
        ("2026-10-31", "2026-11-04", "2026-11-01"),
        ("2026-10-31", "2026-12-02", "2026-11-01"),
        ("2026-10-31", "2026-12-03", "2026-12-01"),
        ("", "2026-12-03", ""),
    ],
)
def test_what_is_told_after_a_close_counts_on_the_first_day_after_it(
    own: str, told: str, counts: str
) -> None:
    """By what the close knew: its own night still belongs to it; of two closes the later counts."""
    counted = counted_on(
        pd.Series([own], dtype="str"),
        told_on=pd.Series([told], dtype="str"),
        closed=[NOVEMBER, OCTOBER],
    )

    assert [*counted] == [counts]


def test_prior_items_are_those_that_count_by_another_day() -> None:
    """Beside them everything else of the month stays out."""
    facts = pd.DataFrame({"own_on": ["a", "b"], "event_on": ["a", "c"]})

    assert [*prior_items(facts)["own_on"]] == ["b"]
    assert [*told_dates(pd.Series([0, 1]), dates={0: "x", 1: "y"})] == ["x", "y"]
