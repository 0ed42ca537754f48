"""Two frames become the two sides of control totals, one per place they name."""

from collections.abc import Iterator

import pandas as pd

from recon.model import ControlTotal

ACCOUNT = ["merchant_id", "account_id"]
ACCOUNT_CURRENCY = [*ACCOUNT, "currency"]

Place = tuple[str, str, str]


def counted(
    number: str, name: str, *, left: pd.DataFrame, right: pd.DataFrame
) -> Iterator[ControlTotal]:
    """Rows per account."""
    one, other = _sizes(left), _sizes(right)
    for merchant, account in sorted({*one, *other}):
        sides = one.get((merchant, account), 0), other.get((merchant, account), 0)
        yield ControlTotal(number, name, merchant, account, "", "count", *sides)


def _sizes(frame: pd.DataFrame) -> dict[tuple[str, str], int]:
    sizes = frame.groupby(ACCOUNT, observed=True).size()
    return {_place(key)[:2]: int(rows) for key, rows in sizes.items()}


def compared_rows(
    number: str, name: str, *, left: pd.DataFrame, right: pd.DataFrame
) -> Iterator[ControlTotal]:
    """Rows per account and currency."""
    sides = [
        {
            _place(key): int(n)
            for key, n in frame.groupby(ACCOUNT_CURRENCY, observed=True).size().items()
        }
        for frame in (left, right)
    ]
    yield from paired(number, name, left=sides[0], right=sides[1], measure="count")


def compared_sums(
    number: str, name: str, *, left: pd.DataFrame, right: pd.DataFrame
) -> Iterator[ControlTotal]:
    """Sum of `amount` per account and currency."""
    yield from paired(number, name, left=sums(left), right=sums(right), measure="amount")


def sums(frame: pd.DataFrame, *, column: str = "amount") -> dict[Place, int]:
    """Sum of a column per account and currency; blanks count as nothing."""
    totals = frame.groupby(ACCOUNT_CURRENCY, observed=True)[column].sum()
    return {_place(key): int(value) for key, value in totals.items()}


def paired(
    number: str, name: str, *, left: dict[Place, int], right: dict[Place, int], measure: str
) -> Iterator[ControlTotal]:
    """One total per place that either side names."""
    for place in sorted({*left, *right}):
        sides = left.get(place, 0), right.get(place, 0)
        yield ControlTotal(number, name, *place, measure, *sides)


def _place(key: object) -> Place:
    merchant, account, *currency = key if isinstance(key, tuple) else (key, "")
    return str(merchant), str(account), str(currency[0]) if currency else ""
