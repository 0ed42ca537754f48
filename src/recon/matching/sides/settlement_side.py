"""The settlement's side of a set: the amounts that the gateway settled, and the fees charged.

A settlement file covers certain days. Payments from before its first day are not expected in it;
later ones must be in it once the settlement grace has run out and, in a nightly run, once files of
the day on which it ran out are there.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from recon.matching.frames.arrays import Arrays, Column, texts
from recon.matching.frames.coding import by_label, equals
from recon.matching.frames.grouping import (
    NO_INSTANT,
    Bools,
    Ints,
    Rows,
    cells_of,
    present,
    total,
)
from recon.matching.frames.sources import SETTLEMENT_COLUMNS, SettledDays, frame_of
from recon.matching.frames.total_rows import ACCOUNT
from recon.model.terms import REVERSAL_SUFFIX, EntryType

REPRESENTS = "stands_for"
"""Column of settlement lines that may be summed: the number of lines that a row represents, 0 for a
line by itself."""
_BY = ("merchant_id", "account_id", "batch_id", "settled_on", "entry_type", "currency")
_AMOUNTS = ("gross", "fee", "net")
_SIGNED = ("gross", "fee")
"""Amounts summed separately by sign, because totals without the sign are reported."""


def is_summed(lines: pd.DataFrame) -> Bools:
    """Mark the rows that represent several lines."""
    if REPRESENTS not in lines.columns:
        return np.zeros(len(lines), dtype=np.bool_)
    summed: Bools = lines[REPRESENTS].to_numpy(dtype=np.int64) > 0
    return summed


def lines_of_rows(lines: pd.DataFrame) -> Ints:
    """Return the number of lines that each row represents."""
    if REPRESENTS not in lines.columns:
        return np.ones(len(lines), dtype=np.int64)
    several: Ints = lines[REPRESENTS].to_numpy(dtype=np.int64)
    return np.where(several > 0, several, 1)


def one_by_one(lines: pd.DataFrame) -> pd.DataFrame:
    """Return only the rows that are single lines."""
    summed = is_summed(lines)
    return lines[~summed].reset_index(drop=True) if summed.any() else lines


def summed_lines(lines: pd.DataFrame) -> pd.DataFrame:
    """SETTLEMENT_COLUMNS and REPRESENTS: a few rows of no payment for all lines of a batch.

    Args:
        lines: lines of payments; rows that are already sums are summed again.
    """
    signs = [np.sign(lines[name]) for name in _SIGNED]
    counted = lines.assign(**{REPRESENTS: lines_of_rows(lines)})
    sums = counted.groupby([*(counted[name] for name in _BY), *signs], sort=False)[
        [*_AMOUNTS, REPRESENTS]
    ].sum()
    rows: Any = sums.reset_index([*_BY]).to_dict("records")
    frame = frame_of(({**row, "line": 0} for row in rows), columns=SETTLEMENT_COLUMNS)
    return frame.assign(**{REPRESENTS: sums[REPRESENTS].to_numpy(dtype=np.int64)})


def with_summed(lines: pd.DataFrame, *, summed: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Return single lines followed by the combined sums of all parts.

    Args:
        lines: SETTLEMENT_COLUMNS.
        summed: results of `summed_lines`.
    """
    whole = lines.assign(**{REPRESENTS: np.zeros(len(lines), dtype=np.int64)})
    every = [each for each in summed if len(each)]
    if not every:
        return whole
    sums = summed_lines(pd.concat(every, ignore_index=True))
    return pd.concat([whole, sums], ignore_index=True)


PAY_OUT = EntryType.PAYOUT.value
"""Entry type of the rows with the total of a batch, and of payouts that we requested."""
EARLIER = "earlier"
"""Entry type of lines from earlier files about payments that are not compared here: they count in
their batch and fee group, and belong to no set."""
_OF_THE_ACCOUNT = frozenset(
    label + suffix
    for label in (EntryType.FEE.value, EntryType.RESERVE.value, EntryType.ADJUSTMENT.value)
    for suffix in ("", REVERSAL_SUFFIX)
)
"""Entry types of lines that may have no payment."""

