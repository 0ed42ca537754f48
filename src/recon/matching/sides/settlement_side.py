"""The settlement's side of a set: the amounts that the gateway settled, and the fees charged.

A settlement file covers certain days. Payments from before its first day are not expected in it;
later ones must be in it once the settlement grace has run out and, in a nightly run, once files of
the day on which it ran out are there.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from recon.matching.frames.arrays import Arrays, Column, text_column, texts
from recon.matching.frames.coding import Codes, by_label, equals, keyed
from recon.matching.frames.grouping import (
    NO_INSTANT,
    Bools,
    Ints,
    Rows,
    amounts_of,
    cells_of,
    present,
    total,
)
from recon.matching.frames.sources import SETTLEMENT_COLUMNS, SettledDays, frame_of
from recon.model.terms import REVERSAL_SUFFIX, EntryType

REPRESENTS = "stands_for"
"""Column of settlement lines that may be summed: the number of lines that a row represents, 0 for a
line by itself."""
_BY = ("merchant_id", "account_id", "batch_id", "settled_on", "entry_type", "currency")
_AMOUNTS = ("gross", "fee", "net")
_SIGNED = ("gross", "fee")
"""Amounts summed separately by sign, because totals without the sign are reported."""
_SIGNS = 3


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
    amounts = {name: amounts_of(lines[name]) for name in _AMOUNTS}
    groups, keys = keyed(lines, by=_BY)
    for name in _SIGNED:
        groups = groups * _SIGNS + np.sign(amounts[name]) + 1
    known, rows = np.unique(groups, return_inverse=True)
    size = len(known)
    sums = {name: total(amounts[name], groups=rows, size=size).tolist() for name in amounts}
    cells = (
        {**dict(zip(_BY, keys[number], strict=True)), **{name: sums[name][at] for name in sums}}
        for at, number in enumerate((known // _SIGNS ** len(_SIGNED)).tolist())
    )
    frame = frame_of(({**row, "line": 0} for row in cells), columns=SETTLEMENT_COLUMNS)
    counts = total(lines_of_rows(lines), groups=rows, size=size)
    return frame.assign(**{REPRESENTS: counts})


def with_summed(lines: pd.DataFrame, *, parts: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Return single lines followed by the combined sums of all parts.

    Args:
        lines: SETTLEMENT_COLUMNS.
        parts: results of `summed_lines`.
    """
    whole = lines.assign(**{REPRESENTS: np.zeros(len(lines), dtype=np.int64)})
    every = [part for part in parts if len(part)]
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

_NEVER = int(np.iinfo(np.int64).max)
_DAY = 86_400_000_000


def pay_outs(lines: pd.DataFrame) -> Bools:
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


def settled_items(settlement: pd.DataFrame | None, *, sets: Rows, accounts: Rows) -> Arrays:
    """Return one row per settlement line about a payment.

    Args:
        settlement: all lines.
        sets: the set of each line that is about a payment.
        accounts: the account number of each such line.
    """
    if settlement is None:
        settlement = frame_of([], columns=SETTLEMENT_COLUMNS)
    rows = of_payments(settlement)
    gross = settlement["gross"].to_numpy(dtype=np.int64)
    columns = {
        "row": np.flatnonzero(rows),
        "set": sets,
        "account": accounts,
        "currency": texts(settlement["currency"])[rows],
        "transaction_id": texts(settlement["transaction_id"])[rows],
        "kind": texts(settlement["entry_type"])[rows],
        "settled_on": texts(settlement["settled_on"])[rows],
        "amount": gross[rows],
        "net": gross[rows],
    }
    return Arrays(columns, size=len(sets))


def settlement_side(
    lines: Arrays,
    *,
    gaps: Ints,
    accounts: Rows,
    first_days: Mapping[int, str],
    days: SettledDays | None = None,
) -> dict[str, Column]:
    """Return the settled amounts of every set, in gross minor units.

    Args:
        lines: see settled_items.
        gaps: their fee differences (sources.FEE_GAP).
        accounts: the account number of each set.
        first_days: see first_days_reported.
        days: the days that the lines cover; None: the lines are complete.
    """
    size, sets, gross = len(accounts), lines["set"], lines["amount"]
    capture = lines["kind"] == EntryType.CAPTURE.value
    refund = np.isin(lines["kind"].astype("str"), _REFUNDS)
    charge = lines["kind"] == EntryType.CHARGEBACK.value
    first = _first_of_sets(sets, size=size)
    return {
        "settled_any": present(np.ones(len(lines), np.bool_), groups=sets, size=size),
        "settled_capture_any": present(capture, groups=sets, size=size),
        "settled_refund_any": present(refund, groups=sets, size=size),
        "settled_captured": total(np.where(capture, gross, 0), groups=sets, size=size),
        "settled_refunded": total(np.where(refund, -gross, 0), groups=sets, size=size),
        "settled_charged": total(np.where(charge, -gross, 0), groups=sets, size=size),
        "settled_gross": total(gross, groups=sets, size=size),
        "settled_currency": cells_of(lines["currency"], rows=first),
        "settled_transaction": cells_of(lines["transaction_id"], rows=first),
        "fee_gap": _fee_gap(lines, gaps=gaps, size=size),
        "settled_from": _opens(first_days, accounts=accounts, days=days),
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


def first_days_reported(
    settlement: pd.DataFrame | None, *, accounts: Rows | Codes
) -> Mapping[int, str]:
    """Return each account's first day of any line about payments, earlier and summed included.

    Args:
        settlement: all lines.
        accounts: the account number of each line.
    """
    first: dict[int, str] = {}
    if settlement is None:
        return first
    rows = of_payments(settlement) | equals(settlement["entry_type"], EARLIER)
    rows |= is_summed(settlement)
    days, labels = keyed(settlement, by=("settled_on",))
    for pair in np.unique(accounts[rows].astype(np.intp) * len(labels) + days[rows]).tolist():
        account, (day,) = pair // len(labels), labels[pair % len(labels)]
        first[account] = min(day, first.get(account, day))
    return first


def _opens(first_days: Mapping[int, str], *, accounts: Rows, days: SettledDays | None) -> Ints:
    """Return the first instant of the first day that the settlement of the set's account covers."""
    opens = np.full(len(accounts), _NEVER, dtype=np.int64)
    for account, day in first_days.items():
        opens[accounts == account] = _midnight(days.first if days else day)
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
    rows = settlement[pay_outs(settlement)]
    groups, batches = keyed(rows, by=BATCH)
    paid = total(amounts_of(rows["net"]), groups=groups, size=len(batches)).tolist()
    days = [""] * len(batches)
    for group, day in zip(groups.tolist(), rows["settled_on"].tolist(), strict=True):
        days[group] = max(days[group], day)
    table = sorted(
        (*batch, day, amounts) for batch, day, amounts in zip(batches, days, paid, strict=True)
    )
    columns = [[row[at] for row in table] for at in range(len(PAID_OUT_COLUMNS))]
    texts = {name: text_column(columns[at]) for at, name in enumerate((*BATCH, "settled_on"))}
    return pd.DataFrame({**texts, "paid": pd.Series(columns[-1], dtype="int64")})
