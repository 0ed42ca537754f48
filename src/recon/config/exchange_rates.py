"""Exchange rates as declared: each has a day, and is valid for some days after it.

The latest rate up to the day of an event applies. If there is none, or it is too old, the amount
has no known value and none is estimated.
"""

from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from operator import not_
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from recon.config.declared import DeclaredTable
from recon.model.business_date import date_of_text, day_text
from recon.model.money import exponent

VALID_DAYS = 7
"""Days after its own for which a rate is valid, unless the rules differ: no run of bank holidays is
longer."""
DECIMALS_MAX = 12
RATES_MAX = 10_000
"""Maximum number of rates of one pair."""


def _day(text: object) -> object:
    """Parse a day given as text, so that a number is never interpreted as a timestamp."""
    if not isinstance(text, str):
        return text
    try:
        return date_of_text(text)
    except ValueError:
        return None


RateDay = Annotated[date, BeforeValidator(_day)]
Rate = Annotated[Decimal, Field(gt=0, lt=10**9, decimal_places=DECIMALS_MAX)]


class RateRules(DeclaredTable):
    """What a unit of a foreign currency is worth, keyed `FOREIGN.BOOKED` such as `USD.EUR`."""

    # A key at its default is excluded, so that older rules keep their digest.
    on: dict[RateDay, Rate] = Field(default_factory=dict, max_length=RATES_MAX, exclude_if=not_)
    """Day -> units of the booked currency for one unit of the foreign one, from that day on."""
    valid_days: int = Field(
        default=VALID_DAYS, ge=0, le=366, exclude_if=lambda days: days == VALID_DAYS
    )
    """After its day a rate holds on so many more, unless a newer one takes its place."""
    basis_points: int = Field(default=0, ge=0, le=10_000)
    """Of the booked amount: so much difference is no break."""

    @model_validator(mode="after")
    def _names_a_rate(self) -> Self:
        if not self.on:
            msg = 'names no rate; write one as on = { 2026-01-05 = "0.92" }'
            raise ValueError(msg)
        return self

    def applied(self, pair: str, *, day: str) -> "AppliedRate":
        """The rate that applies on the day of an event, an ISO date."""
        event = date.fromisoformat(day)
        since = max((named for named in self.on if named <= event), default=None)
        if since is None:
            return AppliedRate(pair, day, None, "", self.valid_days, self.basis_points)
        good = event <= since + timedelta(days=self.valid_days)
        rate = self.on[since] if good else None
        return AppliedRate(pair, day, rate, since.isoformat(), self.valid_days, self.basis_points)


@dataclass(frozen=True, slots=True)
class AppliedRate:
    """The rate of one pair on the day of an event, or why there is none."""

    pair: str
    day: str
    """Day of the event."""
    rate: Decimal | None = None
    since: str = ""
    """The day of the rate, even of one that is too old; "" without any."""
    valid_days: int = VALID_DAYS
    basis_points: int = 0
    differs: bool = False
    """Several entries of one payout have different rates, so that none applies."""

    @property
    def text(self) -> str:
        """The rate, or why there is none, as part of a sentence."""
        if self.rate is None:
            return self._missing()
        plain = f"{self.rate.normalize():f}"
        return f"the rate {plain} of {day_text(self.since)}"

    def _missing(self) -> str:
        if self.differs:
            return f"its entries came on days of different rates {self.pair}"
        if not self.since:
            day = day_text(self.day)
            return f"[rate] of the rules names no rate {self.pair} of {day} or before"
        return (
            f"the newest rate {self.pair} of the rules before {day_text(self.day)} is of "
            f"{day_text(self.since)}, and holds for {self.valid_days} days"
        )

    def exchanged(self, amount: int, /) -> int | None:
        """Convert minor units of the foreign currency into the booked one, rounded half to even."""
        if self.rate is None:
            return None
        foreign, _, booked = self.pair.partition(".")
        shift = exponent(booked) - exponent(foreign)
        return round(amount * Fraction(self.rate) * Fraction(10) ** shift)

    def allows(self, gap: int, *, of: int) -> bool:
        """Whether a difference is within `basis_points` of a booked amount."""
        return abs(gap) * 10_000 <= abs(of) * self.basis_points
