"""The ledger's side of a set: captures, refunds and chargebacks as they were booked, signed."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from recon.matching.coding import by_word
from recon.matching.exchange import exchange_gaps
from recon.matching.grouping import (
    Bools,
    Ints,
    Rows,
    amounts_or,
    first_row,
    instants_of,
    present,
    taken,
    total,
)
from recon.matching.open_entries import open_since
from recon.matching.orders_side import Side
from recon.matching.versions import CONFLICT, REPEAT, versions
from recon.model import REVERSAL_SUFFIX, EntryType
from recon.rules import Rules

SIGN = {
    EntryType.CAPTURE: 1,
    EntryType.REFUND: -1,
    EntryType.CHARGEBACK: -1,
    EntryType.ADJUSTMENT: 1,
    EntryType.PAYOUT: -1,
}
"""Of the entry types that make up the ledger's net; each reversal has the opposite sign."""

_NEVER_COMPARED = frozenset({EntryType.FEE, EntryType.RESERVE, EntryType.PAYOUT})
JUDGED = "payout_judged"
"""Column that the engine adds to the ledger: this payout entry is compared."""
_MOVEMENTS = (EntryType.CAPTURE, EntryType.REFUND, EntryType.CHARGEBACK)


def compared(ledger: pd.DataFrame) -> Bools:
    """Entries that belong to a set; fees, reserves and keyless adjustments do not.

    Payouts do where somebody tells of payouts (column `payout_judged`).
    """
    belongs = ~is_base_type(ledger["entry_type"], *_NEVER_COMPARED)
    loose = is_base_type(ledger["entry_type"], EntryType.ADJUSTMENT)
    if loose.any():
        belongs &= ~(loose & ledger["order_no"].eq("").to_numpy())
    if JUDGED in ledger.columns:
        return np.asarray(belongs | ledger[JUDGED].to_numpy(dtype=np.bool_), dtype=np.bool_)
    return belongs


def is_base_type(entry_type: "pd.Series[str]", *types: EntryType) -> Bools:
    """The entries of one of the types, reversed or not."""
    mine = by_word(entry_type, of=lambda word: word.removesuffix(REVERSAL_SUFFIX) in types)
    return mine.astype(np.bool_)


def _sign(word: str) -> int:
    sign = {kind.value: sign for kind, sign in SIGN.items()}.get(
        word.removesuffix(REVERSAL_SUFFIX), 0
    )
    return -sign if word.endswith(REVERSAL_SUFFIX) else sign


class Booked(NamedTuple):
    """What each entry moves, minor units of `currency` (grain: ledger row)."""

    currency: "pd.Series[str]"
    amount: Ints
    net: Ints


def booked(ledger: pd.DataFrame) -> Booked:
    """What the entries move, in the transaction's currency where it is stated."""
    stated = ledger["transaction_amount"].notna().to_numpy()
    amount = amounts_or(ledger["transaction_amount"], otherwise=ledger["amount"])
    currency = ledger["currency"].reset_index(drop=True)
    abroad = stated & ledger["transaction_currency"].ne("").to_numpy()
    if abroad.any():
        named = ledger["transaction_currency"].reset_index(drop=True)
        currency = currency.where(~abroad, named)
    sign = by_word(ledger["entry_type"], of=_sign).astype(np.int64)
    return Booked(currency, amount, np.where(compared(ledger), amount * sign, 0))


def entry_versions(ledger: pd.DataFrame) -> "np.ndarray[Any, np.dtype[np.int8]]":
    """NEW, REPEAT or CONFLICT (one entry_id, other content) for each ledger row."""
    numbers = np.zeros(len(ledger), dtype=np.int64)
    for column in ("merchant_id", "account_id", "entry_id"):
        codes, values = pd.factorize(ledger[column])
        numbers = pd.factorize(numbers * (len(values) + 1) + codes)[0]
    content = ledger.drop(columns=JUDGED, errors="ignore")
    return versions(content, groups=numbers.astype(np.intp), newest=None)


