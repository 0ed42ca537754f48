"""What a cause may look at, and how much of it a cause must explain."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.calm.calm_sets import CalmAndLeft
from recon.matching.causes.aside_evidence import NO_EVIDENCE, AsideEvidence
from recon.matching.frames.coding import placed
from recon.matching.frames.grouping import NO_INSTANT, Rows
from recon.matching.frames.sources import Sources
from recon.matching.judging.grace import MINUTE_MICROSECONDS, business_days
from recon.matching.sets.joined_sets import Joined

BREAKS_MIN = 3
"""Fewer breaks are looked at one by one."""
SHARE_MIN = 0.8
"""A cause holds for at least this share of what it could have held for."""

Breaks = pd.DataFrame
"""Breaks, each with its set."""
Found = Iterator[tuple[pd.Index, str]]
"""Rows of breaks, and the cause they share."""


@dataclass(frozen=True, slots=True)
class CauseEvidence:
    """What a cause may look at."""

    joined: Joined
    """The sets that were classified."""
    sources: Sources
    """What they were made of."""
    rules: Rules
    aside: CalmAndLeft
    """The sets that were set aside: they speak against a cause."""
    whole: Sources
    hosts: Rows
    """The set whose break explains a set, else negative."""
    parts: AsideEvidence = NO_EVIDENCE
    """What was set aside before, in parts: it is not among `aside`."""
    counted: dict[tuple[str, ...], dict[tuple[str, ...], int]] = field(default_factory=dict)
    """What `agreeing` found, by its columns: several causes ask the same."""
    dated: dict[str, dict[tuple[str, str, int], int]] = field(default_factory=dict)
    """What `agreeing_days` found, by its side."""

    def agreeing(self, *columns: str, sides: tuple[str, ...]) -> dict[tuple[str, ...], int]:
        """How many sets aside the orders of each combination of columns have.

        Counted is what has an amount on each of these sides (columns of the joined sets).
        """
        asked = (*columns, *sides)
        if asked not in self.counted:
            self.counted[asked] = {**self._counted(columns, sides=sides)}
            for words, count in self.parts.agreeing.get(asked, {}).items():
                self.counted[asked][words] = self.counted[asked].get(words, 0) + count
        return self.counted[asked]

    def _counted(
        self, columns: tuple[str, ...], *, sides: tuple[str, ...]
    ) -> dict[tuple[str, ...], int]:
        numbers, places = placed(self.whole.orders, by=columns)
        calm = self.aside.calm
        moved = np.logical_and.reduce([calm.sets[name] > 0 for name in sides])
        rows = calm.rows("orders")
        rows = rows[moved[calm.of["orders"][rows]]]
        counts = np.bincount(numbers[rows], minlength=len(places))
        return dict(zip(places, counts.tolist(), strict=True))

    def agreeing_days(self, side: str) -> dict[tuple[str, str, int], int]:
        """How many sets aside were paid, by merchant, account and business date.

        Counted is what this side (a column of the joined sets) is not without.
        """
        if side not in self.dated:
            self.dated[side] = self._dated(side)
            for day, count in self.parts.days.get(side, {}).items():
                self.dated[side][day] = self.dated[side].get(day, 0) + count
        return self.dated[side]

    def _dated(self, side: str) -> dict[tuple[str, str, int], int]:
        keys, sets = self.aside.keys, self.aside.calm.sets
        known = (sets[side] != 0) & (sets["transaction_date"] != NO_INSTANT)
        instants, account = sets["transaction_date"][known], sets["account"][known]
        size = max(len(keys.accounts), 1)
        minutes = instants // MINUTE_MICROSECONDS
        numbers, distinct = pd.factorize(minutes * size + account)
        minute, account_number = np.divmod(np.asarray(distinct, dtype=np.int64), size)
        days = business_days(minute * MINUTE_MICROSECONDS, calendar=self.rules.business_calendar)
        sums: dict[tuple[str, str, int], int] = {}
        counts = np.bincount(numbers, minlength=len(distinct)).tolist()
        for source, day, count in zip(account_number.tolist(), days.tolist(), counts, strict=True):
            key = keys.accounts[source][0], keys.accounts[source][1], day
            sums[key] = sums.get(key, 0) + count
        return sums

    def file_of_sets(self, source: str) -> "pd.Series[str]":
        """The file of the first row of every set that has one (index: set)."""
        frames = {"orders": self.sources.orders, "gateway": self.sources.gateway}
        items = {"orders": self.joined.orders.items, "gateway": self.joined.gateway.items}[source]
        names = frames[source]["source"].to_numpy(dtype=object)[items["row"]]
        files: pd.Series[str] = pd.Series(names, index=items["set"], dtype="str")
        return files[~files.index.duplicated()]


Finder = Callable[[Breaks, CauseEvidence], Found]
"""Looks for one kind of cause among the breaks that have none yet."""
