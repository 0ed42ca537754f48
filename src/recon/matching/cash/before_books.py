"""What was settled before the books begin: nobody can have booked it there, so it is no break.

The books of an account begin on the day of their first entry, or earlier, on the first day on which
a payment was settled whose capture they know. What was settled before stands in a group of its own,
but for the days with which its group is even: those were booked late.
"""

from collections.abc import Mapping
from datetime import tzinfo

import numpy as np
import pandas as pd

from recon.matching.frames.arrays import Arrays, texts
from recon.matching.frames.coding import combined, is_word
from recon.matching.frames.grouping import Bools, Ints, total
from recon.matching.frames.total_rows import ACCOUNT, ACCOUNT_CURRENCY
from recon.model.words import EntryType

BEFORE_BOOKS = "before_books"
"""Group of what was settled before the books begin."""
Begins = Mapping[tuple[str, str], str]
"""Merchant and account -> the first day of its books, ISO date."""
_GROUP = (*ACCOUNT_CURRENCY, "kind", "name")
_NAMES = ("order_no", "transaction_id")


def begins_of(
    ledger: pd.DataFrame, *, lines: pd.DataFrame, zone: tzinfo
) -> dict[tuple[str, str], str]:
    """The first day of the books of every account that has any.

    Args:
        ledger: LEDGER_COLUMNS.
        lines: SETTLEMENT_COLUMNS.
        zone: of the calendar of the rules, in which an entry has its day.
    """
    first = ledger.groupby([*ACCOUNT], as_index=False)["booked_at"].min()
    begins = {
        (merchant, account): at.astimezone(zone).date().isoformat()
        for merchant, account, at in first.itertuples(index=False, name=None)
    }
    captures = ledger[is_word(ledger["entry_type"], EntryType.CAPTURE)]
    settled = lines[is_word(lines["entry_type"], EntryType.CAPTURE)]
    for name in _NAMES:
        known = {*zip(*(texts(captures[own]) for own in (*ACCOUNT, name)), strict=True)}
        cells = (texts(settled[own]) for own in (*ACCOUNT, name, "settled_on"))
        for merchant, account, word, day in zip(*cells, strict=True):
            if word and (merchant, account, word) in known:
                begins[merchant, account] = min(day, begins[merchant, account])
    return begins


def set_apart(settled: Arrays, entries: Arrays, *, begins: Begins) -> Arrays:
    """The settled amounts, those from before the books under the name of their own group.

    Args:
        settled: merchant_id, account_id, currency, kind, name, day, amount of each line and kind.
        entries: the same of each entry of the books, without its day.
        begins: the first day of the books, for accounts whose books may begin late.
    """
    old = _old(settled, begins=begins)
    if not old.any():
        return settled
    sides = (settled, entries)
    groups, keys = combined([np.concatenate([side[name] for side in sides]) for name in _GROUP])
    of_lines, of_books = groups[: len(settled)], groups[len(settled) :]
    size = len(keys)
    recent: Ints = total(np.where(old, 0, settled["amount"]), groups=of_lines, size=size)
    gaps = recent - total(entries["amount"], groups=of_books, size=size)
    for group, first in _even_from(settled, rows=old, groups=of_lines, gaps=gaps).items():
        old &= (of_lines != group) | (settled["day"] < first)
    return settled.assign(name=np.where(old, BEFORE_BOOKS, settled["name"]))


def _old(settled: Arrays, *, begins: Begins) -> Bools:
    if not begins:
        return np.zeros(len(settled), dtype=np.bool_)
    rows = settled.rows("merchant_id", "account_id", "day")
    marks = [day < begins.get((merchant, account), day) for merchant, account, day in rows]
    return np.array(marks, dtype=np.bool_)


def _even_from(settled: Arrays, *, rows: Bools, groups: Ints, gaps: Ints) -> dict[int, str]:
    """Group -> the last day from which on it is even, of those that need a day before the books."""
    by_day: dict[int, dict[str, int]] = {}
    cells = (groups[rows], settled["day"][rows], settled["amount"][rows])
    for group, day, amount in zip(*(column.tolist() for column in cells), strict=True):
        days = by_day.setdefault(group, {})
        days[day] = days.get(day, 0) + amount
    even: dict[int, str] = {}
    for group, days in by_day.items():
        left = int(gaps[group])
        for day in sorted(days, reverse=True):
            if left == 0:
                break
            left += days[day]
            if left == 0:
                even[group] = day
    return even
