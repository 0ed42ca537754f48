"""The merchant's own bank accounts, and the days on which their banks move money."""

from collections.abc import Iterable
from datetime import date
from functools import cache
from typing import Annotated

from pydantic import AfterValidator, Field

from recon.config.declared import CurrencyCode, DeclaredTable

HOLIDAY_YEARS = range(2015, 2046)
"""Years whose bank holidays are known; a payment of another year meets none."""
COUNTERPARTIES_MAX = 50
"""Words that name the gateway as the other side of an entry."""
SERVED_MAX = 200
"""Merchant accounts of one bank account."""


def _bank_account(text: str) -> str:
    # The list of the world's banks takes half a second to load, and most merchants name none.
    from schwifty import IBAN
    from schwifty.exceptions import SchwiftyException

    try:
        return str(IBAN(text).compact)
    except SchwiftyException:
        msg = "is not an IBAN: country, length or check digits are wrong"
        raise ValueError(msg) from None


def known_calendar(name: str) -> str:
    """The name of a calendar of bank holidays, unchanged; "" is none.

    Raises:
        ValueError: nobody keeps such a calendar.
    """
    if name:
        try:
            _calendar_days(name, years=(HOLIDAY_YEARS.start,))
        except NotImplementedError:
            msg = f"{name!r} is no calendar of banks such as XECB, XNYS or DE"
            raise ValueError(msg) from None
    return name


@cache
def bank_holidays(name: str) -> frozenset[date]:
    """The bank holidays of a financial market (XECB, XNYS) or a country (DE); "" has none."""
    return _calendar_days(name, years=HOLIDAY_YEARS) if name else frozenset()


def _calendar_days(name: str, *, years: Iterable[int]) -> frozenset[date]:
    # As above: the calendars of the world take a while to load.
    import holidays

    try:
        days = holidays.financial_holidays(name, years=years)
    except NotImplementedError:
        return frozenset(holidays.country_holidays(name, years=years))
    return frozenset(days)


class BankRules(DeclaredTable):
    """One bank account of the merchant, and which pay-outs arrive on it."""

    iban: Annotated[str, AfterValidator(_bank_account)]
    currency: CurrencyCode
    accounts: tuple[Annotated[str, Field(pattern=r"^[^/]{1,50}/[^/]{1,50}$")], ...] = Field(
        min_length=1, max_length=SERVED_MAX
    )
    """Merchant accounts (`MERCHANT/ACCOUNT`) that are paid out here."""
    counterparty: tuple[Annotated[str, Field(min_length=2, max_length=100)], ...] = Field(
        default=(), max_length=COUNTERPARTIES_MAX
    )
    """Words or IBANs by which the gateway is known as the other side of an entry."""

    @property
    def served(self) -> frozenset[tuple[str, str]]:
        """Merchant and account of every account that is paid out here."""
        pairs = (account.partition("/") for account in self.accounts)
        return frozenset((merchant, account) for merchant, _, account in pairs)
