"""One numbering of keys and accounts, made once for all sources and handed down."""

from collections.abc import Mapping
from dataclasses import dataclass

from recon.matching.frames.grouping import Rows


@dataclass(frozen=True, slots=True)
class Keys:
    """Merchant, account and order number of every row as one number."""

    of: Mapping[str, Rows]
    """By source; NO_KEY for a row without an order number, or that stands outside the sets."""
    account_of: Mapping[str, Rows]
    """By source, for every row the place of its merchant and account in `accounts`."""
    account: Rows
    """By key, the place in `accounts`."""
    accounts: list[tuple[str, ...]]
    """Merchant and account."""

    @property
    def size(self) -> int:
        """How many keys there are."""
        return len(self.account)

    def take(self, rows: Mapping[str, Rows]) -> "Keys":
        """The same numbers for some rows of some sources."""
        of, account_of = dict(self.of), dict(self.account_of)
        for name, numbers in rows.items():
            of[name], account_of[name] = of[name][numbers], account_of[name][numbers]
        return Keys(of, account_of, self.account, self.accounts)
