from decimal import Decimal
from typing import Any

import pytest

from recon.config.limits import limits_of
from recon.model.errors import ConfigurationError


def test_an_accounts_own_keys_lie_over_the_general_ones() -> None:
    """An account changes the keys it names and keeps the others."""
    limits = limits_of(
        {
            "limits": {"EUR": {"item": 100, "night": 1000}},
            "accounts": {"1/2": {"EUR": {"item": 250}}},
        },
        accounts={"1/2", "1/3"},
    )

    own = limits.of("1/2", currency="EUR")
    other = limits.of("1/3", currency="EUR")

    assert (own.item, own.night, other.item) == (Decimal(250), Decimal(1000), Decimal(100))


def test_an_absent_currency_has_no_bounds() -> None:
    """What is not configured sets no bound."""
    assert limits_of({}, accounts=()).of("1/2", currency="JPY").item is None


def test_a_negative_bound_is_refused_by_name() -> None:
    """A bound below zero is a mistake, named with its key."""
    with pytest.raises(ConfigurationError, match=r"limits\.toml.*EUR"):
        limits_of({"limits": {"EUR": {"item": -1}}}, accounts=())


@pytest.mark.parametrize(
    ("tables", "named"),
    [
        ({"limits": {"EURO": {"item": 10}}}, "'EURO' is not an ISO 4217"),
        ({"limits": {"eur": {"item": 10}}}, "'eur' is not an ISO 4217"),
        ({"accounts": {"1/2": {"EURO": {"item": 10}}}}, "'EURO' is not an ISO 4217"),
        ({"accounts": {"1/9": {"EUR": {"item": 10}}}}, "1/9.*no such account"),
    ],
)
def test_a_bound_that_could_never_hold_is_refused(tables: dict[str, Any], named: str) -> None:
    """A misspelt currency or account must not let money through unbounded."""
    with pytest.raises(ConfigurationError, match=named):
        limits_of(tables, accounts={"1/2"})
