"""The fee contract with the gateway (`fees.toml`): the price of each kind of settlement line.

The lines of the contract are tried in the order of the file, and the first that applies decides.
One that needs what the settlement does not state (method, brand, region) ends the search: the price
is then unknown, and is reported so with the name of the line.
"""

from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from recon.config.declared import CurrencyCode, DeclaredTable, declared
from recon.model.money import format_minor_units
from recon.model.terms import EntryType

MINOR_UNITS_MAX = 10**12
LINES_MAX = 500
"""Maximum number of lines of one contract."""
LINES_A_MONTH_MAX = 10**9
TIERS_MAX = 50
"""Maximum number of tiers of one line."""
WORDS_MAX = 100
"""Maximum number of brands, methods or regions of one line."""
RATE_UNITS_PER_BASIS_POINT = 100
"""Rates are whole hundredths of a basis point."""
FACTS = ("method", "brand", "region")
"""Properties of a payment that a settlement may state besides its amount."""
PRICED = (EntryType.CAPTURE.value, EntryType.REFUND.value, EntryType.CHARGEBACK.value)
"""Entry types for which every line has a price, even if 0; their months are counted."""

_CENT = Decimal("0.01")


def _rate(value: Decimal) -> Decimal:
    """Use two decimals, so that 140 and 140.0 give the same contract."""
    return value.quantize(_CENT)


def _listed(value: object) -> object:
    return (value,) if isinstance(value, str) else value


BasisPoints = Annotated[
    Decimal, Field(ge=0, le=10_000, decimal_places=2, allow_inf_nan=False), AfterValidator(_rate)
]
MinorUnits = Annotated[int, Field(ge=0, le=MINOR_UNITS_MAX)]
Word = Annotated[str, Field(min_length=1, max_length=64)]
Words = Annotated[tuple[Word, ...], BeforeValidator(_listed), Field(max_length=WORDS_MAX)]
AccountWords = Annotated[
    tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,50}/[A-Za-z0-9._-]{1,50}$")], ...],
    BeforeValidator(_listed),
    Field(max_length=WORDS_MAX),
]
LineName = Annotated[str, Field(pattern=r"^[0-9A-Za-z][0-9A-Za-z ._-]{0,39}$")]
Rounding = Literal["half_up", "half_even", "down", "up"]
TiersBy = Literal["line", "month", "month_before"]
"""What determines the tier: the amount of the line; the volume of its month on the days before; or
the volume of the whole preceding month."""


def _is_default(value: object) -> bool:
    """Excludes unused newer keys, so that older contracts keep their digest."""
    return value in {None, "line"} or value == ()


class FeeTier(DeclaredTable):
    """What holds for amounts up to a bound."""

    up_to_minor_units: Annotated[int, Field(gt=0, le=MINOR_UNITS_MAX)] | None = None
    """The last amount of the tier; the last tier has none."""
    up_to_lines: Annotated[int, Field(gt=0, le=LINES_A_MONTH_MAX)] | None = Field(
        default=None, exclude_if=_is_default
    )
    """The last count of the tier, of tiers by a month, instead of an amount."""
    basis_points: BasisPoints = Decimal("0.00")
    fixed_minor_units: MinorUnits = 0

    @property
    def bound(self) -> int | None:
        """The end of the tier, an amount or a count."""
        return self.up_to_lines if self.up_to_minor_units is None else self.up_to_minor_units

    @property
    def rate(self) -> int:
        """The rate in hundredths of a basis point."""
        return int(self.basis_points * RATE_UNITS_PER_BASIS_POINT)


