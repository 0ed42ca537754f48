from datetime import date
from typing import Any

import pytest

from recon.config.rules import Rules, bank_holidays
from recon.model.errors import ConfigurationError

BANK = {
    "iban": "DE89 3704 0044 0532 0130 00",
    "currency": "EUR",
    "accounts": ["100042/100042001"],
    "counterparty": ["Gateway"],
}


def rules_of(bank: dict[str, Any], *, days: str = "") -> Rules:
    """Rules with one bank, and whose holidays hold."""
    return Rules.of({"bank": {"main": bank}, "calendar": {"bank": days}}, source="rules.toml")


def test_an_iban_is_kept_without_blanks() -> None:
    """Statements write it without, people with them."""
    bank = rules_of(BANK).bank["main"]
    assert bank.iban == "DE89370400440532013000"
    assert bank.served == {("100042", "100042001")}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"iban": "DE89370400440532013001"}, "bank.main.iban: is not an IBAN"),
        ({"currency": "EURO"}, "bank.main.currency: 'EURO' is not an ISO 4217"),
        ({"accounts": []}, "bank.main.accounts"),
        ({"accounts": ["100042"]}, "bank.main.accounts #1"),
        ({"inbox": "x"}, "bank.main.inbox"),
    ],
)
def test_a_mistake_is_named_with_its_key(change: dict[str, Any], why: str) -> None:
    """And never with its value where that is an account."""
    with pytest.raises(ConfigurationError, match=why) as refused:
        rules_of({**BANK, **change})
    assert "DE89" not in str(refused.value)


def test_bank_holidays_are_no_business_days_of_the_way_to_the_bank() -> None:
    """Good Friday closes the banks of the euro; shops and books go on."""
    friday = date(2026, 4, 3)
    assert friday in bank_holidays("XECB")
    calendar = rules_of(BANK, days="XECB")
    assert not calendar.bank_calendar.is_business_day(friday)
    assert calendar.business_calendar.is_business_day(friday)
    assert rules_of(BANK).bank_calendar.is_business_day(friday)
    assert date(2026, 11, 26) in bank_holidays("XNYS")
    assert date(2026, 10, 3) in bank_holidays("DE")


def test_an_unknown_calendar_is_refused() -> None:
    """Nobody keeps the holidays of that place."""
    with pytest.raises(ConfigurationError, match="no calendar of banks such as XECB"):
        rules_of(BANK, days="ATLANTIS")
