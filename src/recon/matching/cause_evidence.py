"""What a cause may look at, and how much of it a cause must explain."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pandas as pd

from recon.matching.coding import placed
from recon.matching.exact import Exact
from recon.matching.grace import business_days
from recon.matching.grouping import Rows, instants_of
from recon.matching.joined_sets import Joined
from recon.matching.sources import Sources
from recon.matching.total_rows import ACCOUNT, sizes
from recon.rules import Rules

BREAKS_MIN = 3
"""Fewer breaks are looked at one by one."""
SHARE_MIN = 0.8
"""A cause holds for at least this share of what it could have held for."""

Breaks = pd.DataFrame
"""Breaks, each with its set."""
Found = Iterator[tuple[pd.Index, str]]
"""Rows of breaks, and the cause they share."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a cause may look at."""

    joined: Joined
    """The sets that were classified."""
    sources: Sources
    """What they were made of."""
    rules: Rules
    exact: Exact
    """The sets that agree in every leg: they speak against a cause."""
    whole: Sources
    hosts: Rows
    """The set whose break explains a set, else negative."""

    def agreeing(self, *columns: str) -> dict[tuple[str, ...], int]:
        """How many exact sets the orders of each combination of columns have."""
        orders = self.whole.orders[[*columns]].iloc[self.exact.rows["orders"]]
        return sizes(orders, by=[*columns])

    def agreeing_days(self) -> set[tuple[str, str, int]]:
        """Merchants, accounts and business dates on which an exact set was paid."""
        rows, gateway = self.exact.rows["gateway"], self.whole.gateway
        instants = instants_of(gateway["transaction_date"])[rows]
        days = business_days(instants, calendar=self.rules.business_calendar)
        numbers, known = pd.factorize(days)
        accounts, words = placed(gateway[ACCOUNT], by=ACCOUNT)
        _, pairs = pd.factorize(accounts[rows] * max(len(known), 1) + numbers)
        found = (divmod(pair, max(len(known), 1)) for pair in pairs.tolist())
        return {(words[place][0], words[place][1], int(known[day])) for place, day in found}

    def file_of_sets(self, source: str) -> "pd.Series[str]":
        """The file of the first row of every set that has one (index: set)."""
        frames = {"orders": self.sources.orders, "gateway": self.sources.gateway}
        items = {"orders": self.joined.orders.items, "gateway": self.joined.gateway.items}[source]
        names = frames[source]["source"].to_numpy(dtype=object)[items["row"].to_numpy()]
        files: pd.Series[str] = pd.Series(names, index=items["set"].to_numpy(), dtype="str")
        return files[~files.index.duplicated()]


Finder = Callable[[Breaks, Evidence], Found]
"""Looks for one kind of cause among the breaks that have none yet."""