class ContractLine(DeclaredTable):
    """One line: for what it holds, and what that costs."""

    name: LineName
    first: date = Field(alias="from")
    until: date | None = None
    """The last day, by settled_on; absent: it has no end."""
    type: Literal["capture", "refund", "chargeback", "fee"]
    """Of the settlement line; `fee`: a row of its own that names a payment."""
    currency: CurrencyCode
    accounts: AccountWords = ()
    """As "<merchant>/<account>"; none named: every account."""
    method: Words = ()
    """None named: every one, and the settlement need not tell it; likewise brand and region."""
    brand: Words = ()
    region: Words = ()
    basis_points: BasisPoints = Decimal("0.00")
    """Of the amount; hundredths of a basis point are the finest."""
    fixed_minor_units: MinorUnits = 0
    tiers: Annotated[tuple[FeeTier, ...], Field(max_length=TIERS_MAX)] = ()
    """By what `tiers_by` says; instead of basis_points and fixed_minor_units."""
    tiers_of: Literal["whole", "parts"] = "whole"
    """`whole`: the tier that the amount reaches holds for all of it; `parts`: each for its part."""
    tiers_by: TiersBy = Field(default="line", exclude_if=_is_default)
    volume_of: Annotated[tuple[LineName, ...], Field(max_length=LINES_MAX)] = Field(
        default=(), exclude_if=_is_default
    )
    """The lines of the contract whose months count together; none named: this one alone."""
    min_minor_units: MinorUnits | None = None
    max_minor_units: MinorUnits | None = None
    """Bounds of percentage and fixed part together, after rounding."""
    returned: bool = False
    """The gateway gives this fee back, as on a refund: its sign is the other one."""
    tolerance_minor_units: MinorUnits = 0

    @property
    def every_tier(self) -> tuple[FeeTier, ...]:
        """The tiers; a line without any is its own single tier."""
        own = FeeTier(basis_points=self.basis_points, fixed_minor_units=self.fixed_minor_units)
        return self.tiers or (own,)

    def accepted_values(self, fact: str) -> tuple[str, ...]:
        """Values of method, brand or region to which the line applies."""
        words: tuple[str, ...] = getattr(self, fact)
        return words

    @property
    def price(self) -> str:
        """The price as text, amounts in major units."""
        tiers = [self._tier_text(tier) for tier in self.every_tier]
        parts = ["; ".join(tiers) + _TIER_TEXTS[self.tiers_by, self.tiers_of]]
        bounds = (("at least", self.min_minor_units), ("at most", self.max_minor_units))
        parts += [f"{word} {self._amount(bound)}" for word, bound in bounds if bound is not None]
        return ", ".join((*parts, *(("given back",) if self.returned else ())))

    def _tier_text(self, tier: FeeTier) -> str:
        fixed = tier.fixed_minor_units
        until = "" if tier.bound is None else f"to {self.reach_text(tier.bound)}: "
        return f"{until}{tier.basis_points:f} bp" + (f" + {self._amount(fixed)}" if fixed else "")

    @property
    def counts_lines(self) -> bool:
        """Whether its tiers end at a count of lines instead of an amount."""
        return any(tier.up_to_lines is not None for tier in self.tiers)

    @property
    def counted(self) -> tuple[str, ...]:
        """The lines of the contract whose months determine its tier."""
        return self.volume_of or (self.name,)

    @property
    def bounds(self) -> tuple[int, ...]:
        """The end of each tier but the last."""
        return tuple(tier.bound for tier in self.tiers if tier.bound is not None)

    def reach_text(self, reach: int) -> str:
        """A bound, or the volume of a month, as text."""
        return f"{reach:,} lines" if self.counts_lines else self._amount(reach)

    def tier_text(self, tier: int) -> str:
        """One of its tiers as text, by number."""
        return self._tier_text(self.every_tier[tier])

    def _amount(self, minor_units: int) -> str:
        return format_minor_units(minor_units, currency=self.currency)

    @model_validator(mode="after")
    def _fits_itself(self) -> Self:
        for problem in self._problems():
            raise ValueError(problem)
        return self

    def _problems(self) -> Iterator[str]:
        if self.until is not None and self.until < self.first:
            yield "until is before from"
        if self.tiers and (self.basis_points or self.fixed_minor_units):
            yield "name tiers, or basis_points and fixed_minor_units"
        yield from self._problems_of_tiers()
        low, high = self.min_minor_units, self.max_minor_units
        if low is not None and high is not None and low > high:
            yield "min_minor_units is more than max_minor_units"

    def _problems_of_tiers(self) -> Iterator[str]:
        name = "up_to_lines" if self.counts_lines else "up_to_minor_units"
        bounds = [getattr(tier, name) for tier in self.tiers]
        if bounds and (self.tiers[-1].bound is not None or None in bounds[:-1]):
            yield f"tiers: each but the last has {name}, and the last has none"
        elif [*bounds[:-1]] != sorted({*bounds[:-1]}):
            yield f"tiers: {name} must rise"
        if any(None not in {tier.up_to_lines, tier.up_to_minor_units} for tier in self.tiers):
            yield "tiers: name up_to_minor_units or up_to_lines, not both"
        if self.tiers_by == "line":
            if self.counts_lines or self.volume_of:
                yield "up_to_lines and volume_of need tiers_by month or month_before"
            return
        if not self.tiers or self.tiers_of == "parts":
            yield f"tiers_by {self.tiers_by} needs tiers, each for the whole of a line"
        if self.type == "fee":
            yield f"tiers_by {self.tiers_by} is for captures, refunds and chargebacks"


