"""A month of business dates, and when each date around it opens."""

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

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


def days_around(
    month: BusinessMonth, *, calendar: BusinessCalendar
) -> Iterator[tuple[str, datetime]]:
    """Business dates around a month and when each opens; one closes when the next one opens."""
    days = (month.last - month.first).days + 2 * AROUND_DAYS + 1
    start = month.first - timedelta(days=AROUND_DAYS)
    yield start.isoformat(), _EPOCH
    for number in range(1, days):
        day = start + timedelta(days=number)
        yield day.isoformat(), calendar.closes_at(day - timedelta(days=1))
