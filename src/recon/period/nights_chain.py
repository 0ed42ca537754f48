"""P1: the nights of a month as a chain, and the breaks that its nights opened and closed.

Each business day has a night, each night carries on from the one before it, and what was open
before the month, with what every night says became of its breaks, is what its last night shows as
open, code by code.
"""

from collections.abc import Iterator, Sequence

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.period.business_month import BusinessMonth
from recon.period.month_equation import AMOUNT, COUNT, MonthEquation
from recon.period.month_nights import MonthNight, frame_of, table_of

DAYS = "business days = those with a night"
CHAIN = "nights that carry on from another than the one before"
ROLLED = "open before + what nights say became of breaks = open at the close, "
"""Followed by the code."""
_NOW = ("code", "currency", "exposure")
_BEFORE = ("code_before", "currency_before", "exposure_before")


def chain_equations(
    nights: Sequence[MonthNight],
    *,
    account: tuple[str, str],
    month: BusinessMonth,
    due: Sequence[str],
) -> Iterator[MonthEquation]:
    """P1 of a month.

    Args:
        nights: the night before the month, where there is one, and all from its first day on.
        account: merchant and account.
        month: the business dates.
        due: ISO business dates on which a night was due by now.
    """
    own = of_month(nights, month=month)
    there = {night.business_date for night in own}
    yield MonthEquation("P1", DAYS, "", COUNT, len(due), sum(day in there for day in due))
    before = {night.number: nights[at - 1].run_id if at else "" for at, night in enumerate(nights)}
    strayed = sum(night.predecessor != before[night.number] for night in own)
    yield MonthEquation("P1", CHAIN, "", COUNT, strayed, 0)
    yield from _rolled(nights, own=own, account=account, month=month)


def of_month(nights: Sequence[MonthNight], *, month: BusinessMonth) -> list[MonthNight]:
    """Those of its business dates."""
    first, last = month.first.isoformat(), month.last.isoformat()
    return [night for night in nights if first <= night.business_date <= last]


def open_breaks(
    nights: Sequence[MonthNight], *, account: tuple[str, str], month: BusinessMonth
) -> pd.DataFrame:
    """The breaks that the last night by the month's close shows, as its folder has them."""
    last = month.last.isoformat()
    by_then = [night for night in nights if night.business_date <= last]
    return frame_of((by_then or nights)[-1], "breaks", account=account)


def _rolled(
    nights: Sequence[MonthNight],
    *,
    own: Sequence[MonthNight],
    account: tuple[str, str],
    month: BusinessMonth,
) -> Iterator[MonthEquation]:
    before = [night for night in nights if night.business_date < month.first.isoformat()]
    parts = [_shown(night, account=account) for night in before[-1:]]
    for night in own:
        rows = table_of(night, "movements", account=account, columns=(*_NOW, *_BEFORE))
        parts += [_named(rows, _NOW, sign=1), _named(rows, _BEFORE, sign=-1)]
    closing = (own or before)[-1:]
    left, right = _sums(parts), _sums([_shown(night, account=account) for night in closing])
    for code, currency in sorted({*left, *right}):
        sides = [sums.get((code, currency), (0, 0)) for sums in (left, right)]
        for at, measure in enumerate((COUNT, AMOUNT)):
            both = sides[0][at], sides[1][at]
            yield MonthEquation("P1", f"{ROLLED}{code}", currency, measure, *both)


def _shown(night: MonthNight, *, account: tuple[str, str]) -> pa.Table:
    return _named(table_of(night, "breaks", account=account, columns=_NOW), _NOW, sign=1)


def _named(rows: pa.Table, names: Sequence[str], *, sign: int) -> pa.Table:
    """Code, currency, count and exposure of the rows that have a code, as they count."""
    code, currency, exposure = (rows[name] for name in names)
    cells = {
        "code": code.cast(pa.string()),
        "currency": currency.cast(pa.string()),
        COUNT: pa.array([sign] * len(rows), pa.int64()),
        AMOUNT: pc.multiply(pc.fill_null(exposure, 0), sign),
    }
    return pa.table(cells).filter(pc.not_equal(cells["code"], ""))


def _sums(parts: Sequence[pa.Table]) -> dict[tuple[str, str], tuple[int, int]]:
    """Code and currency -> count and exposure."""
    if not parts:
        return {}
    sums = pa.concat_tables(parts).group_by(["code", "currency"])
    rows = sums.aggregate([(COUNT, "sum"), (AMOUNT, "sum")]).to_pylist()
    return {
        (row["code"], row["currency"]): (row[f"{COUNT}_sum"], row[f"{AMOUNT}_sum"]) for row in rows
    }
