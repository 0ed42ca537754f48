"""Net per side, set and currency: what the effects and the control totals add up."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from recon.matching.frames.arrays import Arrays, Column
from recon.matching.frames.grouping import Ints, total

SIDES = ("order", "gateway", "ledger", "payout")


def nets_of(items: Mapping[str, Arrays]) -> Arrays:
    """One row per set and currency that any side names.

    Columns: set, currency, and for each side `<side>_net` (minor units, 0 when absent).
    """
    sets = np.concatenate([items[side]["set"] for side in SIDES])
    named = np.concatenate([items[side]["currency"] for side in SIDES])
    net = np.concatenate([items[side]["net"] for side in SIDES])
    ends = np.cumsum([len(items[side]) for side in SIDES]).tolist()
    currencies = np.array(sorted({*named.tolist()}), dtype=object)
    number = {currency: at for at, currency in enumerate(currencies.tolist())}
    codes = np.array([number[currency] for currency in named.tolist()], dtype=np.int64)
    width = max(len(currencies), 1)
    groups, known = pd.factorize(sets * width + codes)
    columns: dict[str, Column] = {"set": known // width}
    columns["currency"] = currencies[known % width] if len(known) else named[:0]
    for side, start, end in zip(SIDES, [0, *ends[:-1]], ends, strict=True):
        mine = slice(start, end)
        columns[f"{side}_net"] = total(net[mine], groups=groups[mine], size=len(known))
    return Arrays(columns, size=len(known))


def primary(nets: Arrays, *, currency: Column) -> dict[str, Ints]:
    """The nets of each set in its own currency, and how many currencies it has."""
    size, sets = len(currency), nets["set"]
    own = nets["currency"] == currency[sets]
    columns = {}
    for side in SIDES:
        column = np.zeros(size, dtype=np.int64)
        column[sets[own]] = nets[f"{side}_net"][own]
        columns[f"{side}_net"] = column
    columns["currencies"] = np.bincount(sets, minlength=size).astype(np.int64)
    booked = sets[nets["ledger_net"] != 0]
    columns["ledger_any"] = (np.bincount(booked, minlength=size) > 0).astype(np.int64)
    return columns
