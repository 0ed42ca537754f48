"""How amounts are written on the wire: so many decimals of each currency, never rounded."""

from decimal import Decimal
from functools import cache
from typing import Annotated

from pydantic import Field

from recon.gateway_client.interface.operation_formats import InterfaceTable
from recon.model.errors import AmountError
from recon.model.money import exponent, read_amount

DECIMALS_MAX = 4
"""No currency of ISO 4217 has more."""

MAGNITUDE_MAX = 30
"""Decimal digits before or behind the point beyond which text is not even built."""

Decimals = Annotated[int, Field(ge=0, le=DECIMALS_MAX)]
CurrencyCode = Annotated[str, Field(pattern=r"^[A-Z]{3}$")]


class WireAmounts(InterfaceTable):
    """Decimals of the amounts of each currency, as one gateway wants them."""

    decimals: Decimals
    own_decimals_if_more: bool
    """A currency of more decimals is written with all of its own."""
    of_currency: dict[CurrencyCode, Decimals] = Field(default_factory=dict)
    """Of single currencies, whatever stands above; also of those that ISO 4217 does not have."""

    def decimals_of(self, currency: str) -> int | None:
        """The decimals of a currency on the wire; None when it is no currency we know."""
        if currency in self.of_currency:
            return self.of_currency[currency]
        own = _iso_decimals(currency)
        if own is None:
            return None
        return max(self.decimals, own) if self.own_decimals_if_more else self.decimals

    def currency_problem(self, currency: str) -> str:
        """Why nothing may be sent in this currency; "" when it may."""
        if self.decimals_of(currency) is None:
            return "is not a currency of ISO 4217, nor under amounts.of_currency in profiles.toml"
        return ""

    def is_amount(self, text: str, *, currency: str) -> bool:
        """Whether the text of a reply is an amount of this currency."""
        wanted = self.decimals_of(currency)
        if wanted is None:
            return False
        own = _iso_decimals(currency)
        decimals = wanted if own is None else own
        try:
            read_amount(text, currency=currency, decimals=decimals, wire_decimals=wanted)
        except AmountError:
            return False
        return True

    def problem(self, value: object, *, currency: str, may_be_zero: bool = False) -> str:
        """Why a value is no amount that may be sent; "" when it is one.

        Args:
            value: What should be a Decimal in major units with the decimals of the wire.
            currency: Of the amount; an unknown one is a problem of its own field, not of this one.
            may_be_zero: A part of a total may be.
        """
        problem = number_problem(value, may_be_zero=may_be_zero)
        wanted = self.decimals_of(currency)
        if problem or wanted is None or not isinstance(value, Decimal):
            return problem
        own = _iso_decimals(currency)
        real = wanted if own is None else min(own, wanted)
        given = max(0, -int(value.as_tuple().exponent))
        if given != wanted:
            example = f"{Decimal(1234567).scaleb(-real):.{wanted}f}"
            return f"has {given} decimals; {currency} goes out with {wanted}, such as {example}"
        return "" if value == round(value, real) else f"is not a whole number of {currency}'s units"


def number_problem(value: object, *, may_be_zero: bool = False) -> str:
    """Why a value is no amount in any currency; "" when it is one."""
    if not isinstance(value, Decimal):
        return "is not a Decimal"
    if not value.is_finite() or abs(value.adjusted()) > MAGNITUDE_MAX:
        return "is not an amount"
    if may_be_zero and value == 0:
        return ""
    return "" if value > 0 else "is not more than zero"


@cache
def _iso_decimals(currency: str) -> int | None:
    try:
        return exponent(currency)
    except AmountError:
        return None
