"""Why books and gateway differ at a close, as a statement lists it.

What differs of an order at a close is answered by what was booked since, else by what took place
since; the rest is open. What is open by now and did not differ at the close is of a later day and
not listed. Fees and pay-outs are sums of many entries, of which nobody knows which one answers
which: they are listed as what they differ by.
"""

import numpy as np
import pandas as pd

from recon.period.books_of_month import (
    DIFFERENCE_COLUMNS,
    EARLIER,
    FEES_KEY,
    LATER,
    OPEN,
    PAYOUTS_KEY,
    Books,
    sums_by_key,
)
from recon.period.waiting_adjustments import class_of

OF_GROUPS = (FEES_KEY, PAYOUTS_KEY)
SHOWN_BY_NIGHTS = (OPEN, *OF_GROUPS)
"""What is held against what the nights show; of other rows they show nothing."""


def listed_differences(books: Books, *, at: str) -> pd.DataFrame:
    """Books less gateway at the close of a business date, DIFFERENCE_COLUMNS (grain: key, what)."""
    sums = sums_by_key(books, at=at)
    gap = sums["still"] + sums["timing"]
    way = np.sign(gap)
    group = sums["key"].isin(OF_GROUPS)
    what = class_of(sums["key"], otherwise=OPEN)
    lone = ~group & what.eq(OPEN)
    booked = (-way * sums["booked_later"]).clip(lower=0).where(lone, 0)
    booked = booked.where(booked < gap.abs(), gap.abs())
    moved = (way * sums["moved_later"]).clip(lower=0).where(lone, 0)
    left = gap.abs() - booked
    moved = moved.where(moved < left, left)
    rest = way * (left - moved)
    # What the nights show otherwise than it is stays to be seen, whatever else answers the rest.
    unlike = (sums["shown"] - sums["still"]).where(what.eq(OPEN), 0)
    shown = (rest + unlike).where(what.eq(OPEN), 0)
    parts = [
        sums.assign(what=what.where(~group, sums["key"]), amount=rest, shown=shown),
        sums.assign(what=LATER, amount=way * booked, shown=0),
        sums.assign(what=EARLIER, amount=way * moved, shown=0),
    ]
    rows = pd.concat(parts, ignore_index=True)[[*DIFFERENCE_COLUMNS]]
    rows = rows[rows["amount"].ne(0) | rows["shown"].ne(0)]
    rows = rows.sort_values(["currency", "what", "key"], ignore_index=True)
    return rows.astype({"amount": "int64", "shown": "int64"})
