"""Entries of the books in another currency than their payment, against the rate of their day."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np
import pandas as pd

from recon.config.exchange_rates import AppliedRate
from recon.config.rules import Rules
from recon.matching.frames.arrays import texts
from recon.matching.frames.grouping import Ints, instants_of
from recon.matching.frames.tolerance import BASIS
from recon.model.money import exponent

MICROSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class ForeignEntry:
    """One entry with what it is in both currencies; minor units."""

    row: int
    booked: int
    currency: str
    stated: int
    foreign: str
    rate: AppliedRate
    """Of the day of its booking, in the calendar's zone."""

    @property
    def gap(self) -> int:
        """Booked less expected in the currency of the payment; 0 where no rate says it."""
        if self.rate.rate is None:
            return 0
        booked = Decimal(self.booked).scaleb(-exponent(self.currency))
        expected = Decimal(self.stated).scaleb(-exponent(self.foreign)) * self.rate.rate
        gap = booked - expected
        bound = abs(expected) * self.rate.basis_points / BASIS
        if abs(gap) <= max(bound, Decimal(1).scaleb(-exponent(self.currency))):
            return 0
        shifted = (gap / self.rate.rate).scaleb(exponent(self.foreign))
        return int(shifted.quantize(Decimal(1), rounding=ROUND_HALF_EVEN))


def exchange_gaps(ledger: pd.DataFrame, *, rules: Rules) -> Ints:
    """Booked less expected, in minor units of the transaction's currency (grain: ledger row).

    0 where the entry is not foreign, no rate holds on its day, or the rate's tolerance covers it.
    """
    gaps = np.zeros(len(ledger), dtype=np.int64)
    for entry in _foreign_entries(ledger, rules=rules) if rules.rate else ():
        gaps[entry.row] = entry.gap
    return gaps


def unrated_entries(ledger: pd.DataFrame | None, *, rules: Rules) -> Iterator[str]:
    """Entries that no rate could be held against, by pair, in words."""
    if ledger is None:
        return
    unrated: dict[str, list[AppliedRate]] = defaultdict(list)
    for entry in _foreign_entries(ledger, rules=rules):
        if entry.rate.rate is None:
            unrated[entry.rate.pair].append(entry.rate)
    for pair, several in sorted(unrated.items()):
        first = min(several, key=lambda rate: rate.day)
        entries = "1 entry" if len(several) == 1 else f"{len(several)} entries"
        yield f"exchange {pair} of {entries} of the books: {first.words}"


def unrated_rows(ledger: pd.DataFrame, *, rules: Rules) -> list[int]:
    """The entries that no rate could be held against."""
    entries = _foreign_entries(ledger, rules=rules)
    return [entry.row for entry in entries if entry.rate.rate is None]


def _foreign_entries(ledger: pd.DataFrame, *, rules: Rules) -> Iterator[ForeignEntry]:
    stated = np.flatnonzero(ledger["transaction_amount"].notna())
    foreign, own = (
        texts(ledger[name].iloc[stated]) for name in ("transaction_currency", "currency")
    )
    rows = stated[(foreign != "") & (foreign != own)]
    at = instants_of(ledger["booked_at"])[rows].tolist()
    names = ("amount", "currency", "transaction_amount", "transaction_currency")
    cells = [ledger[name].iloc[rows].tolist() for name in names]
    zone = rules.business_calendar.zone
    for row, instant, booked, currency, stated, other in zip(
        rows.tolist(), at, *cells, strict=True
    ):
        day = datetime.fromtimestamp(instant / MICROSECONDS, tz=zone).date().isoformat()
        rate = rules.rate_of(other, into=currency, day=day)
        yield ForeignEntry(row, int(booked), currency, int(stated), other, rate)
