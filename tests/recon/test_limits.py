from decimal import Decimal

import pytest

from recon.errors import ConfigurationError
from recon.limits import limits_of


def test_an_accounts_own_keys_lie_over_the_general_ones() -> None:
    """An account changes the keys it names and keeps the others."""
    limits = limits_of(
        {
            "limits": {"EUR": {"item": 100, "night": 1000}},
            "accounts": {"1/2": {"EUR": {"item": 250}}},
        }
    )

    own = limits.of("1/2", currency="EUR")
    other = limits.of("1/3", currency="EUR")

    assert (own.item, own.night, other.item) == (Decimal(250), Decimal(1000), Decimal(100))


def test_an_absent_currency_has_no_bounds() -> None:
    """What is not configured sets no bound."""
    assert limits_of({}).of("1/2", currency="JPY").item is None


def test_a_negative_bound_is_refused_by_name() -> None:
    """A bound below zero is a mistake, named with its key."""
    with pytest.raises(ConfigurationError, match=r"limits\.toml.*EUR"):
        limits_of({"limits": {"EUR": {"item": -1}}})
