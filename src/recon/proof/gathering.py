"""One look at all rows of a night that is compared in parts: what a part must know of the others.

Rows that may stand for others are kept, which are few: those without an order number, entries of
pay-outs, entries that share a number. Of all others only a number of eight bytes an id is.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.exact.aside import loose_words
from recon.matching.exact.elsewhere import Elsewhere, SeenIds, rows_with
from recon.matching.exact.exact_search import belonging, marked
from recon.matching.frames.coding import is_word
from recon.matching.frames.grouping import Bools
from recon.matching.frames.sources import Sources
from recon.matching.sides.ledger_side import JUDGED
from recon.matching.sides.payouts import PAYOUT_TYPES, judged_entries
from recon.proof.books_bridge import Books, of_money, restated, steps_of

_FRAMES = ("orders", "gateway", "ledger")


class Gathering:
    """What was seen so far, stretch by stretch of the order numbers."""

    def __init__(self, small: Sources, *, rules: Rules) -> None:
        """Begin with what is not cut into stretches.

        Args:
            small: all sources; of orders, gateway and ledger no row is looked at.
            rules: how they are judged.
        """
        self._small = small
        self._rules = rules
        self._entries, self._transactions = SeenIds(), SeenIds()
        self._odd: dict[str, list[pd.DataFrame]] = {name: [] for name in _FRAMES}
        self._again: list[pd.DataFrame] = []
        self._restated: Counter[str] = Counter()

    def see(self, rows: Sources) -> None:
        """Look at the next stretch (orders, gateway, ledger)."""
        for name in _FRAMES:
            frame: pd.DataFrame | None = getattr(rows, name)
            if frame is None:
                continue
            odd = _stands_for_others(frame, name=name)
            if odd.any():
                self._odd[name].append(frame[odd])
            if name == "ledger":
                self._entries.see(frame["entry_id"])
                self._restated.update(restated(frame[~odd]))
        self._transactions.see(rows.gateway["transaction_id"])

    def to_see_again(self) -> list[int]:
        """The stretches, counted from 0 as they were seen, with entries that share a number."""
        several = self._entries.shared()
        return self._entries.stretches_with(several) if len(several) else []

    def see_again(self, rows: Sources) -> None:
        """Look once more at one of these."""
        if rows.ledger is not None:
            several = rows_with(rows.ledger["entry_id"], self._entries.shared())
            several = several & ~_stands_for_others(rows.ledger, name="ledger")
            self._again.append(rows.ledger[several])

    def elsewhere(self) -> Elsewhere:
        """What each part must know of all rows."""
        shared = Elsewhere(frozenset(), self._entries.shared(), self._transactions.shared())
        odd = self._odd_rows()
        if odd.ledger is not None:
            ours = odd.ledger.assign(**{JUDGED: judged_entries(odd)})
            odd = replace(odd, ledger=ours)
        known = marked(odd, elsewhere=shared)
        return replace(shared, words=frozenset(loose_words(known, belongs=belonging(known))))

    def books(self) -> Books:
        """All steps of the ledger's money (see books_bridge.books_of); empty without a ledger."""
        if self._small.ledger is None:
            return {}
        odd = self._odd_rows()
        entries = self._small.ledger if odd.ledger is None else odd.ledger
        several = replace(odd, ledger=pd.concat([entries, *self._again], ignore_index=True))
        # What is restated of those that are seen again was counted when they were seen first.
        twice = Counter(restated(pd.concat([entries.iloc[:0], *self._again], ignore_index=True)))
        more = {name: self._restated[name] - twice[name] for name in {*self._restated, *twice}}
        return of_money(self._small, steps=steps_of(several, rules=self._rules), more=more)

    def _odd_rows(self) -> Sources:
        frames: dict[str, Any] = {
            name: pd.concat([whole.iloc[:0], *self._odd[name]], ignore_index=True)
            for name in _FRAMES
            if (whole := getattr(self._small, name)) is not None
        }
        return replace(self._small, **frames)


def _stands_for_others(frame: pd.DataFrame, *, name: str) -> Bools:
    """The rows that belong to no order number of their own."""
    keyless: Bools = frame["order_no"].eq("").to_numpy(dtype=np.bool_)
    return keyless | is_word(frame["entry_type"], *PAYOUT_TYPES) if name == "ledger" else keyless
