"""Which rows belong together: one set per merchant, account and order key.

Rows without an order key join a set by transaction_id, else by reference_no, else stand alone under
their transaction_id, entry_id or reference. Two candidates are never chosen between: the row stands
alone and its set is marked ambiguous.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from recon.matching.grouping import Bools, Rows
from recon.matching.sources import KEY_COLUMNS

NO_SET = -1
BY_ORDER, BY_TRANSACTION, BY_ENTRY, BY_PAYOUT = range(4)
ID_COLUMNS = ("transaction_id", "reference_no", "entry_id")


@dataclass(frozen=True, slots=True)
class SetKeys:
    """The sets, and for each source the set of each of its rows."""

    frame: pd.DataFrame
    """One row per set: merchant_id, account_id, order_no ("" if none), key, kind."""
    of: Mapping[str, Rows]
    ambiguous: Bools

    @property
    def size(self) -> int:
        """How many sets there are."""
        return len(self.frame)


def build_sets(frames: Mapping[str, pd.DataFrame]) -> SetKeys:
    """Number the sets of all sources (grain of each frame: its source row)."""
    rows = _all_rows(frames)
    rows["set"], keyed = _by_order(rows)
    ambiguous_rows = np.zeros(len(rows), dtype=np.bool_)
    for column in ("transaction_id", "reference_no"):
        ambiguous_rows |= _join(rows, column=column)
    alone = _stand_alone(rows, size=len(keyed))
    frame = pd.concat([keyed, alone], ignore_index=True) if len(alone) else keyed
    frame = frame.astype({**dict.fromkeys((*KEY_COLUMNS, "key"), "str"), "kind": "int64"})
    ambiguous = np.zeros(len(frame), dtype=np.bool_)
    ambiguous[rows["set"].to_numpy()[ambiguous_rows]] = True
    set_of = rows["set"].to_numpy(dtype=np.intp)
    ends = np.cumsum([len(source) for source in frames.values()])[:-1]
    return SetKeys(frame, dict(zip(frames, np.split(set_of, ends), strict=True)), ambiguous)


def _all_rows(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    names = [*KEY_COLUMNS, *ID_COLUMNS]
    parts = [source.reindex(columns=names, fill_value="") for source in frames.values()]
    rows = pd.concat(parts, ignore_index=True).astype("str")
    rows["account"] = _numbers(rows, ["merchant_id", "account_id"])
    return rows


def _numbers(rows: pd.DataFrame, columns: list[str]) -> Rows:
    """A number for each distinct combination of the columns."""
    numbers = np.zeros(len(rows), dtype=np.intp)
    for column in columns:
        codes, values = pd.factorize(rows[column])
        numbers = pd.factorize(numbers * (len(values) + 1) + codes)[0]
    return numbers


def _by_order(rows: pd.DataFrame) -> tuple[Rows, pd.DataFrame]:
    """The set of every row that has an order key, and the frame of those sets."""
    keyed = rows["order_no"].ne("").to_numpy()
    inside = rows.loc[keyed, [*KEY_COLUMNS, "account"]]
    numbers = _numbers(inside, ["account", "order_no"])
    sets = np.full(len(rows), NO_SET, dtype=np.intp)
    sets[keyed] = numbers
    _, first = np.unique(numbers, return_index=True)
    frame = inside.iloc[first][[*KEY_COLUMNS]].reset_index(drop=True)
    return sets, frame.assign(key=frame["order_no"], kind=BY_ORDER)


def _join(rows: pd.DataFrame, *, column: str) -> Bools:
    """Join rows without a set by one id; the rows with several candidates are given back."""
    several = np.zeros(len(rows), dtype=np.bool_)
    loose = rows["set"].eq(NO_SET) & rows[column].ne("")
    if not loose.any():
        return several
    known = rows.loc[rows["set"].ne(NO_SET) & rows[column].ne(""), ["account", column, "set"]]
    known = known.drop_duplicates()
    candidates = known.groupby(["account", column])["set"].agg(["min", "size"]).reset_index()
    found = rows.loc[loose, ["account", column]].merge(
        candidates, on=["account", column], how="left"
    )
    found.index = rows.index[loose]
    one = found.index[found["size"].eq(1)]
    rows.loc[one, "set"] = found.loc[one, "min"].astype(np.intp)
    several[found.index[found["size"].gt(1)]] = True
    return several


def _stand_alone(rows: pd.DataFrame, *, size: int) -> pd.DataFrame:
    """New sets for what joined nothing; `rows` learns their numbers."""
    parts = []
    for column, kind in (("transaction_id", BY_TRANSACTION), ("entry_id", BY_ENTRY)):
        _join(rows, column="reference_no")
        loose = rows["set"].eq(NO_SET)
        if column == "transaction_id":
            loose &= rows[column].ne("")
        if not loose.any():
            continue
        inside = rows.loc[loose]
        key = inside[column].where(inside[column].ne(""), inside["reference_no"])
        inside = inside.assign(key=key)
        numbers = _numbers(inside, ["account", "key"])
        rows.loc[loose, "set"] = numbers + size
        _, first = np.unique(numbers, return_index=True)
        part = inside.iloc[first][["merchant_id", "account_id", "key"]]
        parts.append(part.assign(order_no="", kind=kind))
        size += len(first)
    return pd.concat(parts) if parts else pd.DataFrame(columns=[*KEY_COLUMNS, "key", "kind"])
