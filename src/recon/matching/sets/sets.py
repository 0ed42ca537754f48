"""Which rows belong together: one set per merchant, account and order key.

Rows without an order key join a set by transaction_id, else by reference_no, else stand alone under
their transaction_id, entry_id or reference. Two candidates are never chosen between: the row stands
alone and its set is marked ambiguous.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from recon.matching.frames.arrays import Arrays, Column, among, filled, text_column, texts, texts_at
from recon.matching.frames.coding import NO_KEY
from recon.matching.frames.grouping import Bools, Rows

NO_SET = -1
BY_ORDER, BY_TRANSACTION, BY_ENTRY, BY_PAYOUT = range(4)
ID_COLUMNS = ("transaction_id", "reference_no", "entry_id")


@dataclass(frozen=True, slots=True)
class SetNames:
    """What the rows of one source name their set by (grain: source row)."""

    keys: Rows
    """The number of the order key; NO_KEY for none."""
    accounts: Rows
    """The number of merchant and account."""
    frame: pd.DataFrame
    """With order_no, and of ID_COLUMNS those that the source has."""

    def take(self, rows: Bools) -> "SetNames":
        """Some of the rows."""
        names = self.frame.columns.intersection(["order_no", *ID_COLUMNS])
        return SetNames(self.keys[rows], self.accounts[rows], self.frame.loc[rows, names])


@dataclass(frozen=True, slots=True)
class SetKeys:
    """The sets, and for each source the set of each of its rows."""

    frame: Arrays
    """One row per set: merchant_id, account_id, order_no ("" if none), key, kind, account."""
    of: Mapping[str, Rows]
    ambiguous: Bools

    @property
    def size(self) -> int:
        """How many sets there are."""
        return len(self.frame)


def build_sets(sources: Mapping[str, SetNames], *, accounts: list[tuple[str, ...]]) -> SetKeys:
    """Number the sets of all sources.

    Args:
        sources: what their rows name.
        accounts: merchant and account by their number.
    """
    rows = _all_rows(sources)
    keyed, order_no = rows["key"] != NO_KEY, _of_all(sources, "order_no")
    rows.columns["set"] = np.full(len(rows), NO_SET, dtype=np.intp)
    rows["set"][keyed], unique_keys = pd.factorize(rows["key"][keyed])
    first = np.flatnonzero(keyed)[_first(rows["set"][keyed], size=len(unique_keys))]
    ambiguous_rows = np.zeros(len(rows), dtype=np.bool_)
    size, alone = len(unique_keys), []
    if not keyed.all():
        # Of nearly no row the ids are asked.
        rows.columns |= {name: texts(_of_all(sources, name)) for name in ID_COLUMNS}
        for column in ("transaction_id", "reference_no"):
            ambiguous_rows |= _join(rows, column=column)
        alone = _stand_alone(rows, size=size)
    chosen = np.concatenate([first, *(rows_of for rows_of, _, _ in alone)])
    keys = texts_at(first, of=order_no)
    named = [keys, *(names for _, names, _ in alone)]
    kinds = [np.full(size, BY_ORDER), *(np.full(len(rows_of), kind) for rows_of, _, kind in alone)]
    account = rows["account"][chosen]
    order_nos = [keys, filled("", size=len(chosen) - size)]
    frame = {
        **account_texts(account, accounts=accounts),
        "order_no": np.concatenate(order_nos),
        "key": np.concatenate(named),
        "kind": np.concatenate(kinds),
        "account": account,
    }
    ambiguous = np.zeros(len(chosen), dtype=np.bool_)
    ambiguous[rows["set"][ambiguous_rows]] = True
    ends = np.cumsum([len(source.keys) for source in sources.values()])[:-1]
    of = dict(zip(sources, np.split(rows["set"], ends), strict=True))
    return SetKeys(Arrays(frame, size=len(chosen)), of, ambiguous)


def account_texts(account: Rows, *, accounts: list[tuple[str, ...]]) -> dict[str, Column]:
    """Merchant and account of rows by the number of their account."""
    names = np.empty((len(accounts) + 1, 2), dtype=object)
    names[:-1] = np.array(accounts, dtype=object).reshape(-1, 2)
    return {"merchant_id": names[account, 0], "account_id": names[account, 1]}


def _all_rows(sources: Mapping[str, SetNames]) -> Arrays:
    """The rows of all sources below each other: key and account."""
    keys = np.concatenate([source.keys for source in sources.values()])
    accounts = np.concatenate([source.accounts for source in sources.values()])
    return Arrays({"key": keys, "account": accounts}, size=len(keys))


def _of_all(sources: Mapping[str, SetNames], name: str, /) -> "pd.Series[str]":
    """One column of all rows; blank where a source does not have it."""
    columns = [
        source.frame[name]
        if name in source.frame.columns
        else text_column(filled("", size=len(source.frame)))
        for source in sources.values()
    ]
    return pd.concat(columns, ignore_index=True)


def _first(numbers: Rows, *, size: int) -> Rows:
    """The first row of each number."""
    first = np.zeros(size, dtype=np.intp)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    return first


def _join(rows: Arrays, *, column: str) -> Bools:
    """Join rows without a set by one id; the rows with several candidates are given back."""
    several = np.zeros(len(rows), dtype=np.bool_)
    sets, ids, account = rows["set"], rows[column], rows["account"]
    loose = np.flatnonzero((sets == NO_SET) & (ids != ""))
    if not loose.size:
        return several
    wanted = among(ids, {*ids[loose].tolist()})
    known = np.flatnonzero((sets != NO_SET) & wanted)
    candidates: dict[tuple[int, str], set[int]] = {}
    for account_code, name, number in zip(
        account[known].tolist(), ids[known].tolist(), sets[known].tolist(), strict=True
    ):
        candidates.setdefault((account_code, name), set()).add(number)
    for row, account_code, name in zip(
        loose.tolist(), account[loose].tolist(), ids[loose].tolist(), strict=True
    ):
        fitting = candidates.get((account_code, name), set())
        if len(fitting) == 1:
            (sets[row],) = fitting
        several[row] = len(fitting) > 1
    return several


def _stand_alone(rows: Arrays, *, size: int) -> list[tuple[Rows, Column, int]]:
    """New sets for what joined nothing: a row of each, their keys and kind; `rows` learns them."""
    parts = []
    for column, kind in (("transaction_id", BY_TRANSACTION), ("entry_id", BY_ENTRY)):
        _join(rows, column="reference_no")
        ids = rows[column]
        alone = rows["set"] == NO_SET
        if column == "transaction_id":
            alone &= ids != ""
        loose = np.flatnonzero(alone)
        if not loose.size:
            continue
        keys = np.where(ids[loose] != "", ids[loose], rows["reference_no"][loose])
        known: dict[tuple[int, str], int] = {}
        places = zip(rows["account"][loose].tolist(), keys.tolist(), strict=True)
        numbers = np.array(
            [known.setdefault(key_of_row, len(known)) for key_of_row in places], np.intp
        )
        rows["set"][loose] = numbers + size
        first = _first(numbers, size=len(known))
        parts.append((loose[first], keys[first], kind))
        size += len(known)
    return parts