_REFUNDS = (EntryType.REFUND.value, EntryType.REFUND.value + REVERSAL_SUFFIX)

FirstDays = Mapping[tuple[str, ...], str]
"""Merchant and account -> a day, ISO date."""
_NEVER = int(np.iinfo(np.int64).max)
_DAY = 86_400_000_000


def is_payout(lines: pd.DataFrame) -> Bools:
    """Mark the rows with the total of a batch; a payout that we requested has our reference."""
    paid = equals(lines["entry_type"], PAY_OUT)
    if paid.any():
        paid[paid] = texts(lines["own_reference"])[paid] == ""
    return paid


def of_payments(lines: pd.DataFrame) -> Bools:
    """Mark the lines about a payment, whose sets they join; T11 counts the others, too.

    A row that represents lines of several payments belongs to none.
    """
    of_account = equals(lines["entry_type"], *_OF_THE_ACCOUNT)
    for name in ("order_no", "transaction_id"):
        if of_account.any():
            of_account[of_account] = texts(lines[name])[of_account] == ""
    return ~of_account & ~equals(lines["entry_type"], PAY_OUT, EARLIER) & ~is_summed(lines)


def as_earlier(lines: pd.DataFrame, *, rows: Bools) -> pd.DataFrame:
    """Return the lines with some turned into EARLIER lines, whose payments are not compared here.

    Payouts stay as they are, reserves lose their payment; all others keep the payment of their fee.

    Args:
        lines: SETTLEMENT_COLUMNS.
        rows: mask of the lines to turn.
    """
    mine = rows & ~equals(lines["entry_type"], PAY_OUT)
    reserve = mine & by_label(lines["entry_type"], of=_is_reserve).astype(np.bool_)
    named = {name: lines[name].where(~reserve, "") for name in ("order_no", "transaction_id")}
    return lines.assign(entry_type=lines["entry_type"].where(~(mine & ~reserve), EARLIER), **named)


def _is_reserve(label: str) -> bool:
    return label.removesuffix(REVERSAL_SUFFIX) == EntryType.RESERVE


def settled_items(settlement: pd.DataFrame, *, sets: Rows) -> Arrays:
    """Return one row per settlement line about a payment.

    Args:
        settlement: all lines.
        sets: the set of each line that is about a payment.
    """
    rows = of_payments(settlement)
    gross = settlement["gross"].to_numpy(dtype=np.int64)
    columns = {
        "row": np.flatnonzero(rows),
        "set": sets,
        "currency": texts(settlement["currency"])[rows],
        "transaction_id": texts(settlement["transaction_id"])[rows],
        "kind": texts(settlement["entry_type"])[rows],
        "amount": gross[rows],
        "net": gross[rows],
    }
    return Arrays(columns, size=len(sets))


def settlement_side(
    lines: Arrays,
    *,
    gaps: Ints,
    sets: Arrays,
    first_days: FirstDays,
    days: SettledDays | None = None,
) -> dict[str, Column]:
    """Return the settled amounts of every set, in gross minor units.

    Args:
        lines: see settled_items.
        gaps: their fee differences (sources.FEE_GAP).
        sets: merchant_id and account_id of each.
        first_days: see first_days_reported.
        days: the days that the lines cover; None: the lines are complete.
    """
    size, groups, gross = len(sets), lines["set"], lines["amount"]
    capture = lines["kind"] == EntryType.CAPTURE.value
    refund = np.isin(lines["kind"].astype("str"), _REFUNDS)
    charge = lines["kind"] == EntryType.CHARGEBACK.value
    first = _first_of_sets(groups, size=size)
    return {
        "settled_any": present(np.ones(len(lines), np.bool_), groups=groups, size=size),
        "settled_capture_any": present(capture, groups=groups, size=size),
        "settled_refund_any": present(refund, groups=groups, size=size),
        "settled_captured": total(np.where(capture, gross, 0), groups=groups, size=size),
        "settled_refunded": total(np.where(refund, -gross, 0), groups=groups, size=size),
        "settled_charged": total(np.where(charge, -gross, 0), groups=groups, size=size),
        "settled_gross": total(gross, groups=groups, size=size),
        "settled_currency": cells_of(lines["currency"], rows=first),
        "settled_transaction": cells_of(lines["transaction_id"], rows=first),
        "fee_gap": _fee_gap(lines, gaps=gaps, size=size),
        "settled_from": _opens(first_days, sets=sets, days=days),
        "settled_until": np.full(size, _closes(days), dtype=np.int64),
    }


