"""A month of business dates, and the business date of every instant around it."""

import calendar
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pandas as pd

from recon.model.business_date import BusinessCalendar
from recon.model.errors import UsageError

AROUND_DAYS = 400
"""Days before and after a month that instants are dated by; what is older has the first."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONTH = re.compile(r"(?P<year>20[0-9]{2})-(?P<month>0[1-9]|1[0-2])", re.ASCII)


@dataclass(frozen=True, slots=True)
class BusinessMonth:
    """All business dates of a calendar month."""

    first: date
    last: date

    @classmethod
    def named(cls, text: str) -> "BusinessMonth":
        """The month of a name such as `2026-11`.

        Raises:
            UsageError: it is not one.
        """
        match = _MONTH.fullmatch(text)
        if match is None:
            msg = f"{text!r} is not a month such as 2026-11"
            raise UsageError(msg)
        year, month = int(match["year"]), int(match["month"])
        return cls(date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1]))

    @property
    def name(self) -> str:
        """As people write it: `2026-11`."""
        return f"{self.first:%Y-%m}"

    @property
    def before(self) -> date:
        """The last day before it, at whose close it opens."""
        return self.first - timedelta(days=1)

    @property
    def month_before(self) -> "BusinessMonth":
        """The month that precedes it."""
        return BusinessMonth.named(f"{self.before:%Y-%m}")

    @property
    def after(self) -> "BusinessMonth":
        """The month that follows."""
        return BusinessMonth.named(f"{self.last + timedelta(days=1):%Y-%m}")

    def has(self, days: "pd.Series[str]") -> "pd.Series[bool]":
        """Which of some ISO dates lie in it."""
        return days.between(self.first.isoformat(), self.last.isoformat())


@dataclass(frozen=True, slots=True)
class DayTable:
    """When each business date opens; it closes when the next one opens."""

    dates: Sequence[str]
    """ISO dates in order."""
    opens_at: Sequence[datetime]
    """The instant (UTC) from which on a date's facts are its own."""

    @classmethod
    def around(cls, month: BusinessMonth, *, calendar: BusinessCalendar) -> "DayTable":
        """The days around a month, by the zone and the cut-off of the rules."""
        span = (month.last - month.first).days + 2 * AROUND_DAYS
        start = month.first - timedelta(days=AROUND_DAYS)
        days = [start + timedelta(days=number) for number in range(span + 1)]
        opens = [calendar.closes_at(day - timedelta(days=1)) for day in days]
        return cls([day.isoformat() for day in days], opens)

    def dates_of(self, instants: "pd.Series[pd.Timestamp]") -> "pd.Series[str]":
        """The business date of each instant; "" where there is none."""
        opens = np.array([_microseconds(moment) for moment in self.opens_at], dtype=np.int64)
        known = instants.notna()
        stamps = instants.where(known, pd.Timestamp(0, tz="UTC"))
        moments = stamps.dt.as_unit("us").astype("int64").to_numpy()
        at = np.clip(np.searchsorted(opens, moments, side="right") - 1, 0, len(opens) - 1)
        named = np.where(known.to_numpy(), np.array(self.dates, dtype=object)[at], "")
        return pd.Series(named, index=instants.index, dtype="str")


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)
