"""What a cause may look at, and how much of it a cause must explain."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pandas as pd

from recon.config.rules import Rules
from recon.matching.causes.aside_evidence import NO_EVIDENCE, AsideEvidence
from recon.matching.frames.grouping import Rows
from recon.matching.frames.sources import Sources
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
    sources: Sources
    """What the sets were made of."""
    rules: Rules
    hosts: Rows
    """The set whose break explains a set, else negative."""
    parts: AsideEvidence = NO_EVIDENCE
    """What was judged before, in parts: it is not among the sets, and speaks against a cause."""

    def file_of_sets(self, source: str) -> "pd.Series[str]":
        """The file of the first row of every set that has one (index: set)."""
        frames = {"orders": self.sources.orders, "gateway": self.sources.gateway}
        items = {"orders": self.joined.orders.items, "gateway": self.joined.gateway.items}[source]
        names = frames[source]["source"].to_numpy(dtype=object)[items["row"]]
        files: pd.Series[str] = pd.Series(names, index=items["set"], dtype="str")
        return files[~files.index.duplicated()]


Finder = Callable[[Breaks, CauseEvidence], Found]
"""Looks for one kind of cause among the breaks that have none yet."""
