"""What sets that were judged in parts say against a cause, added up: no row of them is asked."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from recon.matching.frames.grouping import Ints

Account = tuple[str, ...]
"""Merchant and account."""


@dataclass(frozen=True, slots=True)
class PairCounts:
    """The sets of one account that have a time of one source and one of the gateway."""

    pairs: int = 0
    alike: int = 0
    """Those that are hardly apart."""
    by_steps: Ints | None = None
    """How many are so many steps apart (see zone_shift.WIDTH); None: of no set."""
    minutes: Mapping[str, tuple[Ints, Ints]] = field(default_factory=dict)
    """Column of a time -> its minutes since 1970, each once and in order, and how many have it."""


@dataclass(frozen=True, slots=True)
class AsideEvidence:
    """Counts of sets; those of several parts add up."""

    agreeing: Mapping[tuple[str, ...], Mapping[tuple[str, ...], int]] = field(default_factory=dict)
    """Columns of orders and sides (see CauseEvidence.agreeing) -> words -> sets."""
    days: Mapping[str, Mapping[tuple[str, str, int], int]] = field(default_factory=dict)
    """Side -> merchant, account and business date (see CauseEvidence.agreeing_days) -> sets."""
    pairs: Mapping[str, Mapping[Account, PairCounts]] = field(default_factory=dict)
    """Source -> account -> its pairs."""


NO_EVIDENCE = AsideEvidence()


def added_evidence(parts: Iterable[AsideEvidence]) -> AsideEvidence:
    """The evidence of several parts together."""
    agreeing: dict[tuple[str, ...], Counter[tuple[str, ...]]] = {}
    days: dict[str, Counter[tuple[str, str, int]]] = {}
    pairs: dict[str, dict[Account, list[PairCounts]]] = {}
    for part in parts:
        for asked, by_words in part.agreeing.items():
            agreeing.setdefault(asked, Counter()).update(by_words)
        for side, by_day in part.days.items():
            days.setdefault(side, Counter()).update(by_day)
        for source, by_account in part.pairs.items():
            for account, counts in by_account.items():
                pairs.setdefault(source, {}).setdefault(account, []).append(counts)
    return AsideEvidence(
        agreeing,
        days,
        {
            source: {account: _together(several) for account, several in by_account.items()}
            for source, by_account in pairs.items()
        },
    )


def _together(several: list[PairCounts]) -> PairCounts:
    steps = [counts.by_steps for counts in several if counts.by_steps is not None]
    clocks = {clock for counts in several for clock in counts.minutes}
    return PairCounts(
        sum(counts.pairs for counts in several),
        sum(counts.alike for counts in several),
        np.sum(steps, axis=0) if steps else None,
        {
            clock: _minutes(
                [counts.minutes[clock] for counts in several if clock in counts.minutes]
            )
            for clock in sorted(clocks)
        },
    )


def _minutes(several: list[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    minutes, times = (np.concatenate(each) for each in zip(*several, strict=True))
    distinct, spots = np.unique(minutes, return_inverse=True)
    counts = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(counts, spots, times)
    return distinct, counts
