"""Ledger entries in another currency than their payment, against the rate that was agreed."""

from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.frames.grouping import Ints
from recon.matching.frames.tolerance import BASIS
from recon.model.money import exponent


def exchange_gaps(ledger: pd.DataFrame, *, rules: Rules) -> Ints:
    """Booked less expected, in minor units of the transaction's currency (grain: ledger row).

    0 where the entry is not foreign, no rate was agreed, or the rate's tolerance covers it.
    """
    gaps = np.zeros(len(ledger), dtype=np.int64)
    if not rules.rate:
        return gaps
    foreign = ledger["transaction_currency"]
    abroad = foreign.ne("") & foreign.ne(ledger["currency"])
    abroad &= ledger["transaction_amount"].notna()
    for row in np.flatnonzero(abroad.to_numpy()):
        cells = ledger.iloc[row]
        agreed = rules.rate.get(f"{cells['transaction_currency']}.{cells['currency']}")
        if agreed is None:
            continue
        booked = _major(cells["amount"], currency=cells["currency"])
        stated = _major(cells["transaction_amount"], currency=cells["transaction_currency"])
        gap = booked - stated * agreed.rate
        bound = abs(stated * agreed.rate) * agreed.basis_points / BASIS
        smallest = Decimal(1).scaleb(-exponent(cells["currency"]))
        if abs(gap) > max(bound, smallest):
            gaps[row] = _minor(gap / agreed.rate, currency=cells["transaction_currency"])
    return gaps


def _major(minor_units: int, *, currency: str) -> Decimal:
    return Decimal(int(minor_units)).scaleb(-exponent(currency))


def _minor(amount: Decimal, *, currency: str) -> int:
    shifted = amount.scaleb(exponent(currency))
    return int(shifted.quantize(Decimal(1), rounding=ROUND_HALF_EVEN))
