"""Net per side, set and currency: what the effects and the control totals add up."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from recon.matching.grouping import Ints, total

SIDES = ("order", "gateway", "ledger", "payout")


def nets_of(items: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One row per set and currency that any side names.

    Columns: set, currency, and for each side `<side>_net` (minor units, 0 when absent).
    """
    rows = pd.concat(
        [items[side][["set", "currency", "net"]].assign(side=side) for side in SIDES],
        ignore_index=True,
    )
    codes, currencies = pd.factorize(rows["currency"], sort=True)
    pairs = rows["set"].to_numpy(dtype=np.int64) * max(len(currencies), 1) + codes
    groups, known = pd.factorize(pairs)
    known = np.asarray(known, dtype=np.int64)
    frame = pd.DataFrame({"set": known // max(len(currencies), 1)})
    frame["currency"] = pd.Series(
        np.asarray(currencies, dtype=object)[known % max(len(currencies), 1)], dtype="str"
    )
    for side in SIDES:
        values = np.where(rows["side"].eq(side), rows["net"], 0).astype(np.int64)
        frame[f"{side}_net"] = total(values, groups=groups, size=len(known))
    return frame


def primary(nets: pd.DataFrame, *, currency: "pd.Series[str]") -> dict[str, Ints]:
    """The nets of each set in its own currency, and how many currencies it has."""
    size = len(currency)
    own = nets["currency"].to_numpy() == currency.to_numpy()[nets["set"].to_numpy()]
    rows = nets[own]
    columns = {}
    for side in SIDES:
        column = np.zeros(size, dtype=np.int64)
        column[rows["set"].to_numpy()] = rows[f"{side}_net"].to_numpy()
        columns[f"{side}_net"] = column
    columns["currencies"] = np.bincount(nets["set"].to_numpy(), minlength=size).astype(np.int64)
    booked = nets["ledger_net"].ne(0).to_numpy()
    columns["ledger_any"] = (
        np.bincount(nets["set"].to_numpy()[booked], minlength=size).astype(np.int64) > 0
    ).astype(np.int64)
    return columns
