"""Money at the edges, minor units within: no float ever.

`Money` is what people and messages see. Frames and the database carry int64 minor units beside a
currency code. Exponents come from ISO 4217 (the `iso4217` package). Used by every reader, the
gateway adapter and the reports.
"""

from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from iso4217 import Currency

from recon.model.errors import AmountError

WIRE_DECIMALS_MIN = 2
"""Decimals that the gateway's document shows for every currency."""

AMOUNT_DIGITS_MAX = 15
"""Whole digits of an amount; int64 minor units hold 18, Excel shows 15."""

MINOR_UNITS_MAX = 10**17 - 1
"""Largest amount in minor units; sums of 90 of them still fit int64."""


@dataclass(frozen=True, slots=True)
class Money:
    """An amount of one currency, exact, in major units."""

    amount: Decimal
    currency: str

    def __post_init__(self) -> None:
        if not _is_exact(self.amount):
            msg = f"{self.amount!r} is not an exact amount: give a finite Decimal"
            raise AmountError(msg)

    @property
    def minor_units(self) -> int:
        """The amount in the currency's smallest unit; exact, else AmountError."""
        # In integers: the decimal context would round what is longer than its 28 digits.
        numerator, denominator = self.amount.as_integer_ratio()
        scale: int = 10 ** exponent(self.currency)
        minor_units, rest = divmod(numerator * scale, denominator)
        if rest:
            msg = f"{self.amount} has more decimals than {self.currency} allows"
            raise AmountError(msg)
        if abs(minor_units) > MINOR_UNITS_MAX:
            msg = f"{self.amount} is larger than this product handles"
            raise AmountError(msg)
        return minor_units

    @classmethod
    def of_minor_units(cls, minor_units: int, *, currency: str) -> "Money":
        """Money from a count of the currency's smallest unit."""
        return cls(Decimal(minor_units).scaleb(-exponent(currency)), currency)

    def __str__(self) -> str:
        return f"{self.amount:,.{exponent(self.currency)}f} {self.currency}"


@cache
def exponent(currency: str) -> int:
    """Decimals of a currency by ISO 4217 (JPY 0, EUR 2, KWD 3).

    Raises:
        AmountError: not the three-letter code of a currency with a minor unit.
    """
    try:
        decimals: int | None = Currency(currency).exponent
    except ValueError as error:
        msg = f"{currency!r} is not an ISO 4217 currency code"
        raise AmountError(msg) from error
    if decimals is None:
        msg = f"{currency!r} has no minor unit in ISO 4217"
        raise AmountError(msg)
    return decimals


def is_currency(text: str) -> bool:
    """Whether a text is the code of a currency that has amounts, in capitals."""
    try:
        exponent(text)
    except AmountError:
        return False
    return True


def parse_minor_units(text: str, *, currency: str, wire_decimals: int | None = None) -> int:
    """Minor units of an amount as written in files and on the wire (rules.md §1).

    ASCII `digits[.digits]`, digits beyond the exponent 0, however many there are; fewer decimals
    than the exponent are refused; never rounded. No sign: a side decides signs.

    >>> parse_minor_units("12.5000", currency="EUR"), parse_minor_units("1.234", currency="KWD")
    (1250, 1234)

    Args:
        text: The amount.
        currency: Its ISO 4217 code.
        wire_decimals: Exactly so many decimals are right too, where a gateway writes fewer than
            the currency has.

    Raises:
        AmountError: any other text.
    """
    return read_amount(
        text, currency=currency, decimals=exponent(currency), wire_decimals=wire_decimals
    )


def read_amount(
    text: str, *, currency: str, decimals: int, wire_decimals: int | None = None
) -> int:
    """As `parse_minor_units`, of a currency that has so many decimals by whatever declares it."""
    # By hand: an expression takes twice as long, for every amount of every source.
    whole, point, fraction = text.partition(".")
    if not (whole.isdigit() and text.isascii() and (fraction.isdigit() or not point)):
        msg = f"{text!r} is not an amount such as {_example(decimals)}"
        raise AmountError(msg)
    has_too_few = len(fraction) < decimals and len(fraction) != wire_decimals
    if has_too_few or fraction[decimals:].strip("0"):
        msg = f"{text!r} does not have the decimals of {currency}, such as {_example(decimals)}"
        raise AmountError(msg)
    if len(whole) > AMOUNT_DIGITS_MAX:
        msg = f"{text!r} has more than {AMOUNT_DIGITS_MAX} digits before the point"
        raise AmountError(msg)
    minor_units = int(whole + fraction[:decimals].ljust(decimals, "0"))
    if minor_units > MINOR_UNITS_MAX:
        msg = f"{text!r} is larger than this product handles"
        raise AmountError(msg)
    return minor_units


def parse_signed_minor_units(text: str, *, currency: str) -> int:
    """As `parse_minor_units`, with an optional leading minus (ledger adjustments)."""
    if text.startswith("-"):
        return -parse_minor_units(text[1:], currency=currency)
    return parse_minor_units(text, currency=currency)


def format_minor_units(minor_units: int, *, currency: str) -> str:
    """The amount with the currency's decimals, a leading minus, no grouping.

    >>> format_minor_units(-123450, currency="EUR"), format_minor_units(1200, currency="JPY")
    ('-1234.50', '1200')
    """
    return f"{Decimal(minor_units).scaleb(-exponent(currency)):.{exponent(currency)}f}"


def wire_amount(minor_units: int, *, currency: str, wire_decimals: int | None = None) -> Decimal:
    """The amount as the gateway writes it: max(2, exponent) decimals unless overridden.

    >>> wire_amount(1200, currency="JPY"), wire_amount(1234, currency="KWD")
    (Decimal('1200.00'), Decimal('1.234'))
    """
    decimals = exponent(currency)
    places = max(WIRE_DECIMALS_MIN, decimals) if wire_decimals is None else wire_decimals
    amount = Decimal(minor_units).scaleb(-decimals)
    if places < decimals and amount != amount.quantize(Decimal(1).scaleb(-places)):
        msg = f"{amount} {currency} cannot be written with {places} decimals"
        raise AmountError(msg)
    return amount.quantize(Decimal(1).scaleb(-places))


def _is_exact(amount: object) -> bool:
    return isinstance(amount, Decimal) and amount.is_finite()


def _example(decimals: int) -> str:
    return f"{Decimal(12345).scaleb(-decimals):.{decimals}f}"
