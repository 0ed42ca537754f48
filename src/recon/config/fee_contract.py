"""The fee contract with the gateway (`fees.toml`): what each kind of settlement line costs.

The lines of the contract are asked in the order of the file, and the first that holds decides. One
that needs what the settlement does not tell (method, brand, region) ends the search: what the line
costs is then not known, and that is told by the name of the line.
"""

from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from recon.config.declared import CurrencyCode, DeclaredTable, declared
from recon.model.money import format_minor_units

MINOR_UNITS_MAX = 10**12
LINES_MAX = 500
"""Lines of one contract."""
TIERS_MAX = 50
"""Tiers of one line."""
WORDS_MAX = 100
"""Brands, methods or regions of one line."""
RATE_UNITS_PER_BASIS_POINT = 100
"""Rates are whole hundredths of a basis point."""
FACTS = ("method", "brand", "region")
"""What a settlement may tell of a payment beside its amount."""

_CENT = Decimal("0.01")


def _rate(value: Decimal) -> Decimal:
    """Two decimals, so that 140 and 140.0 are one contract."""
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
Rounding = Literal["half_up", "half_even", "down", "up"]


class FeeTier(DeclaredTable):
    """What holds for amounts up to a bound."""

    up_to_minor_units: Annotated[int, Field(gt=0, le=MINOR_UNITS_MAX)] | None = None
    """The last amount of the tier; the last tier has none."""
    basis_points: BasisPoints = Decimal("0.00")
    fixed_minor_units: MinorUnits = 0

    @property
    def rate(self) -> int:
        """Hundredths of a basis point."""
        return int(self.basis_points * RATE_UNITS_PER_BASIS_POINT)


class ContractLine(DeclaredTable):
    """One line: for what it holds, and what that costs."""

    name: Annotated[str, Field(pattern=r"^[0-9A-Za-z][0-9A-Za-z ._-]{0,39}$")]
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
    """By the amount of the line; instead of basis_points and fixed_minor_units."""
    tiers_of: Literal["whole", "parts"] = "whole"
    """`whole`: the tier that the amount reaches holds for all of it; `parts`: each for its part."""
    min_minor_units: MinorUnits | None = None
    max_minor_units: MinorUnits | None = None
    """Bounds of percentage and fixed part together, after rounding."""
    returned: bool = False
    """The gateway gives this fee back, as on a refund: its sign is the other one."""
    tolerance_minor_units: MinorUnits = 0

    @property
    def every_tier(self) -> tuple[FeeTier, ...]:
        """The tiers; of a line without any the one that it is."""
        own = FeeTier(basis_points=self.basis_points, fixed_minor_units=self.fixed_minor_units)
        return self.tiers or (own,)

    def words_of(self, fact: str) -> tuple[str, ...]:
        """What the line holds for, of method, brand or region."""
        words: tuple[str, ...] = getattr(self, fact)
        return words

    @property
    def price(self) -> str:
        """What it costs, in words, amounts in major units."""
        tiers = [self._tier_in_words(tier) for tier in self.every_tier]
        parts = ["; ".join(tiers) + (" (each of its part)" if self.tiers_of == "parts" else "")]
        bounds = (("at least", self.min_minor_units), ("at most", self.max_minor_units))
        parts += [f"{word} {self._amount(bound)}" for word, bound in bounds if bound is not None]
        return ", ".join((*parts, *(("given back",) if self.returned else ())))

    def _tier_in_words(self, tier: FeeTier) -> str:
        bound, fixed = tier.up_to_minor_units, tier.fixed_minor_units
        until = "" if bound is None else f"to {self._amount(bound)}: "
        return f"{until}{tier.basis_points:f} bp" + (f" + {self._amount(fixed)}" if fixed else "")

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
        bounds = [tier.up_to_minor_units for tier in self.tiers]
        if bounds and (bounds[-1] is not None or None in bounds[:-1]):
            yield "tiers: each but the last has up_to_minor_units, and the last has none"
        elif [*bounds[:-1]] != sorted({bound for bound in bounds[:-1] if bound is not None}):
            yield "tiers: up_to_minor_units must rise"
        low, high = self.min_minor_units, self.max_minor_units
        if low is not None and high is not None and low > high:
            yield "min_minor_units is more than max_minor_units"


class FeeContract(DeclaredTable):
    """All of fees.toml."""

    rounding: Rounding
    """How the percentage becomes minor units: half_up away from 0, half_even to the even one."""
    lines: Annotated[tuple[ContractLine, ...], Field(min_length=1, max_length=LINES_MAX)]

    @model_validator(mode="after")
    def _each_can_hold(self) -> Self:
        known: dict[tuple[Any, ...], list[ContractLine]] = {}
        names: set[str] = set()
        for line in self.lines:
            if line.name in names:
                msg = f"lines: two are called {line.name}"
                raise ValueError(msg)
            names.add(line.name)
            facts = [tuple(sorted({*map(str.casefold, line.words_of(fact))})) for fact in FACTS]
            same = known.setdefault(
                (line.type, line.currency, tuple(sorted({*line.accounts})), *facts), []
            )
            for other in same:
                if _overlap(other, line):
                    msg = f"lines: {other.name} and {line.name} hold for the same on the same days"
                    raise ValueError(msg)
            same.append(line)
        return self


def _overlap(earlier: ContractLine, later: ContractLine) -> bool:
    ends = (earlier.until or date.max, later.until or date.max)
    return max(earlier.first, later.first) <= min(ends)


def contract_of(tables: Mapping[str, Any], *, source: str) -> FeeContract | None:
    """The contract of a parsed file; None of an empty one.

    Raises:
        ConfigurationError: naming every table and key that is wrong.
    """
    return declared(FeeContract, tables, source=source) if tables else None
