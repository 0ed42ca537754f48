"""Limits on moving money (`limits.toml`): by rule, with a second person, or not at all.

`[limits.<currency>]` applies to every account, overridden by an account's own keys in
`[accounts."<merchant>/<account>".<currency>]`. Amounts are major units; an absent key: no limit.
"""

from collections.abc import Collection
from decimal import Decimal

from pydantic import Field

from recon.config.declared import CurrencyCode, DeclaredTable
from recon.model.errors import ConfigurationError


class CurrencyLimits(DeclaredTable):
    """Bounds of one currency, major units."""

    approved_by_rule: Decimal | None = Field(default=None, ge=0)
    """A single instruction up to this is approved by rule; above it two people decide."""
    approved_by_rule_night: Decimal | None = Field(default=None, ge=0)
    """Sum of what one night approves by rule; what comes after waits for people."""
    item: Decimal | None = Field(default=None, ge=0)
    """A single instruction above this is never sent, whoever approved it."""
    night: Decimal | None = Field(default=None, ge=0)
    """Sum that one run may send."""
    day: Decimal | None = Field(default=None, ge=0)
    """Sum that all runs of one calendar day (of `[calendar] timezone`) may send."""


class Limits(DeclaredTable):
    """Every bound that is configured."""

    limits: dict[CurrencyCode, CurrencyLimits] = Field(default_factory=dict)
    accounts: dict[str, dict[CurrencyCode, CurrencyLimits]] = Field(default_factory=dict)

    def of(self, account: str, *, currency: str) -> CurrencyLimits:
        """The limits of an account ("<merchant>/<account>") in a currency."""
        general = self.limits.get(currency, CurrencyLimits())
        own = self.accounts.get(account, {}).get(currency, CurrencyLimits())
        return general.model_copy(update=own.model_dump(exclude_none=True))

    def refuse_strangers(self, accounts: Collection[str]) -> None:
        """Refuse limits of an undeclared account, which would never apply.

        Raises:
            ConfigurationError: names the account.
        """
        if strange := sorted(set(self.accounts) - set(accounts)):
            msg = f'limits.toml: accounts."{strange[0]}": merchants.toml declares no such account'
            raise ConfigurationError(msg)
