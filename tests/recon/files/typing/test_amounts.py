import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recon.files.typing.amounts import AmountColumn, exact_sum, read_amounts
from recon.files.typing.text_cells import distinct
from recon.model.errors import AmountError
from recon.model.money import parse_minor_units

TEXT = pa.large_string()


def read(
    pairs: list[tuple[str, str]], *, numbers: bool = False, signed: bool = False
) -> AmountColumn:
    """Read (text, currency) pairs as one column."""
    texts, currencies = zip(*pairs, strict=True)
    return read_amounts(
        pa.array(texts, TEXT),
        currencies=distinct(pa.array(currencies, TEXT)),
        signed=np.full(len(pairs), signed),
        numbers=pa.array([numbers] * len(pairs)),
    )


def test_amounts_of_several_currencies_keep_their_places() -> None:
    """Each row is read with the decimals of its own currency."""
    column = read(
        [("10.00", "EUR"), ("1200", "JPY"), ("1.234", "KWD"), ("0.05", "EUR"), ("", "EUR")]
    )
    assert column.minor_units.tolist() == [1000, 1200, 1234, 5, 0]
    assert column.given.tolist() == [True, True, True, True, False]
    assert column.problems == {}


WRONG = [
    *("-1.00", "+1.00", "NaN", "inf", "1e309", "1,00", "1.000,00", "1_000.00", "1 000.00"),
    *("10.5", "10", "10.005", ".50", "10.", "\uff11\uff10.00", "\u0661.00", "0x10", "1e2"),
    *("1" * 400 + ".00", "9999999999999999.00", "1.00 EUR", "'1.00", "=1.00", "12.00\n1"),
]


@pytest.mark.parametrize("text", WRONG)
def test_text_that_is_no_amount_is_refused_and_never_rounded(text: str) -> None:
    """Signs, groups, exponents, other digits and other decimals are refused with a reason."""
    column = read([("1.00", "EUR"), (text, "EUR")])
    assert list(column.problems) == [1]
    assert not column.given[1]


@pytest.mark.parametrize("text", ["1200.50", "1200.001", "-5"])
def test_a_currency_without_decimals_takes_none_but_zeros(text: str) -> None:
    """12345.00 JPY is an amount, 12345.50 JPY is not."""
    column = read([("1200.00", "JPY"), (text, "JPY")])
    assert column.minor_units[0] == 1200
    assert list(column.problems) == [1]


@given(
    st.text("0123456789.-", max_size=20),
    st.sampled_from(["EUR", "JPY", "KWD", "CLF"]),
)
@example("999999999999999.99", "EUR")
@example("99999999999999.999", "KWD")
@example("999999999999999.999", "KWD")
@example("99999999999999.9999", "CLF")
def test_the_quick_way_never_differs_from_the_one_grammar(text: str, currency: str) -> None:
    """A column gives what `parse_minor_units` gives, value or refusal."""
    column = read([(text, currency)])
    try:
        expected = parse_minor_units(text, currency=currency)
    except AmountError:
        assert bool(column.problems) == bool(text)
    else:
        assert (column.minor_units.tolist(), column.problems) == ([expected], {})


@given(
    texts=st.lists(
        st.from_regex(r"[0-9]{1,3}\.[0-9]{2}", fullmatch=True) | st.text("01.-", max_size=5),
        min_size=1,
        max_size=4,
    ),
    currency=st.sampled_from(["EUR", "JPY", "KWD"]),
)
@example(["1..00", "10000"], "EUR")
@example(["10.0", "1000.000"], "EUR")
def test_a_text_is_read_alike_among_others_and_alone(texts: list[str], currency: str) -> None:
    """What stands in other rows moves no digit from one to the next."""
    column = read([(text, currency) for text in texts])
    alone = [read([(text, currency)]) for text in texts]

    assert column.minor_units.tolist() == [int(one.minor_units[0]) for one in alone]
    assert sorted(column.problems) == [row for row, one in enumerate(alone) if one.problems]


def test_an_unknown_currency_has_no_amount() -> None:
    """The currency's own column tells the problem; the amount stays blank."""
    column = read([("1.00", "EURO"), ("1.00", "eur"), ("1.00", ""), ("1.00", "XAU")])
    assert not column.given.any()
    assert column.problems == {}


def test_a_minus_needs_permission() -> None:
    """Only rows that may be signed carry a minus."""
    assert read([("-1.50", "EUR")], signed=True).minor_units.tolist() == [-150]
    assert list(read([("--1.50", "EUR")], signed=True).problems) == [0]


@pytest.mark.parametrize(
    ("text", "currency", "minor_units"),
    [("10.5", "EUR", 1050), ("10", "EUR", 1000), ("1.2", "KWD", 1200), ("12.000", "JPY", 12)],
)
def test_exact_numbers_complete_their_decimals(text: str, currency: str, minor_units: int) -> None:
    """A number cell means its value: 10.5 is 10.50."""
    assert read([(text, currency)], numbers=True).minor_units.tolist() == [minor_units]


@pytest.mark.parametrize(("text", "currency"), [("10.005", "EUR"), ("1.5", "JPY"), ("1e3", "EUR")])
def test_exact_numbers_are_not_rounded_either(text: str, currency: str) -> None:
    """A number with more decimals than its currency is refused."""
    assert list(read([(text, currency)], numbers=True).problems) == [0]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=40))
@example([2**62] * 40)
@example([-(2**62)] * 40)
def test_a_sum_beyond_64_bits_is_exact(amounts: list[int]) -> None:
    """What a file declares of itself is compared with a sum of any size."""
    assert exact_sum(np.array(amounts, dtype=np.int64)) == sum(amounts)
