"""On which day the journals of a close are booked.

A night dates all that it proposes with its own day. What moved by a close is the closing month's: a
journal whose order differed there, or whose pay-out is that old, is booked on the month's last day,
as long as it takes no more than is open: what was booked or took place since made that even.
Others keep their day: what moved later, and fees, which are accrued.
"""

from datetime import date

import numpy as np
import pandas as pd

from recon.model.business_date import BusinessCalendar
from recon.period.books_of_month import (
    EARLIER,
    FEES_KEY,
    LATER,
    PAYOUTS_KEY,
    keys_of,
    orders_of_payments,
)
from recon.period.business_month import BusinessMonth
from recon.period.month_evidence import MonthEvidence
from recon.period.month_nights import frame_of

_PLACE = ["currency", "key"]


def age_of_month(month: BusinessMonth, *, calendar: BusinessCalendar, newest: str) -> int:
    """Business days from which a break of the newest night is surely of the month or older.

    Days off right after the month share their age with its last day.
    """
    age = calendar.business_days_between(month.last, end=date.fromisoformat(newest))
    return age if calendar.business_days_between(month.last, end=month.after.first) else age + 1


def dated_journals(
    rows: pd.DataFrame,
    *,
    evidence: MonthEvidence,
    account: tuple[str, str],
    month: BusinessMonth,
    age: int,
    differing: pd.DataFrame | None,
) -> pd.DataFrame:
    """The lines that the newest night proposes, each with the day on which it is booked.

    Args:
        rows: `amount` beside them, as each moves the clearing account; 0 of other accounts.
        evidence: of the month.
        account: merchant and account.
        month: that is closed.
        age: see `age_of_month`.
        differing: as it is listed at the close; None without books.
    """
    last = month.last.isoformat()
    later = rows["date"].astype("str") > last
    if differing is None or not later.any():
        return rows
    columns = ("break_id", "code", "order_no", "transaction_id", "age_days")
    breaks = frame_of(evidence.newest, "breaks", account=account, columns=columns)
    breaks = breaks.rename(columns={"code": "named"})
    breaks = breaks.assign(key=keys_of(breaks, orders=orders_of_payments(evidence)))
    old = breaks["age_days"].fillna(-1) >= age
    asked = breaks["key"].ne(PAYOUTS_KEY) | old
    asked &= ~breaks["key"].isin((FEES_KEY, ""))
    by_key = rows[later].merge(breaks.loc[asked, ["break_id", "key"]], on="break_id")
    amounts = by_key.groupby(_PLACE, as_index=False)["amount"].sum()
    still_open = differing[~differing["what"].isin((LATER, EARLIER))]
    gaps = still_open.groupby(_PLACE, as_index=False).agg(gap=("amount", "sum"))
    both = amounts.merge(gaps, on=_PLACE)
    is_opposite = np.sign(both["amount"]).eq(-np.sign(both["gap"]))
    of_month = is_opposite & both["amount"].ne(0) & (both["amount"].abs() <= both["gap"].abs())
    own = by_key.merge(both.loc[of_month, _PLACE], on=_PLACE)
    is_own = later & rows["journal_id"].isin(own["journal_id"])
    return rows.assign(date=rows["date"].astype("str").where(~is_own, last))
