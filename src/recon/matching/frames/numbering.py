"""One numbering of keys and accounts, made once for all sources and handed down."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from recon.matching.frames.coding import Codes
from recon.matching.frames.grouping import Rows


@dataclass(frozen=True, slots=True)
class Keys:
    """Merchant, account and order number of rows that are judged, as one number."""

    of: Mapping[str, Rows]
    """By source; NO_KEY for a row without an order number, or that stands outside the sets."""
    account_of: Mapping[str, Rows]
    """By source, for every row the place of its merchant and account in `accounts`."""
    accounts: list[tuple[str, ...]]
    """Merchant and account."""


@dataclass(frozen=True, slots=True)
class WholeKeys:
    """The same of all rows there are, in half the bytes; sources may share one array of numbers."""

    of: Mapping[str, Codes]
    account_of: Mapping[str, Codes]
    account: Codes
    """By key, the place in `accounts`."""
    accounts: list[tuple[str, ...]]

    @property
    def size(self) -> int:
        """How many keys there are."""
        return len(self.account)

    def take(self, rows: Mapping[str, Rows]) -> Keys:
        """The numbers of some rows of some sources, and of all rows of the others."""
        every = slice(None)
        of, account_of = (
            {name: column[rows.get(name, every)].astype(np.intp) for name, column in each.items()}
            for each in (self.of, self.account_of)
        )
        return Keys(of, account_of, self.accounts)
