"""Rows added up by account and currency, and the two sides of a control total."""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from recon.matching.frames.coding import placed, sums_of
from recon.matching.frames.grouping import Ints, amounts_of
from recon.model.words import ControlTotal

ACCOUNT = ["merchant_id", "account_id"]
ACCOUNT_CURRENCY = [*ACCOUNT, "currency"]

Place = tuple[str, str, str]


def added(*parts: Mapping[Place, int]) -> dict[Place, int]:
    """Place by place, the sum of the parts."""
    together: dict[Place, int] = {}
    for part in parts:
        for key, amount in part.items():
            together[key] = together.get(key, 0) + amount
    return together


def counts(frame: pd.DataFrame) -> dict[Place, int]:
    """Rows per account and currency."""
    if frame.empty:
        return {}
    ones = np.ones(len(frame), dtype=np.int64)
    return _as_places(_by_place(frame, by=ACCOUNT_CURRENCY, values=ones))


def sums(frame: pd.DataFrame, *, column: str = "amount") -> dict[Place, int]:
    """Sum of a column per account and currency; blanks count as nothing."""
    if frame.empty:
        return {}
    return _as_places(_by_place(frame, by=ACCOUNT_CURRENCY, values=amounts_of(frame[column])))


def _by_place(frame: pd.DataFrame, *, by: list[str], values: Ints) -> dict[tuple[str, ...], int]:
    groups, places = placed(frame, by=by)
    totals = sums_of(values, groups=groups, size=len(places)).tolist()
    return dict(zip(places, totals, strict=True))


def _as_places(sums: dict[tuple[str, ...], int]) -> dict[Place, int]:
    return {(merchant, account, currency): n for (merchant, account, currency), n in sums.items()}


def paired(
    number: str, name: str, *, left: Mapping[Place, int], right: Mapping[Place, int], measure: str
) -> Iterator[ControlTotal]:
    """One total per place that either side names."""
    for key in sorted({*left, *right}):
        sides = left.get(key, 0), right.get(key, 0)
        yield ControlTotal(number, name, *key, measure, *sides)
