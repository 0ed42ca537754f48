"""Business dates, cut-offs and grace periods: when a day closes and when something is late.

A business date is the accounting day that a record belongs to, never "today". The clock is an
argument everywhere; this module only calculates. Used by rules, matching, steps and reports.
"""

import calendar
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from recon.model.errors import ConfigurationError, UsageError

SATURDAY = 5
BUSINESS_DAYS_MAX = 3660
"""Ages are counted up to ten years of days."""

AHEAD_MAX = timedelta(days=1)
"""No date can be right that is further after the as-of instant: no grace runs from it."""

GRACE_MAX = {"h": 8784, "bd": 366}
"""Longest grace, by unit: nothing may stay one-sided for longer than a year."""
GRACE_MAX_TEXT = "8784h or 366bd"

_GRACE = re.compile(r"(?P<count>0|[1-9][0-9]{0,3})(?P<unit>h|bd)", re.ASCII)
_MONTH = re.compile(r"(?P<year>20[0-9]{2})-(?P<month>0[1-9]|1[0-2])", re.ASCII)
_CUT_OFF = re.compile(r"(?P<hour>[01][0-9]|2[0-4]):(?P<minute>[0-5][0-9])", re.ASCII)


@dataclass(frozen=True, slots=True)
class Grace:
    """How long something may stay one-sided: elapsed hours or business days."""

    count: int
    unit: str  # "h" | "bd"

    @classmethod
    def parse(cls, text: str) -> "Grace":
        """Parse `24h` or `5bd`."""
        match = _GRACE.fullmatch(text)
        if match is None or int(match["count"]) > GRACE_MAX[match["unit"]]:
            msg = f"{text!r} is not a grace such as 24h or 5bd (at most {GRACE_MAX_TEXT})"
            raise ConfigurationError(msg)
        return cls(int(match["count"]), match["unit"])

    def __str__(self) -> str:
        return f"{self.count}{self.unit}"


@dataclass(frozen=True, slots=True)
class BusinessCalendar:
    """Business days, and the local time at which a business date closes."""

    zone: ZoneInfo
    cut_off: timedelta
    """Local time after midnight of the business date; 24 h is the next midnight."""
    holidays: frozenset[date]

    @classmethod
    def of(
        cls, *, timezone: str = "UTC", cut_off: str = "24:00", holidays: Iterable[date] = ()
    ) -> "BusinessCalendar":
        """Build a calendar from its configured values."""
        match = _CUT_OFF.fullmatch(cut_off)
        if match is None or (match["hour"] == "24" and match["minute"] != "00"):
            msg = f"cut_off {cut_off!r} is not a time such as 18:00 or 24:00"
            raise ConfigurationError(msg)
        closes = timedelta(hours=int(match["hour"]), minutes=int(match["minute"]))
        return cls(zone_of(timezone), closes, frozenset(holidays))

    def is_business_day(self, day: date) -> bool:
        """Whether a day is neither Saturday, Sunday nor a holiday."""
        return day.weekday() < SATURDAY and day not in self.holidays

    def closes_at(self, business_date: date) -> datetime:
        """The instant (UTC) at which a business date closes; `--as-of D` means this.

        >>> berlin = BusinessCalendar.of(timezone="Europe/Berlin", cut_off="18:00")
        >>> berlin.closes_at(date(2026, 11, 20)).isoformat()
        '2026-11-20T17:00:00+00:00'
        """
        wall_clock = datetime.combine(business_date, time.min) + self.cut_off
        return wall_clock.replace(tzinfo=self.zone).astimezone(UTC)

    def business_date_of(self, instant: datetime) -> date:
        """The business date of an instant: the first one not closed by then."""
        day = instant.astimezone(self.zone).date() - timedelta(days=1)
        while self.closes_at(day) <= instant:
            day += timedelta(days=1)
        return day

    def last_closed(self, instant: datetime) -> date:
        """The newest business date that had closed at an instant."""
        return self.business_date_of(instant) - timedelta(days=1)

    def local_date(self, instant: datetime) -> date:
        """The calendar day of an instant in the calendar's zone."""
        return instant.astimezone(self.zone).date()

    def due_at(self, since: datetime, *, grace: Grace) -> datetime:
        """When a grace that started at `since` ends (UTC).

        `24h` is elapsed time; `5bd` ends at the same local time on the fifth later business day.

        >>> friday = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
        >>> BusinessCalendar.of().due_at(friday, grace=Grace.parse("2bd")).isoformat()
        '2026-11-24T09:30:00+00:00'
        """
        if grace.unit == "h":
            # In UTC first: with an aware local time, Python would add to the wall clock.
            return since.astimezone(UTC) + timedelta(hours=grace.count)
        local = since.astimezone(self.zone)
        day = self.business_day_after(local.date(), days=grace.count)
        return datetime.combine(day, local.time(), self.zone).astimezone(UTC)

    def business_days_between(self, start: date, *, end: date) -> int:
        """Business days after `start` up to and including `end`; 0 when end is not later."""
        span = min((end - start).days, BUSINESS_DAYS_MAX)
        return sum(self.is_business_day(start + timedelta(days=n)) for n in range(1, span + 1))

    def business_day_after(self, day: date, *, days: int) -> date:
        """The day that many business days later; with 0 the day itself, business day or not."""
        while days:
            day += timedelta(days=1)
            days -= self.is_business_day(day)
        return day


@dataclass(frozen=True, slots=True)
class BusinessMonth:
    """All business dates of a calendar month."""

    first: date
    last: date

    @classmethod
    def named(cls, text: str) -> "BusinessMonth":
        """Parse the name of a month such as `2026-11`.

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
        """Its name such as `2026-11`."""
        return f"{self.first:%Y-%m}"

    @property
    def before(self) -> date:
        """The last day before it, at whose close it opens."""
        return self.first - timedelta(days=1)

    @property
    def month_before(self) -> "BusinessMonth":
        """The preceding month."""
        return BusinessMonth.named(f"{self.before:%Y-%m}")

    @property
    def after(self) -> "BusinessMonth":
        """The following month."""
        return BusinessMonth.named(f"{self.last + timedelta(days=1):%Y-%m}")


def zone_of(name: str) -> ZoneInfo:
    """The time zone with a name such as `Europe/London`."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        msg = f"{name!r} is not a time zone such as Europe/London"
        raise ConfigurationError(msg) from error


def date_of_text(text: str) -> date:
    """Parse a date written as year, month and day with hyphens.

    Raises:
        ValueError: any other text, including the ISO forms 20261120 and 2026-W47-5.
    """
    day = date.fromisoformat(text)
    if day.isoformat() != text:
        msg = f"{text!r} is not a date such as 2026-11-20"
        raise ValueError(msg)
    return day


def day_text(day: date | str) -> str:
    """Format a day for people, such as "2 Nov 2026"; `day`: a date, or its ISO text."""
    return f"{date.fromisoformat(f'{day}'):%-d %b %Y}"


def month_of(day: date) -> str:
    """The name of a day's calendar month, such as "2026-11"."""
    return f"{day:%Y-%m}"


def midnight(day: date, *, zone: ZoneInfo) -> datetime:
    """The first instant of a local calendar day, in UTC."""
    return datetime.combine(day, time.min, zone).astimezone(UTC)
