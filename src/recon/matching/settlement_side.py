"""The settlement of a set: what the gateway says it settled, and the fee it took for it.

A settlement file tells of some days. Payments from before its first day are not its business; of
the later ones each must be in it once the grace of settlement has run out, and, in a night, once
files of the day on which it ran out are there.
"""

from datetime import date

import numpy as np
import pandas as pd

from recon.matching.grouping import NO_INSTANT, Bools, Ints, Rows, present, taken, total
from recon.matching.sources import SETTLEMENT_COLUMNS, SettledDays, frame_of
from recon.matching.tolerance import BASIS
from recon.model import REVERSAL_SUFFIX, EntryType
from recon.rules import Rules

PAY_OUT = EntryType.PAYOUT.value
"""Entry type of the rows that say what a batch comes to, and of payouts that we asked for."""
_OF_THE_ACCOUNT = frozenset(
    word + suffix
    for word in (EntryType.FEE.value, EntryType.RESERVE.value, EntryType.ADJUSTMENT.value)
    for suffix in ("", REVERSAL_SUFFIX)
)
"""Entry types of lines that need not be of a payment."""

_EPOCH = date(1970, 1, 1).toordinal()
_NEVER = int(np.iinfo(np.int64).max)
_DAY = 86_400_000_000


def pay_outs(lines: pd.DataFrame) -> Bools:
    """The rows that say what a batch comes to; a payout that we asked for has our reference."""
    paid = lines["entry_type"].eq(PAY_OUT) & lines["own_reference"].eq("")
    return np.asarray(paid, dtype=np.bool_)


def of_payments(lines: pd.DataFrame) -> Bools:
    """The lines that tell of a payment, whose sets they join; T11 counts the others, too."""
    aside = lines["entry_type"].isin(_OF_THE_ACCOUNT)
    aside &= lines["order_no"].eq("") & lines["transaction_id"].eq("")
    return np.asarray(~aside & lines["entry_type"].ne(PAY_OUT), dtype=np.bool_)


def movements(settlement: pd.DataFrame | None) -> pd.DataFrame:
    """The lines that tell of movements of payments."""
    if settlement is None:
        return frame_of([], columns=SETTLEMENT_COLUMNS)
    return settlement[of_payments(settlement)].reset_index(drop=True)


def settlement_side(
    lines: pd.DataFrame,
    *,
    sets: Rows,
    keys: pd.DataFrame,
    rules: Rules,
    days: SettledDays | None = None,
) -> pd.DataFrame:
    """What was settled of every set, gross minor units (grain: set).

    Args:
        lines: the movements of the settlement files.
        sets: the set of each line.
        keys: the sets, for their accounts.
        rules: the agreed fees.
        days: what is known of the days that the lines cover; None: the lines are complete.
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
            "settled_from": _opens(lines, keys=keys, days=days),
            "settled_until": np.full(size, _closes(days), dtype=np.int64),
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


def _opens(lines: pd.DataFrame, *, keys: pd.DataFrame, days: SettledDays | None) -> Ints:
    """The first instant of the first day that any line of the set's account tells of."""
    opens = np.full(len(keys), _NEVER, dtype=np.int64)
    if not len(lines):
        return opens
    first = lines.groupby(["merchant_id", "account_id"])["settled_on"].min()
    for place, day in first.items():
        merchant, account = place if isinstance(place, tuple) else (place, "")
        mine = keys["merchant_id"].eq(merchant) & keys["account_id"].eq(account)
        opens[mine.to_numpy()] = _midnight(days.first if days else day)
    return opens


def _closes(days: SettledDays | None) -> int:
    """The instant up to which a line that is not there is proven missing."""
    if days is None or not days.last:
        return _NEVER
    return _midnight(days.last) + _DAY


def _midnight(day: str) -> int:
    return (date.fromisoformat(day).toordinal() - _EPOCH) * _DAY
