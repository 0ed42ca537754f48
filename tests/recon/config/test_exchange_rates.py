import tomllib
from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest

from recon.config.rules import Rules
from recon.model.errors import ConfigurationError
from recon.model.money import exponent

DATED = """
[rate."USD.EUR"]
valid_days = 3
basis_points = 10
[rate."USD.EUR".on]
2026-11-05 = "0.92"
2026-11-10 = "0.9300"
"""


def rules(text=DATED):
    return Rules.of(tomllib.loads(text), source="rules.toml")


@pytest.mark.parametrize(
    ("day", "rate", "since"),
    [
        ("2026-11-04", None, ""),
        ("2026-11-05", "0.92", "2026-11-05"),
        ("2026-11-08", "0.92", "2026-11-05"),
        ("2026-11-09", None, "2026-11-05"),
        ("2026-11-10", "0.93", "2026-11-10"),
        ("2026-11-13", "0.93", "2026-11-10"),
        ("2026-11-14", None, "2026-11-10"),
    ],
)
def test_the_newest_rate_up_to_the_day_holds_while_it_is_good(day, rate, since):
    applied = rules().rate_of("USD", into="EUR", day=day)
    assert applied.rate == (None if rate is None else Decimal(rate))
    assert applied.since == since
    assert (applied.exchanged(10_000) is None) == (rate is None)


def test_what_nobody_declared_is_said_in_words():
    rate_of = rules().rate_of
    assert rate_of("GBP", into="EUR", day="2026-11-10").text == (
        "[rate] of the rules names no rate GBP.EUR of 10 Nov 2026 or before"
    )
    assert rate_of("USD", into="EUR", day="2026-11-01").text == (
        "[rate] of the rules names no rate USD.EUR of 1 Nov 2026 or before"
    )
    assert rate_of("USD", into="EUR", day="2026-11-20").text == (
        "the newest rate USD.EUR of the rules before 20 Nov 2026 is of 10 Nov 2026, and holds for "
        "3 days"
    )
    assert rate_of("USD", into="EUR", day="2026-11-10").text == "the rate 0.93 of 10 Nov 2026"


@pytest.mark.parametrize(("foreign", "booked"), [("USD", "EUR"), ("JPY", "KWD"), ("KWD", "JPY")])
def test_amounts_are_exchanged_exactly_and_half_to_even(foreign, booked):
    chance = Random(f"{foreign} {booked}")
    for _ in range(300):
        rate = Decimal(chance.randrange(1, 10**12)).scaleb(-chance.randrange(4, 13))
        rate = min(rate, Decimal(999_999_999))
        declared = {"rate": {f"{foreign}.{booked}": {"on": {"2026-11-05": f"{rate:f}"}}}}
        applied = Rules.of(declared, source="x").rate_of(foreign, into=booked, day="2026-11-05")
        amount = chance.randrange(-(10**15), 10**15)
        shift = exponent(booked) - exponent(foreign)
        assert applied.exchanged(amount) == round(amount * Fraction(rate) * Fraction(10) ** shift)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[rate."USD.EUR"]\nbasis_points = 5', "rate.USD.EUR: names no rate"),
        ('[rate."USD.EUR".on]\n2026-11-31 = "0.9"', "must be a date such as 2026-01-05"),
        ('[rate."USD.EUR".on]\n20261105 = "0.9"', "must be a date such as 2026-01-05"),
        ('[rate."USD.EUR".on]\n2026-W45-4 = "0.9"', "must be a date such as 2026-01-05"),
        ('[rate."USD.EUR".on]\n2026-11-05 = "0"', "rate.USD.EUR.on.2026-11-05: "),
        ('[rate."USD.EUR".on]\n2026-11-05 = "nan"', "rate.USD.EUR.on.2026-11-05: "),
        ('[rate."USD.XXQ".on]\n2026-11-05 = "1"', "rate.USD.XXQ"),
    ],
)
def test_a_mistake_is_told_with_its_key(text, words):
    with pytest.raises(ConfigurationError) as refused:
        rules(text)
    assert words in str(refused.value)
