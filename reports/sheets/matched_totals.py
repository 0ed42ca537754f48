"""What the matches of a night come to, found in one pass over them: by group, exactly.

The groups are what the sheet of a large night has of all of them; summed up further they are the
totals of every night.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from recon.matching.frames.coding import placed, sums_of
from recon.matching.frames.grouping import Rows, amounts_of
from recon.model.figures import MatchedRows
from recon.model.headway import on_the_way
from reports.drawing.plain_text import odd_of, replaced_in

GROUP_NAMES = ("account_id", "currency", "state_orders", "state_gateway", "rule", "flags")
AMOUNT_NAMES = ("order_amount", "gateway_amount", "ledger_amount", "effect_orders", "effect_ledger")
TEXT_NAMES = (
    "order_no",
    "transaction_id",
    "entry_id",
    "state_orders",
    "state_gateway",
    "flags",
    "rule",
    "account_id",
    "match_id",
)
_HALF = 10**9
"""Amounts are added up in two halves: each half's sum fits in 64 bits for any batch."""


@dataclass(frozen=True, slots=True)
class MatchedTotals:
    """Counts and sums of every match."""

    count: int
    groups: list[dict[str, Any]]
    """GROUP_NAMES, `rows`, and the sum of each of AMOUNT_NAMES in minor units, in order."""
    largest: Mapping[str, int]
    """Currency -> its largest amount in any one row, without sign."""
    replaced_characters: int
    """Characters of the rows' texts that no cell can hold."""
    is_cut: bool = False
    """Whether not every row is shown."""


def matched_totals(matched: MatchedRows, *, rows_max: int) -> MatchedTotals:
    """One pass over all matches; a sheet lists `rows_max` of them."""
    sums: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    largest: Counter[str] = Counter()
    replaced = 0
    for batch in on_the_way(matched.batches(), "matches added up", of=matched.count):
        for group, amounts in sums_by(batch, by=GROUP_NAMES, of=AMOUNT_NAMES).items():
            sums[group].update(amounts)
        for currency, amount in largest_of(batch).items():
            largest[currency] = max(largest[currency], amount)
        replaced += sum(replaced_in(odd_of(batch[name])) for name in TEXT_NAMES)
    groups = [
        {**dict(zip(GROUP_NAMES, group, strict=True)), **sums[group]} for group in sorted(sums)
    ]
    is_cut = matched.count > rows_max
    return MatchedTotals(matched.count, groups, dict(largest), replaced, is_cut)


def sums_by(
    batch: pd.DataFrame, *, by: Sequence[str], of: Sequence[str]
) -> dict[tuple[str, ...], dict[str, int]]:
    """Group -> rows and exact sums of a batch."""
    numbers, groups = placed(batch, by=by)
    counts = np.bincount(numbers, minlength=len(groups)).tolist()
    sums = {name: _sums(batch[name], groups=numbers, size=len(groups)) for name in of}
    return {
        group: {"rows": count, **{name: sums[name][number] for name in of}}
        for number, (group, count) in enumerate(zip(groups, counts, strict=True))
    }


def _sums(column: "pd.Series[int]", *, groups: Rows, size: int) -> list[int]:
    high, low = np.divmod(amounts_of(column), _HALF)
    halves = (sums_of(half, groups=groups, size=size).tolist() for half in (high, low))
    return [left * _HALF + other for left, other in zip(*halves, strict=True)]


def largest_of(batch: pd.DataFrame) -> dict[str, int]:
    """Currency -> its largest amount in any one row, without sign."""
    numbers, places = placed(batch, by=("currency",))
    largest = np.zeros(len(places), dtype=np.int64)
    for name in AMOUNT_NAMES:
        np.maximum.at(largest, numbers, np.abs(amounts_of(batch[name])))
    return {currency: amount for (currency,), amount in zip(places, largest.tolist(), strict=True)}
