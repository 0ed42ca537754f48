"""The accounts of the books that journals name, and the kinds of movements that each is for."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

_OF_KIND: Mapping[str, str] = {
    "capture": "sales",
    "adjustment": "sales",
    "refund": "refunds",
    "chargeback": "chargebacks",
    "won_back": "chargebacks",
    "payout": "payouts",
    "pay_out": "payouts",
    "payee": "payouts",
    "reserve": "reserves",
}
"""Kind of fact, or type of entry, -> what it is booked on beside the clearing account."""


@dataclass(frozen=True, slots=True)
class JournalNames:
    """Accounts of the rules that judged the newest night; "" where they name none."""

    clearing: str
    fees: str
    """Without it nothing is accrued."""
    sales: str = ""
    refunds: str = ""
    chargebacks: str = ""
    payouts: str = ""
    reserves: str = ""

    @classmethod
    def of(cls, accounts: Mapping[str, Any]) -> Self:
        """The accounts as rules have them."""
        return cls(*(str(accounts.get(field.name) or "") for field in fields(cls)))

    @property
    def by_kind(self) -> dict[str, str]:
        """Kind of fact, or type of entry, -> its account; of those that have one."""
        named = {kind: str(getattr(self, part)) for kind, part in _OF_KIND.items()}
        return {kind: account for kind, account in named.items() if account}
