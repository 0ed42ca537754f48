"""Exact amounts: `Money` for people and messages, int minor units inside, never floats.

Frames and the database store int64 minor units next to a currency code. Exponents come from ISO
4217 (the `iso4217` package). Used by every reader, the gateway adapter and the reports.
"""

from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from iso4217 import Currency

from recon.model.errors import AmountError

WIRE_DECIMALS_MIN = 2
"""Minimum number of decimals on the wire: the gateway's document shows two for every currency."""

AMOUNT_DIGITS_MAX = 15
"""Maximum number of whole digits of an amount; int64 minor units hold 18, Excel shows 15."""

MINOR_UNITS_MAX = 10**17 - 1
"""Largest amount in minor units; sums of 90 of them still fit int64."""


@dataclass(frozen=True, slots=True)
class Money:
    """An exact amount of one currency, in major units."""

    amount: Decimal
    currency: str

    def __post_init__(self) -> None:
        if not _is_exact(self.amount):
            msg = f"{self.amount!r} is not an exact amount: give a finite Decimal"
            raise AmountError(msg)

    @property
    def minor_units(self) -> int:
        """The amount in the currency's smallest unit; AmountError if it is not exact."""
        # With integers: the decimal context would round more than its 28 digits.
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
        """Money from an amount in the currency's smallest unit."""
        return cls(Decimal(minor_units).scaleb(-exponent(currency)), currency)

    def __str__(self) -> str:
        return f"{self.amount:,.{exponent(self.currency)}f} {self.currency}"


@cache
def exponent(currency: str) -> int:
    """Decimals of a currency according to ISO 4217 (JPY 0, EUR 2, KWD 3).

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
    """Whether a text is the upper-case code of a currency with a minor unit."""
    try:
        exponent(text)
    except AmountError:
        return False
    return True


def parse_minor_units(text: str, *, currency: str, wire_decimals: int | None = None) -> int:
    """Parse an amount as written in files and on the wire into minor units (rules.md §1).

    The form is ASCII `digits[.digits]`. Digits beyond the exponent must be 0, however many there
    are; fewer decimals than the exponent are refused; nothing is rounded. There is no sign: the
    side of an amount determines it.

    >>> parse_minor_units("12.5000", currency="EUR"), parse_minor_units("1.234", currency="KWD")
    (1250, 1234)

    Args:
        text: The amount.
        currency: Its ISO 4217 code.
        wire_decimals: This exact number of decimals is accepted too, where a gateway writes fewer
            than the currency has.

    Raises:
        AmountError: any other text.
    """
    return read_amount(
        text, currency=currency, decimals=exponent(currency), wire_decimals=wire_decimals
    )


def read_amount(
    text: str, *, currency: str, decimals: int, wire_decimals: int | None = None
) -> int:
    """Like `parse_minor_units`, with the currency's number of decimals as an argument."""
    # Parsed by hand: a regular expression takes twice as long, for every amount of every source.
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
    """Like `parse_minor_units`, with an optional leading minus (ledger adjustments)."""
    if text.startswith("-"):
        return -parse_minor_units(text[1:], currency=currency)
    return parse_minor_units(text, currency=currency)


def format_minor_units(minor_units: int, *, currency: str, grouped: bool = False) -> str:
    """The amount with the currency's decimals, a leading minus; `grouped`, for people, or not.

    >>> format_minor_units(-123450, currency="EUR"), format_minor_units(1200, currency="JPY")
    ('-1234.50', '1200')
    """
    decimals = exponent(currency)
    digits = f"{abs(minor_units):0{decimals + 1}}"
    point = len(digits) - decimals
    sign, mark = "-" if minor_units < 0 else "", "." if decimals else ""
    whole = f"{int(digits[:point]):,}" if grouped else digits[:point]
    return f"{sign}{whole}{mark}{digits[point:]}"


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