def _fee_gap(lines: Arrays, *, gaps: Ints, size: int) -> Ints:
    """Return what was overcharged and not given back; where that is 0, what was undercharged.

    Overcharging one line and undercharging another are two errors that never offset each other;
    only a fee that is given back, a line of its own, does.
    """
    sets, back = lines["set"], lines["kind"] == EntryType.FEE.value
    over = total(np.where(back, gaps, np.maximum(gaps, 0)), groups=sets, size=size)
    under = total(np.where(back, 0, np.minimum(gaps, 0)), groups=sets, size=size)
    return np.where(over != 0, over, under)


def _first_of_sets(sets: Rows, *, size: int) -> Rows:
    """Return a line of each set; lines of one set have one currency, or their amounts differ."""
    chosen = np.full(size, -1, dtype=np.intp)
    chosen[sets[::-1]] = np.arange(len(sets))[::-1]
    return chosen


def in_time(sets: Arrays) -> Bools:
    """Mark payments that a settlement file of their account should contain."""
    moved = np.maximum(sets["transaction_date"], sets["capture_confirmed_at"])
    in_days: Bools = (moved != NO_INSTANT) & (moved >= sets["settled_from"])
    return in_days


def first_days_reported(settlement: pd.DataFrame) -> FirstDays:
    """Return each account's first day of any line about payments, earlier and summed included."""
    rows = of_payments(settlement) | equals(settlement["entry_type"], EARLIER)
    lines = settlement[rows | is_summed(settlement)]
    days = lines[[*ACCOUNT, "settled_on"]].drop_duplicates().sort_values("settled_on")
    first = days.drop_duplicates(ACCOUNT).itertuples(index=False, name=None)
    return {(merchant, account): day for merchant, account, day in first}


def _opens(first_days: FirstDays, *, sets: Arrays, days: SettledDays | None) -> Ints:
    """Return the first instant of the first day that the settlement of the set's account covers."""
    opens = np.full(len(sets), _NEVER, dtype=np.int64)
    for (merchant, account), day in first_days.items():
        own = (sets["merchant_id"] == merchant) & (sets["account_id"] == account)
        opens[own] = _midnight(days.first if days else day)
    return opens


def _closes(days: SettledDays | None) -> int:
    """Return the instant up to which an absent line is proven missing."""
    if days is None or not days.last:
        return _NEVER
    return _midnight(days.last) + _DAY


def _midnight(day: str) -> int:
    return int(np.datetime64(day, "us").astype(np.int64))


BATCH = ("merchant_id", "account_id", "currency", "batch_id")
PAID_OUT_COLUMNS = (*BATCH, "settled_on", "paid")


def paid_out(settlement: pd.DataFrame) -> pd.DataFrame:
    """Return one row per batch and currency with a payout row (PAID_OUT_COLUMNS), sorted by BATCH.

    `paid` is the sum of its payout rows, minor units: more than 0 to the merchant, less than 0
    collected from it. `settled_on` is the last of their days.

    Args:
        settlement: SETTLEMENT_COLUMNS.
    """
    rows = settlement[is_payout(settlement)]
    sums = rows.groupby([*BATCH])[["settled_on", "net"]].agg({"settled_on": "max", "net": "sum"})
    return sums.reset_index().rename(columns={"net": "paid"})
