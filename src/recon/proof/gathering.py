"""One look at all rows of a night that is compared in parts: what a part must know of the others.

Rows that may stand for others are kept, which are few: those without an order number, entries of
pay-outs, entries that share a number; with a settlement also entries that its groups may have. Of
all others only a number of eight bytes an id is, and what settlement lines come to.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.calm.elsewhere import Elsewhere, SeenIds, rows_with
from recon.matching.calm.spoken_sets import belonging, loose_words, marked
from recon.matching.cash.book_groups import BASES
from recon.matching.frames.coding import is_word, placed
from recon.matching.frames.grouping import Bools
from recon.matching.frames.sources import Sources
from recon.matching.frames.total_rows import ACCOUNT
from recon.matching.sides.closing_entries import CLOSERS
from recon.matching.sides.ledger_side import JUDGED, is_base_type
from recon.matching.sides.payouts import PAYOUT_TYPES, judged_entries
from recon.matching.sides.settled_refunds import refunds_of_others
from recon.matching.sides.settlement_side import first_days_told, of_payments
from recon.matching.sides.summed_lines import summed_lines, with_summed
from recon.proof.books_bridge import Books, of_money, restated, steps_of

_FRAMES = ("orders", "gateway", "ledger", "settlement")


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
        self._first_days: dict[tuple[str, ...], str] = {}
        self._refunds: list[pd.DataFrame] = []
        self._settled: list[pd.DataFrame] = []

    def see(self, rows: Sources) -> None:
        """Look at the next stretch (orders, gateway, ledger, settlement)."""
        for name in _FRAMES:
            frame: pd.DataFrame | None = getattr(rows, name)
            if frame is None:
                continue
            odd = self._is_odd(frame, name=name)
            if odd.any():
                self._odd[name].append(frame[odd])
            if name == "ledger":
                self._entries.see(frame["entry_id"])
                self._restated.update(restated(frame[~odd]))
        self._transactions.see(rows.gateway["transaction_id"])
        if rows.settlement is not None:
            self._see_lines(rows.settlement, gateway=rows.gateway)

    def _is_odd(self, frame: pd.DataFrame, *, name: str) -> Bools:
        """The rows that are kept."""
        odd = _stands_for_others(frame, name=name)
        if name == "ledger" and self._small.settlement is not None:
            # Groups have them, whatever order they name.
            odd |= is_base_type(frame["entry_type"], *BASES.values(), *CLOSERS)
        return odd

    def _see_lines(self, lines: pd.DataFrame, *, gateway: pd.DataFrame) -> None:
        self._settled.append(summed_lines(lines[~_stands_for_others(lines, name="settlement")]))
        rows, accounts = placed(lines, by=ACCOUNT)
        for number, day in first_days_told(lines, accounts=rows).items():
            account = accounts[number]
            self._first_days[account] = min(day, self._first_days.get(account, day))
        strange = refunds_of_others(lines, gateway=gateway)
        if strange.any():
            self._refunds.append(lines[strange])

    def to_see_again(self) -> list[int]:
        """The stretches, counted from 0 as they were seen, with entries that share a number."""
        several = self._entries.shared()
        return self._entries.stretches_with(several) if len(several) else []

    def see_again(self, rows: Sources) -> None:
        """Look once more at one of these."""
        if rows.ledger is not None:
            several = rows_with(rows.ledger["entry_id"], self._entries.shared())
            several = several & ~self._is_odd(rows.ledger, name="ledger")
            self._again.append(rows.ledger[several])

    def elsewhere(self) -> Elsewhere:
        """What each part must know of all rows."""
        shared = Elsewhere(
            frozenset(),
            self._entries.shared(),
            self._transactions.shared(),
            self._first_days,
            pd.concat(self._refunds, ignore_index=True) if self._refunds else None,
        )
        odd = self._odd_rows()
        if odd.ledger is not None:
            ours = odd.ledger.assign(**{JUDGED: judged_entries(odd)})
            odd = replace(odd, ledger=ours)
        known = marked(odd, elsewhere=shared)
        return replace(shared, words=loose_words(known, belongs=belonging(known)))

    def books(self) -> Books:
        """All steps of the ledger's money (see books_bridge.books_of); empty without a ledger."""
        if self._small.ledger is None:
            return {}
        odd = self._odd_rows()
        entries = self._small.ledger if odd.ledger is None else odd.ledger
        lines = odd.settlement
        several = replace(
            odd,
            ledger=pd.concat([entries, *self._again], ignore_index=True),
            settlement=None if lines is None else with_summed(lines, parts=self._settled),
        )
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
    if name == "ledger":
        return keyless | is_word(frame["entry_type"], *PAYOUT_TYPES)
    return keyless | ~of_payments(frame) if name == "settlement" else keyless
