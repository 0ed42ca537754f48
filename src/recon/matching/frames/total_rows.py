"""Sums and counts of rows by account and currency, and pairs of them as control totals."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from recon.model.terms import ControlTotal

ACCOUNT = ["merchant_id", "account_id"]
ACCOUNT_KEY = [*ACCOUNT, "currency"]

AccountKey = tuple[str, str, str]


def added(*sums: Mapping[AccountKey, int]) -> dict[AccountKey, int]:
    """Return the sum of the parts for each account and currency."""
    together: dict[AccountKey, int] = {}
    for each in sums:
        for key, amount in each.items():
            together[key] = together.get(key, 0) + amount
    return together


def counts(frame: pd.DataFrame) -> dict[AccountKey, int]:
    """Return the number of rows per account and currency."""
    by_account: dict[Any, int] = frame.groupby(ACCOUNT_KEY).size().to_dict()
    return by_account


def sums(frame: pd.DataFrame, *, column: str = "amount") -> dict[AccountKey, int]:
    """Return the sum of a column per account and currency; blanks count as 0."""
    by_account: dict[Any, int] = frame.groupby(ACCOUNT_KEY)[column].sum().to_dict()
    return by_account


def paired(
    number: str,
    name: str,
    *,
    left: Mapping[AccountKey, int],
    right: Mapping[AccountKey, int],
    measure: str,
) -> Iterator[ControlTotal]:
    """Yield one control total for each account and currency that either side has."""
    for key in sorted({*left, *right}):
        sides = left.get(key, 0), right.get(key, 0)
        yield ControlTotal(number, name, *key, measure, *sides)