class FeeContract(DeclaredTable):
    """All of fees.toml."""

    rounding: Rounding
    """How the percentage becomes minor units: half_up away from 0, half_even to the even one."""
    lines: Annotated[tuple[ContractLine, ...], Field(min_length=1, max_length=LINES_MAX)]
    volumes_from: date | None = Field(default=None, exclude_if=_is_default)
    """From this day on the settlement tells of every line: what months before it came to is not
    known. Tiers by a month need it."""

    @property
    def asks_months(self) -> bool:
        """Whether the price of a line depends on the volume of months."""
        return any(line.tiers_by != "line" for line in self.lines)

    def numbers_counted(self, line: ContractLine) -> list[int]:
        """The numbers of the lines whose months determine the tier of a line."""
        return [at for at, other in enumerate(self.lines) if other.name in line.counted]

    @model_validator(mode="after")
    def _months_can_be_counted(self) -> Self:
        known = {line.name: line for line in self.lines}
        for line in self.lines:
            if line.tiers_by != "line" and self.volumes_from is None:
                msg = f"volumes_from: {line.name} has tiers by {line.tiers_by} and needs this day"
                raise ValueError(msg)
            for name in line.volume_of:
                other = known.get(name)
                if other is None or other.currency != line.currency or other.type == "fee":
                    msg = f"lines: {line.name}: volume_of {name}: no line of its currency"
                    raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _each_can_hold(self) -> Self:
        known: dict[tuple[Any, ...], list[ContractLine]] = {}
        names: set[str] = set()
        for line in self.lines:
            if line.name in names:
                msg = f"lines: two are called {line.name}"
                raise ValueError(msg)
            names.add(line.name)
            facts = [
                tuple(sorted({*map(str.casefold, line.accepted_values(fact))})) for fact in FACTS
            ]
            same = known.setdefault(
                (line.type, line.currency, tuple(sorted({*line.accounts})), *facts), []
            )
            for other in same:
                if _overlap(other, line):
                    msg = f"lines: {other.name} and {line.name} hold for the same on the same days"
                    raise ValueError(msg)
            same.append(line)
        return self


_TIER_TEXTS = {
    ("line", "whole"): "",
    ("line", "parts"): " (each of its part)",
    ("month", "whole"): " (by the month so far)",
    ("month_before", "whole"): " (by the month before)",
}


def _overlap(earlier: ContractLine, later: ContractLine) -> bool:
    ends = (earlier.until or date.max, later.until or date.max)
    return max(earlier.first, later.first) <= min(ends)


def contract_of(tables: Mapping[str, Any], *, source: str) -> FeeContract | None:
    """The contract of a parsed file; None if the file is empty.

    Raises:
        ConfigurationError: names every table and key that is wrong.
    """
    return declared(FeeContract, tables, source=source) if tables else None
