"""Write-offs and adjustments that name a group: they close what it differs by, each once."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from recon.matching.frames.arrays import texts
from recon.matching.frames.coding import is_word
from recon.matching.frames.grouping import Bools, Ints
from recon.matching.frames.versions import NEW
from recon.matching.sides.ledger_side import booked, entry_versions, is_base_type
from recon.model.words import REVERSAL_SUFFIX, EntryType

CLOSERS = (EntryType.WRITE_OFF, EntryType.ADJUSTMENT)
"""Entries that may close a group that they name."""
Holder = tuple[str, str, str]
"""Merchant, account, currency."""


@dataclass(slots=True)
class ClosingEntries:
    """The entries that may close a group, by what they name."""

    signed: Ints
    """Of every entry of the ledger; a reversal is the other way round."""
    named: dict[tuple[Holder, str], list[int]] = field(default_factory=dict)
    """Place and word -> rows of the ledger."""
    used: set[int] = field(default_factory=set)

    def take(self, words: Iterable[str], *, of: Holder, gap: int) -> list[int]:
        """The rows that name a group by one of these words and come to what it differs by."""
        for word in words:
            own = [row for row in self.named.get((of, word), ()) if row not in self.used]
            if own and abs(sum(self.signed[own].tolist())) == abs(gap):
                self.used |= {*own}
                return own
        return []


def closing_entries(ledger: pd.DataFrame | None, *, among: Bools | None = None) -> ClosingEntries:
    """Every entry that may close a group.

    Args:
        ledger: LEDGER_COLUMNS.
        among: the entries that may; None: all.
    """
    if ledger is None:
        return ClosingEntries(np.zeros(0, dtype=np.int64))
    mine = is_base_type(ledger["entry_type"], *CLOSERS)
    rows = np.flatnonzero(mine if among is None else mine & among)
    if not rows.size:
        return ClosingEntries(np.zeros(0, dtype=np.int64))
    rows = rows[entry_versions(ledger)[rows] == NEW]
    currency, amount, _ = booked(ledger)
    back = is_word(ledger["entry_type"], *(f"{kind}{REVERSAL_SUFFIX}" for kind in CLOSERS))
    closing = ClosingEntries(np.where(back, -amount, amount))
    columns = [texts(ledger[name])[rows].tolist() for name in ("merchant_id", "account_id")]
    columns.append(texts(currency)[rows].tolist())
    words = [texts(ledger[name])[rows].tolist() for name in ("order_no", "reference_no")]
    for row, merchant, account, unit, *names in zip(rows.tolist(), *columns, *words, strict=True):
        for word in {*names} - {""}:
            closing.named.setdefault(((merchant, account, unit), word), []).append(row)
    return closing
