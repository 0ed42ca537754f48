"""Money: the grammar of amounts, exactness, and the way back to text."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recon.model.errors import AmountError
from recon.model.money import (
    AMOUNT_DIGITS_MAX,
    MINOR_UNITS_MAX,
    Money,
    exponent,
    format_minor_units,
    parse_minor_units,
    parse_signed_minor_units,
)

CURRENCIES = st.sampled_from(["JPY", "EUR", "KWD", "CLF"])
MINOR_UNITS = st.integers(min_value=0, max_value=MINOR_UNITS_MAX)


@pytest.mark.parametrize(
    ("text", "currency", "minor_units"),
    [
        ("12345", "JPY", 12345),
        ("12345.0", "JPY", 12345),
        ("12345.00", "JPY", 12345),
        ("12345.0000", "JPY", 12345),
        ("10.00", "EUR", 1000),
        ("934.5200", "EUR", 93452),
        ("1.2340", "KWD", 1234),
        ("0.01", "EUR", 1),
        ("007.50", "EUR", 750),
        ("1.234", "KWD", 1234),
        ("1.2345", "CLF", 12345),
        ("999999999999999.99", "EUR", MINOR_UNITS_MAX),
    ],
)
def test_an_amount_is_read_exactly(text, currency, minor_units):
    assert parse_minor_units(text, currency=currency) == minor_units


@pytest.mark.parametrize(
    ("text", "currency"),
    [
        *((text, "EUR") for text in ("10", "10.5", "10.005", "10.0001", "10.", ".50", "")),
        *((text, "EUR") for text in ("-1.00", "+1.00", "1,00", "1,000.00", "1 000.00", "1_0.00")),
        *((text, "EUR") for text in ("1e2", "0x10", "NaN", "inf", " 1.00", "1.00 ", "1.00\n")),
        *(
            (text, "EUR")
            for text in (
                "\u0661\u0660.\u0660\u0660",
                "\uff11.00",
                "€1.00",
                "1.00EUR",
                "1.2.3",
                "1.0x",
            )
        ),
        *((text, "JPY") for text in ("1.5", "1.05", "1.001", "12.", "12.x")),
        *((text, "KWD") for text in ("1.23", "1", "1.2345")),
    ],
)
def test_other_text_is_refused_with_an_example(text, currency):
    with pytest.raises(
        AmountError, match=rf"such as {format_minor_units(12345, currency=currency)}"
    ):
        parse_minor_units(text, currency=currency)


@pytest.mark.parametrize(
    ("text", "currency", "message"),
    [
        ("1" * (AMOUNT_DIGITS_MAX + 1) + ".00", "EUR", "more than 15 digits before the point"),
        ("999999999999999.999", "KWD", "larger than this product handles"),
    ],
)
def test_an_amount_too_large_is_refused(text, currency, message):
    with pytest.raises(AmountError, match=message):
        parse_minor_units(text, currency=currency)


@pytest.mark.parametrize("code", ["eur", "EURO", "", "978", "BTC", " EUR", "\u0412YN"])
def test_a_currency_outside_iso_4217_is_refused(code):
    with pytest.raises(AmountError, match="not an ISO 4217 currency code"):
        parse_minor_units("1.00", currency=code)


@pytest.mark.parametrize("code", ["XAU", "XXX", "XTS"])
def test_a_code_without_minor_unit_is_refused(code):
    with pytest.raises(AmountError, match="no minor unit"):
        exponent(code)


def test_only_adjustments_may_be_signed():
    assert parse_signed_minor_units("-1.50", currency="EUR") == -150
    assert parse_signed_minor_units("1.50", currency="EUR") == 150
    with pytest.raises(AmountError, match="is not an amount"):
        parse_signed_minor_units("--1.50", currency="EUR")


@given(minor_units=MINOR_UNITS, currency=CURRENCIES)
def test_reading_undoes_writing(minor_units, currency):
    if minor_units < 10 ** (AMOUNT_DIGITS_MAX + exponent(currency)):
        text = format_minor_units(minor_units, currency=currency)

        assert parse_minor_units(text, currency=currency) == minor_units
        assert parse_signed_minor_units("-" + text, currency=currency) == -minor_units


@given(text=st.text(alphabet="0123456789.-+, eE\u0663", max_size=24), currency=CURRENCIES)
def test_whatever_is_accepted_means_what_it_says(text, currency):
    try:
        minor_units = parse_minor_units(text, currency=currency)
    except AmountError:
        return

    assert Decimal(text) == Decimal(minor_units).scaleb(-exponent(currency))


@pytest.mark.parametrize(
    ("minor_units", "currency", "text"),
    [(-123450, "EUR", "-1234.50"), (0, "KWD", "0.000"), (-5, "JPY", "-5"), (7, "EUR", "0.07")],
)
def test_amounts_are_written_without_grouping(minor_units, currency, text):
    assert format_minor_units(minor_units, currency=currency) == text


@pytest.mark.parametrize("amount", [1.1, 1, "1.10", Decimal("NaN"), Decimal("Infinity"), None])
def test_money_takes_exact_decimals_only(amount):
    with pytest.raises(AmountError, match="not an exact amount"):
        Money(amount, "EUR")  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize(
    ("amount", "message"),
    [
        ("1.005", "more decimals than EUR allows"),
        ("10000000000000000000000000000.01", "larger than this product handles"),
        ("0.000000000000000000000000000000000001", "more decimals"),
    ],
)
def test_money_is_never_rounded_to_minor_units(amount, message):
    with pytest.raises(AmountError, match=message):
        _ = Money(Decimal(amount), "EUR").minor_units


def test_money_reads_well():
    assert str(Money(Decimal("-1234567.5"), "EUR")) == "-1,234,567.50 EUR"
    assert str(Money(Decimal(1500), "JPY")) == "1,500 JPY"