def ledger_items(ledger: pd.DataFrame) -> pd.DataFrame:
    """What each entry moves, minor units of the transaction's currency (grain: ledger row)."""
    kind = ledger["entry_type"].str.removesuffix(REVERSAL_SUFFIX)
    reversal = ledger["entry_type"].str.endswith(REVERSAL_SUFFIX).to_numpy()
    currency, amount, net = booked(ledger)
    return pd.DataFrame(
        {
            "row": np.arange(len(ledger)),
            "kind": kind.reset_index(drop=True),
            "reversal": reversal,
            "entry_id": ledger["entry_id"].reset_index(drop=True),
            "reverses": ledger["reverses_entry_id"].reset_index(drop=True),
            "currency": currency,
            "transaction_id": ledger["transaction_id"].reset_index(drop=True),
            "reference_no": ledger["reference_no"].reset_index(drop=True),
            "booked_at": instants_of(ledger["booked_at"]),
            "amount": amount,
            "forward": np.where(reversal, -amount, amount),
            "net": net,
        }
    )


def ledger_side(ledger: pd.DataFrame, *, sets: Rows, size: int, rules: Rules) -> Side:
    """The entries of every set; entries that are not compared have set -1.

    `sets` of the result: booked gross per movement (reversals taken off), currency, since when
    they stand open, and what makes the set unverified or a duplicate.
    """
    outcome = entry_versions(ledger)
    every = ledger_items(ledger).assign(set=sets, exchange=exchange_gaps(ledger, rules=rules))
    conflict = outcome == CONFLICT
    every.loc[conflict, ["forward", "net"]] = 0
    items = every[(outcome != REPEAT) & (sets >= 0)].reset_index(drop=True)
    groups = items["set"].to_numpy()
    frame = pd.DataFrame(
        {"ledger_present": present(np.ones(len(items), np.bool_), groups=groups, size=size)}
    )
    for kind in (*_MOVEMENTS, EntryType.ADJUSTMENT, EntryType.WRITE_OFF):
        moved = np.where(items["kind"].eq(kind), items["forward"], 0)
        frame[f"ledger_{kind.value}"] = total(moved, groups=groups, size=size)
    frame["booked_at"] = open_since(items, size=size)
    frame["entry_conflict"] = present(conflict, groups=sets, size=size)
    chosen = first_row(items[["currency", "transaction_id", "entry_id"]], groups=groups, size=size)
    for name in ("currency", "transaction_id", "entry_id"):
        frame[f"ledger_{name}"] = taken(items[name], rows=chosen)
    frame["entries"] = np.bincount(groups, minlength=size)
    frame["exchange_gap"] = total(items["exchange"].to_numpy(), groups=groups, size=size)
    repeated = _repeated_movements(items)
    for kind in _MOVEMENTS:
        mask = repeated & items["kind"].eq(kind).to_numpy()
        frame[f"booked_twice_{kind.value}"] = present(mask, groups=groups, size=size)
    return Side(items, frame, outcome)


_MOVEMENT = ["set", "kind", "currency", "amount", "transaction_id", "reference_no"]


def _repeated_movements(items: pd.DataFrame) -> Bools:
    """Marks the entries whose movement stands more than once and is not reversed."""
    marks = np.zeros(len(items), dtype=np.bool_)
    moves = items["kind"].isin([kind.value for kind in _MOVEMENTS])
    crowded = np.flatnonzero(moves & items.duplicated(_MOVEMENT[:4], keep=False))
    if not crowded.size:
        return marks
    entries = items.iloc[crowded]
    unnamed = entries[entries["reversal"] & entries["reverses"].eq("")]
    # An id names an entry of its own account only, so a reversal reaches no other set.
    gone = pd.MultiIndex.from_frame(entries.loc[entries["reversal"], ["set", "reverses"]])
    reversed_ = pd.MultiIndex.from_frame(entries[["set", "entry_id"]]).isin(gone)
    standing = entries[~entries["reversal"] & ~reversed_]
    times = standing.groupby(_MOVEMENT)["row"].transform("size")
    taken_back = unnamed.groupby(_MOVEMENT[:4]).size().rename("taken_back").reset_index()
    joined = standing[_MOVEMENT[:4]].merge(taken_back, on=_MOVEMENT[:4], how="left")
    left = times.to_numpy() - joined["taken_back"].fillna(0).to_numpy(dtype=np.int64)
    marks[standing.index.to_numpy()[left > 1]] = True
    return marks
