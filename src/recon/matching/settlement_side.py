"""The settlement of a set: what the gateway says it settled, and the fee it took for it.

A settlement file tells of some days. Payments from before its first day are not its business; of
the later ones each must be in it once the grace of settlement has run out.
"""

from datetime import date

import numpy as np
import pandas as pd

from recon.matching.grouping import NO_INSTANT, Bools, Ints, Rows, present, taken, total
from recon.matching.sources import SETTLEMENT_COLUMNS, frame_of
from recon.matching.tolerance import BASIS
from recon.model import EntryType
from recon.rules import Rules

PAY_OUT = EntryType.PAYOUT.value
"""Entry type of the rows that say what a batch comes to."""

_EPOCH = date(1970, 1, 1).toordinal()
_NEVER = int(np.iinfo(np.int64).max)


def movements(settlement: pd.DataFrame | None) -> pd.DataFrame:
    """The lines that tell of movements; pay-out rows are payouts."""
    if settlement is None:
        return frame_of([], columns=SETTLEMENT_COLUMNS)
    return settlement[settlement["entry_type"].ne(PAY_OUT).to_numpy()].reset_index(drop=True)


def settlement_side(
    lines: pd.DataFrame, *, sets: Rows, keys: pd.DataFrame, rules: Rules
) -> pd.DataFrame:
    """What was settled of every set, gross minor units (grain: set).

    Args:
        lines: the movements of the settlement files.
        sets: the set of each line.
        keys: the sets, for their accounts.
        rules: the agreed fees.
    """
    size = len(keys)
    kind = lines["entry_type"]
    gross = lines["gross"].to_numpy(dtype=np.int64)
    capture = kind.eq(EntryType.CAPTURE).to_numpy()
    refund = kind.eq(EntryType.REFUND).to_numpy()
    first = _first_of_sets(sets, size=size)
    gap = np.where(capture, fee_gaps(lines, rules=rules), 0)
    return pd.DataFrame(
        {
            "settled_any": present(np.ones(len(lines), np.bool_), groups=sets, size=size),
            "settled_capture_any": present(capture, groups=sets, size=size),
            "settled_refund_any": present(refund, groups=sets, size=size),
            "settled_captured": total(np.where(capture, gross, 0), groups=sets, size=size),
            "settled_refunded": total(np.where(refund, -gross, 0), groups=sets, size=size),
            "settled_gross": total(gross, groups=sets, size=size),
            "settled_currency": taken(lines["currency"], rows=first),
            "settled_transaction": taken(lines["transaction_id"], rows=first),
            "fee_gap": total(gap, groups=sets, size=size),
            "settled_from": _opens(lines, keys=keys),
        }
    )


def _first_of_sets(sets: Rows, *, size: int) -> Rows:
    """A line of each set; lines of one set name one currency, or their amounts differ."""
    chosen = np.full(size, -1, dtype=np.intp)
    chosen[sets[::-1]] = np.arange(len(sets))[::-1]
    return chosen


def in_time(sets: pd.DataFrame) -> Bools:
    """Payments that a settlement file of their account should tell of."""
    moved = np.maximum(sets["transaction_date"].to_numpy(), sets["capture_confirmed_at"].to_numpy())
    return np.asarray((moved != NO_INSTANT) & (moved >= sets["settled_from"].to_numpy()))


def fee_gaps(lines: pd.DataFrame, *, rules: Rules) -> Ints:
    """The fee taken less the fee agreed, 0 where none was agreed or within its tolerance."""
    gross = lines["gross"].to_numpy(dtype=np.int64)
    gap = np.zeros(len(lines), dtype=np.int64)
    for currency, agreed in rules.fee.items():
        mine = lines["currency"].eq(currency).to_numpy()
        whole, rest = np.divmod(gross[mine], BASIS)
        expected = whole * agreed.basis_points + rest * agreed.basis_points // BASIS
        found = lines["fee"].to_numpy(dtype=np.int64)[mine] - expected - agreed.fixed_minor_units
        gap[mine] = np.where(np.abs(found) <= agreed.tolerance_minor_units, 0, found)
    return gap


def _opens(lines: pd.DataFrame, *, keys: pd.DataFrame) -> Ints:
    """The first instant of the first day that any line of the set's account tells of."""
    opens = np.full(len(keys), _NEVER, dtype=np.int64)
    if not len(lines):
        return opens
    days = lines.groupby(["merchant_id", "account_id"])["settled_on"].min()
    for place, day in days.items():
        merchant, account = place if isinstance(place, tuple) else (place, "")
        mine = keys["merchant_id"].eq(merchant) & keys["account_id"].eq(account)
        opens[mine.to_numpy()] = (date.fromisoformat(day).toordinal() - _EPOCH) * 86_400_000_000
    return opens
