"""The entries of one statement as columns: raw texts in, minor units and words out.

Arrow reads what plainly is an amount; every other text goes one by one to the reader that says what
is wrong with it. Of an entry that says more than most (charges, another currency, payments in it)
the rest is looked at by itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.files.formats.bank_records import BLOCK_TEXTS, EntryBlock, RawEntry, block_of
from recon.files.kinds.bank_amounts import StatementPlace, units_of
from recon.matching.frames.grouping import Bools, Ints
from recon.model.money import exponent
from recon.privacy.shown_text import scrubbed

DIGITS_MAX = 14
"""Before the point, in an amount that Arrow reads."""


@dataclass(frozen=True, slots=True)
class EntryColumns:
    """All entries of a statement, in its order."""

    texts: dict[str, pa.LargeStringArray]
    """BLOCK_TEXTS."""
    credit: Bools
    reversal: Bools
    booked: Bools
    odd: dict[int, RawEntry]
    """Row -> entry, of those that say more than the columns do."""
    blocks: tuple[EntryBlock, ...]

    def line_of(self, row: int) -> int:
        """Where an entry begins in its file."""
        for block in self.blocks:
            if row < len(block):
                return block.line_of(row)
            row -= len(block)
        return 0


def columns_of(entries: list[RawEntry | EntryBlock]) -> EntryColumns:
    """Entries, some of which are columns already, as columns."""
    blocks: list[EntryBlock] = []
    odd: dict[int, RawEntry] = {}
    row = 0
    for is_block, several in groupby(entries, key=lambda entry: isinstance(entry, EntryBlock)):
        if is_block:
            ready = [block for block in several if isinstance(block, EntryBlock)]
        else:
            singles = [entry for entry in several if isinstance(entry, RawEntry)]
            odd |= {at: entry for at, entry in enumerate(singles, start=row) if _is_odd(entry)}
            ready = [block_of(singles)]
        blocks += ready
        row += sum(map(len, ready))
    blocks = blocks or [block_of([])]
    return EntryColumns(
        {name: _joined([block.texts[name] for block in blocks]) for name in BLOCK_TEXTS},
        np.concatenate([block.credit for block in blocks]),
        np.concatenate([block.reversal for block in blocks]),
        np.concatenate([block.booked for block in blocks]),
        odd,
        tuple(blocks),
    )


def _is_odd(entry: RawEntry) -> bool:
    return bool(entry.charges or entry.instructed_currency or entry.details)


def _joined(arrays: list[pa.LargeStringArray]) -> pa.LargeStringArray:
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def amounts_of(columns: EntryColumns, *, currency: str, where: StatementPlace) -> Ints:
    """Minor units with the sign of the mark.

    Raises:
        SourceUnreadableError: one of them is no amount of the currency.
    """
    texts, decimals = columns.texts["amount"], exponent(currency)
    fraction = rf"\.[0-9]{{{decimals}}}" if decimals else ""
    plain = pc.match_substring_regex(texts, rf"\A[0-9]{{1,{DIGITS_MAX}}}{fraction}\z")
    is_plain = plain.to_numpy(zero_copy_only=False)
    amounts = np.zeros(len(texts), dtype=np.int64)
    digits: Any = pc.replace_substring(texts.filter(plain), ".", "")
    amounts[is_plain] = digits.cast(pa.int64()).to_numpy()
    for row in np.flatnonzero(~is_plain).tolist():
        amounts[row] = units_of(texts[row].as_py(), currency=currency, statement=where)
    signed: Ints = np.where(columns.credit, amounts, -amounts)
    return signed


def refuse_unfit(columns: EntryColumns, *, currency: str, where: StatementPlace) -> None:
    """Refuse entries of another currency, and booked ones without a day.

    Raises:
        SourceUnreadableError: there is one.
    """
    foreign = pc.not_equal(columns.texts["currency"], currency).to_numpy(zero_copy_only=False)
    for row in np.flatnonzero(foreign)[:1].tolist():
        own = columns.texts["currency"][row].as_py()
        where.refuse(
            f"line {columns.line_of(row)} is an entry in {scrubbed(own) or 'no currency'}, "
            f"its account is in {currency}"
        )
    timeless = pc.equal(columns.texts["booked_on"], "").to_numpy(zero_copy_only=False)
    for row in np.flatnonzero(timeless & columns.booked)[:1].tolist():
        where.refuse(f"line {columns.line_of(row)} is a booked entry without a day of booking")


def numbers_of(columns: EntryColumns) -> "pd.Series[str]":
    """The number of each entry: its place where it has none, and `#2` where one stands before."""
    given = columns.texts["entry_no"]
    if pc.all(pc.not_equal(given, "")).as_py() and pc.count_distinct(given).as_py() == len(given):
        return pd.Series(given.to_pylist(), dtype="str")
    own = pd.Series(
        [number or str(at) for at, number in enumerate(given.to_pylist(), start=1)], dtype="str"
    )
    times = own.groupby(own).cumcount()
    again = times.gt(0)
    own[again] = own[again] + "#" + (times[again] + 1).astype("str")
    return own


def days_of(columns: EntryColumns) -> Iterator[str]:
    """Every different day that the entries name."""
    for name in ("booked_on", "value_on"):
        yield from pc.unique(columns.texts[name]).to_pylist()


def longest_number(columns: EntryColumns) -> int:
    """Characters of the longest number of an entry."""
    return int(pc.max(pc.utf8_length(columns.texts["entry_no"])).as_py() or 0)
