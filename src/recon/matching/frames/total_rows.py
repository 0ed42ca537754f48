"""Two frames become the two sides of control totals, one per place they name."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from recon.matching.frames.coding import placed, sums_of
from recon.matching.frames.grouping import Ints, amounts_of
from recon.model.words import ControlTotal

ACCOUNT = ["merchant_id", "account_id"]
ACCOUNT_CURRENCY = [*ACCOUNT, "currency"]

ITEMS = "items"
"""Column of a frame whose rows stand for many items."""

Place = tuple[str, str, str]


def counted(
    number: str, name: str, *, left: pd.DataFrame, right: pd.DataFrame
) -> Iterator[ControlTotal]:
    """Rows per account."""
    yield from counted_places(
        number, name, left=sizes(left, by=ACCOUNT), right=sizes(right, by=ACCOUNT)
    )


def counted_places(
    number: str,
    name: str,
    *,
    left: Mapping[tuple[str, ...], int],
    right: Mapping[tuple[str, ...], int],
) -> Iterator[ControlTotal]:
    """Counts per account."""
    for merchant, account in sorted({*left, *right}):
        sides = left.get((merchant, account), 0), right.get((merchant, account), 0)
        yield ControlTotal(number, name, merchant, account, "", "count", *sides)


def sizes(frame: pd.DataFrame, *, by: list[str]) -> dict[tuple[str, ...], int]:
    """How many rows each place has; a row of many items counts as its column `items` says."""
    if frame.empty:
        return {}
    if ITEMS in frame.columns:
        return _by_place(frame, by=by, values=frame[ITEMS].to_numpy(dtype=np.int64))
    groups, places = placed(frame, by=by)
    numbers = np.bincount(groups, minlength=len(places)).tolist()
    return dict(zip(places, numbers, strict=True))


class Tally(NamedTuple):
    """How many items each place has, and what they net."""

    counts: dict[Place, int]
    sums: dict[Place, int]


def added(*parts: Mapping[Place, int]) -> dict[Place, int]:
    """Place by place, the sum of the parts."""
    together: dict[Place, int] = {}
    for part in parts:
        for key, amount in part.items():
            together[key] = together.get(key, 0) + amount
    return together


def less(sums: Mapping[Place, int], other: Mapping[Place, int]) -> dict[Place, int]:
    """Place by place, one less the other."""
    return added(sums, {key: -amount for key, amount in other.items()})


def compared_rows(
    number: str, name: str, *, left: pd.DataFrame, right: pd.DataFrame
) -> Iterator[ControlTotal]:
    """Rows per account and currency."""
    mine, other = (counts(frame) for frame in (left, right))
    yield from paired(number, name, left=mine, right=other, measure="count")


def counts(frame: pd.DataFrame) -> dict[Place, int]:
    """Rows per account and currency."""
    return _as_places(sizes(frame, by=ACCOUNT_CURRENCY))


def compared_sums(
    number: str, name: str, *, left: pd.DataFrame, right: pd.DataFrame
) -> Iterator[ControlTotal]:
    """Sum of `amount` per account and currency."""
    yield from paired(number, name, left=sums(left), right=sums(right), measure="amount")


def sums(frame: pd.DataFrame, *, column: str = "amount") -> dict[Place, int]:
    """Sum of a column per account and currency; blanks count as nothing."""
    if frame.empty:
        return {}
    return _as_places(_by_place(frame, by=ACCOUNT_CURRENCY, values=amounts_of(frame[column])))


def _by_place(frame: pd.DataFrame, *, by: list[str], values: Ints) -> dict[tuple[str, ...], int]:
    groups, places = placed(frame, by=by)
    totals = sums_of(values, groups=groups, size=len(places)).tolist()
    return dict(zip(places, totals, strict=True))


def sums_of_columns(frame: pd.DataFrame, *, columns: Sequence[str]) -> dict[str, dict[Place, int]]:
    """Sums of several columns per account and currency; blanks count as nothing."""
    groups, places = placed(frame, by=ACCOUNT_CURRENCY)
    named, by_place = as_places(places), {}
    for name in columns:
        totals = sums_of(amounts_of(frame[name]), groups=groups, size=len(named))
        by_place[name] = dict(zip(named, totals.tolist(), strict=True))
    return by_place


def as_places(places: Iterable[tuple[str, ...]]) -> list[Place]:
    """Merchant, account and currency."""
    return [(merchant, account, currency) for merchant, account, currency in places]


def _as_places(sums: dict[tuple[str, ...], int]) -> dict[Place, int]:
    return {(merchant, account, currency): n for (merchant, account, currency), n in sums.items()}


def paired(
    number: str, name: str, *, left: Mapping[Place, int], right: Mapping[Place, int], measure: str
) -> Iterator[ControlTotal]:
    """One total per place that either side names."""
    for key in sorted({*left, *right}):
        sides = left.get(key, 0), right.get(key, 0)
        yield ControlTotal(number, name, *key, measure, *sides)
