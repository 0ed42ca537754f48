"""What the matches of a night come to, found in one pass over them: by group, exactly.

The groups are the pivot of a night whose matches do not fit into the workbook; summed up further
they are the totals of every night.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from recon.figures import MatchedRows
from reports.plain_text import replaced_in

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


def matched_totals(matched: MatchedRows) -> MatchedTotals:
    """One pass over all matches."""
    sums: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    largest: Counter[str] = Counter()
    replaced = 0
    for batch in matched.batches():
        for group, amounts in _sums_of(batch).items():
            sums[group].update(amounts)
        for currency, amount in _largest_of(batch).items():
            largest[currency] = max(largest[currency], amount)
        replaced += sum(replaced_in(batch[name].fillna("").tolist()) for name in TEXT_NAMES)
    groups = [
        {**dict(zip(GROUP_NAMES, group, strict=True)), **sums[group]} for group in sorted(sums)
    ]
    return MatchedTotals(matched.count, groups, dict(largest), replaced)


def _sums_of(batch: pd.DataFrame) -> dict[tuple[str, ...], dict[str, int]]:
    """Group -> rows and exact sums of a batch."""
    halves: dict[str, Any] = {name: batch[name].fillna("") for name in GROUP_NAMES}
    for name in AMOUNT_NAMES:
        amounts = batch[name].astype("Int64").fillna(0).astype("int64")
        halves[f"{name} high"], halves[f"{name} low"] = amounts // _HALF, amounts % _HALF
    grouped = pd.DataFrame(halves).groupby([*GROUP_NAMES], sort=False, observed=True)
    counts, summed = grouped.size(), grouped.sum()
    found = {}
    for group, count, row in zip(
        counts.index, counts.tolist(), summed.to_dict("records"), strict=True
    ):
        exact = {
            name: int(row[f"{name} high"]) * _HALF + int(row[f"{name} low"])
            for name in AMOUNT_NAMES
        }
        found[tuple(map(str, group))] = {"rows": int(count), **exact}
    return found


def _largest_of(batch: pd.DataFrame) -> dict[str, int]:
    amounts = batch[[*AMOUNT_NAMES]].astype("Int64").abs().max(axis=1).fillna(0).astype("int64")
    found = amounts.groupby(batch["currency"].fillna("")).max()
    return {str(currency): int(amount) for currency, amount in found.items()}
