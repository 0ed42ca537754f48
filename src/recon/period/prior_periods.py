"""What is dated in a closed month and was first told after its close: it counts in the open month.

A closed month's figures stay as two people signed them. Such a fact keeps its own date beside the
one by which it counts, the first day after the closed month; so the next month opens with what the
closed one ended with, and the fact is among what moved in it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from recon.period.business_month import BusinessMonth


@dataclass(frozen=True, slots=True)
class ClosedPeriod:
    """A month that two people closed, and up to which night they knew."""

    month: BusinessMonth
    known_by: str
    """Business date of the newest night that was known; what a later one told first is later."""

    @property
    def last(self) -> str:
        """Its last day."""
        return self.month.last.isoformat()

    @property
    def after(self) -> str:
        """The first day after it."""
        return self.month.after.first.isoformat()


def counted_on(
    own: "pd.Series[str]",
    *,
    told_on: "pd.Series[str]",
    closed: Sequence[ClosedPeriod],
) -> "pd.Series[str]":
    """The day by which each fact counts: its own, or the first one after the closed months.

    Args:
        own: the day of each fact's own event; "" for none.
        told_on: the business date of the night that told it first.
        closed: months before the one that is asked about.
    """
    counted = own.astype("str")
    for period in sorted(closed, key=lambda each: each.last):
        is_prior = own.ne("") & (own <= period.last) & (told_on > period.known_by)
        counted = counted.where(~is_prior, period.after)
    return counted


def told_dates(numbers: "pd.Series[int]", *, dates: Mapping[int, str]) -> "pd.Series[str]":
    """The business date of the night of each number."""
    return numbers.map(dates).fillna("").astype("str")


def prior_items(facts: pd.DataFrame) -> pd.DataFrame:
    """Those of some facts that count by another day than their own."""
    return facts[facts["own_on"].ne(facts["event_on"])].reset_index(drop=True)
