"""What months came to under lines of the fee contract, and which tier that reaches.

A line is priced by days before its own, so nothing depends on the order of lines within a day or of
files. What a month came to is known from a first day on and up to the first missing file, and what
does not tell its brand may belong to it or not: a tier that this could change is not known.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import pandas as pd

from recon.config.fee_contract import ContractLine, FeeContract
from recon.config.rules import Rules
from recon.matching.frames.arrays import texts
from recon.matching.frames.coding import is_word, sums_of
from recon.matching.frames.grouping import Bools, Rows
from recon.matching.frames.sources import VOLUME_COLUMNS, Sources, frame_of
from recon.matching.sides.contract_lines import PRICED, combined, looked_up, words_as_numbers

_MONTH = len("2026-11")
NOT_REACHED = -1
"""Which tier a line is priced by is not known."""
_KEY = tuple(name for name in VOLUME_COLUMNS if name not in {"lines", "base", "late"})
Holder = tuple[str, str]
"""Merchant and account."""


@dataclass(frozen=True, slots=True)
class Volumes:
    """What the settlement files told so far, summed up by day."""

    frame: pd.DataFrame
    """VOLUME_COLUMNS."""
    until: str
    """The last day before a file that is missing; "" where none is."""

    def without_late(self) -> "Volumes":
        """Without what came late."""
        return replace(self, frame=self.frame[self.frame["late"] == 0].reset_index(drop=True))


class Reach(NamedTuple):
    """What the months that price a day came to."""

    low: int
    high: int | None
    """With what may belong to it; None: nobody knows how much."""
    why: str
    """Why the two are not one."""


def volumes_of(sources: Sources) -> Volumes | None:
    """What is known of the months; None where nothing was kept of them."""
    if sources.volumes is None:
        return None
    days = sources.settled
    return Volumes(sources.volumes, days.last if days is not None and days.waits_for else "")


def volumes_of_lines(lines: pd.DataFrame, *, late: Bools) -> pd.DataFrame:
    """VOLUME_COLUMNS of whole settlement files.

    Args:
        lines: SETTLEMENT_COLUMNS, each line once.
        late: lines of days that earlier files had told of already.
    """
    chosen = is_word(lines["entry_type"], *PRICED)
    mine = lines[chosen]
    columns = {name: words_as_numbers(mine[name]) for name in _KEY}
    number, places = combined(columns)
    is_late = late[chosen].astype(np.intp)
    group, size = 2 * number + is_late, 2 * len(places)
    base = sums_of(np.abs(mine["gross"].to_numpy(dtype=np.int64)), groups=group, size=size)
    count = np.bincount(group, minlength=size)
    rows = [
        {**dict(zip(columns, places[at // 2], strict=True)), "late": at % 2}
        | {"lines": int(count[at]), "base": int(base[at])}
        for at in np.flatnonzero(count).tolist()
    ]
    return frame_of(rows, columns=VOLUME_COLUMNS)


def with_month_volumes(sources: Sources, *, known: int, rules: Rules) -> Sources:
    """The sources of plain files with what the months came to, where the contract asks for it.

    Args:
        sources: with all lines that this run and those before it read.
        known: how many of the lines, the first, were handed on by earlier runs.
        rules: with the contract.
    """
    lines, contract = sources.settlement, rules.fee_contract
    if lines is None or contract is None or not contract.asks_months:
        return sources
    late = np.zeros(len(lines), dtype=np.bool_)
    if known:
        days = texts(lines["settled_on"])
        late[known:] = days[known:] <= max(days[:known])
    return replace(sources, volumes=volumes_of_lines(lines, late=late))


class Months:
    """What the months came to under one line of a contract, holder by holder."""

    def __init__(
        self, line: ContractLine, *, contract: FeeContract, volumes: Volumes, held: "Held"
    ) -> None:
        self._line, self._until = line, volumes.until
        self._from = contract.volumes_from or date.max
        name = "lines" if line.counts_lines else "base"
        counted = contract.numbers_counted(line)
        amounts = volumes.frame[name].tolist()
        self._days: dict[Holder, list[str]] = {}
        self._sums: dict[Holder, list[tuple[int, int]]] = {}
        by_day: dict[Holder, dict[str, tuple[int, int]]] = {}
        sure, maybe = np.isin(held.line, counted), np.isin(held.lacks, counted)
        for row in np.flatnonzero(sure | maybe).tolist():
            days = by_day.setdefault(held.holder[row], {})
            known, open_ = days.get(held.day[row], (0, 0))
            more = (amounts[row], 0) if sure[row] else (0, amounts[row])
            days[held.day[row]] = (known + more[0], open_ + more[1])
        for holder, days in by_day.items():
            self._days[holder] = sorted(days)
            steps = (days[day] for day in self._days[holder])
            self._sums[holder] = [
                (0, 0),
                *accumulate(steps, lambda a, b: (a[0] + b[0], a[1] + b[1])),
            ]

    def tier(self, holder: Holder, *, day: str) -> tuple[int, str]:
        """The tier that prices a day; else NOT_REACHED and why."""
        first, end = span(self._line, day=day)
        reach = self.reach(holder, first=first, end=end)
        bounds = self._line.bounds
        low = bisect_left(bounds, reach.low)
        high = len(bounds) if reach.high is None else bisect_left(bounds, reach.high)
        if low == high:
            return low, ""
        return NOT_REACHED, f"{self._line.name} needs what {first:%Y-%m} came to, {reach.why}"

    def reach(self, holder: Holder, *, first: date, end: date) -> Reach:
        """What the days from `first` up to before `end` came to."""
        low, open_ = self._between(holder, first=first.isoformat(), end=end.isoformat())
        if first == end:
            return Reach(0, 0, "")
        if self._line.tiers_by == "month_before" and not low:
            return Reach(0, None, "of which no line is told")
        if first < self._from:
            return Reach(low, None, f"which begins before volumes_from ({self._from})")
        if self._until and (end - timedelta(days=1)).isoformat() > self._until:
            return Reach(low, None, f"of which the file after {self._until} is missing")
        return Reach(low, low + open_, "of which some lines do not tell all that it asks for")

    def _between(self, holder: Holder, *, first: str, end: str) -> tuple[int, int]:
        days, sums = self._days.get(holder, []), self._sums.get(holder, [(0, 0)])
        (low, few), (high, more) = (sums[bisect_left(days, day)] for day in (first, end))
        return high - low, more - few


class Held(NamedTuple):
    """The rows of Volumes by lines of the contract (grain: row)."""

    line: Rows
    lacks: Rows
    holder: list[Holder]
    day: list[str]


def held_volumes(volumes: Volumes, *, contract: FeeContract) -> Held:
    """Which line of the contract each row counts for."""
    frame = volumes.frame
    line, _, _, lacks = looked_up(frame, contract=contract)
    merchant, account, day = (
        texts(frame[name]).tolist() for name in ("merchant_id", "account_id", "settled_on")
    )
    return Held(line, lacks, [*zip(merchant, account, strict=True)], day)


def span(line: ContractLine, *, day: str) -> tuple[date, date]:
    """The days that decide the tier of a day: the first, and the one after the last."""
    today = date.fromisoformat(day)
    first = today.replace(day=1)
    if line.tiers_by == "month":
        return first, today
    return (first - timedelta(days=1)).replace(day=1), first


class MonthSum(NamedTuple):
    """What one month came to under one line of a contract."""

    holder: Holder
    month: str
    currency: str
    reached: str
    """The tier, in words."""
    lines: int
    base: int
    late_lines: int
    late_base: int


def month_sums(volumes: Volumes, *, contract: FeeContract) -> Iterator[tuple[str, MonthSum]]:
    """Every line of the contract that goes by months, and what each month of it came to."""
    held = held_volumes(volumes, contract=contract)
    numbers = [volumes.frame[name].tolist() for name in ("late", "lines", "base")]
    for line in contract.lines:
        if line.tiers_by == "line":
            continue
        counted = contract.numbers_counted(line)
        sums: dict[tuple[Holder, str], list[int]] = {}
        for row in np.flatnonzero(np.isin(held.line, counted)).tolist():
            late, *more = (column[row] for column in numbers)
            month = sums.setdefault((held.holder[row], held.day[row][:_MONTH]), [0, 0, 0, 0])
            for at, amount in enumerate(more):
                month[at] += amount
                month[2 + at] += amount * late
        for (holder, name), amounts in sorted(sums.items()):
            tier = bisect_left(line.bounds, amounts[0 if line.counts_lines else 1])
            reached = line.tier_in_words(tier)
            yield line.name, MonthSum(holder, name, line.currency, reached, *amounts)
