"""One numbering of keys and accounts, made once for all sources and handed down."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from recon.matching.frames.coding import NO_KEY, Codes, coded, placed_together
from recon.matching.frames.grouping import Rows
from recon.matching.frames.total_rows import ACCOUNT

SPARE_MAX = 4
"""Numbers of keys for each row, most of them of no row; above it the numbers are drawn together."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Merchant, account and order number of rows, as one number."""

    of: Mapping[str, Rows]
    """By source; NO_KEY for a row without an order number."""
    account_of: Mapping[str, Rows]
    """By source, for every row the place of its merchant and account in `accounts`."""
    account: Codes
    """By key, the place in `accounts`."""
    accounts: list[tuple[str, ...]]
    """Merchant and account."""

    @property
    def size(self) -> int:
        """How many keys there are."""
        return len(self.account)


def keys_of(frames: Mapping[str, pd.DataFrame]) -> Keys:
    """Number the keys that rows of some frames name: sources, and what else names keys."""
    accounts, places = _accounts([*frames.values()])
    orders, words = coded([frame["order_no"] for frame in frames.values()])
    numbers, size = _numbers(orders, words=len(words), accounts=accounts, places=len(places))
    account = _same(0, size=size)
    if len(places) > 1:
        account = np.zeros(size, dtype=np.int32)
        for number, account_code in zip(numbers, accounts, strict=True):
            account[number] = account_code
    blank = pc.index(words, "").as_py()
    if blank != NO_KEY:
        numbers = [np.where(o == blank, NO_KEY, n) for o, n in zip(orders, numbers, strict=True)]
    of, account_of = (
        {name: column.astype(np.intp) for name, column in zip(frames, columns, strict=True)}
        for columns in (numbers, accounts)
    )
    return Keys(of, account_of, account, places)


def _accounts(frames: list[pd.DataFrame]) -> tuple[list[Codes], list[tuple[str, ...]]]:
    """The place of each row's merchant and account; of one account nothing is held."""
    rows, places = placed_together(frames, by=ACCOUNT)
    if len(places) == 1:
        return [_same(0, size=len(each)) for each in rows], places
    return [each.astype(np.int32) for each in rows], places


def _same(number: int, *, size: int) -> Codes:
    return np.broadcast_to(np.int32(number), (size,))


def _numbers(
    orders: Sequence[Codes], *, words: int, accounts: list[Codes], places: int
) -> tuple[list[Codes], int]:
    """The number of each row's account and order, and how many there are."""
    if places <= 1:
        return [*orders], words
    size = words * places
    wide = [
        account * np.int64(words) + order for account, order in zip(accounts, orders, strict=True)
    ]
    if size > SPARE_MAX * sum(map(len, orders)):
        every, known = pd.factorize(np.concatenate(wide))
        wide, size = np.split(every, np.cumsum([*map(len, orders)])[:-1]), len(known)
    return [each.astype(np.int32) for each in wide], size
